//! No password leaves waggle, whatever is on.

use std::fs;

use waggle_testkit::Version;

use super::everything::PASSWORD;
use super::{Audit, PFS, TAP, session, start};

/// Statements with a secret (`$`). A server that does not know one refuses it.
const STATEMENTS: &[&str] = &[
    "CREATE USER waggle_ann@localhost IDENTIFIED BY '$'",
    "CREATE USER waggle_bob IDENTIFIED WITH mysql_native_password BY '$'",
    "ALTER USER waggle_ann@localhost IDENTIFIED BY '$'",
    "SET PASSWORD FOR waggle_ann@localhost = '$'",
    "SET PASSWORD FOR waggle_ann@localhost = PASSWORD('$')",
    "GRANT USAGE ON *.* TO waggle_ann@localhost IDENTIFIED BY '$'",
    "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h', USER 'u', PASSWORD '$')",
    "ALTER SERVER s OPTIONS (PASSWORD '$')",
    "CREATE TABLE f (a INT) ENGINE = FEDERATED CONNECTION = 'mysql://u:$@h:3306/d/t'",
    "PREPARE s FROM \"ALTER USER waggle_ann@localhost IDENTIFIED BY '$'\"",
    "EXECUTE s",
    "CREATE PROCEDURE hides() ALTER USER waggle_ann@localhost IDENTIFIED BY '$'",
    "CALL hides()",
    "CREATE USER waggle_ann IDENTIFIED BY '$",
    "CREATE TABLE oops IDENTIFIED BY '$', '$' (",
];

fn no_password_is_listed(version: Version) {
    let server = start(version);
    let log = tempfile::tempdir().unwrap();
    let log = log.path().join("ddl.jsonl");
    let options = ["--no-redact", "--nested"];
    let file = ["log", "--file", log.to_str().unwrap(), "--no-redact", "--nested"];
    let mut audits = vec![
        Audit::tail(&server, TAP, &options),
        Audit::tail(&server, PFS, &options),
        Audit::spawn(&server, TAP, &["tail", "--no-redact", "--nested"]),
        Audit::spawn(&server, TAP, &file),
    ];
    audits[2].wait_until_ready(&server, |audit| audit.out().contains(super::READY));
    audits[3].wait_until_ready(&server, |_| {
        fs::read_to_string(&log).is_ok_and(|text| text.contains(super::READY))
    });
    let mut client = session(&server);
    for statement in STATEMENTS {
        client.query(statement.replace('$', PASSWORD)).unwrap();
    }
    client.run("DROP TABLE IF EXISTS the_last_one").unwrap();
    for audit in &mut audits {
        audit.wait_for("the last statement", |audit| {
            let written = fs::read_to_string(&log).unwrap();
            audit.out().contains("the_last_one")
                || audit.out().is_empty() && written.contains("the_last_one")
        });
        audit.stop();
        for (what, said) in [("output", audit.out()), ("errors", audit.err())] {
            assert!(!said.contains(PASSWORD), "{version} {what}: {said}");
        }
    }
    for (place, source) in [(0, TAP), (1, PFS)] {
        let out = audits[place].out();
        assert!(out.contains("\"kind\":\"set_password\""), "{version} {source}: {out}");
    }
    let written = fs::read_to_string(&log).unwrap();
    assert!(!written.contains(PASSWORD), "{version}: {written}");
    for said in [audits[0].out(), audits[1].out(), audits[2].out(), written] {
        assert!(said.contains("waggle_ann@localhost"), "{version}: the account is named: {said}");
        assert!(said.contains("<secret>"), "{version}: its password is masked: {said}");
    }
}

#[test]
fn no_password_of_any_server_is_listed() {
    Version::ALL.into_iter().for_each(no_password_is_listed);
}
