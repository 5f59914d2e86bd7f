//! The arithmetic, by hand.

use waggle_model::Reading;

use super::*;
use crate::cost::Calibration;
use crate::cost::tests::{calibration, timers};

const MUTEX: &str = "wait/synch/mutex/sql/LOCK_open";
const SELECT: &str = "statement/sql/select";
const UPDATE: &str = "statement/sql/update";
const LOCK: &str = "wait/lock/metadata/sql/mdl";

/// A server whose instruments are timed where they are on.
fn state(is_on: bool, instruments: &[(&str, bool)]) -> State {
    let setting = |on: bool| Some(if on { "YES" } else { "NO" }.to_owned());
    let instruments = instruments
        .iter()
        .map(|(name, on)| (vec![(*name).to_owned()], vec![setting(*on), setting(*on)]));
    let consumer = (vec!["global_instrumentation".to_owned()], vec![setting(is_on)]);
    State::of([(Table::Instruments, instruments.collect()), (Table::Consumers, [consumer].into())])
}

/// Half a second in which this many statements took a quarter of a processor.
fn counted(now: &State, statements: u64, events: &[(&str, u64)]) -> Counted {
    let events = events.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    Counted {
        seconds: 0.5,
        statements,
        running: 1.0,
        server_ns: Reading::Value(125_000_000),
        statement_ns: Some(125_000.0),
        classes: count::classes(now, &events),
        events,
    }
}

fn forecast(
    now: &State,
    after: &State,
    counted: &Counted,
    calibration: Option<&Calibration>,
) -> Forecast {
    let (timers, chosen) = (timers(), BTreeMap::new());
    let prices = Prices { timers: &timers, chosen: &chosen, calibration };
    let buffers = [("threads", 64), ("metadata_locks", 8), ("performance_schema", 72)];
    let buffers = buffers.map(|(name, bytes)| (name.to_owned(), bytes));
    let buffers = Reading::Value(buffers.into());
    Sources { counted, prices, after }.forecast("9".to_owned(), now, &buffers)
}

#[test]
fn what_is_off_costs_the_events_of_point_selects_at_the_rate_of_this_server() {
    let (now, after) = (state(true, &[(MUTEX, false)]), state(true, &[(MUTEX, true)]));
    let prices = calibration(&[("wait/synch/mutex", 30.0)]);
    let forecast = forecast(&now, &after, &counted(&now, 1000, &[]), Some(&prices));
    let [mutex] = &forecast.classes[..] else { panic!("{forecast:?}") };
    assert_eq!((mutex.enabled, mutex.events_from), (1, Origin::PointSelects));
    // One event a statement, and 2,000 statements a second.
    assert_eq!((mutex.events_per_statement, mutex.events_per_s), (Some(1.0), Some(2000.0)));
    // Two readings of 20 cycles at 2 GHz, and the rest.
    assert_eq!(mutex.total.ns_per_statement.unwrap(), Span { low: 20.0, value: 50.0, high: 80.0 });
    assert!((mutex.total.cores.unwrap().value - 0.0001).abs() < 1e-12);
    assert!((mutex.total.share_of_server.unwrap().value - 0.0004).abs() < 1e-12);
    assert!(!mutex.total.is_at_least && !mutex.total.is_predictable, "a mutex may be shared");
    assert_eq!(forecast.total.cores, mutex.total.cores);
    assert!(!forecast.total.is_predictable, "those events are of another server");
    assert_eq!(forecast.now.cores, Some(Span::ZERO), "nothing is on");
}

#[test]
fn without_a_calibration_the_price_is_a_bound_and_the_events_are_unknown() {
    let (now, after) = (state(true, &[(MUTEX, false)]), state(true, &[(MUTEX, true)]));
    let forecast = forecast(&now, &after, &counted(&now, 1000, &[]), None);
    let [mutex] = &forecast.classes[..] else { panic!("{forecast:?}") };
    assert_eq!((mutex.events_from, mutex.ns_per_event), (Origin::Unknown, Some(Span::exact(20.0))));
    assert_eq!((mutex.events_per_statement, mutex.events_per_s), (None, None), "never zero");
    assert_eq!((mutex.total.ns_per_statement, mutex.total.cores), (None, None), "never zero");
    assert_eq!((forecast.total.cores, forecast.total.is_at_least), (None, true));
}

#[test]
fn what_stays_on_is_counted_without_what_goes_off() {
    let query = ("statement/abstract/Query", true);
    let now = state(true, &[query, (SELECT, true), (UPDATE, true)]);
    let of = |after: &State| {
        let counted = counted(&now, 1000, &[(SELECT, 600), (UPDATE, 400)]);
        forecast(&now, after, &counted, Some(&calibration(&[("statement", 50.0)])))
    };
    let same = of(&now);
    assert_eq!(same.classes[0].events_from, Origin::Counted);
    assert_eq!(same.classes[0].events_per_statement, Some(1.0));
    // 100 ns of the timer and the rest.
    assert_eq!(same.classes[0].total.ns_per_statement.unwrap().value, 150.0);
    assert!(!same.total.is_at_least);
    assert!(same.classes[0].total.is_predictable && same.total.is_predictable);
    assert_eq!(same.total, same.now);
    // Every update still begins as a query.
    let fewer = of(&state(true, &[query, (SELECT, true), (UPDATE, false)]));
    assert_eq!(fewer.classes[0].events_per_statement, Some(0.6));
    assert!(fewer.total.is_at_least);
    let none = of(&state(true, &[(SELECT, true), (UPDATE, false)]));
    assert!(!none.total.is_at_least);
}

#[test]
fn a_class_that_is_on_in_part_has_no_fewer_events_than_it_has_now() {
    let now = state(true, &[(SELECT, true), (UPDATE, false)]);
    let after = state(true, &[(SELECT, true), (UPDATE, true)]);
    let prices = calibration(&[("statement", 50.0)]);
    let events = |events| {
        let counted = counted(&now, 1000, &[(SELECT, events)]);
        let forecast = forecast(&now, &after, &counted, Some(&prices));
        (forecast.classes[0].events_from, forecast.classes[0].events_per_statement)
    };
    assert_eq!(events(500), (Origin::PointSelects, Some(1.0)));
    assert_eq!(events(3000), (Origin::PointSelects, Some(3.0)));
}

#[test]
fn with_the_consumer_above_all_off_nothing_is_recorded() {
    let (on, off) = (state(true, &[(MUTEX, true)]), state(false, &[(MUTEX, true)]));
    let prices = calibration(&[("wait/synch/mutex", 30.0)]);
    let nothing = forecast(&on, &off, &counted(&on, 1000, &[(MUTEX, 9)]), Some(&prices));
    assert_eq!((nothing.classes.len(), nothing.total.cores), (0, Some(Span::ZERO)));
    let all = forecast(&off, &on, &counted(&off, 1000, &[]), Some(&prices));
    assert_eq!(all.classes[0].events_from, Origin::PointSelects);
}

#[test]
fn where_no_statements_run_there_are_no_processors_to_tell() {
    let (now, after) = (state(true, &[(MUTEX, false)]), state(true, &[(MUTEX, true)]));
    let prices = calibration(&[("wait/synch/mutex", 30.0)]);
    let forecast = forecast(&now, &after, &counted(&now, 0, &[]), Some(&prices));
    assert_eq!(forecast.classes[0].total.ns_per_statement.unwrap().value, 50.0);
    assert_eq!((forecast.classes[0].total.cores, forecast.total.cores), (None, None));
    assert!(forecast.total.is_at_least);
}

#[test]
fn what_grows_is_named_where_something_of_it_comes_on() {
    let of = |now: bool| {
        let (now, after) = (state(true, &[(LOCK, now)]), state(true, &[(LOCK, true)]));
        forecast(&now, &after, &counted(&now, 1000, &[]), None)
    };
    assert_eq!(of(false).memory_grows, [("metadata_locks", Some(8))].into());
    assert!(of(true).memory_grows.is_empty());
    assert_eq!(of(true).memory_bytes_total, Some(72));
}
