//! Digests of servers with another `max_digest_length` than usual.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use waggle_testkit::{Client, PerformanceSchema, Server, Version, on_each_server};

use crate::verified::Verified;
use crate::watching::{WAGGLE, Waggle};
use crate::{load, watched};

/// Two statements that differ behind the first 2,000 bytes of their tokens.
fn say_both(client: &mut Client) {
    let columns: Vec<String> = (0..120).map(|number| format!("1 AS column_{number}")).collect();
    for end in ["one", "two"] {
        for _ in 0..10 {
            client.run(format!("SELECT {}, 2 AS the_{end}", columns.join(", "))).unwrap();
        }
    }
}

/// A server with this `max_digest_length`; Performance Schema shows as much or less.
fn server(version: Version, [made, shown]: [u32; 2]) -> Server {
    Server::builder(version)
        .performance_schema(PerformanceSchema::Statements)
        .arg(format!("--max-digest-length={made}"))
        .arg(format!("--performance-schema-max-digest-length={shown}"))
        .start()
        .unwrap()
}

/// How many digests the two statements have in `watch`, while `verify` finds nothing that differs.
fn digests(server: &Server, lengths: [u32; 2]) -> usize {
    let what = format!("{} {lengths:?}", server.version());
    let mut lines = Vec::new();
    let verified = Verified::around(server, &[], |_| {
        let mut watch = Waggle::watch(server, &["--limit", "1000"]);
        let mut client = load::session(server);
        say_both(&mut client);
        client.quit().unwrap();
        watch.wait_for_lines(2);
        lines = watch.interrupt().lines();
    });
    verified.assert_exact(&what, 20);
    assert_eq!(verified.number("/digests_differing"), 0, "{what}: {:#}", verified.report);
    let ours = watched::digests(&lines, "`column_0`");
    let calls: u64 = ours.iter().map(|digest| digest["calls"].as_u64().unwrap()).sum();
    assert_eq!(calls, 20, "{what}: {ours:#?}");
    assert!(ours.iter().all(|digest| digest["digest_cut"] == false), "{what}: {ours:#?}");
    let keys = |digest: &&Value| digest["digest"].as_str().unwrap().to_owned();
    ours.iter().map(keys).collect::<BTreeSet<String>>().len()
}

/// What `doctor` says of the length.
fn told(server: &Server) -> String {
    let pid = server.pid().to_string();
    let out = Command::new(WAGGLE).args(["doctor", "--json", "--pid", &pid]).output().unwrap();
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    report["servers"][0]["max_digest_length"].as_str().unwrap().to_owned()
}

fn a_longer_digest_tells_more_statements_apart(version: Version) {
    let lengths = [4096, 4096];
    let server = server(version, lengths);
    assert_eq!(digests(&server, lengths), 2, "{version}");
    assert_eq!(told(&server), "4096 bytes", "{version}");
}

on_each_server!(a_longer_digest_tells_more_statements_apart);

#[test]
fn a_shorter_digest_tells_fewer_statements_apart() {
    for version in [Version::Mysql9, Version::Mariadb114] {
        let lengths = [256, 1024];
        assert_eq!(digests(&server(version, lengths), lengths), 1, "{version}");
    }
}

#[test]
fn what_performance_schema_does_not_show_is_not_compared() {
    let lengths = [4096, 1024];
    assert_eq!(digests(&server(Version::Mysql9, lengths), lengths), 2);
}

#[test]
fn a_server_without_digests_gets_those_of_waggle() {
    for version in [Version::Mysql9, Version::Mariadb114] {
        let lengths = [0, 1024];
        let server = server(version, lengths);
        assert_eq!(digests(&server, lengths), 1, "{version}");
        assert!(told(&server).contains("makes no digests"), "{version}");
    }
}
