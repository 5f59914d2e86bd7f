//! More than is usual: of records, of digests, of text, of result.

use rustix::process::Signal;
use serde_json::{Value, json};
use waggle_account::DIGESTS_MAX;
use waggle_testkit::{Account, Client, Server, Transport, Version};

use crate::verified::Verified;
use crate::watching::Waggle;
use crate::{load, size, watched};

#[test]
fn a_full_ring_is_counted_and_then_the_capture_goes_on() {
    let server = Server::start(Version::Mysql80).unwrap();
    let mut client = load::session(&server);
    // The load ends its own session, so that nothing is left that the server counts later.
    let long = format!("SELECT 1 /* {} */", "x".repeat(3000));
    let mut named = Value::Null;
    let verified = Verified::around(&server, &[], |waggle| {
        waggle.signal(Signal::STOP);
        for _ in 0..5_000 {
            client.run(&long).unwrap();
        }
        waggle.signal(Signal::CONT);
        client.run("SELECT SLEEP(1)").unwrap();
        for _ in 0..500 {
            client.run("SELECT 1 AS afterwards").unwrap();
        }
        client.quit().unwrap();
    });
    let report = &verified.report;
    let lost = verified.number("/lost/ring_full");
    assert!(lost > 0, "{report:#}");
    assert_eq!(verified.code, Some(1), "{report:#}");
    assert_eq!(report["passed"], false);
    assert_eq!(verified.number("/extra"), 0, "{report:#}");
    assert_eq!(verified.number("/missing"), lost, "all that is missing was counted: {report:#}");
    let differing = report["differing"].as_array().unwrap();
    for one in differing.iter().filter(|one| one["field"] == "calls") {
        named = one["digest_text"].clone();
        assert!(!named.as_str().unwrap().contains("afterwards"), "{report:#}");
    }
    size::keep(&json!({
        "test": "ring_full", "captured": report["captured"], "lost": lost,
        "server_counted": report["server_counted"], "named": named,
    }));
}

#[test]
fn more_digests_than_fit_are_counted_as_other() {
    let server = Server::start(Version::Mariadb114).unwrap();
    // So long that more run in it than fit, on a busy machine too.
    let mut waggle = Waggle::watch(&server, &["--interval", "10s", "--limit", "100000"]);
    let distinct = size::choose(8_000, 1_000_000_u32);
    let speakers: u32 = 4;
    std::thread::scope(|scope| {
        for speaker in 0..speakers {
            let mut client = load::session(&server);
            scope.spawn(move || {
                for number in (speaker..distinct).step_by(speakers as usize) {
                    client.run(format!("SELECT 1 AS one_of_many_{number}")).unwrap();
                }
            });
        }
    });
    waggle.wait_for_lines(2);
    let lines = waggle.interrupt().lines();
    let apart = watched::calls(&lines, "one_of_many_");
    let other = watched::sum(&lines, "/other/calls");
    let statements = watched::sum(&lines, "/statements");
    let most = lines.iter().map(|line| line["digests"].as_array().unwrap().len()).max().unwrap();
    size::keep(&json!({
        "test": "digests", "distinct": distinct, "apart": apart, "other": other,
        "most_in_an_interval": most, "rss_bytes": watched::largest(&lines, "/cost/rss_bytes"),
    }));
    assert!(most <= DIGESTS_MAX.0, "{most} digests in an interval");
    assert_eq!(statements, u64::from(distinct));
    assert_eq!(apart + other, statements);
    assert!(other > 0, "so many did not fit");
    assert_eq!(watched::sum(&lines, "/lost/ring_full"), 0);
}

#[test]
fn odd_and_huge_statements_are_each_one_statement() {
    for version in Version::ALL {
        let server = Server::builder(version).arg("--max-allowed-packet=256M").start().unwrap();
        let mut client = Client::connect(&server, Transport::Tcp, Account::ROOT).unwrap();
        let mut waggle = Waggle::watch(&server, &["--interval", "500ms"]);
        // More than one packet of the protocol holds.
        let length = size::choose(20 << 20, 64 << 20);
        let huge = format!("SELECT LENGTH('{}') AS huge", "x".repeat(length));
        let verified = Verified::around(&server, &[], |_| {
            client.query(b"SELECT '\xff\xfe\xc3(' AS invalid").unwrap();
            client.query(b"SELECT 'a\0b' AS zero").unwrap();
            client.query(b"SELECT 1 AS zero \0 behind").unwrap();
            client.query(b"\xff\xff \0").unwrap();
            client.query(b"").unwrap();
            client.run(&huge).unwrap();
            assert_eq!(client.query_discard(hundred_megabytes()).unwrap(), 100);
            client.quit().unwrap();
        });
        verified.assert_exact(&format!("{version}, odd statements"), 7);
        waggle.wait_for_lines(2);
        let ended = waggle.interrupt();
        let lines = ended.lines();
        assert_eq!(watched::calls(&lines, "`invalid`"), 1, "{version}: {}", ended.out);
        assert!(watched::calls(&lines, "`zero`") >= 1, "{version}: {}", ended.out);
        assert_eq!(watched::sum(&lines, "/truncated"), 1, "{version}: the longest");
        // While it runs it has a row of its own without a call.
        assert_eq!(watched::calls(&lines, "`hundred`"), 1, "{version}: {}", ended.out);
        let results = watched::digests(&lines, "`hundred`");
        let result = results.into_iter().find(|digest| digest["calls"] == 1).unwrap();
        assert_eq!(result["rows_sent"], 100, "{version}: {result:#}");
        assert!(result["bytes_sent"].as_u64().unwrap() >= 100_000_000, "{version}: {result:#}");
    }
}

/// A hundred rows of a million bytes.
fn hundred_megabytes() -> String {
    let ten = "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL \
               SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL \
               SELECT 8 UNION ALL SELECT 9)";
    format!("SELECT REPEAT('x', 1000000) AS hundred FROM {ten} a, {ten} b")
}
