//! Servers as the tests see them, and what the state does with them.

use std::time::Duration;

use waggle_model::{
    BuildKey, Command, Cost, DigestKey, DigestName, DigestsMax, Flavour, Identity, Interval, Loss,
    RunningStatement, Server, ServerStatus, Statement, Text,
};

use super::{App, Filter, Options, Snapshot, Sort};

const SECOND: u64 = 1_000_000_000;
const LIMIT: DigestsMax = DigestsMax(200_000);

/// A server.
pub(crate) fn server(pid: u32) -> Server {
    Server {
        pid,
        start_ticks: 100,
        flavour: if pid.is_multiple_of(2) { Flavour::Mysql } else { Flavour::Mariadb },
        version: if pid.is_multiple_of(2) { "9.7.4" } else { "10.11.19-MariaDB" }.to_owned(),
        build: BuildKey(String::new()),
        executable: "/usr/sbin/mysqld".into(),
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
}

const POINT: Kind = Kind {
    text: "SELECT `c` FROM `sbtest1` WHERE `id` = ?",
    database: Some("shop"),
    user: "app",
    calls: 400,
    latency_us: 40,
    examined: 1,
    error: 0,
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
        ..POINT
    },
    Kind { text: "COMMIT", calls: 40, latency_us: 1_900, examined: 0, ..POINT },
    Kind {
        text: "UPDATE `käufer` SET `名前` = ? WHERE `id` = ?",
        database: Some("müller"),
        calls: 7,
        latency_us: 900,
        error: 1213,
        ..POINT
    },
    Kind { text: "SET NAMES `utf8mb4`", database: None, calls: 1, latency_us: 12, ..POINT },
];

fn key(kind: &Kind) -> DigestKey {
    let of = |text: &str| {
        text.bytes().fold(17, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(byte.into()))
    };
    DigestKey { text: of(kind.text), schema: of(kind.database.unwrap_or("")) }
}

fn count(interval: &mut Interval, kind: &Kind, end_ns: u64, nth: u64) {
    let own = |text: &str| Some(text.as_bytes().to_vec());
    let identity = Identity {
        user: own(kind.user),
        host: own("10.1.2.3"),
        database: kind.database.and_then(own),
    };
    let text = kind.text.replace('?', &format!("'secret-{nth}'"));
    let statement = Statement {
        connection_id: Some(7),
        command: Some(Command::QUERY),
        latency_ns: Some(kind.latency_us * 1_000 * (10 + nth % 7) / 10),
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
    let name = || DigestName { text: kind.text.into(), schema: kind.database.map(Into::into) };
    interval.count(&statement, key(kind), LIMIT, name);
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

/// The `nth` second of a server, with these statements.
pub(crate) fn second_of(pid: u32, nth: u64, kinds: &[Kind]) -> Snapshot {
    let (start_ns, end_ns) = ((1_000 + nth) * SECOND, (1_001 + nth) * SECOND);
    let mut interval = Interval::begin(start_ns);
    for kind in kinds {
        // A load that rises and falls.
        for call in 0..kind.calls * (3 + nth % 5) / 3 {
            count(&mut interval, kind, end_ns - 1_000_000 * (call % 900), call + nth);
        }
    }
    interval.end_ns = end_ns;
    interval.running = vec![
        running(22, 1_400, "User sleep", "select sleep(6) from sbtest1 where k < 40", end_ns),
        running(21, 90, "executing", "SELECT SUM(k) FROM sbtest1 WHERE id = 17", end_ns),
        running(30, 800, "updating", "UPDATE t SET v = 'x' WHERE id = 1", end_ns),
        running(29, 300, "Waiting for table metadata lock", "ALTER TABLE t ADD c INT", end_ns),
    ];
    Snapshot {
        server: server(pid),
        uptime: Some(Duration::from_secs(90_000 + nth)),
        time: format!("14:{:02}:{:02}", nth / 60 % 60, nth % 60),
        interval,
        sessions_known: true,
        cost: Cost {
            bpf_ns_per_statement: Some(1741.0),
            agent_cores: Some(0.033),
            rss_bytes: Some(14_470_348),
            host_sends_per_s: Some(25_000.0),
        },
        ended: false,
    }
}

/// The view after so many seconds of these servers.
pub(crate) fn watching(pids: &[u32], seconds: u64) -> App {
    let mut app = App::new(Options { cpus: 2, literals: false });
    for nth in 0..seconds {
        for pid in pids {
            app.take(second_of(*pid, nth, &KINDS));
        }
    }
    app
}

fn texts(app: &App) -> Vec<String> {
    let server = app.server().unwrap();
    let frame = server.shown().unwrap();
    let text = |at| server.row(frame, at).unwrap().name.text.to_string();
    (0..server.listed.len()).map(text).collect()
}

fn filtered(typed: &str) -> Vec<String> {
    let mut app = watching(&[2], 1);
    app.filter = Filter::parse(typed).unwrap();
    app.list();
    texts(&app)
}

#[test]
fn digests_are_ranked_by_what_was_asked_for() {
    let mut app = watching(&[2], 1);
    let mut first = |sort| {
        app.sort = sort;
        app.list();
        texts(&app)[0].split(' ').take(2).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(first(Sort::Load), "SELECT `o`");
    assert_eq!(first(Sort::Calls), "SELECT `c`");
    assert_eq!(first(Sort::P95), "SELECT `o`");
    assert_eq!(first(Sort::P99), "SELECT `o`");
    assert_eq!(first(Sort::Examined), "SELECT `o`");
    assert_eq!(first(Sort::Errors), "UPDATE `käufer`");
}

#[test]
fn every_term_of_a_filter_must_hold() {
    assert_eq!(filtered("").len(), 5);
    assert_eq!(filtered("SBTEST1"), [KINDS[0].text]);
    assert_eq!(filtered("user:report kind:select"), [KINDS[1].text]);
    assert_eq!(filtered("user:report kind:update"), [""; 0]);
    assert_eq!(filtered("db:müller"), [KINDS[3].text]);
    assert_eq!(filtered("kind:write"), [KINDS[3].text]);
    assert_eq!(filtered("re:^(commit|set)").len(), 2);
    assert_eq!(filtered("db:re:^s.op$").len(), 3);
    assert_eq!(filtered("\"GROUP BY\""), [KINDS[1].text]);
    assert_eq!(filtered("("), [KINDS[1].text], "a part of a text is no pattern");
}

#[test]
fn a_bad_pattern_is_answered_by_a_sentence() {
    for (typed, word) in [
        ("re:(", "re:("),
        ("re:a{1000000}", "re:a"),
        ("kind:selekt", "no such kind"),
        ("db:", "nothing to look for"),
        ("user:re:[", "re:["),
    ] {
        let why = Filter::parse(typed).unwrap_err();
        assert!(why.contains(word), "{typed}: {why}");
    }
}

#[test]
fn blocked_sessions_come_first_then_the_oldest() {
    let app = watching(&[2], 1);
    let frame = app.server().unwrap().shown().unwrap();
    let ids: Vec<u64> = frame.sessions.iter().map(|session| session.connection_id).collect();
    assert_eq!(ids, [29, 30, 22, 21]);
    assert!(frame.sessions.iter().all(|session| !session.text.contains("17")), "literals");
}

#[test]
fn the_history_keeps_to_its_budget_and_reaches_half_an_hour_at_most() {
    const BUDGET: usize = 100_000;
    let mut app = App::new(Options { cpus: 2, literals: false }).with_budget(BUDGET);
    for nth in 0..300 {
        app.take(second_of(2, nth, &KINDS[2..]));
        let one = app.server().unwrap();
        assert!(one.history.bytes() <= BUDGET, "{} bytes", one.history.bytes());
    }
    let reach = app.server().unwrap().history.reach_ns() / SECOND;
    assert!((10..299).contains(&reach), "{reach} s");

    let mut app = App::new(Options { cpus: 2, literals: false });
    for nth in 0..2_000 {
        app.take(second_of(2, nth, &KINDS[4..]));
    }
    assert_eq!(app.server().unwrap().history.reach_ns() / SECOND, 1_801);
}

#[test]
fn what_is_forgotten_leaves_nothing_behind() {
    // So little that every interval but the newest is forgotten again.
    let mut app = App::new(Options { cpus: 2, literals: false }).with_budget(1);
    for nth in 0..5 {
        app.take(second_of(2, nth, &KINDS));
        assert_eq!(app.server().unwrap().history.bytes(), 0);
    }
}

#[test]
fn an_interval_of_the_history_says_what_it_does_not_know() {
    let mut app = App::new(Options { cpus: 2, literals: false });
    let mut crowd = second_of(2, 0, &KINDS);
    for at in 0..1_000_u64 {
        let name = DigestName { text: format!("SELECT {at}").into(), schema: None };
        let key = DigestKey { text: at, schema: 0 };
        crowd.interval.book_time(Some(0), 1_000 * SECOND + at, key, LIMIT, || name);
    }
    app.take(crowd);
    app.take(second_of(2, 1, &KINDS));
    let one = app.server_mut().unwrap();
    one.step(-1);
    let frame = one.shown().unwrap().clone();
    assert!(frame.rows.len() < 80 && frame.rows_left_out > 900, "{}", frame.rows.len());
    assert_eq!(frame.load_of(&DigestKey { text: 1, schema: 0 }), None);
    one.follow();
    let newest = one.shown().unwrap();
    assert_eq!(newest.load_of(&DigestKey { text: 1, schema: 0 }), Some(0.0));
}

#[test]
fn samples_and_users_outlive_their_interval() {
    let mut app = watching(&[2], 1);
    app.take(second_of(2, 1, &[]));
    app.take(second_of(2, 2, &[]));
    let one = app.server().unwrap();
    let frame = one.shown().unwrap();
    let [newest, kept] = one.details(frame, &key(&KINDS[1]));
    assert!(newest.is_none());
    let kept = kept.unwrap();
    assert!(kept.samples.slowest.is_some() && kept.users.contains_key(b"reports".as_slice()));
}

#[test]
fn a_restarted_server_with_the_same_pid_is_another_one() {
    let mut app = watching(&[2], 2);
    let mut again = second_of(2, 3, &KINDS);
    again.server.start_ticks += 1;
    app.take(again);
    assert_eq!(app.servers.len(), 2);
}

#[test]
fn few_of_the_servers_that_ended_are_kept_and_the_one_in_front_stays() {
    let mut app = App::new(Options { cpus: 2, literals: false });
    for pid in 1..20 {
        app.take(Snapshot { ended: true, ..second_of(pid, 0, &[]) });
        app.take(second_of(100, u64::from(pid), &[]));
    }
    assert_eq!(app.servers.len(), super::ENDED_MAX + 1);
    assert_eq!(app.server().unwrap().server.pid, 1);
}

#[test]
fn losses_are_summed_over_the_whole_watch() {
    let mut app = watching(&[2], 1);
    for nth in 1..3 {
        let mut snapshot = second_of(2, nth, &[]);
        snapshot.interval.losses.add(Loss::RingFull, 5);
        app.take(snapshot);
    }
    assert_eq!(app.server().unwrap().lost.statements(), 10);
}

#[test]
fn a_sentence_does_not_stay_for_ever() {
    let mut app = watching(&[2], 1);
    app.tell("pid 3: watched from now on");
    for nth in 1..10 {
        app.take(second_of(2, nth, &[]));
        assert!(app.message.is_some(), "{nth}");
    }
    app.take(second_of(2, 10, &[]));
    assert_eq!(app.message, None);
}

#[test]
fn many_servers_share_what_the_history_may_take() {
    let mut app = App::new(Options { cpus: 2, literals: false });
    for nth in 0..4 {
        for pid in 0..100 {
            app.take(second_of(pid, nth, &KINDS[2..3]));
        }
    }
    let all: usize = app.servers.iter().map(|one| one.history.bytes()).sum();
    assert!(all > 0 && all <= super::BUDGET_OF_ALL, "{all}");
}
