//! The small form of the bench, whole: on a real server, with every arm.
#![cfg(test)]

use std::fs;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use waggle_bench_frame::Quick;

const BENCH: &str = env!("CARGO_BIN_EXE_waggle-bench");
/// Two benches at once would starve each other.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn the_small_form_measures_every_arm_that_loads_and_counts_every_statement() {
    let _alone = alone();
    let quick = Quick::run(BENCH, &["tap"]).unwrap();
    let Quick { summary, page, raw, .. } = &quick;
    let prices = summary["prices"].as_array().unwrap();
    let refused = summary["refused"].as_array().unwrap();
    for arm in ["A/A", "waggle send", "waggle syscall", "waggle uprobe", "uprobe pair"] {
        let of_arm: Vec<_> = prices.iter().filter(|price| price["arm"] == arm).collect();
        assert_eq!(of_arm.len(), 3, "{arm}: two loads and both of them; refused: {refused:?}");
        for price in of_arm.iter().filter(|_| arm != "A/A") {
            // What is captured and what the server counts are read some moments apart, and the
            // windows are short. That nothing is missing, `waggle verify` proves.
            let share = price["captured_share"].as_f64().unwrap();
            assert!((0.5..2.0).contains(&share), "{price:#}");
            assert_eq!(price["lost"], 0, "{price:#}");
        }
    }
    let fentry = refused.iter().any(|one| one["arm"] == "waggle fentry" && one["why"] != "");
    let is_measured = prices.iter().any(|price| price["arm"] == "waggle fentry");
    assert!(fentry || is_measured, "fentry is measured or refused with a reason");

    let agent = &summary["agent"];
    assert!(agent["captured"].as_u64().unwrap() > 0, "{agent}");
    assert_eq!(agent["lost"], 0);
    let run_times = summary["run_times"].as_array().unwrap();
    assert_eq!(run_times.len() % 2, 0);
    assert!(run_times.iter().all(|one| one["runs"].as_u64().unwrap() > 0), "{run_times:#?}");

    assert!(page.contains("| waggle send |") && page.contains("A/A half-width"), "{page}");
    let windows = fs::read_to_string(raw.join("windows.csv")).unwrap();
    let of_loads = prices.iter().filter(|price| !price["load"].is_null());
    let number = |price: &serde_json::Value, name: &str| price[name].as_u64().unwrap();
    let blocks: u64 = of_loads.map(|one| number(one, "blocks") + number(one, "void_blocks")).sum();
    assert_eq!(windows.lines().count() as u64, 1 + 4 * blocks);
}

#[test]
fn limits_of_texts_are_priced_on_short_and_on_long_statements() {
    let _alone = alone();
    let quick = Quick::run(BENCH, &["tap", "--texts"]).unwrap();
    let prices = quick.summary["prices"].as_array().unwrap();
    for arm in ["A/A", "texts of 4 KiB", "texts of 16 KiB", "texts of 64 KiB"] {
        let of_arm: Vec<_> = prices.iter().filter(|price| price["arm"] == arm).collect();
        assert_eq!(of_arm.len(), 3, "{arm}: two loads and both of them");
        // Long texts may fill the rings: that is what is priced.
        let is_short = |price: &&&Value| price["load"] == "point select, text";
        for price in of_arm.iter().filter(is_short).filter(|_| arm != "A/A") {
            let share = price["captured_share"].as_f64().unwrap();
            assert!((0.5..2.0).contains(&share) && price["lost"] == 0, "{price:#}");
        }
    }
}

#[test]
fn waits_are_priced_beside_the_tap_without_them() {
    let _alone = alone();
    let quick = Quick::run(BENCH, &["tap", "--waits"]).unwrap();
    for arm in ["A/A", "waggle send", "waggle with waits"] {
        let is_arm = |price: &&Value| price["arm"] == arm;
        let of_arm: Vec<_> =
            quick.summary["prices"].as_array().unwrap().iter().filter(is_arm).collect();
        assert_eq!(of_arm.len(), 4, "{arm}: three loads and all of them");
        assert!(of_arm.iter().all(|price| price["lost"] == 0), "{of_arm:#?}");
    }
    let limits = quick.summary["verdicts"].as_array().unwrap();
    for name in ["waits_us_point_select", "waits_us_read_write", "waits_us_write_only", "switch_ns"]
    {
        let limit = limits.iter().find(|limit| limit["name"] == name).unwrap();
        assert!(limit["measured"].is_string(), "{limit}");
    }
}

#[test]
fn a_server_that_does_not_exist_is_refused_with_the_names_of_those_that_do() {
    let bench = Command::new(BENCH).args(["tap", "--server", "mysql-4.1"]).output().unwrap();
    assert!(!bench.status.success());
    assert!(String::from_utf8_lossy(&bench.stderr).contains("mariadb-10.11"));
}
