use waggle_model::{
    BuildKey, CharsetName, Command, DigestKey, Flavour, Identity, Interval, Losses, Origin,
    RunningStatement, Server, SessionSettings, Statement, Text,
};

use super::*;

const NOBODY: Identity = Identity { user: None, host: None, database: None };

fn server(flavour: Flavour, version: &str) -> Server {
    Server {
        pid: 1,
        start_ticks: 0,
        flavour,
        version: version.to_owned(),
        build: BuildKey("0".to_owned()),
        executable: "/usr/sbin/mysqld".into(),
    }
}

fn books() -> Books {
    Books::open(&server(Flavour::Mysql, "8.0.12"), Grouping::Digest, 1_000)
}

fn query(text: &str, start_ns: u64, end_ns: u64) -> Statement<'_> {
    Statement {
        thd: 7,
        connection_id: Some(5),
        command: Some(Command::QUERY),
        noted_start_us: Some(start_ns),
        latency_ns: Some(end_ns - start_ns),
        text: Some(Text { bytes: text.as_bytes(), length: text.len() as u64 }),
        ..Statement::unread(end_ns, &NOBODY)
    }
}

/// The same statement, seen before its end.
fn running(statement: &Statement<'_>) -> RunningStatement {
    let text = statement.text.unwrap();
    RunningStatement {
        thd: statement.thd,
        connection_id: statement.connection_id.unwrap(),
        command: statement.command.unwrap(),
        noted_start_us: statement.noted_start_us,
        start_ns: statement.start_ns(),
        text: Some(text.bytes.to_vec()),
        text_length: text.length,
        ..RunningStatement::default()
    }
}

fn close(books: &mut Books, end_ns: u64, running: Vec<RunningStatement>) -> Interval {
    books.begin_closing(end_ns);
    books.close(running, Losses::default())
}

fn names(interval: &Interval) -> Vec<String> {
    let names = interval.digests.values().filter_map(|totals| totals.name.as_ref());
    let mut names: Vec<String> = names.map(|name| name.text.to_string()).collect();
    names.sort();
    names
}

#[test]
fn statements_that_differ_in_literals_only_are_one_digest() {
    let mut books = books();
    let met = books.count(&query("SELECT 1", 1_000, 1_100));
    assert!(met.is_some(), "the interval meets it for the first time");
    assert_eq!(books.count(&query("SELECT  2", 1_100, 1_200)), None);
    books.leave_out(&query("SELECT 'our own'", 1_100, 1_200));
    assert_eq!(books.interval().statements, 2);
    assert_eq!(names(&close(&mut books, 2_000, Vec::new())), ["SELECT ?"]);
}

#[test]
fn a_ping_is_not_counted() {
    let mut books = books();
    books.count(&Statement { command: Some(Command(14)), text: None, ..query("", 1_000, 1_100) });
    assert_eq!(close(&mut books, 2_000, Vec::new()).statements, 0);
}

#[test]
fn time_goes_to_every_interval_in_which_a_statement_runs_and_the_count_to_its_end() {
    let mut books = books();
    let long = query("SELECT SLEEP(1)", 1_500, 2_300);
    let first = close(&mut books, 2_000, vec![running(&long)]);
    assert_eq!((first.statements, first.active_ns, first.end_ns), (0, 500, 2_000));
    assert_eq!(names(&first), ["SELECT `SLEEP` (?)"]);
    books.count(&long);
    let second = close(&mut books, 3_000, Vec::new());
    assert_eq!((second.start_ns, second.statements, second.active_ns), (2_000, 1, 300));
}

#[test]
fn what_ends_between_the_end_of_an_interval_and_its_closing_is_not_booked_twice() {
    let mut books = books();
    let late = query("SELECT 1", 1_500, 2_100);
    books.begin_closing(2_000);
    books.count(&late);
    let first = books.close(vec![running(&late)], Losses::default());
    assert_eq!((first.statements, first.active_ns), (0, 500));
    let second = close(&mut books, 3_000, Vec::new());
    assert_eq!((second.statements, second.active_ns), (1, 100));
}

#[test]
fn a_nested_statement_is_counted_apart_in_an_interval_of_the_same_end() {
    let mut books = books();
    books.count(&Statement { origin: Origin::Nested, ..query("SELECT 1", 1_000, 1_100) });
    let interval = close(&mut books, 2_000, Vec::new());
    let nested = interval.nested.unwrap();
    assert_eq!((interval.statements, nested.statements, nested.end_ns), (0, 1, 2_000));
}

#[test]
fn a_text_that_was_cut_is_no_digest_of_a_whole_statement() {
    let mut digests = Digests::of(&server(Flavour::Mariadb, "11.4.5-MariaDB"), Grouping::Digest);
    let whole = Text { bytes: b"SELECT a", length: 8 };
    let cut = Text { bytes: b"SELECT a", length: 9 };
    assert_eq!(digests.text_of(whole, None), "SELECT `a`");
    assert_eq!(digests.text_of(cut, None), "SELECT ...");
}

#[test]
fn a_digest_is_told_apart_by_the_database_and_without_a_text_by_the_command() {
    let mut digests = Digests::of(&server(Flavour::Mysql, "5.7.22"), Grouping::Digest);
    let mut of = |command, database: Option<&[u8]>| -> (DigestKey, String) {
        let identity = Identity { database: database.map(<[u8]>::to_vec), ..NOBODY };
        let statement = Statement { command: Some(command), ..Statement::unread(1_000, &identity) };
        let (key, name) = digests.digest(&statement);
        (key, name().text.to_string())
    };
    let (query, name) = of(Command::QUERY, None);
    assert_eq!(name, "(text not captured)");
    assert_eq!(of(Command::DAEMON, None).1, "(Daemon)");
    assert_ne!(query, of(Command::DAEMON, None).0);
    assert_ne!(query, of(Command::QUERY, Some(b"shop")).0);
    assert_eq!(query, of(Command::QUERY, None).0);
}

#[test]
fn a_text_is_read_under_the_settings_of_its_session_also_while_it_runs() {
    let mut books = books();
    let ansi = SessionSettings { sql_mode: 4, charset: CharsetName::new(b"latin1").unwrap() };
    let typed = query(r#"SELECT "a""#, 1_000, 1_100);
    books.count(&Statement { settings: Some(ansi), ..typed });
    books.count(&typed);
    let still = RunningStatement { settings: Some(ansi), ..running(&typed) };
    let interval = close(&mut books, 2_000, vec![still]);
    assert_eq!(names(&interval), ["SELECT ?", "SELECT `a`"]);
}

#[test]
fn fingerprints_take_the_place_of_digests_on_request_and_hold_no_secret() {
    let of_server = server(Flavour::Mysql, "8.0.12");
    let mut books = Books::open(&of_server, Grouping::Fingerprint, 1_000);
    books.count(&query("SELECT a FROM t WHERE id IN (1, 2)", 1_000, 1_100));
    books.count(&query("select a from t where id in (3)", 1_000, 1_100));
    books.count(&query("create user u identified by hunter2", 1_000, 1_100));
    let names = names(&close(&mut books, 2_000, Vec::new()));
    assert!(names.contains(&"select a from t where id in(?+)".to_owned()), "{names:?}");
    assert!(names.len() == 2 && !names.concat().contains("hunter2"), "{names:?}");
}
