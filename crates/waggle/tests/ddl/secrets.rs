//! No secret is listed, whatever is on.

use std::fs;

use waggle_testkit::secrets::{shown, statements};
use waggle_testkit::{Account, Version};

use super::{Audit, PFS, TAP, session_of, start};

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
    audits[2].wait_until_ready(&server, |audit| audit.printed().contains(super::READY));
    audits[3].wait_until_ready(&server, |_| {
        fs::read_to_string(&log).is_ok_and(|text| text.contains(super::READY))
    });
    // Some change the password of who runs them.
    let mut client = session_of(&server, Account::APP);
    for statement in statements() {
        client.query(statement).unwrap();
    }
    client.run("DROP TABLE IF EXISTS the_last_one").unwrap();
    for audit in &mut audits {
        audit.wait_for("the last statement", |audit| {
            let written = fs::read_to_string(&log).unwrap();
            audit.printed().contains("the_last_one")
                || audit.printed().is_empty() && written.contains("the_last_one")
        });
        audit.stop();
        for (what, said) in [("output", audit.printed()), ("errors", audit.err())] {
            assert_eq!(shown(&said), None, "{version} {what}");
        }
    }
    for (place, source) in [(0, TAP), (1, PFS)] {
        let out = audits[place].printed();
        assert!(out.contains("\"kind\":\"set_password\""), "{version} {source}: {out}");
    }
    let written = fs::read_to_string(&log).unwrap();
    assert_eq!(shown(&written), None, "{version}");
    for said in [audits[0].printed(), audits[1].printed(), audits[2].printed(), written] {
        assert!(said.contains("waggle_ann@localhost"), "{version}: the account is named: {said}");
        assert!(said.contains("<secret>"), "{version}: its password is masked: {said}");
    }
}

#[test]
fn no_password_of_any_server_is_listed() {
    Version::each(no_password_is_listed);
}
