//! Replies that become no statement: of a server that is read rightly none, of one that is read wrongly as many as
//! there were statements. `matrix` has all the kinds of statements.

use waggle_host::monotonic_ns;
use waggle_model::{Command, Loss};
use waggle_probes::capture::{Tap, TapOptions};
use waggle_probes::servers::layout::Field;
use waggle_probes::servers::shift::Shift;
use waggle_probes::tap::Hook;
use waggle_testkit::client::{Client, Transport};
use waggle_testkit::{Account, Server, Version, on_each_server, wait_until};

use crate::capture::Capture;

/// Of each of two connections.
const STATEMENTS: u64 = 20;
const MAX_CONNECTIONS: u32 = 60;

fn connect(server: &Server, transport: Transport) -> Client {
    Client::connect(server, transport, Account::APP).unwrap()
}

/// Connections without a statement, such as health checks make, and how they end.
fn connections_without_statements_are_not_suspicious(version: Version) {
    let server = Server::builder(version).max_connections(MAX_CONNECTIONS).start().unwrap();
    let mut capture = Capture::of(&server);
    capture.attach();
    let without = |capture: &Capture| capture.losses().get(Loss::NoStatement);
    for transport in [Transport::Tcp, Transport::Unix] {
        for _ in 0..30 {
            let mut client = connect(&server, transport);
            client.ping().unwrap();
            client.quit().unwrap();
        }
        assert_eq!(without(&capture), 0, "{version} {transport}: connect, ping, quit");
        let mut client = connect(&server, transport);
        for _ in 0..30 {
            let statement = client.prepare("SELECT 1, ?").unwrap();
            client.close_statement(statement).unwrap();
            client.statistics().unwrap();
        }
        capture.at_rest();
        assert_eq!(without(&capture), 0, "{version} {transport}: prepare, close, statistics");
        let idle: Vec<Client> = (0..2 * MAX_CONNECTIONS)
            .map_while(|_| Client::connect(&server, transport, Account::APP).ok())
            .collect();
        for _ in 0..30 {
            assert!(Client::connect(&server, transport, Account::APP).is_err());
        }
        assert_eq!(without(&capture), 0, "{version} {transport}: too many connections");
        client.run("SELECT 1").unwrap();
        drop(idle);
        wait_until("room for root", || server.root().is_ok());
        let mut root = server.root().unwrap();
        root.run("SET GLOBAL wait_timeout = 1").unwrap();
        let mut idle: Vec<Client> = (0..30).map(|_| connect(&server, transport)).collect();
        idle.iter_mut().for_each(|idle| while idle.read_packet().is_ok() {});
        root.run("SET GLOBAL wait_timeout = 28800").unwrap();
        capture.at_rest();
        assert_eq!(without(&capture), 0, "{version} {transport}: idle for too long");
    }
    assert_eq!(capture.losses().statements(), 0, "{version}");
}

on_each_server!(connections_without_statements_are_not_suspicious);

/// MariaDB reports how far a statement is, to clients that ask for it, before its reply.
fn progress_reports_are_no_replies(version: Version) {
    let server = Server::builder(version).arg("--progress-report-time=1").start().unwrap();
    let mut capture = Capture::of(&server);
    capture.attach();
    for transport in [Transport::Tcp, Transport::Unix] {
        let builder = Client::builder().progress(true).database("test");
        let mut client = builder.connect(&server, transport, Account::APP).unwrap();
        client.run("CREATE OR REPLACE TABLE t (a INT) SELECT seq AS a FROM seq_1_to_20").unwrap();
        capture.at_rest();
        // A reply of its own goes out in the same way before and after it.
        let alter = "ALTER TABLE t ADD b INT DEFAULT (LENGTH(SHA2(REPEAT('x', 4000000), 512))), ALGORITHM = COPY";
        client.send(waggle_testkit::client::Command::Query, alter.as_bytes()).unwrap();
        let mut reports = 0;
        while client.read_packet().unwrap().starts_with(&[0xff; 3]) {
            reports += 1;
        }
        client.run("SELECT 1").unwrap();
        let seen = capture.at_rest();
        let texts: Vec<_> = seen.iter().filter_map(|one| one.text.as_deref()).collect();
        assert_eq!(texts, [alter.as_bytes(), b"SELECT 1"], "{version} {transport}");
        assert_eq!(seen[0].error, Some(0));
        assert!(reports > 0, "{version} {transport}: nothing was reported");
    }
    let losses = capture.losses();
    assert_eq!((losses.get(Loss::NoStatement), losses.statements()), (0, 0), "{version}");
}

on_each_server!(progress_reports_are_no_replies: mariadb_10_11 Mariadb1011, mariadb_11_4 Mariadb114);

/// What is heard of two connections while one place is read wrongly: statements with their texts, statements that are
/// known to be lost, and replies that became none.
fn heard(server: &Server, shift: Shift) -> Option<(u64, u64, u64)> {
    let mut capture = Capture::of(server);
    let recognised = &mut capture.recognised;
    shift.apply(&mut recognised.instance, &mut recognised.layout);
    capture.tap = Tap::new(TapOptions { hook: Some(Hook::Send), ..TapOptions::default() }).unwrap();
    let (recognised, tap) = (&capture.recognised, &mut capture.tap);
    // A place before the object is refused at once.
    tap.attach(&recognised.instance, &recognised.layout).ok()?;
    for transport in [Transport::Tcp, Transport::Unix] {
        let mut client = connect(server, transport);
        for number in 0..STATEMENTS {
            client.query(format!("SELECT {number}, 'a text that is not short'")).unwrap();
        }
        client.quit().unwrap();
    }
    capture.drain();
    let (pid, mut seen) = (server.pid(), std::mem::take(&mut capture.seen));
    capture.tap.settle(pid, &[], monotonic_ns(), |_| {});
    seen.retain(|one| {
        one.command.is_statement() && (one.text.is_some() || one.command != Command::QUERY)
    });
    let losses = capture.losses();
    let lost = losses.statements() + losses.get(Loss::UnreadableText);
    Some((seen.len() as u64, lost, losses.get(Loss::NoStatement)))
}

/// The places by which statements are found. Where one is wrong, most statements are captured all the same, or the loss
/// is counted, or the replies are.
fn a_place_that_is_wrong_is_heard(version: Version) {
    let wrong = [
        (None, 8),
        (Some(Field::StartTime), -8),
        (Some(Field::DiagnosticsStatus), -8),
        (Some(Field::Command), 8),
        (Some(Field::QueryText), -8),
    ];
    let server = Server::start(version).unwrap();
    for (field, bytes) in wrong {
        let Some((seen, lost, without)) = heard(&server, Shift { field, bytes }) else { continue };
        let most = 2 * STATEMENTS * 9 / 10;
        let is_heard = seen + lost >= most || without > seen;
        assert!(
            is_heard,
            "{version} {field:?} {bytes}: {seen} seen, {lost} lost, {without} without"
        );
    }
}

on_each_server!(
    a_place_that_is_wrong_is_heard: mysql_5_7 Mysql57, mysql_9 Mysql9, mariadb_11_4 Mariadb114
);
