//! What an account needs, and what it is told where that is missing.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use waggle_instrumentation::journal::Undoer;
use waggle_testkit::client::{Client, Transport};
use waggle_testkit::{Account, PerformanceSchema, Server, Version};

use super::holding::{assert_as_before, without_threads};
use super::{Holding, Scene, stderr, wait_for};

/// An account that may do what these statements give it.
pub(crate) fn account(scene: &Scene, grants: &[&str]) -> PathBuf {
    let mut root = Client::connect(&scene.server, Transport::Unix, Account::ROOT).unwrap();
    root.run("DROP USER IF EXISTS few@localhost").unwrap();
    root.run("CREATE USER few@localhost").unwrap();
    for grant in grants {
        root.run(format!("GRANT {grant} TO few@localhost")).unwrap();
    }
    let file = scene.state.path().join("few.cnf");
    let socket = scene.server.socket();
    std::fs::write(&file, format!("[client]\nuser=few\nsocket={}\n", socket.display())).unwrap();
    file
}

fn run(scene: &Scene, file: &Path, words: &[&str]) -> Output {
    scene.command_as(file, words).output().unwrap()
}

const READ: &str = "SELECT ON performance_schema.*";
pub(crate) const WRITE: &str = "SELECT, INSERT, UPDATE, DELETE ON performance_schema.*";
const BRIEFLY: [&str; 4] = ["apply", "waits", "--for", "10ms"];

#[test]
fn the_rights_of_the_guide_are_enough_and_fewer_are_named() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let file = account(&scene, &[]);
        let status = run(&scene, &file, &["status"]);
        let said = stderr(&status);
        assert_eq!(status.status.code(), Some(4), "{version}: {said}");
        assert!(said.contains("GRANT SELECT ON performance_schema.*"), "{version}: {said}");

        let file = account(&scene, &[READ]);
        for words in [
            &["status", "--interval", "10ms"][..],
            &["cost", "--interval", "10ms"],
            &["plan", "waits", "--interval", "10ms"],
            &["persist", "io"],
        ] {
            let output = run(&scene, &file, words);
            assert!(output.status.success(), "{version} {words:?}: {}", stderr(&output));
        }
        let refused = run(&scene, &file, &BRIEFLY);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(4), "{version}: {said}");
        assert!(said.contains("GRANT SELECT, INSERT, UPDATE, DELETE"), "{version}: {said}");
        assert!(said.contains("all is as before"), "{version}: {said}");

        let file = account(&scene, &[WRITE]);
        let applied = run(&scene, &file, &BRIEFLY);
        assert_eq!(applied.status.code(), Some(0), "{version}: {}", stderr(&applied));
        for words in [
            &["apply", "io", "--for", "10ms", "--account", "few"][..],
            &["set", "stage/sql/%", "on", "--for", "10ms"],
            &["apply", "stages", "--keep"],
            &["rollback"],
        ] {
            let output = run(&scene, &file, words);
            assert_eq!(output.status.code(), Some(0), "{version} {words:?}: {}", stderr(&output));
        }
        rules_for_programs_need_a_way_back(&scene);
    }
}

/// MySQL 5.7 and MariaDB remove such a rule with all others only, for which an account needs more.
fn rules_for_programs_need_a_way_back(scene: &Scene) {
    let version = scene.server.version();
    let before = without_threads(&scene.read());
    let file = account(scene, &[WRITE]);
    let of_schema = ["apply", "io", "--for", "10ms", "--schema", "shop"];
    let refused = run(scene, &file, &of_schema);
    let said = stderr(&refused);
    let is_old = version == Version::Mysql57 || version.is_mariadb();
    assert_eq!(refused.status.code(), Some(if is_old { 4 } else { 0 }), "{version}: {said}");
    let grant = "GRANT DROP ON performance_schema.setup_objects TO 'few'@'localhost'";
    assert_eq!(said.contains(grant), is_old, "{version}: {said}");
    assert_as_before(scene, &before, version.name());

    let file = account(scene, &[WRITE, "DROP ON performance_schema.setup_objects"]);
    let applied = run(scene, &file, &of_schema);
    assert_eq!(applied.status.code(), Some(0), "{version}: {}", stderr(&applied));
    assert_as_before(scene, &before, version.name());
}

#[test]
fn who_may_only_read_cannot_undo_and_is_told_what_is_missing() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        assert_eq!(scene.run(&["apply", "stages", "--keep"]).status.code(), Some(0), "{version}");
        let file = account(&scene, &[READ]);
        let refused = run(&scene, &file, &["rollback"]);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(4), "{version}: {said}");
        assert!(said.contains("GRANT SELECT, INSERT, UPDATE, DELETE"), "{version}: {said}");
        // It is still there to be undone.
        assert_eq!(scene.run(&["rollback"]).status.code(), Some(0), "{version}");
        assert_as_before(&scene, &before, version.name());
    }
}

#[test]
fn the_guardian_needs_no_more_rights_than_its_command() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        let file = account(&scene, &[WRITE]);
        let mut command = scene.command_as(&file, &["apply", "stages"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let holding = Holding(Some(child));
        wait_for("the changes", || (without_threads(&scene.read()) != before).then_some(()));
        holding.kill();
        let undone = wait_for("the guardian", || scene.contents().pop()?.undone);
        assert_eq!(undone.by, Undoer::Guardian, "{version}");
        assert_as_before(&scene, &before, version.name());
    }
}

#[test]
fn without_its_guardian_nothing_is_changed_and_no_journal_stays_open() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        let file = account(&scene, &[WRITE]);
        let mut root = Client::connect(&scene.server, Transport::Unix, Account::ROOT).unwrap();
        // The guardian needs a connection of its own.
        root.run("ALTER USER few@localhost WITH MAX_USER_CONNECTIONS 1").unwrap();
        let refused = run(&scene, &file, &["apply", "stages", "--for", "10ms"]);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(4), "{version}: {said}");
        assert!(said.contains("nothing was changed"), "{version}: {said}");
        assert!(scene.contents().iter().all(|contents| contents.undone.is_some()), "{version}");
        assert_as_before(&scene, &before, version.name());
    }
}

#[test]
fn a_server_that_refuses_writes_lets_its_instrumentation_be_set() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let is_mariadb = matches!(version, Version::Mariadb1011 | Version::Mariadb114);
        let before = without_threads(&scene.read());
        let variables = match version {
            Version::Mysql80 | Version::Mysql9 => "SYSTEM_VARIABLES_ADMIN ON *.*",
            _ => "SUPER ON *.*",
        };
        let mut grants = vec![WRITE];
        let read_only = "READ ONLY ADMIN ON *.*";
        let is_refused = |file: &Path| {
            let said = stderr(&run(&scene, file, &BRIEFLY));
            assert!(said.contains("is read-only"), "{version}: {said}");
            assert!(said.contains(&format!("GRANT {read_only} TO 'few'@")), "{version}: {said}");
        };
        let mut write = account(&scene, &grants);
        let mut root = Client::connect(&scene.server, Transport::Unix, Account::ROOT).unwrap();
        root.run("SET GLOBAL read_only = ON").unwrap();
        if !is_mariadb {
            root.run("SET GLOBAL super_read_only = ON").unwrap();
        }
        if is_mariadb {
            is_refused(&write);
            grants.push(read_only);
            root.run("SET GLOBAL read_only = OFF").unwrap();
            write = account(&scene, &grants);
            root.run("SET GLOBAL read_only = ON").unwrap();
        }
        for words in [
            &BRIEFLY[..],
            &["apply", "io", "--for", "10ms", "--account", "few"],
            &["set", "consumer", "events_waits_current", "on", "--for", "10ms"],
            &["apply", "stages", "--keep"],
            &["rollback"],
        ] {
            let output = run(&scene, &write, words);
            assert_eq!(output.status.code(), Some(0), "{version} {words:?}: {}", stderr(&output));
        }
        let audit = run(&scene, &write, &["ddl", "tail", "--source", "pfs", "--for", "10ms"]);
        assert_eq!(audit.status.code(), Some(0), "{version}: {}", stderr(&audit));
        assert_as_before(&scene, &before, version.name());

        // Nobody is given rights on such a server.
        root.run("SET GLOBAL read_only = OFF").unwrap();
        let metrics = account(&scene, &["PROCESS ON *.*", variables]);
        root.run("SET GLOBAL read_only = ON").unwrap();
        if !is_mariadb {
            root.run("SET GLOBAL super_read_only = ON").unwrap();
        }
        let words = ["innodb", "enable", "module_trx", "--for", "10ms"];
        let enabled = run(&scene, &metrics, &words);
        assert_eq!(enabled.status.code(), Some(0), "{version}: {}", stderr(&enabled));
        let reset = run(&scene, &metrics, &["innodb", "reset", "module_trx", "--yes"]);
        let said = stderr(&reset);
        assert_eq!(reset.status.code(), Some(0), "{version}: {said}");
        assert!(said.contains("who reads those columns is not known"), "{version}: {said}");
        assert!(said.contains("GRANT SELECT ON performance_schema.*"), "{version}: {said}");
    }
}

#[test]
fn who_may_write_to_the_setup_tables_may_choose_a_timer() {
    // The others have none to choose from.
    for version in [Version::Mysql57, Version::Mariadb1011, Version::Mariadb114] {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        let words = ["timer", "statement", "microsecond", "--for", "10ms"];
        let refused = run(&scene, &account(&scene, &[READ]), &words);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(4), "{version}: {said}");
        assert!(said.contains("GRANT SELECT, INSERT, UPDATE, DELETE"), "{version}: {said}");
        let chosen = run(&scene, &account(&scene, &[WRITE]), &words);
        assert_eq!(chosen.status.code(), Some(0), "{version}: {}", stderr(&chosen));
        assert_as_before(&scene, &before, version.name());
    }
}

#[test]
fn a_server_without_performance_schema_is_told_what_it_would_take() {
    for version in Version::ALL {
        let server =
            Server::builder(version).performance_schema(PerformanceSchema::Off).start().unwrap();
        let scene = Scene { server, state: tempfile::TempDir::new().unwrap() };
        for words in [&["status"][..], &["cost"], &["plan", "waits"], &BRIEFLY] {
            let output = scene.run(words);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(4), "{version} {words:?}: {said}");
            assert!(said.contains("performance_schema=ON"), "{version} {words:?}: {said}");
        }
        assert_eq!(scene.contents(), [], "{version}");
    }
}
