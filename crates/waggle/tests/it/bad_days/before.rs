//! Clients that wait before any statement of theirs has begun: in a login, for a thread, to be accepted.

use std::fs;
use std::io::Read;
use std::net::TcpStream;

use serde_json::Value;
use waggle_testkit::client::Command;
use waggle_testkit::{Account, Client, Server, Transport, Version, wait_until};

use super::standstill::{Goes, send};
use crate::watching::Waggle;

const CLIENTS: usize = 30;
/// The server ends who says nothing for so long.
const PATIENT: &str = "--connect-timeout=600";

/// Clients that take the greeting and answer nothing.
fn silent(server: &Server) -> Vec<TcpStream> {
    let connect = |_| {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        stream
    };
    (0..CLIENTS).map(connect).collect()
}

fn watched(server: &Server) -> Waggle {
    Waggle::watch(server, &["--interval", "300ms"])
}

/// Waits for a line in which the number at this place is right.
fn wait_for(waggle: &mut Waggle, of: &str, number: &str, is_so: impl Fn(u64) -> bool) -> Value {
    let last = |waggle: &Waggle| waggle.lines().pop().unwrap();
    let told = |line: &Value| line[of][number].as_u64();
    waggle.wait_for(number, |waggle| told(&last(waggle)).is_some_and(&is_so));
    last(waggle)
}

fn assert_logins(server: &Server) {
    let mut waggle = watched(server);
    wait_for(&mut waggle, "logins", "under_way", |count| count == 0);
    let clients = silent(server);
    let line = wait_for(&mut waggle, "logins", "under_way", |count| count == CLIENTS as u64);
    assert!(line["logins"]["oldest_s"].as_f64().is_some(), "{line}");
    waggle.wait_for("an age", |waggle| {
        waggle.lines().last().unwrap()["logins"]["oldest_s"].as_f64() > Some(1.0)
    });
    assert!(waggle.lines().pop().unwrap()["sessions"].as_array().unwrap().is_empty());
    drop(clients);
    wait_for(&mut waggle, "logins", "under_way", |count| count == 0);
}

#[test]
fn logins_under_way_are_counted_with_the_age_of_the_oldest() {
    for version in [Version::Mysql57, Version::Mysql80, Version::Mysql9] {
        assert_logins(&Server::builder(version).arg(PATIENT).start().unwrap());
    }
}

#[test]
fn a_replica_that_connects_to_its_source_is_no_login() {
    for version in [Version::Mysql57, Version::Mysql80, Version::Mariadb1011] {
        let server = Server::builder(version).arg("--server-id=7").start().unwrap();
        let mut client = Client::connect(&server, Transport::Unix, Account::ROOT).unwrap();
        client
            .run("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=1, MASTER_USER='x'")
            .unwrap();
        client.run("START SLAVE").unwrap();
        wait_until("the replica connects", || {
            let threads = client.run("SHOW PROCESSLIST").unwrap();
            let command = |row: usize| threads[0].text(row, 4);
            (0..threads[0].rows.len()).any(|row| command(row).as_deref() == Some("Connect"))
        });
        let mut waggle = watched(&server);
        waggle.wait_for_lines(3);
        let lines = waggle.lines();
        assert!(lines.iter().all(|line| line["logins"]["under_way"] == 0), "{version}: {lines:?}");
    }
}

#[test]
fn threads_in_the_thread_cache_of_mariadb_are_no_logins() {
    for version in [Version::Mariadb1011, Version::Mariadb114] {
        let cache = "--thread-cache-size=100";
        let server = Server::builder(version).arg(cache).arg(PATIENT).start().unwrap();
        let connect = |_| Client::connect(&server, Transport::Tcp, Account::ROOT).unwrap();
        let clients: Vec<Client> = (0..10).map(connect).collect();
        clients.into_iter().for_each(|client| client.quit().unwrap());
        assert_logins(&server);
        // The clients that said nothing leave their sessions in the cache.
        let mut root = Client::connect(&server, Transport::Unix, Account::ROOT).unwrap();
        wait_until("they are in the cache", || {
            let status = root.run("SHOW GLOBAL STATUS LIKE 'Threads_cached'").unwrap();
            let cached: usize = status[0].text(0, 1).unwrap().parse().unwrap();
            cached > 0
        });
        assert_logins(&server);
    }
}

/// A server with a pool whose threads are both at work, and clients that it serves.
fn busy_pool(transport: Transport) -> (Server, Vec<Client>, Vec<Client>) {
    let pool = Server::builder(Version::Mariadb1011).arg("--thread-handling=pool-of-threads");
    let pool = pool.arg("--thread-pool-size=1").arg("--thread-pool-max-threads=2");
    let server = pool.arg("--thread-pool-stall-limit=600000").start().unwrap();
    let connect = |_| Client::connect(&server, transport, Account::ROOT).unwrap();
    let (idle, busy) = ((0..5).map(connect).collect(), (0..2).map(connect).collect());
    (server, idle, busy)
}

#[test]
fn requests_that_wait_for_a_thread_of_the_pool_are_counted() {
    for transport in [Transport::Tcp, Transport::Unix] {
        let (server, mut idle, mut busy) = busy_pool(transport);
        let mut waggle = watched(&server);
        wait_for(&mut waggle, "unread", "requests", |count| count == 0);
        // No client can end this: nobody would read what it sends.
        let end = server.datadir().join("end");
        let busy_until = format!(
            "BEGIN NOT ATOMIC WHILE LOAD_FILE('{}') IS NULL DO DO SLEEP(0.1); END WHILE; END",
            end.display()
        );
        for client in &mut busy {
            client.send(Command::Query, busy_until.as_bytes()).unwrap();
        }
        waggle.wait_for("both threads at work", |waggle| {
            waggle.lines().last().unwrap()["running"].as_u64() == Some(2)
        });
        for client in &mut idle {
            client.send(Command::Query, b"DO 1").unwrap();
        }
        let line = wait_for(&mut waggle, "unread", "requests", |count| count == 5);
        let has_age = line["unread"]["oldest_s"].as_f64() > Some(0.0);
        assert_eq!(has_age, matches!(transport, Transport::Tcp), "{line}");
        assert!(line["logins"].is_null() && line["logins_absent"].is_string(), "{line}");
        let words = match has_age {
            true => "5 requests wait unread, the oldest for ",
            false => "5 requests wait unread",
        };
        let pid = server.pid().to_string();
        for arguments in [&["watch", "--table", "--for", "10s", "--pid"][..], &["doctor", "--pid"]]
        {
            let ended = Waggle::start(&[arguments, &[&pid]].concat()).end();
            assert!(ended.out.contains(words), "{arguments:?}: {}", ended.out);
        }
        fs::write(&end, "now").unwrap();
        wait_for(&mut waggle, "unread", "requests", |count| count == 0);
    }
}

#[test]
fn connections_that_a_stopped_server_does_not_accept_are_counted() {
    for version in [Version::Mysql80, Version::Mariadb114] {
        let server = Server::start(version).unwrap();
        let mut client = Client::connect(&server, Transport::Unix, Account::ROOT).unwrap();
        let mut waggle = watched(&server);
        wait_for(&mut waggle, "unread", "to_accept", |count| count == 0);
        let pid = server.pid();
        send(pid, rustix::process::Signal::STOP);
        let goes = Goes(|| send(pid, rustix::process::Signal::CONT));
        // Its threads take the signal one by one.
        waggle.wait_for("its standstill", |waggle| {
            waggle.lines().last().unwrap()["state"] == "stopped"
        });
        let connect = || TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        let connections = [connect(), connect(), connect()];
        client.send(Command::Query, b"DO 1").unwrap();
        wait_for(&mut waggle, "unread", "to_accept", |count| count == 3);
        wait_for(&mut waggle, "unread", "requests", |count| count == 1);
        drop(goes);
        let line = wait_for(&mut waggle, "unread", "to_accept", |count| count == 0);
        drop(connections);
        assert!(line["unread_absent"].is_null(), "{line}");
        wait_for(&mut waggle, "unread", "requests", |count| count == 0);
    }
}

#[test]
fn the_sockets_of_another_network_are_asked_for_and_where_that_is_refused_the_reason_is_told() {
    let server = Server::start(Version::Mysql80).unwrap();
    let pid = server.pid().to_string();
    let arguments = ["watch", "--json", "--interval", "300ms", "--for", "2s", "--pid", &pid];
    let lines = |by: &[&str]| Waggle::through(by, &arguments).end().lines();
    let asked = lines(&["unshare", "--net"]).pop().unwrap();
    assert_eq!((&asked["unread"]["requests"], &asked["unread_absent"]), (&0.into(), &Value::Null));
    let without = "-sys_admin";
    let without = ["setpriv", "--bounding-set", without, "--inh-caps", without];
    let refused = lines(&[&["unshare", "--net"], &without[..]].concat()).pop().unwrap();
    assert_eq!(refused["unread"], Value::Null);
    let why = refused["unread_absent"].as_str().unwrap();
    assert!(why.contains("run as root, or with CAP_SYS_ADMIN"), "{why}");
    let ours = lines(&without).pop().unwrap();
    assert_eq!(ours["unread"]["requests"], 0, "our own network needs no right: {ours}");
}
