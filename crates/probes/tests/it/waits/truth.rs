//! Waits that are made on purpose, each for what it is.

use std::thread;
use std::time::Duration;

use waggle_host::monotonic_ns;
use waggle_model::TimeClass;
use waggle_testkit::client::Command;
use waggle_testkit::{Server, Version, on_each_server, wait_until};

use super::{client, run, shown, text, watching};
use crate::capture::Seen;

const WAIT: Duration = Duration::from_millis(400);

/// By how much a wait may be told wrong, nanoseconds, where that is more than 5 %.
const TOLERANCE_NS: u64 = 25_000_000;

const TABLES: [&str; 14] = [
    "CREATE TABLE held (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
    "INSERT INTO held VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)",
    "CREATE TABLE changed (id INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE locked (id INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE flushed (id INT PRIMARY KEY) ENGINE=InnoDB",
    "INSERT INTO flushed VALUES (1)",
    "CREATE TABLE isam (id INT PRIMARY KEY, v INT) ENGINE=MyISAM",
    "INSERT INTO isam VALUES (1, 0), (2, 0)",
    "CREATE TABLE written (id INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE loaded (id INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE large (id INT PRIMARY KEY, body LONGTEXT) ENGINE=InnoDB",
    "INSERT INTO large VALUES (1, REPEAT('a', 1000000)), (2, REPEAT('b', 1000000)), \
     (3, REPEAT('c', 1000000)), (4, REPEAT('d', 1000000))",
    "CREATE PROCEDURE waits() BEGIN SELECT SLEEP(0.2); UPDATE held SET v = v + 1 WHERE id = 3; \
     SELECT SLEEP(0.1); END",
    // Who opens one later waits for who writes.
    "SELECT * FROM held, locked, flushed, isam, written, loaded LIMIT 1",
];

/// A statement that was made to wait.
struct Made {
    connection: u32,
    /// What its text begins with.
    text: &'static str,
    waits: Vec<Waited>,
}

/// Its time in a class.
struct Waited {
    class: TimeClass,
    length: Length,
}

/// How long a statement waited.
#[derive(Clone, Copy)]
enum Length {
    /// That is known, nanoseconds.
    Of(u64),
    /// Anything: it did not wait.
    Any,
    /// From so long after its start, to a moment between these two.
    Until { after: Duration, ended: Ended },
    /// From its start to the reply that this connection was sent.
    UntilReplyTo(u32),
}

/// The moments between which a wait ended.
type Ended = (u64, u64);

/// A wait that began with the statement and ended at a moment.
fn until(class: TimeClass, ended: Ended) -> Waited {
    Waited { class, length: Length::Until { after: Duration::ZERO, ended } }
}

impl Length {
    /// At least and at most, nanoseconds, of a statement among those that were seen.
    fn bounds(self, of: &Seen, seen: &[Seen]) -> (u64, u64) {
        let start = of.start_ns.unwrap();
        match self {
            Length::Of(ns) => (ns, ns),
            Length::Any => (0, u64::MAX),
            Length::Until { after, ended } => {
                let from = start + after.as_nanos() as u64;
                (ended.0.saturating_sub(from), ended.1.saturating_sub(from))
            }
            Length::UntilReplyTo(connection) => {
                let other = seen.iter().rfind(|seen| seen.connection == u64::from(connection));
                let ns = other.unwrap().end_ns.saturating_sub(start);
                (ns, ns)
            }
        }
    }
}

/// Does something that ends the wait of another.
fn ends(how: impl FnOnce()) -> Ended {
    let before = monotonic_ns();
    how();
    (before, monotonic_ns())
}

/// Runs a statement behind what `holder` holds, which it lets go after a while.
fn behind(server: &Server, class: TimeClass, [hold, waits, release]: [&'static str; 3]) -> Made {
    let (mut holder, mut waiter) = (client(server), client(server));
    run(&mut holder, "SET autocommit = 0");
    run(&mut holder, hold);
    let connection = waiter.connection_id();
    let waiting = thread::spawn(move || run(&mut waiter, waits));
    thread::sleep(WAIT);
    let ended = ends(|| run(&mut holder, release));
    waiting.join().unwrap();
    Made { connection, text: waits, waits: vec![until(class, ended)] }
}

/// Runs a statement behind a reader, who takes a while by itself.
fn behind_reader(
    server: &Server,
    class: TimeClass,
    reader_sql: &'static str,
    waits: &'static str,
) -> Made {
    let (mut reader, mut waiter) = (client(server), client(server));
    let reader_id = reader.connection_id();
    let reading = thread::spawn(move || run(&mut reader, reader_sql));
    let mut control = client(server);
    let reads = "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User sleep' AND info = ";
    wait_until("the reader", || {
        // Who lists the sessions stops them.
        thread::sleep(WAIT / 16);
        let is_there = control.query(format!("{reads}'{reader_sql}'")).unwrap();
        is_there[0].text(0, 0).as_deref() == Some("1")
    });
    let connection = waiter.connection_id();
    run(&mut waiter, waits);
    reading.join().unwrap();
    let waited = Waited { class, length: Length::UntilReplyTo(reader_id) };
    Made { connection, text: waits, waits: vec![waited] }
}

/// Runs a statement that takes its time without anybody else.
fn alone(server: &Server, sql: &'static str, class: TimeClass, length: Length) -> Made {
    let mut client = client(server);
    client.query(sql).unwrap();
    let waits = vec![Waited { class, length }];
    Made { connection: client.connection_id(), text: sql, waits }
}

fn killed(server: &Server) -> Made {
    let (mut holder, mut waiter, mut killer) = (client(server), client(server), client(server));
    run(&mut holder, "SET autocommit = 0");
    run(&mut holder, "UPDATE held SET v = v + 1 WHERE id = 2");
    let connection = waiter.connection_id();
    let text = "UPDATE held SET v = v + 2 WHERE id = 2";
    let waiting = thread::spawn(move || assert!(waiter.run(text).is_err()));
    thread::sleep(WAIT * 3 / 4);
    let ended = ends(|| run(&mut killer, &format!("KILL QUERY {connection}")));
    waiting.join().unwrap();
    run(&mut holder, "COMMIT");
    // The one that kills does not wait until it is done.
    let ended = (ended.0, ended.1 + TOLERANCE_NS);
    Made { connection, text, waits: vec![until(TimeClass::RowLock, ended)] }
}

/// A prepared statement behind what another session holds.
fn prepared(server: &Server) -> Made {
    let (mut holder, mut waiter) = (client(server), client(server));
    run(&mut holder, "SET autocommit = 0");
    run(&mut holder, "UPDATE held SET v = v + 1 WHERE id = 4");
    let (connection, text) = (waiter.connection_id(), "UPDATE held SET v = v + 2 WHERE id = 4");
    let statement = waiter.prepare(text).unwrap();
    let waiting = thread::spawn(move || drop(waiter.execute(&statement, &[], false).unwrap()));
    thread::sleep(WAIT);
    let ended = ends(|| run(&mut holder, "COMMIT"));
    waiting.join().unwrap();
    Made { connection, text, waits: vec![until(TimeClass::RowLock, ended)] }
}

/// A statement that gives up.
fn times_out(server: &Server) -> Made {
    let (mut holder, mut waiter) = (client(server), client(server));
    run(&mut holder, "SET autocommit = 0");
    run(&mut holder, "UPDATE held SET v = v + 1 WHERE id = 5");
    run(&mut waiter, "SET innodb_lock_wait_timeout = 1");
    let text = "UPDATE held SET v = v + 2 WHERE id = 5";
    assert!(waiter.run(text).is_err());
    let now = monotonic_ns();
    run(&mut holder, "COMMIT");
    let waits = vec![until(TimeClass::RowLock, (now - TOLERANCE_NS, now))];
    Made { connection: waiter.connection_id(), text, waits }
}

fn calls(server: &Server) -> Made {
    let (mut holder, mut waiter) = (client(server), client(server));
    // A session reads a procedure when it first calls it, which takes long in some servers.
    run(&mut waiter, "CALL waits()");
    run(&mut holder, "SET autocommit = 0");
    run(&mut holder, "UPDATE held SET v = v + 1 WHERE id = 3");
    let connection = waiter.connection_id();
    let waiting = thread::spawn(move || run(&mut waiter, "CALL waits()"));
    thread::sleep(WAIT + WAIT / 2);
    let ended = ends(|| run(&mut holder, "COMMIT"));
    waiting.join().unwrap();
    let after = Duration::from_millis(200);
    let row = Waited { class: TimeClass::RowLock, length: Length::Until { after, ended } };
    let sleep = Waited { class: TimeClass::Sleep, length: Length::Of(300_000_000) };
    Made { connection, text: "CALL waits()", waits: vec![row, sleep] }
}

/// A client that asks for much and reads it late.
fn reads_late(server: &Server) -> Made {
    let mut client = client(server);
    let connection = client.connection_id();
    let text = "SELECT body FROM large";
    client.send(Command::Query, text.as_bytes()).unwrap();
    thread::sleep(WAIT);
    let ended = (monotonic_ns(), u64::MAX);
    client.read_reply().unwrap();
    Made { connection, text, waits: vec![until(TimeClass::NetworkWrite, ended)] }
}

/// A client that has the data of `LOAD DATA LOCAL` late.
fn sends_late(server: &Server) -> Made {
    let mut client = client(server);
    let connection = client.connection_id();
    let text = "LOAD DATA LOCAL INFILE 'any' INTO TABLE loaded";
    client.send(Command::Query, text.as_bytes()).unwrap();
    client.read_packet().unwrap();
    thread::sleep(WAIT);
    let ended = ends(|| {
        client.write_packet(b"1\n2\n3\n").unwrap();
        client.write_packet(b"").unwrap();
        client.read_reply().unwrap();
    });
    Made { connection, text, waits: vec![until(TimeClass::NetworkRead, ended)] }
}

/// The cases that bear each other.
fn cases() -> Vec<fn(&Server) -> Made> {
    use TimeClass as T;
    vec![
        |server| {
            let sql = "UPDATE held SET v = v + 1 WHERE id = 1";
            behind(server, T::RowLock, [sql, "UPDATE held SET v = v + 2 WHERE id = 1", "COMMIT"])
        },
        |server| {
            let sql = ["LOCK TABLES locked WRITE", "SELECT * FROM locked", "UNLOCK TABLES"];
            behind(server, T::MetadataLock, sql)
        },
        |server| {
            let reads = "SELECT SLEEP(0.4) FROM flushed";
            behind_reader(server, T::MetadataLock, reads, "FLUSH TABLES flushed")
        },
        |server| {
            let reads = "SELECT SLEEP(0.2) FROM isam";
            behind_reader(server, T::TableLock, reads, "UPDATE isam SET v = 1")
        },
        |server| {
            let sql = ["DO GET_LOCK('one', 5)", "DO GET_LOCK('one', 6)", "DO RELEASE_LOCK('one')"];
            behind(server, T::UserLock, sql)
        },
        |server| alone(server, "SELECT SLEEP(0.4)", T::Sleep, Length::Of(400_000_000)),
        killed,
        prepared,
        times_out,
        calls,
        reads_late,
        sends_late,
    ]
}

fn every_wait_is_told_for_what_it_is(version: Version) {
    let server = Server::start(version).unwrap();
    let mut control = client(&server);
    TABLES.iter().for_each(|sql| run(&mut control, sql));
    let mut capture = watching(&server);
    capture.attach();
    let pid = server.pid();
    let waits = capture.tap.waits(pid).unwrap().clone();
    assert_eq!(waits.parts.why(), None);
    assert!(waits.functions.value().is_some_and(|count| *count > 10), "{waits:?}");
    assert!(waits.library.value().is_some_and(|count| *count > 1000), "{waits:?}");
    let at = &server;
    let together: Vec<Made> = thread::scope(|scope| {
        let running: Vec<_> =
            cases().into_iter().map(|case| scope.spawn(move || case(at))).collect();
        running.into_iter().map(|case| case.join().unwrap()).collect()
    });
    let seen = capture.at_rest();
    let mut wrong = Vec::new();
    for (case, made) in cases().into_iter().zip(&together) {
        if !wrong_of(made, &seen).is_empty() {
            // Others may have held a latch, too: now there are none.
            let alone = case(at);
            wrong.extend(wrong_of(&alone, &capture.at_rest()));
        }
    }
    let mut made = Vec::new();
    // It holds what others need to open a table.
    let sql = ["SELECT * FROM changed", "ALTER TABLE changed ADD COLUMN v INT", "COMMIT"];
    made.push(behind(&server, TimeClass::MetadataLock, sql));
    // It stops everybody who writes.
    let sql = ["FLUSH TABLES WITH READ LOCK", "INSERT INTO written VALUES (1)", "UNLOCK TABLES"];
    made.push(behind(&server, TimeClass::MetadataLock, sql));
    let sql = "SELECT BENCHMARK(300000, SHA2('waggle', 512))";
    made.push(alone(&server, sql, TimeClass::Cpu, Length::Any));
    let seen = capture.at_rest();
    wrong.extend(made.iter().flat_map(|made| wrong_of(made, &seen)));
    assert!(wrong.is_empty(), "{}\n{waits:?}", wrong.join("\n"));
    assert_eq!(capture.tap.overdrawn(), 0);
    let losses = capture.losses();
    assert_eq!(losses.statements(), 0, "{losses:?}");
}

on_each_server!(every_wait_is_told_for_what_it_is);

/// What a statement does for itself beside its wait.
const WORK: [TimeClass; 6] = [
    TimeClass::Cpu,
    TimeClass::RunQueue,
    TimeClass::DiskRead,
    TimeClass::DiskWrite,
    TimeClass::Sync,
    TimeClass::Commit,
];

fn wrong_of(made: &Made, all: &[Seen]) -> Vec<String> {
    let is_it = |seen: &&Seen| {
        seen.connection == u64::from(made.connection) && text(seen).starts_with(made.text)
    };
    let Some(seen) = all.iter().rfind(is_it) else {
        return vec![format!("{}: not seen", made.text)];
    };
    let (Some(parts), Some(latency)) = (seen.parts, seen.latency_ns) else {
        return vec![format!("{}: {:?} of {:?}", made.text, seen.parts, seen.latency_ns)];
    };
    let mut wrong = Vec::new();
    // It works before it waits, and after.
    let own = [TimeClass::RunQueue, TimeClass::DiskRead, TimeClass::DiskWrite, TimeClass::Sync];
    let own: u64 = own.iter().map(|class| parts.get(*class)).sum();
    let queued = own + parts.get(TimeClass::Cpu).min(TOLERANCE_NS);
    let mut expected: u64 = WORK.iter().map(|class| parts.get(*class)).sum();
    for Waited { class, length } in &made.waits {
        let (least, most) = length.bounds(seen, all);
        let told = parts.get(*class);
        expected += if WORK.contains(class) { 0 } else { told };
        let tolerance = TOLERANCE_NS.max(least / 20);
        let is_short = told + queued + tolerance < least;
        let is_long = told > most.saturating_add(tolerance);
        if is_short || is_long {
            let (class, ms) = (class.key(), least / 1_000_000);
            wrong.push(format!("{}: {class} is not {ms} ms: {}", made.text, shown(&parts)));
        }
    }
    if parts.total() != latency || (latency - expected) > TOLERANCE_NS.max(latency / 20) {
        wrong.push(format!("{}: of {} us: {}", made.text, latency / 1000, shown(&parts)));
    }
    wrong
}
