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
    /// Whether it is known well enough to predict with: every price and number of events was measured, and
    /// its interval is within 1/1.5 and 1.5 times itself.
    pub is_predictable: bool,
}

/// One class of a sum, with events.
pub(super) struct Part<'a> {
    pub(super) class: &'a str,
    pub(super) ns_per_statement: Option<Span>,
    pub(super) cores: Option<Span>,
    pub(super) share_of_server: Option<Span>,
    pub(super) is_at_least: bool,
    /// Whether its price and the number of its events were measured, however closely.
    pub(super) is_measured: bool,
}

impl Total {
    /// The sum of classes with events. What is not known of one is left out, which that one tells by
    /// `is_at_least`.
    pub(super) fn of<'a>(parts: impl Iterator<Item = Part<'a>>) -> Total {
        let parts: Vec<Part<'a>> = parts.collect();
        let sum = |of: fn(&Part<'_>) -> Option<Span>| sum(&parts, of);
        let cores = if parts.is_empty() { Some(Span::ZERO) } else { sum(|one| one.cores) };
        let is_exact = |cores: Span| cores == Span::ZERO || cores.is_within(PREDICTABLE);
        Total {
            ns_per_statement: sum(|one| one.ns_per_statement),
            cores,
            share_of_server: sum(|one| one.share_of_server),
            is_at_least: parts.iter().any(|one| one.is_at_least),
            is_predictable: parts.iter().all(|one| one.is_measured) && cores.is_some_and(is_exact),
        }
    }
}

/// Kinds were measured apart; classes of a kind share what was measured of the kind.
fn sum(parts: &[Part<'_>], of: fn(&Part<'_>) -> Option<Span>) -> Option<Span> {
    let mut kinds: BTreeMap<&str, Span> = BTreeMap::new();
    for (class, span) in parts.iter().filter_map(|one| Some((one.class, of(one)?))) {
        kinds.entry(kind_of(class)).and_modify(|sum| *sum = sum.plus(span)).or_insert(span);
    }
    kinds.into_values().reduce(Span::plus_apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(class: &str, low: f64, value: f64, high: f64) -> Part<'_> {
        Part {
            class,
            ns_per_statement: None,
            cores: Some(Span { low, value, high }),
            share_of_server: None,
            is_at_least: false,
            is_measured: true,
        }
    }

    #[test]
    fn errors_of_a_kind_add_up_and_those_of_kinds_are_independent() {
        let parts = [
            part("wait/io/file", 90.0, 100.0, 110.0),
            part("wait/io/table", 80.0, 100.0, 120.0),
            // Alone it would predict nothing.
            part("stage", 60.0, 100.0, 140.0),
        ];
        let total = Total::of(parts.into_iter());
        // 10 and 20 are 30; 30 and 40 are 50.
        assert_eq!(total.cores, Some(Span { low: 250.0, value: 300.0, high: 350.0 }));
        assert!(total.is_predictable && total.ns_per_statement.is_none());
    }

    #[test]
    fn a_class_that_is_lost_in_the_noise_stays_in_the_sum() {
        let parts = [part("stage", -20.0, -10.0, 0.0), part("wait", 90.0, 110.0, 130.0)];
        assert_eq!(Total::of(parts.into_iter()).cores.unwrap().value, 100.0);
    }

    #[test]
    fn a_wide_sum_and_one_that_was_not_measured_predict_nothing() {
        let of = |part: Part<'static>| Total::of([part].into_iter());
        assert!(!of(part("stage", 10.0, 100.0, 190.0)).is_predictable);
        let timer = Part { is_measured: false, ..part("stage", 100.0, 100.0, 100.0) };
        assert!(!of(timer).is_predictable);
        let bound = of(Part { is_at_least: true, ..part("stage", 99.0, 100.0, 101.0) });
        assert!(bound.is_at_least && bound.is_predictable);
        let nothing = Total::of(std::iter::empty());
        assert!(nothing.is_predictable && nothing.cores == Some(Span::ZERO));
    }
}
