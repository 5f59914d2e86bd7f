//! All classes together.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Span;
use super::calibration::PREDICTABLE;
use crate::class::kind_of;

/// All classes together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Total {
    /// Nanoseconds per statement; `None` where there were no statements.
    pub ns_per_statement: Option<Span>,
    /// Processors kept busy; `None` where there are events and nothing is known of their price.
    pub cores: Option<Span>,
    /// Share of the processor time of the server; `None` where that is not known.
    pub share_of_server: Option<Span>,
    /// It is more than that: some classes have no price, or only that of the timer.
    pub is_at_least: bool,
    /// Whether what is known of it is known well enough to predict with: its interval is within 1/1.5 and
    /// 1.5 times itself.
    pub is_predictable: bool,
}

impl Total {
    /// The sum of some classes with events. What is not known of one is left out, which that one tells by
    /// `is_at_least`.
    pub(super) fn of<'a>(each: impl Iterator<Item = (&'a str, Total)>) -> Total {
        let mut kinds: BTreeMap<&str, Total> = BTreeMap::new();
        for (class, one) in each {
            let of_kind = kinds.remove(kind_of(class));
            // Classes of a kind share what was measured of the kind.
            let sum = match of_kind {
                Some(others) => others.and(one, Span::plus),
                None => one,
            };
            kinds.insert(kind_of(class), sum);
        }
        let sum = kinds.into_values().reduce(|sum, one| sum.and(one, Span::plus_apart));
        let sum = sum.unwrap_or(Total {
            ns_per_statement: None,
            cores: Some(Span::ZERO),
            share_of_server: None,
            is_at_least: false,
            is_predictable: true,
        });
        let is_exact = |cores: Span| cores == Span::ZERO || cores.is_within(PREDICTABLE);
        Total { is_predictable: sum.cores.is_some_and(is_exact), ..sum }
    }

    fn and(self, other: Total, plus: fn(Span, Span) -> Span) -> Total {
        let sum =
            |one: Option<Span>, other: Option<Span>| one.into_iter().chain(other).reduce(plus);
        Total {
            ns_per_statement: sum(self.ns_per_statement, other.ns_per_statement),
            cores: sum(self.cores, other.cores),
            share_of_server: sum(self.share_of_server, other.share_of_server),
            is_at_least: self.is_at_least || other.is_at_least,
            is_predictable: self.is_predictable && other.is_predictable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(low: f64, value: f64, high: f64) -> Total {
        let span = Some(Span { low, value, high });
        Total {
            ns_per_statement: span,
            cores: span,
            share_of_server: None,
            is_at_least: false,
            is_predictable: false,
        }
    }

    #[test]
    fn errors_of_a_kind_add_up_and_those_of_kinds_are_independent() {
        let classes = [
            ("wait/io/file", one(90.0, 100.0, 110.0)),
            ("wait/io/table", one(80.0, 100.0, 120.0)),
            ("stage", one(60.0, 100.0, 140.0)),
        ];
        let total = Total::of(classes.into_iter());
        // 10 and 20 are 30; 30 and 40 are 50.
        assert_eq!(total.cores, Some(Span { low: 250.0, value: 300.0, high: 350.0 }));
        assert!(total.is_predictable, "each alone was not said to be");
    }

    #[test]
    fn a_wide_sum_predicts_nothing_and_one_that_leaves_something_out_is_at_least() {
        assert!(!Total::of([("stage", one(10.0, 100.0, 190.0))].into_iter()).is_predictable);
        let part = Total { is_at_least: true, ..one(99.0, 100.0, 101.0) };
        let total = Total::of([("stage", part), ("wait", one(9.0, 10.0, 11.0))].into_iter());
        assert!(total.is_at_least && total.is_predictable);
        let nothing = Total::of(std::iter::empty());
        assert!(nothing.is_predictable && nothing.cores == Some(Span::ZERO));
    }
}
