//! Waits of many sessions, of several servers, and of more statements than a ring holds.

use std::thread;
use std::time::Duration;

use waggle_model::{Loss, TimeClass};
use waggle_probes::servers::recognise::Builds;
use waggle_testkit::client::Command;
use waggle_testkit::{Client, Server, Version, on_each_server, wait_showing, wait_until};

use super::bad_days::row_waits;
use super::{client, run, shown, text, watching};
use crate::capture::{Capture, Seen};
use crate::recognised_by;

const SESSIONS: usize = 1000;
const CROWDED: &str = "SELECT * FROM crowded";

/// Waits until this number of statements runs.
fn wait_for_running(capture: &mut Capture, count: usize) {
    wait_showing("all of them", || match capture.running().len() {
        found if found == count => Ok(()),
        found => Err(format!("{found} of {count}")),
    });
}

/// Waits until this number of sessions waits for a metadata lock, as the server tells: who only runs may still be queued.
fn wait_for_waiting(asker: &mut Client, count: usize) {
    let waiting = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
                   WHERE STATE = 'Waiting for table metadata lock'";
    wait_showing("all of them", || {
        let found = asker.run(waiting).unwrap()[0].text(0, 0).unwrap();
        if found == count.to_string() { Ok(()) } else { Err(format!("{found} of {count}")) }
    });
}

/// Half of a thousand wait before waggle comes, and the others after.
fn each_of_a_thousand_is_told_what_it_waited_for(version: Version) {
    let server = Server::builder(version).max_connections(1100).start().unwrap();
    let mut holder = client(&server);
    run(&mut holder, "CREATE TABLE crowded (id INT PRIMARY KEY) ENGINE=InnoDB");
    run(&mut holder, "LOCK TABLES crowded WRITE");
    let mut sessions: Vec<Client> = (0..SESSIONS).map(|_| client(&server)).collect();
    let (early, late) = sessions.split_at_mut(SESSIONS / 2);
    let asks = |session: &mut Client| session.send(Command::Query, CROWDED.as_bytes()).unwrap();
    let mut capture = watching(&server);
    early.iter_mut().for_each(asks);
    wait_for_running(&mut capture, SESSIONS / 2);
    let mut asker = client(&server);
    wait_for_waiting(&mut asker, SESSIONS / 2);
    capture.attach();
    late.iter_mut().for_each(asks);
    wait_for_running(&mut capture, SESSIONS);
    wait_for_waiting(&mut asker, SESSIONS);
    thread::sleep(Duration::from_millis(500));
    run(&mut holder, "UNLOCK TABLES");
    for session in early.iter_mut().chain(late) {
        session.read_reply().unwrap();
    }
    let seen: Vec<Seen> =
        capture.at_rest().into_iter().filter(|seen| text(seen) == CROWDED).collect();
    assert_eq!(seen.len(), SESSIONS);
    let (mut before, mut told) = (0, 0);
    for seen in &seen {
        let parts = seen.parts.unwrap();
        assert_eq!(Some(parts.total()), seen.latency_ns);
        before += usize::from(parts.get(TimeClass::BeforeAttach) > 0);
        // As in `bad_days`: a few may be told as queued.
        let of_lock = parts.get(TimeClass::MetadataLock);
        told += usize::from(of_lock >= 250_000_000);
        assert!(of_lock + parts.get(TimeClass::RunQueue) >= 250_000_000, "{}", shown(&parts));
        // Then all of them open the table at once.
        let [row, other] = [TimeClass::RowLock, TimeClass::Other].map(|class| parts.get(class));
        assert!((row + other) * 20 <= parts.total(), "{}", shown(&parts));
    }
    assert_eq!(before, SESSIONS / 2);
    assert!(told * 10 >= SESSIONS * 9, "{told} of {SESSIONS}");
    let losses = capture.losses();
    assert_eq!((losses.statements(), losses.get(Loss::MapFull)), (0, 0), "{losses:?}");
    assert_eq!(capture.tap.overdrawn(), 0);
}

on_each_server!(
    each_of_a_thousand_is_told_what_it_waited_for:
    mysql_9 Mysql9, mariadb_10_11 Mariadb1011
);

/// Makes a row lock of 300 ms and a sleep of 200 ms, whose texts name the server.
fn waits_in(server: &Server, name: &str) {
    let (mut holder, mut waiter, mut sleeper) = (client(server), client(server), client(server));
    run(&mut holder, "CREATE TABLE IF NOT EXISTS held (id INT PRIMARY KEY, v INT) ENGINE=InnoDB");
    run(&mut holder, "REPLACE INTO held VALUES (1, 0)");
    run(&mut holder, "SET autocommit = 0");
    run(&mut holder, "UPDATE held SET v = 1");
    let update = format!("UPDATE held SET v = v + 1 /* {name} */");
    let waiting = thread::spawn(move || run(&mut waiter, &update));
    let mut control = client(server);
    wait_until("the wait", || row_waits(&mut control) == 1);
    run(&mut sleeper, &format!("SELECT SLEEP(0.2) /* {name} */"));
    thread::sleep(Duration::from_millis(100));
    run(&mut holder, "COMMIT");
    waiting.join().unwrap();
}

/// That both waits of a server were told for what they were.
fn assert_told(seen: &[Seen], name: &str) {
    for (begin, class) in [("UPDATE", TimeClass::RowLock), ("SELECT SLEEP", TimeClass::Sleep)] {
        let is_it = |seen: &&Seen| text(seen).starts_with(begin) && text(seen).contains(name);
        let found: Vec<&Seen> = seen.iter().filter(is_it).collect();
        assert_eq!(found.len(), 1, "{name}: {begin}");
        let parts = found[0].parts.unwrap();
        assert_eq!(Some(parts.total()), found[0].latency_ns, "{name}: {begin}");
        assert!(parts.get(class) >= 150_000_000, "{name}: {begin}: {}", shown(&parts));
    }
}

/// Each is read by its own tables, and one goes without the other.
#[test]
fn servers_of_different_builds_are_watched_at_once() {
    let servers = [Version::Mysql9, Version::Mariadb1011, Version::Mysql57]
        .map(|version| (version.name(), Server::start(version).unwrap()));
    let mut capture = watching(&servers[0].1);
    capture.attach();
    for (name, server) in &servers[1..] {
        let other = recognised_by(Builds::default().with_waits(), server);
        capture.tap.attach(&other.instance, &other.layout).unwrap();
        assert_eq!(capture.tap.waits(server.pid()).unwrap().parts.why(), None, "{name}");
    }
    let of_these = |seen: &Seen| text(seen).contains("/* m");
    let work = |servers: &[(&str, Server)]| {
        thread::scope(|scope| {
            for (name, server) in servers {
                scope.spawn(move || waits_in(server, name));
            }
        });
    };
    work(&servers);
    let seen = capture.settled(2 * servers.len(), of_these);
    servers.iter().for_each(|(name, _)| assert_told(&seen, name));
    capture.tap.detach(servers[1].1.pid());
    work(&servers);
    let seen = capture.settled(4, of_these);
    assert_told(&seen, servers[0].0);
    assert_told(&seen, servers[2].0);
    assert_eq!(seen.len(), 4, "one is watched no more");
    assert_eq!(capture.tap.overdrawn(), 0);
}

/// What is lost leaves nothing behind for who comes after it.
fn statements_after_a_full_ring_have_their_own_parts(version: Version) {
    let server = Server::start(version).unwrap();
    let mut capture = watching(&server);
    capture.attach();
    let mut session = client(&server);
    let comment = "x".repeat(8000);
    let full = |capture: &Capture| capture.losses().get(Loss::RingFull);
    let mut ran = 0;
    let mut fill = |capture: &Capture, session: &mut Client| {
        let before = full(capture);
        while full(capture) == before {
            run(session, &format!("SELECT 'long' /* {comment} */"));
            ran += 1;
        }
    };
    for _ in 0..3 {
        fill(&capture, &mut session);
        // It is lost where its thread is still on the processor of this ring.
        run(&mut session, &format!("SELECT SLEEP(0.05) /* {comment} */"));
    }
    ran += 3;
    let lost = full(&capture);
    let seen = capture.at_rest();
    let of_session =
        seen.iter().filter(|seen| seen.connection == u64::from(session.connection_id()));
    let kept = of_session.filter(|seen| text(seen).starts_with("SELECT ")).count() as u64;
    // Who a session is can be lost, too.
    assert!(kept < ran && ran <= kept + lost, "{kept} of {ran}, {lost} lost");
    for _ in 0..20 {
        run(&mut session, "SELECT 'after'");
    }
    run(&mut session, "SELECT SLEEP(0.1)");
    let after = capture.at_rest();
    for seen in seen.iter().chain(&after) {
        let Some(parts) = seen.parts else { continue };
        assert_eq!(Some(parts.total()), seen.latency_ns, "{}", text(seen));
        let slept = parts.get(TimeClass::Sleep);
        let is_sleep = text(seen).starts_with("SELECT SLEEP");
        assert!(is_sleep || slept == 0, "{}: {}", text(seen), shown(&parts));
    }
    let told =
        |of: &str| after.iter().filter(|seen| text(seen) == of && seen.parts.is_some()).count();
    assert_eq!((told("SELECT 'after'"), told("SELECT SLEEP(0.1)")), (20, 1));
    assert_eq!(capture.tap.overdrawn(), 0);
}

on_each_server!(
    statements_after_a_full_ring_have_their_own_parts: mysql_5_7 Mysql57, mariadb_11_4 Mariadb114
);
