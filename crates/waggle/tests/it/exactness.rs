//! Every statement is captured, once, and the server's own counters say so.

use serde_json::Value;
use waggle_testkit::{PerformanceSchema, Server, Version, on_each_build};

use crate::verified::Verified;
use crate::{load, size};

/// The exact fields: any difference in one of them that the server does not explain is a fault.
const EXACT: [&str; 5] = ["calls", "errors", "rows_sent", "rows_examined", "rows_affected"];

/// A server that counts each digest.
pub(crate) fn with_digests(version: Version) -> Server {
    Server::builder(version).performance_schema(PerformanceSchema::Statements).start().unwrap()
}

fn every_statement_is_captured_once(version: Version) {
    let server = with_digests(version);
    let sysbench = load::read_write(&server);
    let mut sent = 0;
    let verified = Verified::around(&server, &[], |_| {
        sent = load::mixed(&server, &sysbench, size::statements());
        sent += load::bulk(&server);
    });
    let report = &verified.report;
    let mut row = verified.row("exactness", &server, "tcp+unix+tls", "text+prepared");
    row["sysbench_counted"] = sent.into();
    row["server_miscounts"] = miscounts(report);
    size::keep(&row);
    verified.assert_exact(version.name(), sent.max(size::statements()));
    assert_eq!(report["source"], "by_event_name", "{version}");
    assert!(verified.number("/digests_compared") > 0, "{version}: {report:#}");
    for field in EXACT {
        assert!(verified.number(&format!("/fields/{field}/compared")) > 0, "{version} {field}");
    }
    assert_eq!(unexplained(report), 0, "{version}: {report:#}");
    assert_shape(report);
}

/// How many exact fields of digests differ without a fault of the server's own.
pub(crate) fn unexplained(report: &Value) -> usize {
    let all = report["differing"].as_array().unwrap().iter();
    all.filter(|one| EXACT.contains(&one["field"].as_str().unwrap()) && !is_miscount(one)).count()
}

/// The server's digest row is short of what its own count by event name says.
fn is_miscount(one: &Value) -> bool {
    one["why"].as_str().is_some_and(|why| why.starts_with("server miscount"))
}

fn miscounts(report: &Value) -> Value {
    let all = report["differing"].as_array().unwrap().iter();
    all.filter(|one| EXACT.contains(&one["field"].as_str().unwrap())).cloned().collect()
}

/// The keys that scripts rely on.
fn assert_shape(report: &Value) {
    let numbers = [
        "captured",
        "server_counted",
        "missing",
        "extra",
        "in_flight",
        "digests_compared",
        "digests_differing",
    ];
    for key in numbers {
        assert!(report[key].is_u64(), "{key} in {report:#}");
    }
    assert!(report["passed"].is_boolean() && report["not_compared"].is_array());
    assert!(report["lost"].as_object().unwrap().values().all(Value::is_u64));
    let times = ["lock_time", "latency_sum", "latency_percentiles"];
    for field in EXACT.iter().chain(&times) {
        for key in ["compared", "equal", "differing"] {
            assert!(report["fields"][field][key].is_u64(), "{field} {key} in {report:#}");
        }
    }
}

on_each_build!(every_statement_is_captured_once);

#[test]
fn a_statement_dropped_on_purpose_fails_the_verification_and_is_named() {
    let server = with_digests(Version::Mysql9);
    let sysbench = load::read_write(&server);
    let verified = Verified::around(&server, &["--drop-one-in", "10000"], |_| {
        load::mixed(&server, &sysbench, size::choose(20_000, 100_000));
    });
    let report = &verified.report;
    size::keep(&verified.row("dropped", &server, "tcp+unix+tls", "text+prepared"));
    assert_eq!(verified.code, Some(1), "{report:#}");
    assert_eq!(report["passed"], false);
    let dropped = verified.number("/lost/injected");
    assert_eq!(dropped, (verified.number("/captured") + dropped) / 10_000, "{report:#}");
    assert_eq!(verified.number("/missing"), dropped, "{report:#}");
    let named =
        report["differing"].as_array().unwrap().iter().filter(|one| {
            one["field"] == "calls" && !one["digest_text"].as_str().unwrap().is_empty()
        });
    // The server itself can count one too few when a digest is new, which hides one of ours.
    let short: u64 = named
        .map(|one| one["theirs"].as_u64().unwrap().saturating_sub(one["ours"].as_u64().unwrap()))
        .sum();
    assert!((1..=dropped).contains(&short), "{report:#}");
}
