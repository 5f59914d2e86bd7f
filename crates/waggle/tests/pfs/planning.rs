//! A plan says what it will cost before anything is changed.

use std::process::Output;

use serde_json::Value;
use waggle_testkit::{Version, wait_for};

use super::costing::{STATEMENTS, assert_counts_the_load, at_work, busy, class, json, number};
use super::prices::{self, Price};
use super::{Scene, stderr};

const MUTEX: &str = "wait/synch/mutex";
const PRICE: Price = Price { class: MUTEX, events_per_statement: 10.0, rest_ns: 30.0 };
const BRIEFLY: [&str; 2] = ["--interval", "300ms"];

fn plan(scene: &Scene, words: &[&str]) -> Output {
    scene.run(&[&["plan"][..], words, &BRIEFLY].concat())
}

fn cost(scene: &Scene, profile: &str) -> Value {
    json(&plan(scene, &[profile, "--json"]))["cost"].clone()
}

/// The same while a load is at work.
pub(super) fn cost_at_work(scene: &Scene, profile: &str) -> Value {
    at_work(|| cost(scene, profile))
}

fn assert_near(value: f64, expected: f64, what: &str) {
    assert!((value - expected).abs() <= expected.abs() * 1e-6, "{what}: {value}, not {expected}");
}

#[test]
fn what_is_off_is_not_measured_until_it_is_calibrated_and_then_as_of_point_selects() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let _load = busy(&scene);
        let unknown = cost(&scene, "waits");
        let mutex = class(&unknown, MUTEX);
        assert_eq!(mutex["events_from"], "unknown", "{version}: {mutex}");
        for key in ["events_per_s", "events_per_statement", "ns_per_statement", "cores"] {
            assert_eq!(mutex[key], Value::Null, "{version} {key}: never zero");
        }
        assert_eq!(unknown["total"]["is_at_least"], true, "{version}");
        let timer = mutex["ns_per_event"]["value"].as_f64().unwrap_or(0.0);

        prices::keep(&scene.server, scene.state.path(), &[PRICE]);
        let known = cost_at_work(&scene, "waits");
        let mutex = class(&known, MUTEX);
        assert_eq!(mutex["events_from"], "point_selects", "{version}: {mutex}");
        assert_eq!(mutex["events_per_statement"], 10.0, "{version}");
        let ns = number(&mutex["ns_per_event"]["value"]);
        assert_near(ns, timer + 30.0, version.name());
        let per_s = number(&mutex["events_per_s"]);
        assert_near(per_s, number(&known["statements_per_s"]) * 10.0, version.name());
        let cores = number(&mutex["cores"]["value"]);
        assert_near(cores, per_s * ns / 1e9, version.name());
        let share = number(&mutex["share_of_server"]["value"]);
        assert_near(share, cores / number(&known["server_cores"]), version.name());

        let statement = class(&known, "statement");
        assert_eq!(statement["events_from"], "counted", "{version}: {statement}");
        assert_counts_the_load(&known, version.name());
    }
}

#[test]
fn the_words_of_a_plan_say_what_it_answers_and_from_where_its_cost_is() {
    let scene = Scene::of(Version::Mysql9);
    let _load = busy(&scene);
    let said = |words: &[&str]| {
        wait_for(STATEMENTS, || {
            let output = plan(&scene, words);
            assert!(output.status.success(), "{}", stderr(&output));
            let said = String::from_utf8(output.stdout).unwrap();
            (!said.contains("with 0.0 statements/s")).then_some(said)
        })
    };
    let assert_says = |words: &[&str], parts: &[&str]| {
        let said = said(words);
        parts.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
    };
    assert_says(
        &["waits", "--account", "app@%"],
        &[
            "What does every session wait for",
            "expected here, with ",
            "  events not measured\n",
            "waggle pfs cost --calibrate",
            "memory of Performance Schema: ",
            "that only a part is recorded",
        ],
    );
    assert_says(&["metrics-on"], &["the counters of InnoDB, which are not measured"]);
    prices::keep(&scene.server, scene.state.path(), &[PRICE]);
    assert_says(
        &["waits"],
        &[
            "%  as of point selects",
            "waggle pfs cost counts yours",
            "the calibration saw too few",
            "not predictable: wait/synch",
        ],
    );
}

#[test]
fn what_a_plan_says_grows_with_what_comes_on_and_stays() {
    // The others record metadata locks by themselves.
    for version in [Version::Mysql57, Version::Mariadb1011, Version::Mariadb114] {
        // The default, written out: no other test starts its server like this. One that others had
        // used keeps the memory that it took then.
        let options = ["--performance-schema=ON", "--performance-schema-max-metadata-locks=-1"];
        let scene = Scene::with(version, options);
        let locks = || {
            let cost = cost(&scene, "locks");
            assert!(number(&cost["memory_bytes_total"]) > 1e6, "{version}: {cost}");
            number(&cost["memory_grows"]["metadata_locks"])
        };
        assert_eq!(locks(), 0.0, "{version}");
        let holding = scene.hold(&["apply", "locks", "--for", "600s"]);
        let mut client = scene.server.root().unwrap();
        client.run("SELECT COUNT(*) FROM mysql.user").unwrap();
        holding.end();
        assert!(locks() > 0.0, "{version}: nothing was taken, or it was given back");
    }
}
