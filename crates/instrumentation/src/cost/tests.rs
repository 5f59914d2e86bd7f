//! The arithmetic, by hand.

use jiff::Timestamp;

use super::calibration::{Host, Measured, SESSIONS, Source};
use super::*;
use crate::status::Timer;

pub(super) fn timers() -> [Timer; 2] {
    [("CYCLE", 2_000_000_000, 20), ("NANOSECOND", 1_000_000_000, 100)].map(
        |(name, frequency, overhead)| Timer {
            name: name.to_owned(),
            frequency: Some(frequency),
            resolution: Some(1),
            overhead_cycles: Some(overhead),
        },
    )
}

/// Half a second in which 1,000 statements took a quarter of a processor.
fn counted(classes: &[(&str, Count)]) -> Counted {
    Counted {
        seconds: 0.5,
        statements: 1000,
        running: 1.0,
        server_ns: Reading::Value(125_000_000),
        statement_ns: Some(125_000.0),
        events: BTreeMap::new(),
        classes: classes.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
    }
}

fn cost(counted: &Counted, calibration: Option<&Calibration>) -> Cost {
    let (timers, chosen) = (timers(), BTreeMap::new());
    let prices = Prices { timers: &timers, chosen: &chosen, calibration };
    Cost::of(
        "9".to_owned(),
        counted,
        &|_| Storage::Sums,
        &prices,
        memory::fixed(&Reading::absent("no right")),
    )
}

pub(super) fn calibration(classes: &[(&str, f64)]) -> Calibration {
    let measured = classes.iter().flat_map(|(class, rest)| {
        SESSIONS.map(|sessions| Measured {
            sessions,
            class: (*class).to_owned(),
            kept: Storage::Sums,
            events_per_statement: 1.0,
            timed_per_statement: 1.0,
            // Half of what a statement takes here: just within reach.
            without_ns: 62_500.0,
            added_ns: Span { low: 90.0, value: 100.0, high: 110.0 },
            timer_ns: Some(0.0),
            rest_ns: Some(Span { low: rest - 4.0, value: *rest, high: rest + 4.0 }),
        })
    });
    Calibration {
        at: Timestamp::UNIX_EPOCH,
        host: Host { model: String::new(), kernel: String::new(), processors: 1 },
        version: "9".to_owned(),
        build: None,
        rounds: 1,
        measured: measured.collect(),
    }
}

#[test]
fn events_times_price_is_the_time_per_statement_the_processors_and_the_share() {
    let file = Count { enabled: 3, events: 10_000, timed: 5_000 };
    let prices = calibration(&[("wait/io/file", 30.0)]);
    let cost = cost(&counted(&[("wait/io/file", file)]), Some(&prices));
    let class = &cost.classes[0];
    assert_eq!((class.events_per_s, class.events_per_statement), (20_000.0, Some(10.0)));
    // Two readings of 20 cycles at 2 GHz are 20 ns; half of the events are timed: 10 + 30, of which 4 and a fifth of
    // 30 may be wrong.
    assert_eq!(class.ns_per_event.unwrap().value, 40.0);
    assert_eq!(
        class.total.ns_per_statement.unwrap(),
        Span { low: 300.0, value: 400.0, high: 500.0 }
    );
    // 20,000 a second of 40 ns are 0.8 ms a second; the server uses a quarter of a processor.
    assert!((class.total.cores.unwrap().value - 0.0008).abs() < 1e-12);
    assert!((class.total.share_of_server.unwrap().value - 0.0032).abs() < 1e-12);
    assert!(!class.total.is_at_least && class.total.is_predictable);
    assert_eq!(class.rest.unwrap().source, Source::Class);
    assert_eq!(cost.total.ns_per_statement, class.total.ns_per_statement);
    assert_eq!((cost.statements_per_s, cost.server_cores), (2000.0, Some(0.25)));
}

#[test]
fn prices_hold_for_statements_of_twice_the_length_of_those_of_the_calibration() {
    let events = Count { enabled: 1, events: 1000, timed: 1000 };
    let prices = calibration(&[("wait/io/file", 30.0)]);
    let of = |statement_ns| {
        let counted = Counted { statement_ns, ..counted(&[("wait/io/file", events)]) };
        cost(&counted, Some(&prices))
    };
    let within = of(Some(125_000.0));
    assert_eq!(within.statement_time.here_ns, Some(125_000.0));
    assert_eq!(within.statement_time.calibrated_ns, Some(62_500.0));
    assert!(within.total.is_predictable && within.classes[0].total.is_predictable);
    for beyond in [of(Some(126_000.0)), of(None)] {
        assert!(!beyond.total.is_predictable && !beyond.classes[0].total.is_predictable);
        assert_eq!(beyond.total.cores, within.total.cores);
    }
}

#[test]
fn where_the_server_does_not_know_its_timer_that_of_the_calibration_stands_for_it() {
    let events = Count { enabled: 1, events: 1000, timed: 500 };
    let mut prices = calibration(&[("stage", 30.0)]);
    let of = |prices: &Calibration, timer: &str| {
        let chosen = BTreeMap::from([("stage".to_owned(), timer.to_owned())]);
        let (mut timers, calibration) = (timers(), Some(prices));
        timers[1].overhead_cycles = Some(0);
        let prices = Prices { timers: &timers, chosen: &chosen, calibration };
        prices.cost("stage", events, Storage::Sums, &counted(&[("stage", events)]))
    };
    prices.measured.iter_mut().for_each(|one| one.timer_ns = Some(40.0));
    let known = of(&prices, "NANOSECOND");
    assert!(known.timer.is_none() && known.timer_unknown.is_some());
    assert_eq!((known.timer_calibrated_ns, known.total.is_at_least), (Some(40.0), false));
    // Half of the events are timed.
    assert_eq!(known.ns_per_event.unwrap().value, 50.0);
    let another = of(&prices, "TICK");
    prices.measured.iter_mut().for_each(|one| one.timer_ns = None);
    for unknown in [another, of(&prices, "NANOSECOND")] {
        assert_eq!((unknown.timer_calibrated_ns, unknown.total.is_at_least), (None, true));
    }
}

#[test]
fn without_a_calibration_it_is_at_least_the_timer() {
    let timed = Count { enabled: 1, events: 2_000, timed: 2_000 };
    let untimed = Count { enabled: 1, events: 3_000, timed: 0 };
    let classes = [("memory", untimed), ("stage", untimed), ("statement", timed)];
    let cost = cost(&counted(&classes), None);
    let [memory, stage, statement] = &cost.classes[..] else { panic!("{cost:?}") };
    // Two readings of 100 cycles at 2 GHz, twice a statement.
    assert_eq!(statement.total.ns_per_statement.unwrap(), Span::exact(200.0));
    assert!(statement.total.is_at_least && !statement.total.is_predictable);
    for unknown in [memory, stage] {
        assert_eq!((unknown.ns_per_event, unknown.total.cores), (None, None), "never zero");
        assert!(unknown.total.is_at_least);
    }
    assert!(cost.total.is_at_least);
    assert_eq!(cost.total.ns_per_statement, Some(Span::exact(200.0)));
    // Of memory alone nothing is known, which is not nothing.
    let memory = self::cost(&counted(&[("memory", untimed)]), None);
    assert_eq!((memory.total.cores, memory.total.is_at_least), (None, true));
}

#[test]
fn rows_that_one_scan_reads_are_priced_once() {
    let of = |events| Count { enabled: 1, events, timed: events };
    let prices = calibration(&[("wait/io/table", 30.0), ("wait/lock/table", 30.0)]);
    let io = |rows: u64, tables: u64| {
        let classes = [("wait/io/table", of(rows)), ("wait/lock/table", of(tables))];
        cost(&counted(&classes), Some(&prices)).classes[0].clone()
    };
    // 50 ns each: 20 of the timer and 30. A thousand rows of a scan are at least one call.
    let scan = io(1_000_000, 1000);
    assert_eq!((scan.events_per_statement, scan.calls_per_s), (Some(1000.0), Some(2000.0)));
    assert_eq!(scan.total.ns_per_statement.unwrap().value, 50.0);
    assert!(scan.total.is_at_least);
    // An update reads and writes the row.
    let update = io(2000, 1000);
    assert_eq!((update.calls_per_s, update.total.is_at_least), (None, false));
    assert_eq!(update.total.ns_per_statement.unwrap().value, 100.0);
    // Without locks nothing is known of it.
    assert_eq!(io(2000, 0).calls_per_s, None);
}

#[test]
fn a_price_that_is_lost_in_the_noise_is_no_bound_and_stays_in_the_sum() {
    let events = Count { enabled: 1, events: 1000, timed: 1000 };
    let prices = calibration(&[("statement", -101.0), ("memory", -1.0)]);
    let cost = cost(&counted(&[("memory", events), ("statement", events)]), Some(&prices));
    let [memory, statement] = &cost.classes[..] else { panic!("{cost:?}") };
    assert_eq!((memory.ns_per_event.unwrap().value, memory.total.is_at_least), (-1.0, false));
    assert_eq!((statement.ns_per_event.unwrap().value, statement.total.is_at_least), (-1.0, false));
    assert_eq!(cost.total.ns_per_statement.unwrap().value, -2.0);
    assert!(!cost.total.is_predictable);
}

#[test]
fn what_is_off_and_silent_is_left_out_and_what_is_not_known_stays_unknown() {
    let silent = Count { enabled: 2, events: 0, timed: 0 };
    let mut counted = counted(&[("idle", Count::default()), ("stage", silent)]);
    counted.statements = 0;
    counted.server_ns = Reading::absent("another host");
    let cost = cost(&counted, Some(&calibration(&[("stage", 10.0)])));
    let [stage] = &cost.classes[..] else { panic!("{cost:?}") };
    assert_eq!((stage.events_per_statement, stage.total.share_of_server), (None, None));
    assert_eq!(stage.total.cores.unwrap(), Span::ZERO, "it is known: there were no events");
    assert_eq!(cost.server_cores_unknown.as_deref(), Some("another host"));
    assert_eq!((cost.total.ns_per_statement, cost.total.share_of_server), (None, None));
    assert_eq!(cost.total.cores, Some(Span::ZERO));
    assert!(!cost.total.is_at_least);
}

#[test]
fn where_events_are_kept_follows_from_the_consumers() {
    let row = |name: &str, on: &str| (vec![name.to_owned()], vec![Some(on.to_owned())]);
    let consumers = [
        row("events_waits_current", "YES"),
        row("events_stages_history_long", "YES"),
        row("events_statements_history", "NO"),
    ];
    let state = State::of([(Table::Consumers, consumers.into())]);
    let kept = kept(&state);
    assert_eq!(kept("wait/io/file"), Storage::History);
    assert_eq!(kept("stage"), Storage::HistoryLong);
    assert_eq!((kept("statement"), kept("memory")), (Storage::Sums, Storage::Sums));
}
