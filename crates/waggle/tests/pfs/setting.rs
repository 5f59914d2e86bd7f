//! Single settings: what is set by name, and what makes a profile last.

use waggle_instrumentation::Table;
use waggle_testkit::Version;

use super::holding::{assert_as_before, without_threads};
use super::{Scene, stderr};

/// That a command is refused with this exit code, says these words, and changes nothing.
fn assert_refused(scene: &Scene, words: &[&str], code: i32, said: &[&str]) {
    let before = without_threads(&scene.read());
    scene.assert_run(words, code, said);
    assert_as_before(scene, &before, &words.join(" "));
}

/// Both settings of every instrument that begins like this are these.
fn assert_all(scene: &Scene, begin: &str, expected: [&str; 2], what: &str) {
    let state = scene.read();
    let rows = state.rows(Table::Instruments).filter(|(key, _)| key[0].starts_with(begin));
    let rows: Vec<_> = rows.collect();
    assert!(!rows.is_empty(), "{what}");
    let expected = expected.map(|setting| Some(setting.to_owned())).to_vec();
    for (key, settings) in rows {
        assert_eq!(settings, &expected, "{what}: {}", key[0]);
    }
}

#[test]
fn each_verb_sets_what_it_says_and_no_more() {
    let scene = Scene::of(Version::Mysql9);
    let before = without_threads(&scene.read());
    for (begin, was, verb, becomes) in [
        ("wait/io/socket/", ["NO", "NO"], "on", ["YES", "YES"]),
        ("wait/io/socket/", ["NO", "NO"], "timed", ["NO", "YES"]),
        ("wait/io/file/", ["YES", "YES"], "off", ["NO", "YES"]),
        ("wait/io/file/", ["YES", "YES"], "untimed", ["YES", "NO"]),
        ("statement/abstract/", ["YES", "YES"], "off", ["NO", "YES"]),
    ] {
        assert_all(&scene, begin, was, verb);
        let holding = scene.hold(&["set", &format!("{begin}%"), verb, "--for", "600s"]);
        assert_all(&scene, begin, becomes, verb);
        holding.end();
        assert_as_before(&scene, &before, verb);
    }
}

#[test]
fn a_name_that_nothing_has_and_what_needs_a_restart_are_refused() {
    let scene = Scene::of(Version::Mysql9);
    let where_to_look = "waggle pfs status --depth";
    let wrong = ["set", "wiat/%", "on", "--for", "1s"];
    assert_refused(&scene, &wrong, 2, &["wiat/%", "instrument", where_to_look]);
    let wrong = ["set", "consumer", "events_waist_current", "on", "--for", "1s"];
    assert_refused(&scene, &wrong, 2, &["events_waist_current", "consumer", where_to_look]);
    let restart = ["performance_schema=OFF", "restart", "cannot be measured"];
    assert_refused(&scene, &["plan", "pfsoff"], 4, &restart);
    assert_refused(&scene, &["apply", "pfsoff", "--for", "1s"], 4, &restart);
}

#[test]
fn a_timer_is_chosen_and_given_back_where_it_can_be() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let choose = |class, timer| ["timer", class, timer, "--for", "1s"];
        if matches!(version, Version::Mysql80 | Version::Mysql9) {
            let why = ["setup_timers", "MySQL 8.0 and later"];
            assert_refused(&scene, &choose("statement", "microsecond"), 4, &why);
            continue;
        }
        let before = without_threads(&scene.read());
        let holding = scene.hold(&["timer", "statement", "microsecond", "--for", "600s"]);
        let state = scene.read();
        let row = state.row(Table::Timers, &vec!["statement".to_owned()]);
        assert_eq!(row, Some(&vec![Some("MICROSECOND".to_owned())]), "{version}");
        holding.end();
        assert_as_before(&scene, &before, version.name());
        assert_refused(&scene, &choose("statements", "cycle"), 2, &["statements", "transaction"]);
        assert_refused(&scene, &choose("statement", "hour"), 2, &["HOUR", "MICROSECOND"]);
    }
}

#[test]
fn a_timer_is_refused_where_performance_schema_is_off() {
    let scene = Scene::with(Version::Mysql57, ["--performance-schema=OFF"]);
    scene.assert_run(
        &["timer", "statement", "microsecond", "--for", "1s"],
        4,
        &["performance_schema"],
    );
}

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

/// What is longer the server reads as two lines (`mysys_ssl/my_default.cc`).
const OPTION_LINE_BYTES: usize = 4096;

/// What `waggle pfs persist` prints.
fn lines(scene: &Scene, profile: &str) -> String {
    let output = scene.run(&["persist", profile]);
    assert!(output.status.success(), "{profile}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// A server that is started with lines of my.cnf.
fn started_with(version: Version, lines: &str) -> Scene {
    let settings = lines.lines().filter(|line| !line.starts_with(['[', '#']));
    let option = |line: &str| {
        let (name, value) = line.split_once(" = ").unwrap();
        format!("--{name}={}", value.trim_matches('\''))
    };
    Scene::with(version, settings.map(option))
}

#[test]
fn a_server_started_with_the_lines_of_a_profile_has_it_whatever_was_set_when_they_were_printed() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        for profile in ["io", "waits", "statements", "ddl-audit", "everything", "metrics-on"] {
            let printed = lines(&scene, profile);
            assert!(printed.lines().all(|line| line.len() < OPTION_LINE_BYTES), "{profile}");
            let holding = scene.hold(&["apply", profile, "--for", "600s"]);
            assert_eq!(lines(&scene, profile), printed, "{version} {profile}: while it is held");
            holding.end();

            let started = started_with(version, &printed);
            let output = started.run(&["plan", profile, "--json", "--interval", "100ms"]);
            assert!(output.status.success(), "{version} {profile}: {}", stderr(&output));
            let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let changes = plan["changes"].as_array().unwrap();
            let left: Vec<_> = changes.iter().filter(|change| !is_nameless(change)).collect();
            assert!(left.is_empty(), "{version} {profile}: {left:?}");
        }
    }
}

/// MariaDB has a statement without a name of its own; no option of its start reaches it.
fn is_nameless(change: &serde_json::Value) -> bool {
    change["key"] == serde_json::json!(["statement/sql/"])
}

#[test]
fn lines_say_which_counters_cannot_be_turned_off_at_the_start() {
    let scene = Scene::of(Version::Mysql9);
    let printed = lines(&scene, "metrics-off");
    assert!(printed.contains("# the counters of InnoDB"), "{printed}");
    assert!(!printed.contains("innodb_monitor_enable"), "{printed}");
}
