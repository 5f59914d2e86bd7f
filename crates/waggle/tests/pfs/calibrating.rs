//! Prices are measured on a private server that leaves nothing behind.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use tempfile::TempDir;
use waggle_instrumentation::cost::calibration::SESSIONS;
use waggle_testkit::{Version, wait_until};

use super::costing::{assert_counts_the_load, at_work, busy, class, json};
use super::planning::cost_at_work;
use super::{Scene, assert_ended, size};

const CALIBRATE: [&str; 5] = ["cost", "--interval", "300ms", "--calibrate", "--rounds"];
const FEW: &str = "2";
/// They take longer than any test.
const MANY: &str = "10000";
/// `PREFIX` of the directories of private servers.
const PREFIX: &str = "waggle-server-";

fn servers_in(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)).count()
}

/// A place of its own for the files of the private server.
fn calibrate(scene: &Scene, places: &TempDir, more: &[&str]) -> Command {
    let mut command = scene.command(&[&CALIBRATE[..], more].concat());
    command.env("TMPDIR", places.path());
    command
}

#[test]
fn a_calibration_prices_the_server_and_leaves_no_server_behind() {
    for &version in size::choose(&[Version::Mysql9][..], &Version::ALL) {
        let (scene, places) = (Scene::of(version), TempDir::new().unwrap());
        let cost = json(&calibrate(&scene, &places, &[FEW, "--json"]).output().unwrap());
        assert_eq!(servers_in(places.path()), 0, "{version}");
        assert_eq!(cost["calibration_missing"], Value::Null, "{version}");
        let calibration = &cost["calibration"];
        assert_eq!(calibration["version"], cost["version"], "{version}");
        let measured = calibration["measured"].as_array().unwrap();
        for sessions in SESSIONS {
            let is_it = |one: &&Value| {
                one["sessions"] == sessions && one["class"] == "wait" && one["kept"] == "sums"
            };
            let wait = measured.iter().find(is_it).unwrap_or_else(|| panic!("{version}: {cost}"));
            assert!(wait["events_per_statement"].as_f64().unwrap() > 1.0, "{version}: {wait}");
            assert!(wait["rest_ns"]["value"].is_f64(), "{version}: {wait}");
        }
        // Later it is found, and used.
        let _load = busy(&scene);
        let again = at_work(|| json(&scene.run(&["cost", "--interval", "300ms", "--json"])));
        assert_eq!(again["calibration"]["at"], calibration["at"], "{version}");
        assert_counts_the_load(&again, version.name());
        // What is off is planned by it.
        let planned = cost_at_work(&scene, "waits");
        let mutex = class(&planned, "wait/synch/mutex");
        assert_eq!(mutex["events_from"], "point_selects", "{version}: {mutex}");
        assert!(mutex["events_per_statement"].as_f64().unwrap() > 1.0, "{version}: {mutex}");
        assert!(mutex["cores"]["value"].is_f64(), "{version}: {mutex}");
    }
}

#[test]
fn a_private_server_does_not_outlive_a_killed_waggle_and_its_files_not_the_next() {
    let (scene, places) = (Scene::of(Version::Mysql80), TempDir::new().unwrap());
    let mut waggle = calibrate(&scene, &places, &[MANY]);
    let mut waggle = waggle.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // Open to the end: it must not fail to say what it says next.
    let mut lines = BufReader::new(waggle.stderr.take().unwrap()).lines().map(Result::unwrap);
    let begun = lines.find(|line| line.contains("round 1"));
    assert!(begun.is_some(), "it ended before it measured");
    let home = fs::read_dir(places.path()).unwrap().next().unwrap().unwrap().path();
    let pid = fs::read_to_string(home.join("own/pid")).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    kill_process(Pid::from_child(&waggle), Signal::KILL).unwrap();
    waggle.wait().unwrap();
    wait_until("the end of the private server", || test_kill_process(pid).is_err());
    assert_eq!(servers_in(places.path()), 1, "nobody could remove its files");
    let other = calibrate(&scene, &places, &[MANY]).spawn().unwrap();
    wait_until("the removal of its files", || !home.exists());
    kill_process(Pid::from_child(&other), Signal::INT).unwrap();
    assert_ended(&other.wait_with_output().unwrap(), 4, &[], "nothing was kept");
    assert_eq!(servers_in(places.path()), 0, "Ctrl-C removes its files");
}

#[test]
fn a_program_that_does_not_fit_is_refused_with_the_remedy() {
    let (scene, places) = (Scene::of(Version::Mysql57), TempDir::new().unwrap());
    let refused = |mysqld: &Path| -> Output {
        let mysqld = mysqld.display().to_string();
        calibrate(&scene, &places, &[FEW, "--mysqld", &mysqld]).output().unwrap()
    };
    assert_ended(&refused(Path::new("/nosuch/mysqld")), 4, &["/nosuch/mysqld"], "");
    let other = Scene::of(Version::Mysql80);
    assert_ended(&refused(other.server.program()), 4, &["name the program of that version"], "");
    assert_eq!(servers_in(places.path()), 0);
}
