//! What an account needs for the source Performance Schema.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;
use waggle_testkit::{Server, Version};

use super::{Audit, PFS, READY, missing, session, start, statements, text};

/// The option file of an account that has one right.
fn account(server: &Server, dir: &TempDir, right: &str) -> PathBuf {
    let mut root = session(server);
    root.run("DROP USER IF EXISTS few@localhost").unwrap();
    root.run("CREATE USER few@localhost").unwrap();
    root.run(format!("GRANT {right} ON performance_schema.* TO few@localhost")).unwrap();
    let file = dir.path().join("few.cnf");
    let socket = server.socket();
    fs::write(&file, format!("[client]\nuser=few\nsocket={}\n", socket.display())).unwrap();
    file
}

#[test]
fn the_rights_of_the_guide_are_enough_and_fewer_are_named() {
    for version in Version::ALL {
        let server = start(version);
        let dir = TempDir::new().unwrap();
        let file = account(&server, &dir, "SELECT");
        let mut refused = Audit::spawn_as(&file, &server, PFS, &["tail"]);
        assert_eq!(refused.child.wait().unwrap().code(), Some(4), "{version}: {}", refused.err());
        let wanted = "GRANT SELECT, INSERT, UPDATE, DELETE ON performance_schema.*";
        assert!(refused.err().contains(wanted), "{version}: {}", refused.err());

        let file = account(&server, &dir, "SELECT, INSERT, UPDATE, DELETE");
        let mut audit = Audit::spawn_as(&file, &server, PFS, &["tail", "--json"]);
        audit.wait_until_ready(&server, |audit| audit.out().contains(READY));
        session(&server).run("CREATE TABLE test.a (a INT)").unwrap();
        audit.wait_for_statements(1);
        let lines = audit.end();
        let listed = statements(&lines);
        assert_eq!(listed.len(), 1, "{version}: {listed:#?}");
        assert_eq!(text(listed[0], "text"), "CREATE TABLE test.a (a INT)", "{version}");
        assert_eq!(text(listed[0], "user"), "root", "{version}");
        assert_eq!(missing(&lines), 0, "{version}");

        keep_profile(&server, &dir);
        let file = account(&server, &dir, "SELECT");
        let mut audit = Audit::spawn_as(&file, &server, PFS, &["tail", "--json"]);
        audit.wait_until_ready(&server, |audit| audit.out().contains(READY));
        assert!(audit.err().contains("is set already"), "{version}: {}", audit.err());
        audit.stop();
    }
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
