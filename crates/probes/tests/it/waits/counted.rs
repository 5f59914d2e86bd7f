//! Parts against what the kernel and the server count of the same time.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use waggle_host::HostTime;
use waggle_model::{Parts, TimeClass, Usage};
use waggle_testkit::{Client, PerformanceSchema, Server, Version, on_each_server, wait_for};

use super::{client, run, shown, text, told, watching};
use crate::capture::{Capture, Seen};
use crate::size;

/// What both count may differ by this many hundredths.
const APART: u64 = 10;

/// Whether `ours` and `theirs` are the same but for that, and for what only one of them has.
fn is_near(ours: u64, only_ours: u64, theirs: u64, only_theirs: u64) -> bool {
    let most = |count: u64, more: u64| {
        (u128::from(count) * u128::from(100 + APART)) / 100 + u128::from(more)
    };
    u128::from(ours) <= most(theirs, only_ours) && u128::from(theirs) <= most(ours, only_theirs)
}

/// The time of some statements, and how many there are.
#[derive(Default)]
struct Spent {
    parts: Parts,
    usage: Usage,
    statements: usize,
}

impl Spent {
    fn of<'a>(seen: impl Iterator<Item = &'a Seen>) -> Spent {
        let mut spent = Spent::default();
        for one in seen {
            let parts = one.parts.unwrap_or_else(|| panic!("{}: no parts", text(one)));
            assert_eq!(Some(parts.total()), one.latency_ns, "{}: {}", text(one), shown(&parts));
            spent.parts.merge(&parts);
            spent.usage.merge(&one.usage.unwrap());
            spent.statements += 1;
        }
        spent
    }

    fn get(&self, class: TimeClass) -> u64 {
        self.parts.get(class)
    }
}

/// A session that works, and its thread.
struct Worker {
    client: Client,
    task: String,
}

/// Sessions that work at once: more than there are processors.
const WORKERS: usize = 4;
const WORK: [&str; 2] = [
    "DO BENCHMARK(20000, SHA2(CONCAT(RAND(), 'x'), 512))",
    "SELECT COUNT(*) FROM scanned a, scanned b WHERE a.v + b.v < 0",
];
/// What a thread may be in the run queue outside of statements, nanoseconds, where that is more than the hundredths.
const OUTSIDE_NS: u64 = 25_000_000;
const CPU_CONSUMER: &str = "--performance-schema-consumer-events-statements-cpu=ON";

/// Where the kernel tells of the thread that serves a session.
pub(super) fn task_of(server: &Server, control: &mut Client, session: &Client) -> String {
    let id = session.connection_id();
    let sql = match server.version().is_mariadb() {
        true => format!("SELECT tid FROM information_schema.processlist WHERE id = {id}"),
        false => format!(
            "SELECT thread_os_id FROM performance_schema.threads WHERE processlist_id = {id}"
        ),
    };
    format!("/proc/{}/task/{}", server.pid(), number(control, &sql))
}

impl Worker {
    fn of(server: &Server, control: &mut Client) -> Worker {
        let client = client(server);
        let task = task_of(server, control, &client);
        Worker { client, task }
    }

    /// What the kernel says that its thread was on a processor and in run queues so far, nanoseconds.
    fn scheduled(&self) -> [u64; 2] {
        let read = |name: &str| fs::read_to_string(format!("{}/{name}", self.task)).unwrap();
        wait_for("its thread rests", || {
            // While it runs, the sum is that of its last switch. Behind its name stands its state.
            let stat = read("stat");
            stat.rsplit_once(") ")?.1.starts_with('S').then_some(())
        });
        let said = read("schedstat");
        let mut numbers = said.split_whitespace().map(|number| number.parse().unwrap());
        [numbers.next().unwrap(), numbers.next().unwrap()]
    }

    /// What Performance Schema counts of its processor time, nanoseconds.
    fn by_schema(&self, control: &mut Client) -> u64 {
        let id = self.client.connection_id();
        let sql = format!(
            "SELECT SUM(s.sum_cpu_time) DIV 1000 \
             FROM performance_schema.events_statements_summary_by_thread_by_event_name s \
             JOIN performance_schema.threads t USING (thread_id) WHERE t.processlist_id = {id}"
        );
        number(control, &sql)
    }
}

fn number(client: &mut Client, sql: &str) -> u64 {
    let result = client.run(sql).unwrap().remove(0);
    result.text(0, 0).unwrap_or_else(|| panic!("{sql}: nothing")).parse().unwrap()
}

/// What the hypervisor took of all processors so far, nanoseconds. It is in our processor time, not in the kernel's.
fn stolen_ns() -> u64 {
    HostTime::read().unwrap().steal_ticks * 1_000_000_000 / HostTime::TICKS_PER_S as u64
}

/// Processor time and time in the run queue are what the kernel counts, and what MySQL 9 does.
fn compare_processor_time(server: &Server, capture: &mut Capture) {
    let has_schema = counts_processor_time(server.version());
    let mut control = client(server);
    run(&mut control, "CREATE TABLE scanned (v INT NOT NULL) ENGINE=InnoDB");
    run(&mut control, "INSERT INTO scanned VALUES (1)");
    (0..8).for_each(|_| run(&mut control, "INSERT INTO scanned SELECT v FROM scanned"));
    let mut workers: Vec<Worker> = (0..WORKERS).map(|_| Worker::of(server, &mut control)).collect();
    let mut count = |workers: &[Worker]| -> Vec<[u64; 3]> {
        let of = |worker: &Worker| {
            let [cpu, queued] = worker.scheduled();
            [cpu, queued, if has_schema { worker.by_schema(&mut control) } else { 0 }]
        };
        workers.iter().map(of).collect()
    };
    let (stolen, before) = (stolen_ns(), count(&workers));
    let rounds = size::choose(3, 60);
    thread::scope(|scope| {
        for worker in &mut workers {
            scope.spawn(move || {
                let all = WORK.into_iter().cycle().take(rounds * WORK.len());
                all.for_each(|sql| run(&mut worker.client, sql));
            });
        }
    });
    let after = count(&workers);
    let stolen = stolen_ns() - stolen;
    let seen = capture.at_rest();
    let mut wrong = Vec::new();
    for (worker, (before, after)) in workers.iter().zip(before.iter().zip(&after)) {
        let [cpu, queued, by_schema] = [0, 1, 2].map(|at| after[at] - before[at]);
        let id = u64::from(worker.client.connection_id());
        let is_one = |seen: &&Seen| seen.connection == id && WORK.contains(&text(seen).as_str());
        let spent = Spent::of(seen.iter().filter(is_one));
        assert_eq!(spent.statements, rounds * WORK.len());
        let ours = spent.get(TimeClass::Cpu);
        let ours_queued = spent.get(TimeClass::RunQueue) + spent.usage.queue_before_start_ns;
        let is_right = is_near(ours, stolen, cpu, 0)
            && (!has_schema || is_near(ours, stolen, by_schema, 0))
            && is_near(ours_queued, OUTSIDE_NS, queued, OUTSIDE_NS);
        let result = json!({
            "test": "waits_cpu", "server": server.version_string(), "statements": spent.statements,
            "cpu_us": ours / 1000, "schedstat_cpu_us": cpu / 1000,
            "schema_cpu_us": has_schema.then_some(by_schema / 1000), "stolen_us": stolen / 1000,
            "run_queue_us": ours_queued / 1000, "schedstat_run_queue_us": queued / 1000,
            "time_us": told(&spent.parts),
        });
        size::keep(&result);
        wrong.extend((!is_right).then_some(result));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

const ROW_SESSIONS: usize = 50;

/// All wait for one row. Each holds it a while, so that waits are long beside the steps of the server's clock.
fn compare_row_locks(server: &Server, capture: &mut Capture) {
    let mut control = client(server);
    run(&mut control, "CREATE TABLE held (id INT PRIMARY KEY, v INT) ENGINE=InnoDB");
    run(&mut control, "INSERT INTO held VALUES (1, 0)");
    let mut sessions: Vec<Client> = (0..ROW_SESSIONS).map(|_| client(server)).collect();
    sessions.iter_mut().for_each(|session| run(session, "SET autocommit = 0"));
    let mut counted = || {
        let shown = control.run("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_time'").unwrap();
        shown[0].text(0, 1).unwrap().parse::<u64>().unwrap() * 1_000_000
    };
    let before = counted();
    let until = Instant::now() + size::choose(Duration::from_millis(700), Duration::from_secs(3));
    thread::scope(|scope| {
        for session in &mut sessions {
            scope.spawn(move || {
                while Instant::now() < until {
                    run(session, "UPDATE held SET v = v + 1 WHERE id = 1");
                    run(session, "DO SLEEP(0.01)");
                    run(session, "COMMIT");
                }
            });
        }
    });
    let theirs = counted() - before;
    let seen = capture.at_rest();
    let spent = Spent::of(seen.iter().filter(|seen| text(seen).starts_with("UPDATE held")));
    let ours = spent.get(TimeClass::RowLock);
    size::keep(&json!({
        "test": "waits_row_lock", "server": server.version_string(), "sessions": ROW_SESSIONS,
        "statements": spent.statements, "row_lock_us": ours / 1000,
        "innodb_row_lock_time_us": theirs / 1000, "time_us": told(&spent.parts),
    }));
    assert!(ours > 5_000_000_000, "{}", shown(&spent.parts));
    // The server's time ends when the thread runs again.
    let queued = spent.get(TimeClass::RunQueue);
    assert!(is_near(ours, 0, theirs, queued), "{theirs}: {}", shown(&spent.parts));
}

/// One session that commits syncs the files that Performance Schema says, and no others.
fn compare_syncs(server: &Server, capture: &mut Capture) {
    let mut control = client(server);
    run(
        &mut control,
        "CREATE TABLE synced (id INT PRIMARY KEY AUTO_INCREMENT, v INT) ENGINE=InnoDB",
    );
    let mut writer = client(server);
    let sql = "INSERT INTO synced (v) VALUES (1)";
    let commits = size::choose(60, 600);
    (0..commits).for_each(|_| run(&mut writer, sql));
    let of_writer = format!(
        "FROM performance_schema.events_waits_history_long e \
         JOIN performance_schema.threads t USING (thread_id) \
         WHERE t.processlist_id = {} AND e.operation = 'sync'",
        writer.connection_id()
    );
    let syncs = number(&mut control, &format!("SELECT COUNT(*) {of_writer}"));
    let theirs = number(&mut control, &format!("SELECT SUM(e.timer_wait) DIV 1000 {of_writer}"));
    let seen = capture.at_rest();
    let spent = Spent::of(seen.iter().filter(|seen| text(seen) == sql));
    assert_eq!(spent.statements, commits);
    let (ours, queued) = (spent.get(TimeClass::Sync), spent.get(TimeClass::RunQueue));
    size::keep(&json!({
        "test": "waits_sync", "server": server.version_string(), "commits": commits,
        "sync_us": ours / 1000, "schema_syncs": syncs, "schema_sync_us": theirs / 1000,
        "time_us": told(&spent.parts),
    }));
    assert!(syncs >= commits as u64, "{syncs} syncs");
    // The server's time has what its thread works in the call, and ends when it runs again.
    let only_theirs = queued + spent.get(TimeClass::Cpu);
    assert!(is_near(ours, 0, theirs, only_theirs), "{theirs}: {}", shown(&spent.parts));
}

/// What Performance Schema counts of files.
const FILES: [&str; 4] = [
    "--performance-schema-instrument=wait/io/file/%=ON",
    "--performance-schema-consumer-events-waits-current=ON",
    "--performance-schema-consumer-events-waits-history-long=ON",
    "--performance-schema-events-waits-history-long-size=10000",
];

/// Processor time of statements is an event of its own since MySQL 8.0.28.
fn counts_processor_time(version: Version) -> bool {
    version == Version::Mysql9
}

fn times_are_what_the_kernel_and_the_server_count(version: Version) {
    // MariaDB does not count its redo log, so there only the binary log is synced.
    let flush = if version.is_mariadb() { 2 } else { 1 };
    let mut builder = Server::builder(version)
        .binlog(true)
        .performance_schema(PerformanceSchema::Statements)
        .arg("--sync-binlog=1")
        .arg(format!("--innodb-flush-log-at-trx-commit={flush}"));
    let consumer = counts_processor_time(version).then_some(CPU_CONSUMER);
    for argument in FILES.into_iter().chain(consumer) {
        builder = builder.arg(argument);
    }
    let server = builder.start().unwrap();
    let mut capture = watching(&server);
    capture.attach();
    compare_processor_time(&server, &mut capture);
    compare_row_locks(&server, &mut capture);
    compare_syncs(&server, &mut capture);
    assert_eq!((capture.tap.overdrawn(), capture.losses().statements()), (0, 0));
}

on_each_server!(times_are_what_the_kernel_and_the_server_count);
