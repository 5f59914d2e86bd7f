//! All classes together.

use serde::Serialize;

use super::{Counted, Span, StatementTime};

/// What one class costs, or all of them together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Total {
    /// Nanoseconds per statement; `None` if there were no statements, or there are events and nothing is known of
    /// their price.
    pub ns_per_statement: Option<Span>,
    /// Processors kept busy; `None` if there are events and nothing is known of their price.
    pub cores: Option<Span>,
    /// Share of the processor time of the server; `None` if that is not known, or nothing of the price.
    pub share_of_server: Option<Span>,
    /// It is more than that: a part of the price is not known, or how often it is paid.
    pub is_at_least: bool,
    /// Whether it is known well enough to predict with: every price and number of events was measured, its interval
    /// is within 1/1.5 and 1.5 times itself, and prices hold for statements as long as those here
    /// ([`StatementTime::is_within_reach`]). Where there are no events it is: that is nothing.
    pub is_predictable: bool,
}

impl Total {
    /// The sum of classes with events, and whether those were counted on this server: what point selects have of a
    /// class is no measurement of it. What is not known of one is left out.
    pub(super) fn of<'a>(
        counted: &Counted,
        statement_time: StatementTime,
        classes: impl Iterator<Item = (&'a Total, bool)>,
    ) -> Total {
        let (parts, are_counted): (Vec<&Total>, Vec<bool>) = classes.unzip();
        let sum = |is_known: bool, of: fn(&Total) -> Option<Span>| match parts.is_empty() {
            true => is_known.then_some(Span::ZERO),
            // What one class costs more under another load than under that of the calibration, others may too:
            // errors add up.
            false => parts.iter().filter_map(|one| of(one)).reduce(Span::plus),
        };
        let cores = sum(true, |one| one.cores);
        let is_known =
            |cores: Span| cores == Span::ZERO || cores.is_close() && statement_time.is_within_reach;
        let is_at_least = parts.iter().any(|one| one.is_at_least || one.cores.is_none());
        let is_counted = !are_counted.contains(&false);
        Total {
            ns_per_statement: sum(counted.statements > 0, |one| one.ns_per_statement),
            cores,
            share_of_server: sum(counted.busy_cores().is_some(), |one| one.share_of_server),
            is_at_least,
            is_predictable: !is_at_least && is_counted && cores.is_some_and(is_known),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use waggle_model::Reading;

    use super::*;

    /// Nobody was there.
    fn counted(statements: u64, server_ns: Reading<u64>) -> Counted {
        let (events, classes) = (BTreeMap::new(), BTreeMap::new());
        Counted {
            seconds: 1.0,
            statements,
            running: 1.0,
            server_ns,
            statement_ns: None,
            events,
            classes,
        }
    }

    fn time(is_within_reach: bool) -> StatementTime {
        StatementTime { here_ns: None, calibrated_ns: None, is_within_reach }
    }

    fn total<const N: usize>(parts: [Total; N]) -> Total {
        let parts = parts.iter().map(|one| (one, true));
        Total::of(&counted(1, Reading::Value(1)), time(true), parts)
    }

    fn part(low: f64, value: f64, high: f64) -> Total {
        Total {
            ns_per_statement: None,
            cores: Some(Span { low, value, high }),
            share_of_server: None,
            is_at_least: false,
            is_predictable: true,
        }
    }

    #[test]
    fn errors_add_up() {
        let total = total([
            part(90.0, 100.0, 110.0),
            part(80.0, 100.0, 120.0),
            // Alone it would predict nothing.
            part(60.0, 100.0, 140.0),
        ]);
        assert_eq!(total.cores, Some(Span { low: 230.0, value: 300.0, high: 370.0 }));
        assert!(total.is_predictable && total.ns_per_statement.is_none());
    }

    #[test]
    fn a_class_that_is_lost_in_the_noise_stays_in_the_sum() {
        let total = total([part(-20.0, -10.0, 0.0), part(90.0, 110.0, 130.0)]);
        assert_eq!(total.cores.unwrap().value, 100.0);
    }

    #[test]
    fn a_wide_sum_a_bound_and_what_was_not_counted_here_predict_nothing() {
        let close = part(99.0, 100.0, 101.0);
        assert!(total([close.clone()]).is_predictable);
        assert!(!total([part(10.0, 100.0, 190.0)]).is_predictable);
        let elsewhere = [(&close, false)].into_iter();
        let elsewhere = Total::of(&counted(1, Reading::Value(1)), time(true), elsewhere);
        assert!(!elsewhere.is_predictable);
        let bound = total([Total { is_at_least: true, ..close }]);
        assert!(bound.is_at_least && !bound.is_predictable);
    }

    #[test]
    fn longer_statements_than_those_of_the_calibration_predict_nothing() {
        let of = |time| {
            let part = part(99.0, 100.0, 101.0);
            Total::of(&counted(1, Reading::Value(1)), time, [(&part, true)].into_iter())
        };
        assert!(of(time(true)).is_predictable && !of(time(false)).is_predictable);
    }

    #[test]
    fn where_nothing_is_on_it_costs_nothing_and_per_statement_only_where_there_are_some() {
        let nothing = total([]);
        assert!(nothing.is_predictable && nothing.cores == Some(Span::ZERO));
        assert_eq!(nothing.ns_per_statement, Some(Span::ZERO));
        assert_eq!(nothing.share_of_server, Some(Span::ZERO));
        let elsewhere = counted(0, Reading::absent("another host"));
        let idle = Total::of(&elsewhere, time(false), std::iter::empty());
        assert!(idle.is_predictable, "nothing is on");
        assert_eq!((idle.ns_per_statement, idle.share_of_server), (None, None));
    }
}
