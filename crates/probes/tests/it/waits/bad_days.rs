//! Waits that end badly, or that began before anybody looked.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::json;
use waggle_host::monotonic_ns;
use waggle_model::{Reading, TimeClass};
use waggle_probes::servers::waiting::library_at;
use waggle_testkit::sysbench::Sysbench;
use waggle_testkit::{Client, Server, Version, on_each_server, wait_until};

use super::{client, run, shown, text, watching};
use crate::capture::{Capture, Seen};
use crate::size;

const WAITERS: usize = 50;

pub(super) fn held(server: &Server) -> Client {
    let mut holder = client(server);
    for sql in [
        "CREATE TABLE held (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
        "INSERT INTO held VALUES (1, 0)",
        "SET autocommit = 0",
        "UPDATE held SET v = 1",
    ] {
        run(&mut holder, sql);
    }
    holder
}

/// Lets many wait for one row, and waits until all do.
fn waiters(server: &Server, capture: &mut Capture) -> Vec<thread::JoinHandle<bool>> {
    let one = |mut waiter: Client| {
        thread::spawn(move || waiter.run("UPDATE held SET v = v + 1 WHERE id = 1").is_ok())
    };
    let waiting = (0..WAITERS).map(|_| one(client(server))).collect();
    let mut control = client(server);
    wait_until("all of them", || {
        let running = capture.running();
        let running = running.iter().filter(|one| one.text.as_deref().is_some_and(is_waiter));
        running.count() == WAITERS && row_waits(&mut control) == WAITERS
    });
    waiting
}

/// How many sessions wait for a row, as the server tells.
pub(super) fn row_waits(control: &mut Client) -> usize {
    let waits = control.run("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'").unwrap();
    waits[0].text(0, 1).unwrap().parse().unwrap()
}

/// Lets one wait by this statement.
pub(super) fn waiter(
    server: &Server,
    capture: &mut Capture,
    sql: &'static str,
) -> thread::JoinHandle<()> {
    let (mut waiter, mut control) = (client(server), client(server));
    let before = row_waits(&mut control);
    let waiting = thread::spawn(move || run(&mut waiter, sql));
    wait_until("the wait", || {
        let is_it = |text: &[u8]| text == sql.as_bytes();
        let runs = capture.running().iter().any(|one| one.text.as_deref().is_some_and(is_it));
        runs && row_waits(&mut control) > before
    });
    thread::sleep(Duration::from_millis(50));
    waiting
}

fn is_waiter(text: &[u8]) -> bool {
    text.starts_with(b"UPDATE held SET v = v + 1")
}

fn of_waiters(seen: Vec<Seen>) -> Vec<Seen> {
    seen.into_iter().filter(|seen| is_waiter(seen.text.as_deref().unwrap_or_default())).collect()
}

/// Since when those wait that wait for a row.
fn waiting_since(capture: &mut Capture) -> Vec<u64> {
    let mut running = capture.running();
    capture.tap.note_waits(capture.recognised.server.pid, &mut running);
    let waits = running.iter().filter_map(|one| one.waits);
    waits.filter(|wait| wait.class == TimeClass::RowLock).map(|wait| wait.since_ns).collect()
}

/// What was before waggle came is told as that, and the rest for what it is. Who asks meanwhile since when they wait is
/// told the truth.
fn who_waits_already_is_told_from_then_on(version: Version) {
    let server = Server::start(version).unwrap();
    let mut holder = held(&server);
    let mut capture = watching(&server);
    let sending_ns = monotonic_ns();
    let waiting = waiters(&server, &mut capture);
    let waits_ns = monotonic_ns();
    thread::sleep(Duration::from_millis(100));
    let attaching_ns = monotonic_ns();
    capture.attach();
    let attached_ns = monotonic_ns();
    let since = waiting_since(&mut capture);
    assert_eq!(since.len(), WAITERS);
    let (least, most) = (since.iter().min().unwrap(), since.iter().max().unwrap());
    assert!(sending_ns < *least, "{sending_ns} {least}");
    // The scheduler has a clock for each processor.
    assert!(*most < waits_ns + 10_000_000, "{most} {waits_ns}");
    thread::sleep(Duration::from_millis(300));
    run(&mut holder, "COMMIT");
    assert!(waiting.into_iter().all(|waiter| waiter.join().unwrap()));
    let seen = of_waiters(capture.at_rest());
    assert_eq!(seen.len(), WAITERS);
    let mut told = 0;
    for seen in &seen {
        let parts = seen.parts.unwrap();
        assert_eq!(Some(parts.total()), seen.latency_ns);
        let (start, before) = (seen.start_ns.unwrap(), parts.get(TimeClass::BeforeAttach));
        assert!(before + 5_000_000 >= attaching_ns - start, "{}", shown(&parts));
        assert!(before <= attached_ns - start, "{}", shown(&parts));
        let after = parts.total() - before;
        let others = after
            - [TimeClass::RowLock, TimeClass::RunQueue, TimeClass::Cpu, TimeClass::Latch]
                .map(|class| parts.get(class))
                .iter()
                .sum::<u64>();
        // A few may have been moved to another processor as they went to sleep: the kernel says that they were queued.
        let of_lock = parts.get(TimeClass::RowLock);
        told += usize::from(of_lock >= 250_000_000);
        let waited = of_lock + parts.get(TimeClass::RunQueue);
        assert!(waited >= 250_000_000, "{}", shown(&parts));
        assert!(others * 20 <= after, "{}: {}", text(seen), shown(&parts));
    }
    assert!(told * 10 >= WAITERS * 9, "{told} of {WAITERS}");
}

on_each_server!(who_waits_already_is_told_from_then_on);

/// A connection that is killed in a wait, and a server that is killed while many wait, leave nothing wrong behind.
fn waits_that_end_badly_cost_nothing_else(version: Version) {
    let mut server = Server::start(version).unwrap();
    let mut holder = held(&server);
    let mut capture = watching(&server);
    capture.attach();
    let mut gone = client(&server);
    let id = gone.connection_id();
    let waiting = thread::spawn(move || gone.run("UPDATE held SET v = 2").is_err());
    wait_until("the wait", || {
        capture.running().iter().any(|one| one.connection_id == u64::from(id))
    });
    run(&mut holder, &format!("KILL CONNECTION {id}"));
    assert!(waiting.join().unwrap());
    // Its thread may serve the next one.
    for _ in 0..20 {
        let mut next = client(&server);
        run(&mut next, "SELECT 'next'");
        next.quit().unwrap();
    }
    let seen = capture.at_rest();
    let next: Vec<&Seen> = seen.iter().filter(|seen| text(seen) == "SELECT 'next'").collect();
    assert_eq!(next.len(), 20);
    for seen in next {
        let parts = seen.parts.unwrap();
        assert_eq!(Some(parts.total()), seen.latency_ns);
        assert_eq!(parts.get(TimeClass::RowLock), 0, "{}", shown(&parts));
    }
    assert_eq!(capture.tap.overdrawn(), 0);
    let waiting = waiters(&server, &mut capture);
    let pid = server.pid();
    server.kill9().unwrap();
    assert!(waiting.into_iter().all(|waiter| !waiter.join().unwrap()));
    capture.drain();
    capture.tap.detach(pid);
    assert_eq!(capture.tap.waits(pid), None);
}

on_each_server!(waits_that_end_badly_cost_nothing_else);

/// Why nothing is known of the C library of a server when its frames are taken out of it.
fn why_without_frames(pid: u32) -> String {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let is_library = |line: &&str| line.ends_with("/libc.so.6") || line.contains("/libpthread-2.");
    let line = maps.lines().find(is_library).unwrap();
    let library = line.split_once('/').map(|(_, path)| format!("/{path}")).unwrap();
    let whole = library_at(Path::new(&library), 0).unwrap();
    assert!(whole.rows.len() > 1000);
    let folder = tempfile::tempdir().unwrap();
    let stripped = folder.path().join("libc.so.6");
    let mut command = Command::new("objcopy");
    command.args(["--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr"]);
    let output = command.arg(&library).arg(&stripped).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    library_at(&stripped, 0).unwrap_err()
}

/// Where the frames of the C library are not known, a row lock is told as other, and why.
fn without_frames_waits_are_other_and_say_why(version: Version) {
    let server = Server::start(version).unwrap();
    let mut holder = held(&server);
    let mut capture = watching(&server);
    let why = why_without_frames(server.pid());
    assert!(why.contains(".eh_frame_hdr"), "{why}");
    capture.recognised.instance.waiting.library = Reading::absent(&why);
    // One waits already, and one waits later.
    let texts = ["UPDATE held SET v = v + 2", "UPDATE held SET v = v + 1"];
    let already = waiter(&server, &mut capture, texts[0]);
    capture.attach();
    let waits = capture.tap.waits(server.pid()).unwrap();
    assert_eq!((waits.parts.why(), waits.library.why()), (None, Some(&why[..])));
    let waiting = waiter(&server, &mut capture, texts[1]);
    thread::sleep(Duration::from_millis(200));
    run(&mut holder, "COMMIT");
    already.join().unwrap();
    waiting.join().unwrap();
    let mut sleeper = client(&server);
    let sleep = "SELECT SLEEP(0.2)";
    run(&mut sleeper, sleep);
    let seen = capture.at_rest();
    let of_updates = texts.map(|text| (text, TimeClass::Other));
    for (begin, class) in [(sleep, TimeClass::Sleep)].into_iter().chain(of_updates) {
        let seen = seen.iter().rfind(|seen| text(seen) == begin).unwrap();
        let parts = seen.parts.unwrap();
        assert_eq!(Some(parts.total()), seen.latency_ns);
        assert!(parts.get(class) >= 150_000_000, "{begin}: {}", shown(&parts));
        assert_eq!(parts.get(TimeClass::RowLock), 0, "{begin}: {}", shown(&parts));
    }
}

on_each_server!(without_frames_waits_are_other_and_say_why);

/// Statements that run while waggle comes and goes have parts that sum, or none.
fn coming_and_going_under_load_leaves_no_sum_wrong(version: Version) {
    let server = Server::start(version).unwrap();
    let load = Sysbench { threads: 8, ..Sysbench::endless("oltp_read_write") };
    load.prepare(&server).unwrap();
    let _running = load.start(&server).unwrap();
    let mut capture = watching(&server);
    capture.attach();
    let (mut with, mut without) = (0, 0);
    let times = size::choose(10, 100);
    for _ in 0..times {
        thread::sleep(Duration::from_millis(40));
        capture.drain();
        for seen in std::mem::take(&mut capture.seen) {
            match (seen.parts, seen.latency_ns) {
                (Some(parts), Some(latency)) => {
                    with += 1;
                    assert_eq!(parts.total(), latency);
                }
                _ => without += 1,
            }
        }
        capture.detached(|| {});
    }
    let overdrawn = capture.tap.overdrawn();
    size::keep(&json!({
        "test": "waits_coming_and_going", "server": server.version_string(), "times": times,
        "statements_with_parts": with, "statements_without": without, "waits_exceed_wall": overdrawn,
    }));
    assert!(with > 100 && without * 10 < with, "{with} {without}");
    assert!(overdrawn * 1000 <= with, "{overdrawn} of {with}");
}

on_each_server!(
    coming_and_going_under_load_leaves_no_sum_wrong: mysql_8_0 Mysql80, mariadb_11_4 Mariadb114
);

/// Without the waits statements have no parts, and nothing else changes.
#[test]
fn without_waits_statements_have_no_parts() {
    let server = Server::start(Version::Mysql80).unwrap();
    let mut capture = Capture::of(&server);
    capture.attach();
    assert_eq!(capture.tap.waits(server.pid()), None);
    run(&mut client(&server), "SELECT 'alone'");
    let seen = capture.at_rest();
    let seen = seen.iter().find(|seen| text(seen) == "SELECT 'alone'").unwrap();
    assert!(seen.latency_ns.is_some() && seen.parts.is_none() && seen.usage.is_none());
}

/// A pool of threads serves statements that need not have one.
#[test]
fn with_a_pool_of_threads_the_reason_is_told() {
    let pooled = Server::builder(Version::Mariadb1011).arg("--thread-handling=pool-of-threads");
    let server = pooled.start().unwrap();
    let mut capture = watching(&server);
    capture.attach();
    let waits = capture.tap.waits(server.pid()).unwrap();
    assert!(waits.parts.why().is_some_and(|why| why.contains("pool of threads")), "{waits:?}");
    run(&mut client(&server), "SELECT 'pooled'");
    let seen = capture.at_rest();
    let seen = seen.iter().find(|seen| text(seen) == "SELECT 'pooled'").unwrap();
    assert!(seen.latency_ns.is_some() && seen.parts.is_none());
}
