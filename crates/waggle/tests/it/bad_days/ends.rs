//! The end of a server: what ended it, and what ran then.

use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use waggle_testkit::{Account, Client, Server, Transport, Version, create_crash, wait_until};

use super::comings::of;
use super::control_group::{ControlGroup, Setting};
use crate::watching::Waggle;
use crate::{load, watched};

fn kill(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// All lines of a server that has ended, up to the last.
fn up_to_the_end(mut waggle: Waggle, pid: u32) -> Vec<Value> {
    waggle.wait_for("its end", |waggle| {
        of(&waggle.lines(), pid).last().is_some_and(|line| !line["ended"].is_null())
    });
    let lines = of(&waggle.interrupt().lines(), pid);
    let (last, before) = lines.split_last().unwrap();
    assert!(before.iter().all(|line| line["ended"].is_null()), "it ends once: {before:?}");
    assert_eq!((&last["running"], &last["state"]), (&Value::Null, &Value::Null), "{last}");
    lines
}

/// Waits until the server itself lists `count` statements with `word` in their text. Returns the session that asked, so that
/// the test keeps it: its own end is a command, which might still run when the server dies.
fn wait_until_running(server: &Server, word: &str, count: usize) -> Client {
    let mut client = load::session(server);
    let ask = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%{word}%' AND ID <> CONNECTION_ID()"
    );
    wait_until("the statements run", || {
        client.run(&ask).unwrap()[0].text(0, 0) == Some(count.to_string())
    });
    client
}

/// Nobody waits for the process, as where its parent is busy: it stays in `/proc`, dead.
#[test]
fn the_end_of_a_server_names_who_ran_and_nothing_of_it_is_a_false_zero() {
    for version in [Version::Mysql57, Version::Mysql9, Version::Mariadb1011] {
        let server = Server::start(version).unwrap();
        let pid = server.pid();
        let mut waggle = Waggle::start(&["watch", "--json", "--interval", "300ms"]);
        thread::scope(|threads| {
            for _ in 0..2 {
                let mut session = load::session(&server);
                // The end of the server ends it.
                threads.spawn(move || session.run("SELECT SLEEP(100) AS culprit").is_err());
            }
            waggle.wait_for("both run at a look", |waggle| {
                of(&waggle.lines(), pid).last().is_some_and(|line| line["running"] == 2)
            });
            kill(pid, Signal::KILL);
        });
        let lines = up_to_the_end(waggle, pid);
        let since = lines.iter().position(|line| line["running"] == 2).unwrap();
        for line in &lines[since..] {
            assert_ne!(line["running"], 0, "{version}: {line}");
            assert_ne!(line["active_sessions"], 0.0, "{version}: {line}");
        }
        let ended = &lines[lines.len() - 1]["ended"];
        let us = std::process::id();
        assert_eq!(ended["signal"]["name"], "SIGKILL", "{version}: {ended}");
        assert_eq!(ended["signal"]["sender"], "process", "{version}: {ended}");
        assert_eq!(ended["signal"]["sender_pid"], us, "{version}: {ended}");
        let why = ended["why"].as_str().unwrap();
        let words = format!("the server has ended: SIGKILL from pid {us} (");
        assert!(why.starts_with(&words), "{version}: {why}");
        assert!(ended["last_look"].is_string() && ended["at_end"] == true, "{version}: {ended}");
        let ran = ended["ran"].as_array().unwrap();
        assert_eq!(ran.len(), 2, "{version}: {ended}");
        for session in ran {
            assert!(session["text"].as_str().unwrap().contains("culprit"), "{version}: {session}");
            assert!(session["user"].is_string(), "{version}: {session}");
            assert!(session["age_s"].as_f64().unwrap() > 0.0, "{version}: {session}");
        }
        assert!(watched::calls(&lines, "`culprit`") == 0, "{version}: they did not end");
    }
}

/// They begin after a look and are gone before the next one, if the test is quick; a slow one is told the same.
#[test]
fn what_a_server_ran_when_it_was_killed_is_told_where_no_look_has_seen_it() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        let pid = server.pid();
        let waggle = Waggle::watch(&server, &["--interval", "5s"]);
        thread::scope(|threads| {
            for _ in 0..5 {
                let mut session = load::session(&server);
                threads.spawn(move || session.run("SELECT SLEEP(100) AS culprit").is_err());
            }
            let idle = wait_until_running(&server, "culprit", 5);
            kill(pid, Signal::KILL);
            drop(idle);
        });
        let lines = up_to_the_end(waggle, pid);
        let last = &lines[lines.len() - 1];
        let ran = last["ended"]["ran"].as_array().unwrap();
        assert_eq!(ran.len(), 5, "{version}: {last}");
        assert_eq!(last["ended"]["at_end"], true, "{version}: {last}");
        let time = |told: &Value| told.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        let end = &last["ended"]["last_look"];
        // An interval may have been closed while the kernel took the threads away.
        if lines[..lines.len() - 1].iter().all(|line| time(&line["time"]) < time(end)) {
            assert_eq!(last["time"], *end, "{version}: its time ends with it");
        }
        assert_eq!(last["lost"]["ended_unseen"], 5, "{version}: {last}");
        assert!(last["active_sessions"].as_f64().unwrap() > 0.0, "{version}: {last}");
        assert!(ran.iter().all(|one| one["schema"] == "test"), "{version}: {ran:?}");
    }
}

/// A server with these functions, the session that may call them, and who watches it.
fn fragile(version: Version, functions: &[&str]) -> (Server, Client, Waggle) {
    let server = Server::builder(version).with_crashes().unwrap().start().unwrap();
    let mut root = Client::connect(&server, Transport::Unix, Account::ROOT).unwrap();
    functions.iter().for_each(|function| drop(root.run(create_crash(function)).unwrap()));
    let waggle = Waggle::watch(&server, &["--interval", "300ms"]);
    (server, root, waggle)
}

#[test]
fn a_statement_that_takes_its_server_down_is_named() {
    for (version, function, expected) in [
        (Version::Mysql57, "crash", "SIGSEGV"),
        (Version::Mysql80, "crash", "SIGSEGV"),
        (Version::Mysql9, "crash", "SIGSEGV"),
        (Version::Mysql9, "abandon", "SIGABRT"),
        (Version::Mariadb1011, "crash", "SIGSEGV"),
        (Version::Mariadb114, "abandon", "SIGABRT"),
    ] {
        let (server, mut root, waggle) = fragile(version, &[function]);
        thread::scope(|threads| {
            let mut session = load::session(&server);
            threads.spawn(move || session.run("SELECT SLEEP(100) AS beside").is_err());
            let _idle = wait_until_running(&server, "beside", 1);
            assert!(root.run(format!("SELECT {function}() AS culprit")).is_err());
        });
        let lines = up_to_the_end(waggle, server.pid());
        let ended = &lines[lines.len() - 1]["ended"];
        let signal = &ended["signal"];
        let id = root.connection_id();
        let [name, sender] = ["name", "sender"].map(|key| signal[key].as_str());
        assert_eq!((name, sender), (Some(expected), Some("session")), "{version}: {ended}");
        assert_eq!((&signal["session"], &ended["at_end"]), (&id.into(), &true.into()));
        let why = format!("the server has ended: {expected} in session {id}");
        assert_eq!(ended["why"], why, "{version}: {ended}");
        let ran = ended["ran"].as_array().unwrap();
        assert_eq!(ran.len(), 2, "{version}: {ended}");
        let culprit = ran.iter().find(|one| one["connection_id"] == id).unwrap();
        let text = format!("SELECT {function}() AS culprit");
        assert_eq!(culprit["text"], text, "{version}: {culprit}");
        assert_eq!(culprit["user"], "root", "{version}: {culprit}");
    }
}

/// As of a virtual machine in the server, for which a SIGSEGV is nothing special.
#[test]
fn a_signal_that_a_session_has_survived_ends_nothing() {
    for version in [Version::Mysql80, Version::Mariadb1011] {
        let (server, mut survivor, waggle) = fragile(version, &["survive", "abandon"]);
        survivor.run("SELECT survive()").unwrap();
        survivor.run("SELECT 1").unwrap();
        let mut culprit = load::session(&server);
        assert!(culprit.run("SELECT abandon()").is_err());
        let lines = up_to_the_end(waggle, server.pid());
        let ended = &lines[lines.len() - 1]["ended"];
        assert_eq!(ended["signal"]["name"], "SIGABRT", "{version}: {ended}");
        assert_eq!(ended["signal"]["session"], culprit.connection_id(), "{version}: {ended}");
        assert_eq!(ended["at_end"], true, "{version}: {ended}");
        let ran = ended["ran"].as_array().unwrap();
        assert_eq!(ran.len(), 1, "{version}: {ended}");
        assert_eq!(ran[0]["text"], "SELECT abandon()", "{version}: {ended}");
    }
}

/// How the memory of a group is limited in each version, bytes.
const MEMORY: [Setting; 2] = [
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "500000000"),
    ("/sys/fs/cgroup", "memory.max", "500000000"),
];

#[test]
fn a_server_that_memory_runs_out_for_is_ended_by_the_kernel_and_who_took_it_is_told() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let waggle = Waggle::watch(&server, &["--interval", "300ms"]);
    let (group, limit) = ControlGroup::of(server.pid(), &MEMORY);
    group.write(limit);
    // Where the kernel has them: no memory on the disk either.
    for (file, most) in [("memory.swap.max", "0"), ("memory.memsw.limit_in_bytes", limit)] {
        let _ = fs::write(group.file.with_file_name(file), most);
    }
    let mut session = load::session(&server);
    let mut takes = |n| session.run(format!("SET @taken_{n} = REPEAT('x', 16000000)")).is_ok();
    assert!((0..100).find(|n| !takes(*n)).is_some(), "the limit of the group holds");
    let lines = up_to_the_end(waggle, server.pid());
    let ended = &lines[lines.len() - 1]["ended"];
    assert_eq!(ended["why"], "the server has ended: SIGKILL from the kernel", "{ended}");
    assert_eq!((&ended["signal"]["sender"], &ended["at_end"]), (&"kernel".into(), &true.into()));
    let ran = ended["ran"].as_array().unwrap();
    assert_eq!(ran.len(), 1, "{ended}");
    assert!(ran[0]["text"].as_str().unwrap().contains("REPEAT"), "{ended}");
}

#[test]
fn no_signal_is_told_of_a_server_that_is_shut_down() {
    for version in [Version::Mysql80, Version::Mariadb114] {
        let server = Server::start(version).unwrap();
        let pid = server.pid();
        let waggle = Waggle::watch(&server, &["--interval", "300ms"]);
        server.stop().unwrap();
        let lines = up_to_the_end(waggle, pid);
        let ended = &lines[lines.len() - 1]["ended"];
        assert_eq!(ended["why"], "the server has ended", "{version}: {ended}");
        assert_eq!(ended["signal"], Value::Null, "{version}: {ended}");
        assert_eq!(ended["ran"], Value::Array(Vec::new()), "{version}: {ended}");
    }
}
