//! Servers and sessions that come and go while they are watched.

use std::collections::BTreeSet;

use serde_json::Value;
use waggle_testkit::{Account, Client, Server, Transport, Version};

use crate::verified::Verified;
use crate::watching::Waggle;
use crate::{load, watched};

/// The intervals of one server, of all that run on this host.
pub(super) fn of(lines: &[Value], pid: u32) -> Vec<Value> {
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
