//! Counters read twice around a known number of statements.

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use waggle_model::{Command, Identity, Reading, Statement};
use waggle_mysql::connection::{MARK, text};
use waggle_mysql::counters::{Counters, Difference, Event, Histograms};
use waggle_mysql::verify::{Edge, Ended, ReportJson, Source, verify};
use waggle_mysql::{Captured, Connection, Options, Sources};
use waggle_testkit::{PerformanceSchema, Server, Version, on_each_server, wait_until};

const SELECTS: u64 = 20;
const INSERTS: u64 = 5;
const EXECUTIONS: u64 = 7;
const OTHERS_SELECTS: u64 = 4;
/// Rows sent, examined and affected. A SELECT without a table examines a row on MySQL 9 and none
/// before; that is left out here.
const ONE_ROW: [Option<u64>; 3] = [Some(1), None, Some(0)];
const NO_ROWS: [Option<u64>; 3] = [Some(0), Some(0), Some(0)];
const TWO_CHANGED: [Option<u64>; 3] = [Some(0), Some(0), Some(2)];

fn client(server: &Server) -> Conn {
    // Naming the packet length keeps the driver from asking for it with a statement.
    let options = OptsBuilder::new()
        .socket(Some(server.socket().to_string_lossy()))
        .user(Some("root"))
        .prefer_socket(false)
        .max_allowed_packet(Some(1 << 24));
    Conn::new(options).unwrap()
}

fn watcher(server: &Server) -> Connection {
    let file = Some(server.defaults_file());
    let options = Options::read(&Sources { defaults_file: file, ..Sources::default() }).unwrap();
    Connection::open(&options).unwrap()
}

/// What the clients of [`work`] did, as a complete capture would tell it.
struct Done {
    connection: u64,
    other: u64,
}

fn work(server: &Server, client: &mut Conn) -> Done {
    for _ in 0..SELECTS {
        client.query_drop("SELECT 1 AS n").unwrap();
    }
    for n in 0..INSERTS {
        client.query_drop(format!("INSERT INTO test.counted VALUES ({n}), (7)")).unwrap();
    }
    client.query_drop("SELEC 1").unwrap_err();
    client.query_drop("SELECT a FROM test.counted WHERE nothing = 1").unwrap_err();
    for n in 0..EXECUTIONS {
        client.exec_drop("SELECT a FROM test.counted WHERE a > ?", (n,)).unwrap();
    }
    client.select_db("test").unwrap();
    client.ping().unwrap();
    let mut other = self::client(server);
    for _ in 0..OTHERS_SELECTS {
        other.query_drop("SELECT 1 AS n").unwrap();
    }
    Done { connection: client.connection_id().into(), other: other.connection_id().into() }
}

impl Done {
    fn captured(&self) -> Captured {
        let mut captured = Captured::default();
        let rows_of_table = 2 * INSERTS;
        for _ in 0..SELECTS {
            captured.note(self.connection, 3, "SELECT ? AS `n`", 0, ONE_ROW);
        }
        for _ in 0..INSERTS {
            let text = "INSERT INTO `test` . `counted` VALUES (?) /* , ... */";
            captured.note(self.connection, 3, text, 0, TWO_CHANGED);
        }
        captured.note(self.connection, 3, "SELEC ?", 1064, NO_ROWS);
        let failed = "SELECT `a` FROM `test` . `counted` WHERE `nothing` = ?";
        captured.note(self.connection, 3, failed, 1054, NO_ROWS);
        for n in 0..EXECUTIONS {
            // Each insert leaves its own number and a 7.
            let sent =
                (0..INSERTS).filter(|a| *a > n).count() as u64 + if 7 > n { INSERTS } else { 0 };
            let text = "SELECT `a` FROM `test` . `counted` WHERE `a` > ?";
            captured.note(self.connection, 23, text, 0, [Some(sent), Some(rows_of_table), Some(0)]);
        }
        for command in [2, 14, 22] {
            captured.note(self.connection, command, "", 0, NO_ROWS);
        }
        for _ in 0..OTHERS_SELECTS {
            captured.note(self.other, 3, "SELECT ? AS `n`", 0, ONE_ROW);
        }
        captured
    }
}

trait Note {
    fn note(
        &mut self,
        connection: u64,
        command: u8,
        text: &str,
        error: u32,
        rows: [Option<u64>; 3],
    );
}

impl Note for Captured {
    fn note(
        &mut self,
        connection: u64,
        command: u8,
        text: &str,
        error: u32,
        rows: [Option<u64>; 3],
    ) {
        let identity = Identity::default();
        let statement = Statement {
            connection_id: Some(connection),
            command: Some(Command(command)),
            rows_sent: rows[0],
            rows_examined: rows[1],
            rows_affected: rows[2],
            error: Some(error),
            ..Statement::unread(0, &identity)
        };
        self.add(&Ended::of(&statement, text), Edge::Inside);
    }
}

/// Waits until the threads of clients that left are gone: while one goes, its sums move from table to
/// table, and a reading can miss them.
fn wait_for_threads(watcher: &mut Connection, clients: usize) {
    wait_until("the end of the threads of clients that left", || {
        let threads = watcher.rows(&format!(
            "SELECT THREAD_ID AS {MARK} FROM performance_schema.threads WHERE NAME = \
             'thread/sql/one_connection'"
        ));
        threads.unwrap().len() <= clients + 1
    });
}

/// Reads until the one connection that ended has been counted: a `COM_QUIT` has no reply to wait for.
fn read_after_quit(watcher: &mut Connection, earlier: &Counters) -> Difference {
    let mut read = || Counters::read(watcher, Histograms::Read).unwrap().since(earlier).unwrap();
    wait_until("the COM_QUIT of a connection that ended", || read().quits == Reading::Value(1));
    // The table that has it may have been read after one that has it not.
    read()
}

/// The classes of statement events of this server whose meaning is not in our tables.
fn unknown_classes(watcher: &mut Connection) -> Vec<String> {
    let rows = watcher.rows(&format!(
        "SELECT NAME AS {MARK} FROM performance_schema.setup_instruments \
         WHERE NAME LIKE 'statement/%'"
    ));
    let names = rows.unwrap().iter().map(|row| text(row, 0)).collect::<Vec<_>>();
    names.into_iter().filter(|name| Event::of(name) == Event::Unknown).collect()
}

fn counts_exactly(version: Version, performance_schema: PerformanceSchema) {
    let server = Server::builder(version).performance_schema(performance_schema).start().unwrap();
    let mut client = client(&server);
    client.query_drop("CREATE TABLE test.counted (a INT) ENGINE=InnoDB").unwrap();
    let mut watcher = watcher(&server);
    wait_for_threads(&mut watcher, 1);
    let earlier = Counters::read(&mut watcher, Histograms::Read).unwrap();
    let done = work(&server, &mut client);
    wait_for_threads(&mut watcher, 1);
    let difference = read_after_quit(&mut watcher, &earlier);

    let text = SELECTS + INSERTS + 2 + OTHERS_SELECTS;
    let commands = done.captured().commands;
    assert_eq!(
        difference.statements_by_questions(&commands),
        Reading::Value(text + EXECUTIONS),
        "{version:?}"
    );
    let on = performance_schema != PerformanceSchema::Off;
    if on {
        assert_eq!(difference.statements_by_event(), Some(text + EXECUTIONS), "{version:?}");
        assert_eq!(difference.command(Command::EXECUTE), Some(EXECUTIONS));
        assert_eq!(difference.command(Command::PREPARE), Some(1));
        let connections = difference.connections.value().unwrap();
        assert_eq!(
            connections[&done.connection].statements,
            text + EXECUTIONS - OTHERS_SELECTS,
            "{version:?}"
        );
        assert!(!connections.contains_key(&watcher.server_identity().connection_id));
        assert_eq!(unknown_classes(&mut watcher), Vec::<String>::new(), "{version:?}");
    } else {
        assert_eq!(difference.statements_by_event(), None);
        assert!(difference.events.why().unwrap().contains("Performance Schema is off"));
    }

    let report = verify(&done.captured(), &difference);
    let json = serde_json::to_string_pretty(&ReportJson::from(&report)).unwrap();
    let source = if on { Source::ByEventName } else { Source::QuestionsLessQuit };
    assert_eq!(report.source, Some(source), "{version:?} {json}");
    assert!(report.passed(), "{version:?} {json}");
    assert_eq!(report.server_counted, Some(text + EXECUTIONS), "{version:?} {json}");
    assert_eq!((report.missing, report.extra, report.in_flight), (0, 0, 0), "{version:?} {json}");
    if on {
        assert!(report.digests_compared >= 2, "{version:?} {json}");
    }

    let mut one_short = done.captured();
    let selects = one_short.digests.iter_mut().find(|(key, _)| key.text == "SELECT ? AS `n`");
    selects.unwrap().1.calls.certain -= 1;
    *one_short.commands.get_mut(&Command::QUERY).unwrap() -= 1;
    one_short.connections.get_mut(&done.connection).unwrap().certain -= 1;
    let report = verify(&one_short, &difference);
    assert_eq!((report.missing, report.passed()), (1, false), "{version:?}");
    if on {
        let named: Vec<_> = report.differing.iter().map(|one| &one.digest_text).collect();
        assert_eq!(named, ["SELECT ? AS `n`"], "{version:?}");
    }
}

fn what_was_sent_is_counted(version: Version) {
    counts_exactly(version, PerformanceSchema::Statements);
}

on_each_server!(what_was_sent_is_counted);

#[test]
fn without_performance_schema_questions_count_what_was_sent() {
    for version in Version::ALL {
        counts_exactly(version, PerformanceSchema::Off);
    }
}

#[test]
fn a_missing_grant_is_named_with_the_statement_that_gives_it() {
    let server = Server::start(Version::Mysql9).unwrap();
    client(&server).query_drop("CREATE USER bare@localhost").unwrap();
    let options = Options {
        user: Some("bare".to_owned()),
        socket: Some(server.socket()),
        ..Options::default()
    };
    let mut connection = Connection::open(&options).unwrap();
    let counters = Counters::read(&mut connection, Histograms::Skip).unwrap();
    assert!(counters.status["questions"] > 0);
    let why = counters.digests.why().unwrap();
    let grant = "GRANT SELECT ON performance_schema.* TO 'bare'@'localhost'";
    assert!(why.contains(grant), "{why}");
    client(&server).query_drop(grant).unwrap();
    let counters = Counters::read(&mut connection, Histograms::Read).unwrap();
    assert!(counters.digests.value().is_some() && counters.histograms.value().is_some());
}

#[test]
fn an_emptied_digest_table_is_not_taken_for_a_difference() {
    let server = Server::start(Version::Mysql9).unwrap();
    let mut watcher = watcher(&server);
    let mut client = client(&server);
    client.query_drop("SELECT 1 AS n").unwrap();
    let earlier = Counters::read(&mut watcher, Histograms::Skip).unwrap();
    let table = "performance_schema.events_statements_summary_by_digest";
    client.query_drop(format!("TRUNCATE TABLE {table}")).unwrap();
    let later = Counters::read(&mut watcher, Histograms::Skip).unwrap();
    let difference = later.since(&earlier).unwrap();
    assert!(difference.digests.why().unwrap().contains("TRUNCATE"));
    assert!(difference.events.value().is_some());
}
