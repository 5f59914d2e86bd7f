//! Servers and sessions that come and go while they are watched.

use std::collections::BTreeSet;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use waggle_testkit::{Account, Client, Server, Transport, Version};

use crate::verified::Verified;
use crate::watching::Waggle;
use crate::{load, watched};

/// The intervals of one server, of all that run on this host.
fn of(lines: &[Value], pid: u32) -> Vec<Value> {
    lines.iter().filter(|line| line["server"]["pid"] == pid).cloned().collect()
}

/// `watch` on every server of the host, until it has shown an interval of each of `pids`.
fn watch_all(pids: &[u32]) -> Waggle {
    let mut waggle = Waggle::start(&["watch", "--json", "--interval", "500ms"]);
    for pid in pids {
        wait_for_server(&mut waggle, *pid);
    }
    waggle
}

fn wait_for_server(waggle: &mut Waggle, pid: u32) {
    waggle.wait_for("an interval of the server", |waggle| !of(&waggle.lines(), pid).is_empty());
}

/// Waits for the end of the interval of each server that is under way, and for one more.
fn wait_for_more(waggle: &mut Waggle, pids: &[u32]) {
    for pid in pids {
        let seen = of(&waggle.lines(), *pid).len();
        waggle.wait_for("the next intervals", |waggle| of(&waggle.lines(), *pid).len() > seen + 1);
    }
}

#[test]
fn two_servers_of_one_binary_are_told_apart() {
    let servers = [Version::Mariadb1011; 2].map(|version| Server::start(version).unwrap());
    let pids = servers.each_ref().map(Server::pid);
    let mut waggle = watch_all(&pids);
    for (server, name) in servers.iter().zip(["one_server", "other_server"]) {
        let mut client = load::session(server);
        for _ in 0..100 {
            client.run(format!("SELECT 1 AS {name}")).unwrap();
        }
    }
    wait_for_more(&mut waggle, &pids);
    let lines = waggle.interrupt().lines();
    let calls = |pid: u32, name: &str| watched::calls(&of(&lines, pid), name);
    assert_eq!([calls(pids[0], "`one_server`"), calls(pids[0], "`other_server`")], [100, 0]);
    assert_eq!([calls(pids[1], "`one_server`"), calls(pids[1], "`other_server`")], [0, 100]);
}

#[test]
fn servers_of_different_builds_are_each_read_by_their_own_layout() {
    let servers = [Version::Mysql57, Version::Mysql9, Version::Mariadb114];
    let servers = servers.map(|version| Server::start(version).unwrap());
    let pids = servers.each_ref().map(Server::pid);
    let mut waggle = watch_all(&pids);
    for server in &servers {
        let mut client = load::session(server);
        (0..100).for_each(|_| drop(client.run("SELECT 1 AS counted").unwrap()));
    }
    wait_for_more(&mut waggle, &pids);
    let lines = waggle.interrupt().lines();
    for pid in pids {
        let lines = of(&lines, pid);
        assert_eq!(watched::calls(&lines, "`counted`"), 100, "of pid {pid}");
        // A program that reads a session by another's layout finds nonsense, or nothing to read.
        for kind in ["ring_full", "unreadable_session", "unreadable_text", "map_full"] {
            assert_eq!(watched::sum(&lines, &format!("/lost/{kind}")), 0, "{kind} of pid {pid}");
        }
    }
}

#[test]
fn a_server_that_is_killed_and_started_again_is_watched_again() {
    let mut server = Server::start(Version::Mysql80).unwrap();
    let mut pids = BTreeSet::from([server.pid()]);
    let mut waggle = watch_all(&[server.pid()]);
    for turn in 0..3 {
        let mut client = load::session(&server);
        (0..50).for_each(|_| drop(client.run("SELECT 1 AS counted").unwrap()));
        wait_for_more(&mut waggle, &[server.pid()]);
        drop(client);
        if turn == 0 {
            server.kill9().unwrap();
        }
        if turn < 2 {
            server.restart().unwrap();
            assert!(pids.insert(server.pid()));
            wait_for_server(&mut waggle, server.pid());
        }
    }
    let ended = waggle.interrupt();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let lines = ended.lines();
    for pid in pids {
        let lines = of(&lines, pid);
        assert_eq!(watched::calls(&lines, "`counted`"), 50, "of pid {pid}: {lines:#?}");
    }
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
            kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
            waggle.wait_for("its end", |waggle| {
                of(&waggle.lines(), pid).last().is_some_and(|line| !line["ended"].is_null())
            });
        });
        let lines = of(&waggle.interrupt().lines(), pid);
        let Some((last, before)) = lines.split_last() else { panic!("no line") };
        assert!(before.iter().all(|line| line["ended"].is_null()), "{version}: it ends once");
        let since = before.iter().position(|line| line["running"] == 2).unwrap();
        for line in &lines[since..] {
            assert_ne!(line["running"], 0, "{version}: {line}");
            assert_ne!(line["active_sessions"], 0.0, "{version}: {line}");
        }
        assert_eq!((&last["running"], &last["state"]), (&Value::Null, &Value::Null), "{last}");
        let ended = &last["ended"];
        assert_eq!(ended["why"], "the server has ended", "{version}");
        assert!(ended["last_look"].is_string(), "{version}: {ended}");
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

#[test]
fn a_thousand_connections_that_open_and_close_lose_nothing() {
    for version in [Version::Mysql57, Version::Mysql9, Version::Mariadb114] {
        let server = Server::start(version).unwrap();
        let verified = Verified::around(&server, &[], |_| {
            for turn in 0..1000 {
                let transport = if turn % 2 == 0 { Transport::Unix } else { Transport::Tcp };
                let mut client = Client::connect(&server, transport, Account::APP).unwrap();
                client.run("SELECT 1").unwrap();
                match turn % 3 {
                    0 => client.quit().unwrap(),
                    1 => client.hang_up(),
                    _ => drop(client),
                }
            }
        });
        verified.assert_exact(&format!("{version}, 1,000 connections"), 1000);
    }
}
