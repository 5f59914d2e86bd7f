//! What is recorded is priced.

use std::process::Output;
use std::time::Duration;

use serde_json::Value;
use waggle_testkit::sysbench::{Length, Running, Sysbench};
use waggle_testkit::{Version, wait_for, wait_showing};

use super::{Scene, load, prices, stderr};

/// Longer than any test; it ends when it is dropped.
const LONG: Length = Length::Time(Duration::from_secs(600));
const BRIEFLY: [&str; 3] = ["cost", "--interval", "300ms"];

/// At a fixed rate, so that the server is asked in time on a busy machine.
pub(super) fn busy(scene: &Scene) -> Running {
    let arguments = vec!["--rate=1000".to_owned()];
    let script = "oltp_point_select".to_owned();
    let sysbench = load::read_write(&scene.server);
    Sysbench { script, arguments, length: LONG, threads: 2, ..sysbench }
        .start(&scene.server)
        .unwrap()
}

/// The sessions of a load may not be there yet, or stand still on a busy host.
pub(super) const STATEMENTS: &str = "statements while they are counted";
/// So many per second are a tenth of what [`busy`] is to do, and more than twice what waggle asks itself.
pub(super) const AT_WORK_PER_S: f64 = 100.0;

/// What a command says of the cost once the load is at work. Its own statements are not among those of clients.
pub(super) fn at_work(mut ask: impl FnMut() -> Value) -> Value {
    wait_for(STATEMENTS, || {
        Some(ask()).filter(|cost| number(&cost["statements_per_s"]) >= AT_WORK_PER_S)
    })
}

/// That the statements of the load are counted as events, not only those that waggle asks itself.
pub(super) fn assert_counts_the_load(cost: &Value, what: &str) {
    let statements = number(&cost["statements_per_s"]);
    let events = number(&class(cost, "statement")["events_per_s"]);
    assert!(events > statements / 2.0, "{what}: {events} events, {statements} statements per s");
}

pub(super) fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(super) fn class<'a>(cost: &'a Value, name: &str) -> &'a Value {
    let classes = cost["classes"].as_array().unwrap();
    classes.iter().find(|class| class["class"] == name).unwrap_or_else(|| panic!("{name}: {cost}"))
}

pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn the_price_of_a_class_follows_from_what_the_server_reports() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let _load = busy(&scene);
        let cost = at_work(|| json(&scene.run(&[&BRIEFLY[..], &["--json"]].concat())));
        assert_counts_the_load(&cost, version.name());
        let statement = class(&cost, "statement");
        assert!(number(&cost["server_cores"]) > 0.0, "{version}: {cost}");
        // It was never calibrated: nothing is known beyond the timer, and nothing is zero for that.
        assert_eq!(statement["rest"], Value::Null, "{version}");
        assert_eq!(statement["is_at_least"], true, "{version}");
        assert_eq!(cost["calibration"], Value::Null, "{version}");
        assert!(cost["calibration_missing"].as_str().unwrap().contains("--calibrate"), "{version}");
        let timer = &statement["timer"];
        if timer.is_null() {
            assert!(statement["timer_unknown"].is_string(), "{version}: {statement}");
            assert_eq!(statement["ns_per_event"], Value::Null, "{version}");
            continue;
        }
        let cycles = 2.0 * number(&timer["overhead_cycles"]) * number(&statement["timed_share"]);
        let ns = cycles / number(&timer["cycles_per_s"]) * 1e9;
        let price = number(&statement["ns_per_event"]["value"]);
        assert!((price - ns).abs() < 1e-6 * ns, "{version}: {price} {ns}");
        let per_s = number(&statement["events_per_s"]);
        let cores = number(&statement["cores"]["value"]);
        assert!((cores - per_s * ns / 1e9).abs() < 1e-9, "{version}: {cores}");
    }
}

#[test]
fn what_is_not_recorded_is_not_in_the_bill_and_memory_is() {
    let scene = Scene::of(Version::Mysql9);
    let _load = busy(&scene);
    let holding = scene.hold(&["apply", "off", "--for", "600s"]);
    let cost = json(&scene.run(&[&BRIEFLY[..], &["--json"]].concat()));
    let names: Vec<_> = cost["classes"].as_array().unwrap().iter().map(|c| &c["class"]).collect();
    // The memory of Performance Schema itself cannot be switched off.
    assert!(names.iter().all(|name| *name == "memory"), "{names:?}");
    assert!(number(&cost["fixed"]["memory_bytes_total"]) > 1e6);
    assert_eq!(cost["fixed"]["cores"], Value::Null, "it is not measured");
    holding.end();
}

/// The arithmetic, once it has all these parts: some need statements while they are counted.
fn explained(scene: &Scene, parts: &[&str]) -> String {
    wait_showing("all parts", || {
        let output = scene.run(&[&BRIEFLY[..], &["--explain"]].concat());
        let said = String::from_utf8(output.stdout).unwrap();
        if parts.iter().all(|part| said.contains(part)) { Ok(said) } else { Err(said) }
    })
}

#[test]
fn the_arithmetic_is_printed_with_what_only_a_restart_removes() {
    let scene = Scene::of(Version::Mysql9);
    let _load = busy(&scene);
    let parts =
        ["2 readings of NANOSECOND", "per statement", "at least", "not measured", "static: "];
    explained(&scene, &parts);
}

#[test]
fn how_the_rest_of_a_price_was_made_is_printed_for_both_numbers_of_sessions() {
    let scene = Scene::of(Version::Mysql9);
    let price = prices::Price { class: "statement", events_per_statement: 2.0, rest_ns: 100.0 };
    prices::keep(&scene.server, scene.state.path(), &[price]);
    let _load = busy(&scene);
    let made = "(200.0 - 2.000 timed × 0.0) ns / 2.000 events = 100.0 ns (70.0 to 130.0)";
    let said = explained(
        &scene,
        &[
            &format!("   2 sessions {made}: measured for this class"),
            &format!("  32 sessions {made}: measured for this class"),
            "  rest       100.0 ns (70.0 to 130.0), kept with a history for each thread, at ",
            "\nall\n  statement  ",
        ],
    );
    assert!(!said.contains("not predictable: "), "{said}");
}

#[test]
fn of_longer_statements_than_those_of_the_calibration_nothing_is_predicted() {
    let scene = Scene::of(Version::Mysql9);
    let price = prices::Price { class: "statement", events_per_statement: 1.0, rest_ns: 100.0 };
    prices::keep_under(1.0, &scene.server, scene.state.path(), &[price]);
    let _load = busy(&scene);
    let cost = at_work(|| json(&scene.run(&[&BRIEFLY[..], &["--json"]].concat())));
    let time = &cost["statement_time"];
    assert!(time["here_ns"].as_f64().unwrap() > 1000.0, "{time}");
    assert_eq!((&time["calibrated_ns"], &time["is_within_reach"]), (&1.0.into(), &false.into()));
    let statement = class(&cost, "statement");
    assert_eq!(
        (&statement["is_at_least"], &statement["is_predictable"]),
        (&false.into(), &false.into())
    );
    let said = String::from_utf8(scene.run(&BRIEFLY).stdout).unwrap();
    assert!(said.contains("and took 0.0 µs in the calibration"), "{said}");
}
