//! Single settings: what is set by name, and what makes a profile last.

use tempfile::TempDir;
use waggle_instrumentation::Table;
use waggle_testkit::{Server, Version};

use super::holding::{assert_as_before, without_threads};
use super::{Scene, stderr};

#[test]
fn a_consumer_above_others_is_off_while_that_is_held() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        // MariaDB has it off by default.
        let current = (!version.is_mariadb()).then_some("events_statements_current");
        for name in ["global_instrumentation", "thread_instrumentation"].into_iter().chain(current)
        {
            let holding = scene.hold(&["set", "consumer", name, "off", "--for", "600s"]);
            let state = scene.read();
            let row = state.row(Table::Consumers, &vec![name.to_owned()]);
            assert_eq!(row, Some(&vec![Some("NO".to_owned())]), "{version} {name}");
            let said = stderr(&holding.end());
            assert!(!said.contains("added: "), "{version} {name}: {said}");
            assert_as_before(&scene, &before, &format!("{version} {name}"));
        }
    }
}

/// What `waggle pfs persist` prints.
fn lines(scene: &Scene, profile: &str) -> String {
    let output = scene.run(&["persist", profile]);
    assert!(output.status.success(), "{profile}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// A server that is started with lines of my.cnf.
fn started_with(version: Version, lines: &str) -> Scene {
    let settings = lines.lines().filter(|line| !line.starts_with(['[', '#']));
    let server = settings.fold(Server::builder(version), |server, line| {
        let (name, value) = line.split_once(" = ").unwrap();
        server.arg(format!("--{name}={}", value.trim_matches('\'')))
    });
    Scene { server: server.start().unwrap(), state: TempDir::new().unwrap() }
}

#[test]
fn a_server_started_with_the_lines_of_a_profile_has_it_whatever_was_set_when_they_were_printed() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        for profile in ["io", "waits", "statements", "ddl-audit", "everything", "metrics-on"] {
            let printed = lines(&scene, profile);
            let holding = scene.hold(&["apply", profile, "--for", "600s"]);
            assert_eq!(lines(&scene, profile), printed, "{version} {profile}: while it is held");
            holding.end();

            let started = started_with(version, &printed);
            let output = started.run(&["plan", profile, "--json", "--interval", "100ms"]);
            assert!(output.status.success(), "{version} {profile}: {}", stderr(&output));
            let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(plan["changes"], serde_json::json!([]), "{version} {profile}");
        }
    }
}

#[test]
fn lines_say_which_counters_cannot_be_turned_off_at_the_start() {
    let scene = Scene::of(Version::Mysql9);
    let printed = lines(&scene, "metrics-off");
    assert!(printed.contains("# the counters of InnoDB"), "{printed}");
    assert!(!printed.contains("innodb_monitor_enable"), "{printed}");
}
