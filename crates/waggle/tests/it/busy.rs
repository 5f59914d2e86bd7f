//! `verify` under a load that goes on through both of its readings.

use std::time::Duration;

use waggle_testkit::Version;
use waggle_testkit::sysbench::Sysbench;

use crate::exactness::with_digests;
use crate::verified::Verified;
use crate::{load, size};

/// The share of statements that may be in doubt.
const DOUBT_MAX: f64 = 0.1;

#[test]
fn a_load_that_does_not_stop_is_proven_per_digest() {
    let versions = [Version::Mysql9, Version::Mariadb114];
    for version in size::choose(&versions[..], &Version::BUILDS[..]) {
        is_proven_per_digest(*version);
    }
}

fn is_proven_per_digest(version: Version) {
    let server = with_digests(version);
    // The server miscounts a digest that two threads run at once. So each has its own, by its schema.
    let start = |schema: &str| {
        let sql = format!("CREATE DATABASE {schema}");
        load::session(&server).run(&sql).unwrap();
        let mut sysbench = Sysbench::endless("oltp_read_write");
        (sysbench.tables, sysbench.threads) = (1, 1);
        sysbench.arguments = vec![format!("--mysql-db={schema}")];
        sysbench.prepare(&server).unwrap();
        sysbench.start(&server).unwrap()
    };
    let _running = ["one", "two", "three"].map(start);
    let length = size::choose(Duration::from_secs(1), Duration::from_secs(60));

    let whole = Verified::during(&server, &[], length);
    let report = &whole.report;
    size::keep(&whole.row("busy", &server, "unix", "text"));
    assert_eq!(whole.code, Some(0), "{version}: {report:#} {}", whole.err);
    for count in ["/missing", "/extra", "/digests_differing"] {
        assert_eq!(whole.number(count), 0, "{version}: {count} in {report:#}");
    }
    assert!(whole.number("/digests_compared") > 0, "{version}: {report:#}");
    assert!(whole.number("/in_doubt") > 0, "{version}: {report:#}");
    let share = report["share_in_doubt"].as_f64().unwrap();
    assert!(share < DOUBT_MAX, "{version}: {report:#}");

    // No divisor of the statements of a transaction, so that all digests lose some.
    let one_in = size::choose("7", "9973");
    let dropped = Verified::during(&server, &["--drop-one-in", one_in], length);
    let report = &dropped.report;
    size::keep(&dropped.row("busy_dropped", &server, "unix", "text"));
    assert_eq!(dropped.code, Some(1), "{version}: {report:#} {}", dropped.err);
    // In sum they are missing only where they are more than what is in doubt; by digest they are always.
    let [missing, injected] = ["/missing", "/lost/injected"].map(|count| dropped.number(count));
    let in_doubt = dropped.number("/in_doubt") + dropped.number("/in_flight");
    assert!(injected > 0 && missing <= injected, "{version}: {report:#}");
    assert!(missing > 0 || injected <= in_doubt, "{version}: {report:#}");
    let named = report["differing"].as_array().unwrap().iter().filter(|one| {
        let more = |side: &str| one[side].as_u64().unwrap();
        one["field"] == "calls" && more("theirs") > more("ours") && one["digest_text"] != ""
    });
    assert!(named.count() > 0, "{version}: {report:#}");
    assert!(dropped.number("/digests_differing") > 0, "{version}: {report:#}");
}
