//! What an account needs, and what it is told where that is missing.

use std::path::Path;
use std::process::{Output, Stdio};

use waggle_instrumentation::journal::Undoer;
use waggle_testkit::{Version, wait_for, wait_until};

use super::holding::{assert_as_before, without_threads};
use super::{Holding, Scene, stderr};

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
        let file = scene.few(&[]);
        let missing = ["GRANT SELECT ON performance_schema.*"];
        scene.assert_run_as(&file, &["status"], 4, &missing);

        let file = scene.few(&[READ]);
        for words in [
            &["status", "--interval", "10ms"][..],
            &["cost", "--interval", "10ms"],
            &["plan", "waits", "--interval", "10ms"],
            &["persist", "io"],
        ] {
            scene.assert_run_as(&file, words, 0, &[]);
        }
        scene.assert_run_as(
            &file,
            &BRIEFLY,
            4,
            &["GRANT SELECT, INSERT, UPDATE, DELETE", "all is as before"],
        );

        let file = scene.few(&[WRITE]);
        scene.assert_run_as(&file, &BRIEFLY, 0, &[]);
        for words in [
            &["apply", "io", "--for", "10ms", "--account", "few"][..],
            &["set", "stage/sql/%", "on", "--for", "10ms"],
            &["apply", "stages", "--keep"],
            &["rollback"],
        ] {
            scene.assert_run_as(&file, words, 0, &[]);
        }
        rules_for_programs_need_a_way_back(&scene);
    }
}

/// MySQL 5.7 and MariaDB remove such a rule with all others only, for which an account needs more.
fn rules_for_programs_need_a_way_back(scene: &Scene) {
    let version = scene.server.version();
    let before = without_threads(&scene.read());
    let file = scene.few(&[WRITE]);
    let of_schema = ["apply", "io", "--for", "10ms", "--schema", "shop"];
    let refused = run(scene, &file, &of_schema);
    let said = stderr(&refused);
    let is_old = version == Version::Mysql57 || version.is_mariadb();
    assert_eq!(refused.status.code(), Some(if is_old { 4 } else { 0 }), "{version}: {said}");
    let grant = "GRANT DROP ON performance_schema.setup_objects TO 'few'@'localhost'";
    assert_eq!(said.contains(grant), is_old, "{version}: {said}");
    assert_as_before(scene, &before, version.name());

    let file = scene.few(&[WRITE, "DROP ON performance_schema.setup_objects"]);
    scene.assert_run_as(&file, &of_schema, 0, &[]);
    assert_as_before(scene, &before, version.name());
}

#[test]
fn who_may_only_read_cannot_undo_and_is_told_what_is_missing() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        scene.assert_run(&["apply", "stages", "--keep"], 0, &[]);
        let file = scene.few(&[READ]);
        scene.assert_run_as(&file, &["rollback"], 4, &["GRANT SELECT, INSERT, UPDATE, DELETE"]);
        // It is still there to be undone.
        scene.assert_run(&["rollback"], 0, &[]);
        assert_as_before(&scene, &before, version.name());
    }
}

#[test]
fn the_guardian_needs_no_more_rights_than_its_command() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        let file = scene.few(&[WRITE]);
        let mut command = scene.command_as(&file, &["apply", "stages"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let holding = Holding(Some(child));
        wait_until("the changes", || without_threads(&scene.read()) != before);
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
        let file = scene.few(&[WRITE]);
        let mut root = scene.server.root().unwrap();
        // The guardian needs a connection of its own.
        root.run("ALTER USER few@localhost WITH MAX_USER_CONNECTIONS 1").unwrap();
        scene.assert_run_as(
            &file,
            &["apply", "stages", "--for", "10ms"],
            4,
            &["nothing was changed"],
        );
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
        let mut write = scene.few(&grants);
        let mut root = scene.server.root().unwrap();
        root.run("SET GLOBAL read_only = ON").unwrap();
        if !is_mariadb {
            root.run("SET GLOBAL super_read_only = ON").unwrap();
        }
        if is_mariadb {
            is_refused(&write);
            grants.push(read_only);
            root.run("SET GLOBAL read_only = OFF").unwrap();
            write = scene.few(&grants);
            root.run("SET GLOBAL read_only = ON").unwrap();
        }
        for words in [
            &BRIEFLY[..],
            &["apply", "io", "--for", "10ms", "--account", "few"],
            &["set", "consumer", "events_waits_current", "on", "--for", "10ms"],
            &["apply", "stages", "--keep"],
            &["rollback"],
        ] {
            scene.assert_run_as(&write, words, 0, &[]);
        }
        scene.assert_run_as(&write, &["ddl", "tail", "--source", "pfs", "--for", "10ms"], 0, &[]);
        assert_as_before(&scene, &before, version.name());

        // Nobody is given rights on such a server.
        root.run("SET GLOBAL read_only = OFF").unwrap();
        let metrics = scene.few(&["PROCESS ON *.*", variables]);
        root.run("SET GLOBAL read_only = ON").unwrap();
        if !is_mariadb {
            root.run("SET GLOBAL super_read_only = ON").unwrap();
        }
        let words = ["innodb", "enable", "module_trx", "--for", "10ms"];
        scene.assert_run_as(&metrics, &words, 0, &[]);
        scene.assert_run_as(
            &metrics,
            &["innodb", "reset", "module_trx", "--yes"],
            0,
            &["who reads those columns is not known", "GRANT SELECT ON performance_schema.*"],
        );
    }
}

#[test]
fn who_may_write_to_the_setup_tables_may_choose_a_timer() {
    // The others have none to choose from.
    for version in [Version::Mysql57, Version::Mariadb1011, Version::Mariadb114] {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        let words = ["timer", "statement", "microsecond", "--for", "10ms"];
        scene.assert_run_as(
            &scene.few(&[READ]),
            &words,
            4,
            &["GRANT SELECT, INSERT, UPDATE, DELETE"],
        );
        scene.assert_run_as(&scene.few(&[WRITE]), &words, 0, &[]);
        assert_as_before(&scene, &before, version.name());
    }
}

#[test]
fn a_server_without_performance_schema_is_told_what_it_would_take() {
    for version in Version::ALL {
        let scene = Scene::with(version, ["--performance-schema=OFF"]);
        for words in [&["status"][..], &["cost"], &["plan", "waits"], &BRIEFLY] {
            scene.assert_run(words, 4, &["performance_schema=ON"]);
        }
        assert_eq!(scene.contents(), [], "{version}");
    }
}
