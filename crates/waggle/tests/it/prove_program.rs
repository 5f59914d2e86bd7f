//! `waggle prove program`: a program that runs in some windows and not in others.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use waggle_testkit::{Server, Version, wait_until};

use crate::load;
use crate::watching::{Ended, Waggle};

/// A statement that leaves the processors to others: what is counted here is no matter of speed.
const PACED: &str = "DO SLEEP(0.0005)";

/// A trial of a script, which has a file of its own as `$0`.
fn trial(server: &Server, script: &str, file: &Path) -> Waggle {
    let pid = server.pid().to_string();
    let common = ["prove", "program", "--json", "--pid", &pid, "--for", "600s", "--start", "50ms"];
    let script = ["--give-up", "100%", "--", "sh", "-c", script, file.to_str().unwrap()];
    Waggle::start(&[&common[..], &script].concat())
}

fn wait_for_a_block(waggle: &mut Waggle) {
    waggle.wait_for("a block", |waggle| waggle.err().contains(" blocks: "));
}

fn object(ended: &Ended) -> Value {
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {}", ended.err))
}

/// Whether a process has this file as an argument.
fn runs(file: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut lines = processes.filter_map(|one| fs::read(one.path().join("cmdline")).ok());
    let is_it = |word: &[u8]| word == file.as_os_str().as_encoded_bytes();
    lines.any(|line| line.split(|byte| *byte == 0).any(is_it))
}

const AT_WORK: &str = "echo on >> \"$0\"; while :; do sleep 0.05; done";

#[test]
fn a_program_runs_in_the_windows_that_are_on_and_ends_with_the_trial() {
    for version in [Version::Mysql9, Version::Mariadb1011] {
        let server = Server::builder(version).lease().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("seen");
        let mut waggle = trial(&server, AT_WORK, &file);
        let ended = load::at_work(&server, PACED, |_| {
            wait_for_a_block(&mut waggle);
            waggle.interrupt()
        });
        assert_eq!(ended.code, Some(1), "it was stopped before its time: {}", ended.err);
        assert!(!runs(&file), "{version}: it still runs");
        let json = object(&ended);
        let blocks = json["blocks"].as_u64().unwrap();
        let begun = fs::read_to_string(&file).unwrap().lines().count() as u64;
        assert!(blocks > 0 && begun > blocks, "{begun} times in {json}");
        for phase in ["off", "off_again", "on"] {
            assert!(json[phase]["statements"].as_u64().unwrap() > 0, "{phase}: {json}");
        }
        assert_eq!((&json["witness"], &json["gave_up"]), (&Value::Null, &Value::Null));
        let what = json["what"].as_str().unwrap();
        assert!(what.starts_with("program sh ") && what.len() == 15, "{what}");
        assert!(!json.to_string().contains("echo"), "its arguments may hold a secret: {json}");
    }
}

#[test]
fn a_program_ends_when_waggle_is_killed() {
    let server = Server::builder(Version::Mysql80).lease().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("seen");
    // It has started another one, and both ignore the signal to end.
    let script = "trap '' TERM; sh -c 'echo on >> \"$0\"; while :; do sleep 0.05; done' \"$0\" & \
                  while :; do sleep 0.05; done";
    let waggle = trial(&server, script, &file);
    load::at_work(&server, PACED, |_| {
        wait_until("the program", || file.exists());
        assert!(runs(&file));
        kill_process(Pid::from_raw(waggle.pid().cast_signed()).unwrap(), Signal::KILL).unwrap();
        drop(waggle.end());
    });
    wait_until("the end of the program", || !runs(&file));
}

#[test]
fn a_program_that_signals_all_of_its_group_is_priced() {
    let server = Server::builder(Version::Mysql9).lease().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("seen");
    let script = "trap '' TERM; echo on >> \"$0\"; kill 0; trap 'kill 0; exit' TERM; \
                  while :; do sleep 0.05; done";
    let mut waggle = trial(&server, script, &file);
    let ended = load::at_work(&server, PACED, |_| {
        wait_for_a_block(&mut waggle);
        waggle.interrupt()
    });
    assert_eq!(ended.code, Some(1), "it was stopped before its time: {}", ended.err);
    assert!(object(&ended)["blocks"].as_u64() > Some(0), "{}", ended.out);
    assert!(!runs(&file), "it still runs: {}", ended.err);
}

/// `timeout` begins a group of its own where it does not lead one.
#[test]
fn a_program_that_changes_its_group_does_not_outlive_its_windows() {
    let server = Server::builder(Version::Mysql80).lease().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("seen");
    let mut waggle =
        trial(&server, "exec timeout 600 sh -c 'echo on >> \"$0\"; sleep 600' \"$0\"", &file);
    let ended = load::at_work(&server, PACED, |_| {
        wait_for_a_block(&mut waggle);
        waggle.interrupt()
    });
    assert!(object(&ended)["blocks"].as_u64() > Some(0), "{}", ended.out);
    assert!(!runs(&file), "it still runs: {}", ended.err);
}

#[test]
fn a_program_that_stops_the_server_is_ended_at_once() {
    let server = Server::builder(Version::Mysql9).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let pid = server.pid();
    let script = format!(
        "trap 'kill -CONT {pid}; exit' TERM; kill -STOP {pid}; while :; do sleep 0.01; done"
    );
    let waggle = trial(&server, &script, dir.path());
    let ended = load::at_work(&server, PACED, |_| {
        let ended = waggle.end();
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::CONT).unwrap();
        ended
    });
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert_eq!(object(&ended)["gave_up"], "standstill", "{}", ended.out);
}

#[test]
fn a_server_that_ends_under_a_program_is_told_whether_or_not_the_program_ends_with_it() {
    let script = "echo on >> \"$0\"; while kill -0 PID; do sleep 0.01; done";
    for then in ["exit 1", "sleep 600"] {
        let mut server = Server::builder(Version::Mysql80).start().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let script = format!("{}; {then}", script.replace("PID", &server.pid().to_string()));
        let waggle = trial(&server, &script, &dir.path().join("seen"));
        let pid = Pid::from_raw(server.pid().cast_signed()).unwrap();
        let ended = load::at_work(&server, PACED, |_| {
            wait_until("the program", || dir.path().join("seen").exists());
            kill_process(pid, Signal::KILL).unwrap();
            waggle.end()
        });
        assert_eq!(ended.code, Some(4), "{then}: {}", ended.err);
        assert!(ended.err.contains("waggle: the server has ended"), "{then}: {}", ended.err);
        server.kill9().unwrap();
    }
}

#[test]
fn what_is_no_program_to_price_is_told() {
    let server = Server::builder(Version::Mysql9).lease().unwrap();
    let pid = server.pid().to_string();
    for (program, code, words) in [
        (&["--", "no-such-program"][..], 4, "`no-such-program` cannot be started"),
        (&["--", "sh", "-c", "setsid sleep 100 & exit 3"], 4, "`sh` ended by itself"),
        (&["--", "sh", "-c", "echo broken >&2; exit 3"], 4, "broken\nwaggle: `sh` ended by itself"),
        (&["sleep", "9"], 2, "unexpected argument"),
        (&["--start", "0s", "--", "sleep", "9"], 2, "too short"),
    ] {
        let waggle = Waggle::start(&[&["prove", "program", "--pid", &pid][..], program].concat());
        let ended = load::at_work(&server, PACED, |_| waggle.end());
        assert_eq!(ended.code, Some(code), "{program:?}: {}", ended.err);
        assert!(ended.err.contains(words), "{program:?}: {}", ended.err);
    }
}
