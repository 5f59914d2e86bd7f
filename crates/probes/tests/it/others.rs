//! A session's thread that sends to somebody else while it runs a statement: FEDERATED sends the
//! statement on to another server. Here that server is the same one, so that it needs no second.

use std::thread;

use waggle_model::Command;
use waggle_probes::capture::{Tap, TapOptions};
use waggle_probes::servers::layout::Field;
use waggle_probes::tap::Hook;
use waggle_testkit::client::Transport;
use waggle_testkit::{Account, Client, Server, Version, on_each_server, wait_until};

use crate::capture::{Capture, Seen};

/// The hooks that are those of a send, as far as they load here.
const HOOKS: [Hook; 2] = [Hook::Send, Hook::Syscall];
const UPDATES: usize = 5;
/// How the server reaches the other one.
const WAYS: [&str; 2] = ["by_tcp", "by_socket"];

/// A server with the engine; a table, and two that lead to it.
fn with_federated(version: Version, arguments: &[&str]) -> Server {
    let mut builder = Server::builder(version).federated().unwrap();
    for argument in arguments {
        builder = builder.arg(*argument);
    }
    let server = builder.start().unwrap();
    let mut root = server.root().unwrap();
    let socket = root.run("SELECT @@socket").unwrap()[0].text(0, 0).unwrap();
    root.run("CREATE TABLE test.far (id INT PRIMARY KEY, v INT) ENGINE = InnoDB").unwrap();
    root.run("INSERT INTO test.far VALUES (1, 1), (2, 2)").unwrap();
    root.run("CREATE TABLE test.near LIKE test.far").unwrap();
    root.run("INSERT INTO test.near VALUES (1, 1), (2, 2)").unwrap();
    let options = [
        format!("HOST '127.0.0.1', PORT {}", server.port()),
        format!("HOST 'localhost', SOCKET '{socket}'"),
    ];
    for (way, options) in WAYS.iter().zip(options) {
        root.run(format!(
            "CREATE SERVER {way} FOREIGN DATA WRAPPER mysql \
             OPTIONS (USER 'app', DATABASE 'test', {options})"
        ))
        .unwrap();
        root.run(format!(
            "CREATE TABLE test.{way} (id INT PRIMARY KEY, v INT) \
             ENGINE = FEDERATED CONNECTION = '{way}/far'"
        ))
        .unwrap();
    }
    server
}

/// What each session runs: changes of a table here, and of those that lead elsewhere.
fn change(client: &mut Client) {
    for n in 0..UPDATES {
        for (at, table) in ["near", WAYS[0], WAYS[1]].into_iter().enumerate() {
            client.run(format!("UPDATE test.{table} SET v = {n}{at} WHERE id = 1")).unwrap();
        }
    }
}

fn changes_of<'a>(seen: &'a [Seen], client: &Client, table: &str) -> Vec<&'a Seen> {
    let begin = format!("UPDATE test.{table} ").into_bytes();
    let is_one = |one: &&Seen| {
        one.connection == u64::from(client.connection_id())
            && one.command == Command::QUERY
            && one.text.as_ref().is_some_and(|text| text.starts_with(&begin))
    };
    seen.iter().filter(is_one).collect()
}

/// The server as if its build hid a field.
fn hide(capture: &mut Capture, field: Option<Field>) {
    if let Some(field) = field {
        let shown = capture.recognised.layout.clone();
        capture.show(shown.without(field));
    }
}

/// A reply of an UPDATE is one short packet: what goes to others adds no byte to it, is not its first
/// one, and does not end it before the other server has answered.
fn only_the_reply_counts(
    server: &Server,
    hook: Hook,
    hidden: Option<Field>,
    transports: &[Transport],
) {
    let mut capture = Capture::of(server);
    hide(&mut capture, hidden);
    capture.tap = Tap::new(TapOptions { hook: Some(hook), ..TapOptions::default() }).unwrap();
    let connect = |transport| Client::connect(server, transport, Account::APP).unwrap();
    // Sessions that were there before the tap, and one that comes later.
    let mut clients: Vec<_> = transports.iter().copied().map(connect).collect();
    capture.attach();
    clients.push(connect(transports[0]));
    clients.iter_mut().for_each(change);
    let seen = capture.at_rest();
    for client in &clients {
        let near = changes_of(&seen, client, "near");
        let bytes: Vec<_> = near.iter().map(|one| one.bytes_sent).collect();
        for table in WAYS {
            let what = format!("{} {hook} {table}, hidden: {hidden:?}", server.version());
            let far = changes_of(&seen, client, table);
            assert_eq!(far.len(), UPDATES, "{what}: {far:?}");
            assert_eq!(far.iter().map(|one| one.bytes_sent).collect::<Vec<_>>(), bytes, "{what}");
            for one in far {
                assert_eq!(one.first_byte_ns, one.latency_ns, "{what}");
                let asked: Vec<_> = asked_by(&seen, one, &clients).collect();
                assert!(!asked.is_empty(), "{what}: the other server was not asked");
                // Both ends are stamped after their sends, each by its own processor: only the start of
                // what was asked is surely before the end of who asked.
                let late = asked.iter().find(|other| other.start_ns > Some(one.end_ns));
                assert!(late.is_none(), "{what}: it ended before {late:?} began");
            }
        }
    }
    assert_eq!(capture.losses().statements(), 0);
}

/// What the other server was asked for a statement: the sessions run one after the other, so that is
/// all that began before the next of theirs.
fn asked_by<'a>(
    seen: &'a [Seen],
    one: &Seen,
    clients: &[Client],
) -> impl Iterator<Item = &'a Seen> {
    let ids: Vec<_> = clients.iter().map(|client| u64::from(client.connection_id())).collect();
    let is_client = move |other: &Seen| ids.contains(&other.connection);
    let begin = one.start_ns;
    let next = seen.iter().filter(|other| is_client(other) && other.start_ns > begin);
    let next = next.map(|other| other.start_ns).min().flatten().unwrap_or(u64::MAX);
    seen.iter().filter(move |other| {
        !is_client(other) && other.start_ns > begin && other.start_ns < Some(next)
    })
}

fn what_a_session_sends_to_others_is_no_reply(version: Version) {
    let server = with_federated(version, &[]);
    for hook in HOOKS {
        only_the_reply_counts(&server, hook, None, &[Transport::Tcp, Transport::Unix]);
    }
}

/// Without the start, the receive of a request tells one statement from the next.
fn nor_is_it_where_the_start_is_hidden(version: Version) {
    let server = with_federated(version, &[]);
    for hook in HOOKS {
        let transports = [Transport::Tcp, Transport::Unix];
        only_the_reply_counts(&server, hook, Some(Field::StartTime), &transports);
    }
}

/// The connection to the other server is there before the tap, and the session's first send that the tap
/// sees goes to it: nothing has shown yet how the sockets of this server's clients are marked. The tap
/// comes between two statements, or within one.
fn a_session_that_sends_to_others_first_loses_nothing(version: Version) {
    let server = with_federated(version, &[]);
    for (hidden, is_within) in
        [None, Some(Field::StartTime)].into_iter().flat_map(|one| [(one, false), (one, true)])
    {
        let what = format!("{version}, hidden: {hidden:?}, within a statement: {is_within}");
        let mut client = Client::connect(&server, Transport::Unix, Account::APP).unwrap();
        change(&mut client);
        let mut capture = Capture::of(&server);
        hide(&mut capture, hidden);
        let far = format!("UPDATE test.{} SET v = v + 1 WHERE id = 1", WAYS[0]);
        if is_within {
            thread::scope(|scope| {
                let slow = format!("{far} AND SLEEP(2) = 0");
                let runs = scope.spawn(|| client.run(slow).unwrap());
                until_asleep(&server);
                capture.attach();
                assert!(!runs.is_finished(), "{what}: the tap came too late");
                runs.join().unwrap();
            });
        } else {
            capture.attach();
        }
        for _ in 0..UPDATES {
            client.run(far.as_str()).unwrap();
        }
        let seen = capture.at_rest();
        let changes = changes_of(&seen, &client, WAYS[0]);
        let brief: Vec<_> = changes.iter().map(|one| one.brief()).collect();
        assert_eq!(changes.len(), UPDATES + usize::from(is_within), "{what}: {brief:#?}");
        let bytes: Vec<_> = changes.iter().map(|one| one.bytes_sent).collect();
        assert!(bytes.iter().all(|one| *one == bytes[0]), "{what}: {bytes:?}");
        assert_eq!(capture.losses().statements(), 0, "{what}");
    }
}

/// Waits until a session sleeps.
fn until_asleep(server: &Server) {
    let mut root = server.root().unwrap();
    let sleeping = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
                    WHERE INFO LIKE 'UPDATE%' AND STATE = 'User sleep'";
    wait_until("a session sleeps", || root.run(sleeping).unwrap()[0].text(0, 0).unwrap() == "1");
}

on_each_server!(
    nor_is_it_where_the_start_is_hidden: mysql_5_7 Mysql57, mysql_8_0 Mysql80,
    mysql_9 Mysql9, mariadb_10_11 Mariadb1011
);

on_each_server!(
    a_session_that_sends_to_others_first_loses_nothing: mysql_5_7 Mysql57, mysql_8_0 Mysql80,
    mysql_9 Mysql9, mariadb_10_11 Mariadb1011
);

on_each_server!(
    what_a_session_sends_to_others_is_no_reply: mysql_5_7 Mysql57, mysql_8_0 Mysql80,
    mysql_9 Mysql9, mariadb_10_11 Mariadb1011
);

/// Each statement of a session may run in another thread, which does not know its socket.
#[test]
fn nor_is_it_where_threads_are_pooled() {
    let pool = ["--thread-handling=pool-of-threads", "--thread-pool-size=2"];
    // The other session is in the same pool: it gets a thread of its own after this long, ms.
    let pool = [pool[0], pool[1], "--thread-pool-stall-limit=10"];
    let server = with_federated(Version::Mariadb1011, &pool);
    only_the_reply_counts(&server, Hook::Send, None, &[Transport::Tcp, Transport::Unix]);
}
