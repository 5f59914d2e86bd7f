//! The small form of the bench, whole: on a real server, with every arm.
#![cfg(test)]

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use waggle_bench_frame::{Quick, number};

const BENCH: &str = env!("CARGO_BIN_EXE_waggle-bench");
/// Two benches at once would starve each other.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The entries of a part, by arm.
fn of_arm<'a>(summary: &'a Value, part: &str, arm: &str) -> Vec<&'a Value> {
    summary[part].as_array().unwrap().iter().filter(|one| one["arm"] == arm).collect()
}

/// Each has a price of these collectors and of all together.
fn assert_priced(prices: &[&Value], collectors: &[&str]) {
    for price in prices {
        let json = &price["prove"];
        let steps = json["steps"].as_array().unwrap();
        let priced: Vec<_> = steps.iter().map(|step| step["collector"].as_str().unwrap()).collect();
        assert_eq!(priced, collectors, "{price:#}");
        for step in steps {
            assert!(number(step, "/price/half_width_ns").unwrap() > 0.0, "{price:#}");
        }
        assert!(number(json, "/total/base_ns").unwrap() > 0.0, "{price:#}");
    }
}

#[test]
fn the_small_form_prices_every_arm_that_loads() {
    let _alone = alone();
    let Quick { summary, page } = Quick::run(BENCH, &["tap"]).unwrap();
    for arm in ["waggle send", "waggle fentry", "waggle syscall"] {
        let prices = of_arm(&summary, "prices", arm);
        let refused = of_arm(&summary, "refused", arm);
        assert!(refused.iter().all(|one| one["why"] != ""), "{refused:?}");
        let loads = if refused.is_empty() { 2 } else { 0 };
        assert_eq!(prices.len(), loads, "{arm} is priced or refused with a reason");
        assert_priced(&prices, &["statements", "long texts", "waits"]);
    }
    for arm in ["waggle send", "waggle uprobe", "uprobe pair"] {
        let windows = of_arm(&summary, "windows", arm);
        assert_eq!(windows.len(), 2, "{arm}: two loads");
        for tried in windows {
            assert_eq!(tried["blocks"], 3, "{tried:#}");
            assert!(number(tried, "/captured_share").unwrap() > 0.0, "{tried:#}");
            for name in ["added_ns", "floor_ns", "slower_percent"] {
                assert!(tried[name]["value"].is_number(), "{tried:#}");
            }
        }
    }
    assert!(number(&summary, "/agent/captured").unwrap() > 0.0, "{summary:#}");
    assert_eq!(of_arm(&summary, "foreign", "waggle send")[0]["work"], "send");
    let limits: Vec<_> = summary["verdicts"].as_array().unwrap().iter().collect();
    assert!(limits.iter().all(|limit| limit["measured"].is_string()), "{limits:#?}");
    assert!(page.contains("| waggle send |") && page.contains("noise floor"), "{page}");
}

#[test]
fn limits_of_texts_are_priced_on_short_and_on_long_statements() {
    let _alone = alone();
    let Quick { summary, page } = Quick::run(BENCH, &["tap", "--texts"]).unwrap();
    for arm in ["texts of 4 KiB", "texts of 16 KiB", "texts of 64 KiB"] {
        let prices = of_arm(&summary, "prices", arm);
        let loads: Vec<_> = prices.iter().map(|price| price["load"].as_str().unwrap()).collect();
        assert_eq!(loads, ["point select, text", "texts of 60 KB"], "{arm}");
        assert_priced(&prices, &["statements", "long texts"]);
    }
    assert_eq!(summary["windows"], Value::Array(Vec::new()));
    assert!(page.contains("| texts of 60 KB | texts of 64 KiB |"), "{page}");
}

#[test]
fn waits_are_priced_where_commits_wait_for_the_disk() {
    let _alone = alone();
    let Quick { summary, .. } = Quick::run(BENCH, &["tap", "--waits"]).unwrap();
    let prices = of_arm(&summary, "prices", "waggle");
    assert_eq!(prices.len(), 3, "three loads");
    assert_priced(&prices, &["statements", "long texts", "waits"]);
    let limits = summary["verdicts"].as_array().unwrap();
    for name in ["waits_us_point_select", "waits_us_read_write", "waits_us_write_only", "switch_ns"]
    {
        let limit = limits.iter().find(|limit| limit["name"] == name).unwrap();
        assert!(limit["measured"].is_string(), "{limit}");
    }
}

#[test]
fn a_part_can_be_asked_for_alone() {
    let _alone = alone();
    let Quick { summary, .. } = Quick::run(BENCH, &["tap", "--only", "others"]).unwrap();
    assert!(!summary["foreign"].as_array().unwrap().is_empty(), "{summary:#}");
    assert_eq!(summary["agent"], Value::Null);
    for limit in summary["verdicts"].as_array().unwrap() {
        assert_eq!((&limit["measured"], &limit["kept"]), (&Value::Null, &Value::Null), "{limit}");
    }
}

#[test]
fn a_server_that_does_not_exist_is_refused_with_the_names_of_those_that_do() {
    let bench = Command::new(BENCH).args(["tap", "--server", "mysql-4.1"]).output().unwrap();
    assert!(!bench.status.success());
    assert!(String::from_utf8_lossy(&bench.stderr).contains("mariadb-10.11"));
}
