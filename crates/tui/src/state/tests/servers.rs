//! Servers as the tests see them.

use std::sync::Arc;
use std::time::Duration;

use waggle_model::{
    Blocked, Blocker, BuildKey, Command, Cost, DigestKey, DigestName, DigestsMax, Flavour,
    Identity, Interval, LockWait, Logins, NowWait, Parts, ProcessState, ProcessorUse, Ran, Reading,
    Record, RunningStatement, Sample, Server, ServerStatus, Statement, Text, TimeClass, Unread,
    Usage,
};

use super::super::{App, Options, Snapshot};

/// Nanoseconds.
pub(crate) const SECOND: u64 = 1_000_000_000;
/// More than any test has.
pub(crate) const LIMIT: DigestsMax = DigestsMax(200_000);

/// A server.
pub(crate) fn server(pid: u32) -> Server {
    Server {
        pid,
        start_ticks: 100,
        flavour: if pid.is_multiple_of(2) { Flavour::Mysql } else { Flavour::Mariadb },
        version: if pid.is_multiple_of(2) { "9.7.4" } else { "10.11.19-MariaDB" }.to_owned(),
        build: BuildKey(String::new()),
        executable: "/usr/sbin/mysqld".into(),
        max_digest_length: Reading::Value(1024),
    }
}

/// What the statements of an interval are.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) text: &'static str,
    pub(crate) database: Option<&'static str>,
    pub(crate) user: &'static str,
    pub(crate) calls: u64,
    pub(crate) latency_us: u64,
    pub(crate) examined: u64,
    pub(crate) error: u32,
    /// Where its time goes, percent.
    pub(crate) spent: &'static [(TimeClass, u64)],
}

const POINT: Kind = Kind {
    text: "SELECT `c` FROM `sbtest1` WHERE `id` = ?",
    database: Some("shop"),
    user: "app",
    calls: 400,
    latency_us: 40,
    examined: 1,
    error: 0,
    spent: &[(TimeClass::Cpu, 90), (TimeClass::RunQueue, 10)],
};

pub(crate) const KINDS: [Kind; 5] = [
    POINT,
    Kind {
        text: "SELECT `o` . `id` , SUM ( `p` . `price` ) FROM `orders` `o` LEFT JOIN `positions` `p` \
               ON `p` . `order` = `o` . `id` WHERE `o` . `placed` BETWEEN ? AND ? AND `o` . `state` \
               IN (...) GROUP BY `o` . `id` ORDER BY `o` . `placed` DESC LIMIT ?",
        calls: 3,
        latency_us: 180_000,
        examined: 52_000,
        user: "reports",
        spent: &[
            (TimeClass::Cpu, 30),
            (TimeClass::DiskRead, 58),
            (TimeClass::NetworkWrite, 11),
            (TimeClass::Other, 1),
        ],
        ..POINT
    },
    Kind {
        text: "COMMIT",
        calls: 40,
        latency_us: 1_900,
        examined: 0,
        spent: &[(TimeClass::Cpu, 5), (TimeClass::Sync, 70), (TimeClass::Commit, 25)],
        ..POINT
    },
    Kind {
        text: "UPDATE `käufer` SET `名前` = ? WHERE `id` = ?",
        database: Some("müller"),
        calls: 7,
        latency_us: 900,
        error: 1213,
        spent: &[(TimeClass::Cpu, 20), (TimeClass::RowLock, 80)],
        ..POINT
    },
    Kind { text: "SET NAMES `utf8mb4`", database: None, calls: 1, latency_us: 12, ..POINT },
];

/// The key of their digest.
pub(crate) fn key(kind: &Kind) -> DigestKey {
    let of = |text: &str| {
        text.bytes().fold(17, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(byte.into()))
    };
    DigestKey { text: of(kind.text), schema: of(kind.database.unwrap_or("")) }
}

fn parts(latency_ns: u64, percent: &[(TimeClass, u64)]) -> Parts {
    let mut parts = Parts::default();
    percent.iter().for_each(|(class, share)| parts.add(*class, *share));
    parts.scaled_to(latency_ns)
}

fn count(interval: &mut Interval, kind: &Kind, end_ns: u64, nth: u64, is_measured: bool) {
    let own = |text: &str| Some(text.as_bytes().to_vec());
    let identity = Identity {
        user: own(kind.user),
        host: own("10.1.2.3"),
        database: kind.database.and_then(own),
    };
    let text = kind.text.replace('?', &format!("'secret-{nth}'"));
    let latency_ns = kind.latency_us * 1_000 * (10 + nth % 7) / 10;
    let usage = Usage {
        queue_before_start_ns: 40_000,
        read_bytes: kind.examined * 16,
        voluntary_switches: 2,
        ..Usage::default()
    };
    let statement = Statement {
        connection_id: Some(7),
        command: Some(Command::QUERY),
        latency_ns: Some(latency_ns),
        parts: is_measured.then(|| parts(latency_ns, kind.spent)),
        usage: is_measured.then_some(usage),
        text: Some(Text { bytes: text.as_bytes(), length: text.len() as u64 }),
        rows_sent: Some(1),
        rows_examined: Some(kind.examined),
        rows_affected: Some(0),
        lock_ns: Some(2_000),
        error: Some(if nth.is_multiple_of(5) { kind.error } else { 0 }),
        server_status: Some(ServerStatus(if kind.examined > 1_000 { 0x22 } else { 2 })),
        bytes_sent: Some(120),
        ..Statement::unread(end_ns, &identity)
    };
    let name =
        || DigestName { text: kind.text.into(), schema: kind.database.map(Into::into), cut: false };
    let head = (text.as_bytes().to_vec(), text.len() as u64);
    let keep = |one: &Statement<'_>| Sample::of(one, Some(head.clone()));
    interval.count(&statement, key(kind), LIMIT, name, keep);
}

/// A session that runs since `age_ms` before the end of the interval.
pub(crate) fn running(
    id: u64,
    age_ms: u64,
    state: &str,
    text: &str,
    end_ns: u64,
) -> RunningStatement {
    let own = |text: &str| Some(text.as_bytes().to_vec());
    RunningStatement {
        connection_id: id,
        command: Command::QUERY,
        start_ns: Some(end_ns.saturating_sub(age_ms * 1_000_000)),
        text: own(text),
        text_length: text.len() as u64,
        identity: Identity { user: own("app"), host: own("10.1.2.3"), database: own("shop") },
        state: own(state),
        ..RunningStatement::default()
    }
}

/// An idle session that holds the lock of a row.
fn holder(end_ns: u64) -> Arc<Blocker> {
    let own = |text: &str| Some(text.as_bytes().to_vec());
    let ran = |text: &str| Some(Ran { text: text.as_bytes().to_vec(), settings: None });
    Arc::new(Blocker {
        connection_id: 12,
        identity: Identity { user: own("app"), host: own("10.1.2.4"), database: own("shop") },
        is_idle: Some(true),
        waits: false,
        since_ns: Some(end_ns - 42 * SECOND),
        statement: ran("SELECT v FROM t WHERE id = 7"),
        first_write: ran("UPDATE t SET v = 'private words' WHERE id = 7"),
    })
}

/// A statement of every digest has waited so long for the lock of a row.
pub(crate) fn held_up(snapshot: &mut Snapshot, length_ns: u64) {
    let interval = &mut snapshot.record.interval;
    let end_ns = interval.end_ns;
    let object = Some("shop.t".to_owned());
    let blocked = Blocked { by: vec![12], blockers: vec![holder(end_ns)], object, unknown: None };
    let (class, begin_ns, blocked) = (TimeClass::RowLock, end_ns - length_ns, Some(blocked));
    let waits = [LockWait { class, begin_ns, length_ns, blocked }];
    let identity = Identity::default();
    let connection_id = Some(30);
    let statement = Statement::unread(end_ns, &identity);
    let statement = Statement { connection_id, lock_waits: &waits, ..statement };
    for kind in KINDS {
        let name = || DigestName { text: kind.text.into(), schema: None, cut: false };
        interval.book_lock_waits(&statement, key(&kind), LIMIT, name);
    }
}

/// The sessions of a measured second with these ids run the busiest digest.
pub(crate) fn run_the_busiest(snapshot: &mut Snapshot, ids: &[u64]) {
    let Reading::Value(running) = &mut snapshot.record.running else { return };
    for one in running.iter_mut().filter(|one| ids.contains(&one.connection_id)) {
        one.digest = Some(key(&KINDS[1]));
    }
}

/// What a session of a measured second waits for, by its state.
fn note_wait(running: &mut RunningStatement, end_ns: u64) {
    let (class, ms, blocked) = match running.state.as_deref().unwrap_or_default() {
        b"User sleep" => (TimeClass::Sleep, 1_400, None),
        b"updating" => {
            let object = Some("shop.t".to_owned());
            let blockers = vec![holder(end_ns)];
            let by = vec![12, 15];
            (TimeClass::RowLock, 790, Some(Blocked { by, blockers, object, unknown: None }))
        }
        b"executing" => (TimeClass::Cpu, 2, None),
        _ => {
            let unknown = Some("a transaction without a session may hold it".to_owned());
            (TimeClass::MetadataLock, 290, Some(Blocked { unknown, ..Blocked::default() }))
        }
    };
    running.waits = Some(NowWait { class, since_ns: end_ns - ms * 1_000_000 });
    running.blocked = blocked;
}

/// The `nth` second of a server, with these statements. Where their time went was not measured.
pub(crate) fn second_of(pid: u32, nth: u64, kinds: &[Kind]) -> Snapshot {
    second(pid, nth, kinds, false)
}

/// The same with where the time went, and one more statement that still runs.
pub(crate) fn measured_second_of(pid: u32, nth: u64, kinds: &[Kind]) -> Snapshot {
    let mut snapshot = second(pid, nth, kinds, true);
    let Record { interval, parts, running, .. } = &mut snapshot.record;
    *parts = Reading::Value(());
    if let Reading::Value(running) = running {
        running.iter_mut().for_each(|one| note_wait(one, interval.end_ns));
    }
    let name = || DigestName { text: "SELECT `SLEEP` (?)".into(), schema: None, cut: false };
    let since = Some(interval.end_ns - 400_000_000);
    let (end_ns, sleeps) = (interval.end_ns, DigestKey { text: 5, schema: 0 });
    interval.book_time(since, end_ns, sleeps, LIMIT, name);
    let now = NowWait { class: TimeClass::Sleep, since_ns: end_ns - 100_000_000 };
    interval.book_now(now, since, end_ns, sleeps);
    for kind in kinds {
        interval.book_after_reply(Some(key(kind)), 3_000);
    }
    snapshot
}

fn second(pid: u32, nth: u64, kinds: &[Kind], is_measured: bool) -> Snapshot {
    let (start_ns, end_ns) = ((1_000 + nth) * SECOND, (1_001 + nth) * SECOND);
    let mut interval = Interval::begin(start_ns);
    for kind in kinds {
        // A load that rises and falls.
        for call in 0..kind.calls * (3 + nth % 5) / 3 {
            let ended_ns = end_ns - 1_000_000 * (call % 900);
            count(&mut interval, kind, ended_ns, call + nth, is_measured);
        }
    }
    interval.end_ns = end_ns;
    let running = vec![
        running(22, 1_400, "User sleep", "select sleep(6) from sbtest1 where k < 40", end_ns),
        running(21, 90, "executing", "SELECT SUM(k) FROM sbtest1 WHERE id = 17", end_ns),
        running(30, 800, "updating", "UPDATE t SET v = 'x' WHERE id = 1", end_ns),
        running(29, 300, "Waiting for table metadata lock", "ALTER TABLE t ADD c INT", end_ns),
    ];
    let record = Record {
        server: server(pid),
        identity: u64::from(pid),
        begin_wall_ns: start_ns,
        end_wall_ns: end_ns,
        state: Reading::Value(ProcessState::Runs),
        processors: Reading::Value(ProcessorUse {
            processors: 2,
            busy: 1.06,
            server: 0.9,
            stolen: Some(0.0),
            limit: None,
        }),
        storage: Reading::absent("the kernel has no /proc/pressure"),
        logins: Reading::Value(Logins::default()),
        unread: Reading::Value(Unread::default()),
        interval,
        running: Reading::Value(running),
        starts_known: true,
        is_pooled: false,
        parts: Reading::absent("the kernel has no tracepoint sched_switch"),
        cost: Reading::Value(Cost {
            bpf_ns_per_statement: Some(1741.0),
            switches_cores: None,
            agent_cores: Some(0.033),
            rss_bytes: Some(14_470_348),
            host_sends_per_s: Some(25_000.0),
        }),
        ended: None,
    };
    Snapshot {
        record,
        uptime: Some(Duration::from_secs(90_000 + nth)),
        time: format!("14:{:02}:{:02}", nth / 60 % 60, nth % 60),
        price: None,
    }
}

/// The view after this many seconds of these servers.
pub(crate) fn watching(pids: &[u32], seconds: u64) -> App {
    let mut app = App::new(Options { cpus: 2, literals: false });
    for nth in 0..seconds {
        for pid in pids {
            app.take(second_of(*pid, nth, &KINDS));
        }
    }
    app
}

/// The same where it is measured where the time goes.
pub(crate) fn measuring(seconds: u64) -> App {
    let mut app = App::new(Options { cpus: 2, literals: false });
    for nth in 0..seconds {
        app.take(measured_second_of(2, nth, &KINDS));
    }
    app
}
