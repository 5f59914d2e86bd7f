//! What an account needs for the source Performance Schema.

use std::process::Command;

use tempfile::TempDir;
use waggle_testkit::{Server, Version};

use super::{Audit, PFS, READY, missing, session, start, statements, text};

const READ: &str = "SELECT ON performance_schema.*";
const WRITE: &str = "SELECT, INSERT, UPDATE, DELETE ON performance_schema.*";

#[test]
fn the_rights_of_the_guide_are_enough_and_fewer_are_named() {
    Version::each(|version| {
        let server = start(version);
        let dir = TempDir::new().unwrap();
        let file = server.few(&[READ]).unwrap();
        let mut refused = Audit::spawn_as(&file, &server, PFS, &["tail"]);
        assert_eq!(refused.wait_for_end(), Some(4), "{version}: {}", refused.err());
        let wanted = format!("GRANT {WRITE}");
        assert!(refused.err().contains(&wanted), "{version}: {}", refused.err());

        let file = server.few(&[WRITE]).unwrap();
        let mut audit = Audit::spawn_as(&file, &server, PFS, &["tail", "--json"]);
        audit.wait_until_ready(&server, |audit| audit.printed().contains(READY));
        session(&server).run("CREATE TABLE test.a (a INT)").unwrap();
        audit.wait_for_statements(1);
        let lines = audit.end();
        let listed = statements(&lines);
        assert_eq!(listed.len(), 1, "{version}: {listed:#?}");
        assert_eq!(text(listed[0], "text"), "CREATE TABLE test.a (a INT)", "{version}");
        assert_eq!(text(listed[0], "user"), "root", "{version}");
        assert_eq!(missing(&lines), 0, "{version}");

        keep_profile(&server, &dir);
        let file = server.few(&[READ]).unwrap();
        let mut audit = Audit::spawn_as(&file, &server, PFS, &["tail", "--json"]);
        audit.wait_until_ready(&server, |audit| audit.printed().contains(READY));
        assert!(audit.err().contains("is set already"), "{version}: {}", audit.err());
        audit.stop();
    });
}

/// What the audit needs is set before, by somebody who may.
fn keep_profile(server: &Server, dir: &TempDir) {
    let set = Command::new(env!("CARGO_BIN_EXE_waggle"))
        .args(["pfs", "apply", "ddl-audit", "--keep", "--defaults-file"])
        .arg(server.defaults_file())
        .env("WAGGLE_STATE_DIR", dir.path())
        .output();
    assert!(set.unwrap().status.success());
}
