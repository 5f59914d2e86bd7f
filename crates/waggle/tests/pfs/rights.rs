//! What an account needs, and what it is told where that is missing.

use std::path::PathBuf;
use std::process::Output;

use waggle_testkit::client::{Client, Transport};
use waggle_testkit::{Account, PerformanceSchema, Server, Version};

use super::{Scene, stderr};

/// An account that may do what these statements give it.
fn account(scene: &Scene, grants: &[&str]) -> PathBuf {
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

fn run(scene: &Scene, file: &std::path::Path, words: &[&str]) -> Output {
    scene.command_as(file, words).output().unwrap()
}

const READ: &str = "SELECT ON performance_schema.*";
const WRITE: &str = "SELECT, INSERT, UPDATE, DELETE ON performance_schema.*";
const BRIEFLY: [&str; 4] = ["apply", "waits", "--for", "10ms"];

#[test]
fn the_rights_of_the_guide_are_enough_and_fewer_are_named() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let file = account(&scene, &[]);
        let status = run(&scene, &file, &["status"]);
        let said = stderr(&status);
        assert_eq!(status.status.code(), Some(3), "{version}: {said}");
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
        let filtered = run(&scene, &file, &["apply", "io", "--for", "10ms", "--account", "few"]);
        assert_eq!(filtered.status.code(), Some(0), "{version}: {}", stderr(&filtered));
    }
}

#[test]
fn a_server_that_refuses_writes_lets_its_instrumentation_be_set() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut root = Client::connect(&scene.server, Transport::Unix, Account::ROOT).unwrap();
        root.run("SET GLOBAL read_only = ON").unwrap();
        if !matches!(version, Version::Mariadb1011 | Version::Mariadb114) {
            root.run("SET GLOBAL super_read_only = ON").unwrap();
        }
        // Nobody can be made on such a server.
        let file = scene.server.defaults_file();
        let applied = run(&scene, &file, &BRIEFLY);
        assert_eq!(applied.status.code(), Some(0), "{version}: {}", stderr(&applied));
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
