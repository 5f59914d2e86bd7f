//! What cannot be run is told before anything is started.

use std::fs;

use super::{Place, ended, small_suite};

/// A suite that takes more memory than this host has, and little of its disk: many servers side by side,
/// each with as many sessions as can be.
fn too_large_for_the_memory() -> String {
    let total_bytes = waggle_host::memory::total_bytes().unwrap();
    // A session takes more than 2 MiB on both sides.
    let servers = (total_bytes >> 20) / (2 * 4096) + 1;
    let scenario = |at: u64| {
        format!(
            "[[scenarios]]\nname = \"s{at}\"\ntitle = \"one\"\nstart = [\"--back-log={}\"]\n",
            at + 100
        )
    };
    let scenarios: Vec<String> = (0..servers).map(scenario).collect();
    small_suite([LARGE, &scenarios.concat()])
}

const SCENARIO: &str = "[[scenarios]]\nname = \"s0\"\ntitle = \"one\"\n";

const LARGE: &str = r#"
title = "more than there is"
baseline = "s0"
threads = [4096]
open_shares = []
open_threads = 1
servers = "side_by_side"
"#;

#[test]
fn each_thing_that_is_wrong_or_missing_is_named_and_nothing_is_started() {
    let place = Place::new();
    let bad = place.dir.path().join("bad.toml");
    fs::write(&bad, "title = \"t\"\nbaseline = 3\n").unwrap();
    let large = place.dir.path().join("large.toml");
    fs::write(&large, too_large_for_the_memory()).unwrap();
    let no_sysbench = {
        let mut command = place.small("rds", "mysql-8.0", &[]);
        command.env("PATH", "/nosuch");
        command
    };
    let no_room = {
        let mut command = place.small("rds", "mysql-8.0", &[]);
        // A file system without blocks: nothing is ever free in it.
        command.env("TMPDIR", "/proc");
        command
    };
    let long_path = {
        let long = place.dir.path().join("d".repeat(108));
        fs::create_dir(&long).unwrap();
        let mut command = place.small("rds", "mysql-8.0", &["--only", "1", "--only", "closed"]);
        command.env("TMPDIR", long);
        command
    };
    let of_workload = |name: &str, script: &str| {
        let path = place.dir.path().join(name);
        let suite = small_suite([LARGE, SCENARIO]);
        let lines = suite.replace("script = \"oltp_point_select\"", script);
        fs::write(&path, lines.replace("[4096]", "[1]")).unwrap();
        place.small(path.to_str().unwrap(), "mysql-8.0", &[])
    };
    let no_script = of_workload("script.toml", "script = \"oltp_nosuch\"");
    let no_argument = of_workload(
        "argument.toml",
        "script = \"oltp_point_select\"\narguments = [\"--no-such=1\"]",
    );
    let no_place =
        place.lab(&["run", "rds", "--server", "/bin/ls", "--output", "/proc/nosuch/run"]);
    let cases = [
        (no_script, "there is no script oltp_nosuch", 4),
        (no_argument, "invalid option: --no-such=1", 4),
        (place.small("nosuch", "mysql-8.0", &[]), "nosuch", 3),
        (place.small(bad.to_str().unwrap(), "mysql-8.0", &[]), "bad.toml", 3),
        (place.small("rds", "mysql-3.23", &[]), "mysql-3.23", 3),
        (place.small("rds", "/nosuch/mysqld", &[]), "/nosuch/mysqld", 3),
        (place.small("rds", "mysql-8.0", &["--only", "nosuch"]), "--only nosuch", 2),
        (place.small("rds", "mysql-8.0", &["--blocks", "1"]), "--blocks", 2),
        (place.lab(&["run", "rds"]), "--server <PATH|NAME>|--dsn", 2),
        (place.lab(&["run", "rds", "--dsn", "--plan"]), "--dsn without --yes is a plan", 2),
        (no_sysbench, "sysbench", 4),
        (no_room, "room on the disk", 4),
        (place.small(large.to_str().unwrap(), "mysql-8.0", &[]), "waggle: memory: ", 4),
        (long_path, "a socket may have 107 bytes", 4),
        (no_place, "name another one with --output", 4),
        (place.lab(&["resume", "nosuch"]), "waggle lab list", 4),
        (place.lab(&["report", "nosuch"]), "nosuch", 4),
    ];
    for (mut command, named, code) in cases {
        let said = ended(command.output(), code);
        assert!(said.contains(named), "{named}: {said}");
        assert!(!place.run().exists(), "{named}: a run was begun");
        assert_eq!(fs::read_dir(place.servers()).unwrap().count(), 0, "{named}");
    }
}

#[test]
fn a_run_that_is_refused_leaves_no_directory_on_the_way_to_its_own() {
    let place = Place::new();
    let mut command = place.lab(&["run", "rds", "--server", "mysql-8.0", "--scale", "tiny"]);
    command.arg("--servers").arg(place.list()).env("TMPDIR", "/proc");
    command.arg("--output").arg(place.dir.path().join("not/there/yet"));
    let said = ended(command.output(), 4);
    assert!(said.contains("room on the disk"), "{said}");
    assert!(!place.dir.path().join("not").exists());
}

#[test]
fn a_run_is_not_written_over() {
    let place = Place::new();
    fs::create_dir_all(place.run()).unwrap();
    let only = ["--only", "read-only", "--only", "1", "--only", "closed", "--blocks", "2"];
    let said = ended(place.small("rds", "mysql-8.0", &only).output(), 4);
    assert!(said.contains("is there already: name another directory"), "{said}");
    assert!(!said.contains("data:"), "{said}");
}

#[test]
fn a_plan_says_what_a_run_takes_and_starts_nothing() {
    let place = Place::new();
    let words = ["--plan", "--only", "4", "--only", "closed"];
    let said = ended(place.small("rds", "mysql-8.0", &words).output(), 0);
    for part in [
        "3 cells, 6 scenarios in 8 arms",
        "Detects (in 4 of 5",
        "GiB of memory, for 4 servers",
        "nothing was started",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!place.run().exists() && fs::read_dir(place.servers()).unwrap().next().is_none());
}
