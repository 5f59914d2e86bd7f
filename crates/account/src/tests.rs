use waggle_model::{
    BuildKey, CharsetName, Command, DigestKey, Flavour, Identity, Interval, Losses, Origin, Parts,
    Reading, RunningStatement, Server, SessionSettings, Statement, Text, TimeClass,
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
        max_digest_length: Reading::absent("not looked for"),
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

fn close(books: &mut Books, end_ns: u64, running: &[RunningStatement]) -> Interval {
    books.begin_closing(end_ns);
    books.close(&mut running.to_vec(), Losses::default())
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
    assert_eq!(names(&close(&mut books, 2_000, &[])), ["SELECT ?"]);
}

#[test]
fn a_ping_is_not_counted() {
    let mut books = books();
    books.count(&Statement { command: Some(Command(14)), text: None, ..query("", 1_000, 1_100) });
    assert_eq!(close(&mut books, 2_000, &[]).statements, 0);
}

#[test]
fn time_goes_to_every_interval_in_which_a_statement_runs_and_the_count_to_its_end() {
    let mut books = books();
    let long = query("SELECT SLEEP(1)", 1_500, 2_300);
    let first = close(&mut books, 2_000, &[running(&long)]);
    assert_eq!((first.statements, first.active_ns, first.end_ns), (0, 500, 2_000));
    assert_eq!(names(&first), ["SELECT `SLEEP` (?)"]);
    books.count(&long);
    let second = close(&mut books, 3_000, &[]);
    assert_eq!((second.start_ns, second.statements, second.active_ns), (2_000, 1, 300));
}

#[test]
fn what_ends_between_the_end_of_an_interval_and_its_closing_is_not_booked_twice() {
    let mut books = books();
    let late = query("SELECT 1", 1_500, 2_100);
    books.begin_closing(2_000);
    books.count(&late);
    let first = books.close(&mut [running(&late)], Losses::default());
    assert_eq!((first.statements, first.active_ns), (0, 500));
    let second = close(&mut books, 3_000, &[]);
    assert_eq!((second.statements, second.active_ns), (1, 100));
}

#[test]
fn what_runs_at_the_end_has_the_digest_under_which_its_time_is_booked() {
    let mut books = books();
    let late = query("SELECT 1", 1_500, 2_100);
    books.begin_closing(2_000);
    books.count(&late);
    let long = query("UPDATE t SET v = 1 WHERE id = 7", 1_200, 9_000);
    let daemon = RunningStatement { command: Command::DAEMON, ..running(&late) };
    let mut running = [running(&long), running(&late), daemon];
    let interval = books.close(&mut running, Losses::default());
    let name = |one: &RunningStatement| {
        let totals = interval.digests.get(&one.digest?)?;
        Some(totals.name.as_ref()?.text.to_string())
    };
    let update = "UPDATE `t` SET `v` = ? WHERE `id` = ?".to_owned();
    assert_eq!(running.each_ref().map(name), [Some(update), Some("SELECT ?".to_owned()), None]);
}

#[test]
fn a_nested_statement_is_counted_apart_in_an_interval_of_the_same_end() {
    let mut books = books();
    books.count(&Statement { origin: Origin::Nested, ..query("SELECT 1", 1_000, 1_100) });
    let interval = close(&mut books, 2_000, &[]);
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
    let interval = close(&mut books, 2_000, &[still]);
    assert_eq!(names(&interval), ["SELECT ?", "SELECT `a`"]);
}

#[test]
fn fingerprints_take_the_place_of_digests_on_request_and_hold_no_secret() {
    let of_server = server(Flavour::Mysql, "8.0.12");
    let mut books = Books::open(&of_server, Grouping::Fingerprint, 1_000);
    books.count(&query("SELECT a FROM t WHERE id IN (1, 2)", 1_000, 1_100));
    books.count(&query("select a from t where id in (3)", 1_000, 1_100));
    books.count(&query("create user u identified by hunter2", 1_000, 1_100));
    let names = names(&close(&mut books, 2_000, &[]));
    assert!(names.contains(&"select a from t where id in(?+)".to_owned()), "{names:?}");
    assert!(names.len() == 2 && !names.concat().contains("hunter2"), "{names:?}");
}

/// A statement of which only the first `kept` bytes were captured.
fn cut(text: &str, kept: usize) -> Statement<'_> {
    let captured = Text { bytes: &text.as_bytes()[..kept], length: text.len() as u64 };
    Statement { text: Some(captured), ..query(text, 1_000, 1_100) }
}

#[test]
fn a_class_that_is_not_known_is_marked_and_apart_from_whole_ones() {
    let insert = "INSERT INTO t VALUES (1, 2), (3, 4), (5, 6), (7, 8)";
    let select = "SELECT a FROM t WHERE id IN (1, 2, 3, 4, 5) AND b = 1";
    let all = |grouping| {
        let mut books = Books::open(&server(Flavour::Mysql, "8.0.12"), grouping, 1_000);
        for text in [insert, select] {
            books.count(&query(text, 1_000, 1_100));
        }
        for kept in 32..insert.len() {
            books.count(&cut(insert, kept));
        }
        for kept in 34..42 {
            books.count(&cut(select, kept));
        }
        let interval = close(&mut books, 2_000, &[]);
        let names = interval.digests.into_values().filter_map(|totals| totals.name);
        let mut names: Vec<_> = names.map(|name| (name.text.to_string(), name.cut)).collect();
        names.sort();
        names
    };
    let is = |text: &str, cut| (text.to_owned(), cut);
    assert_eq!(
        all(Grouping::Digest),
        [
            is("INSERT INTO `t` VALUES (...) /* , ... */", false),
            is("INSERT INTO `t` VALUES (...) /* , ... */ ...", true),
            is("SELECT `a` FROM `t` WHERE `id` IN (...) ...", true),
            is("SELECT `a` FROM `t` WHERE `id` IN (...) AND `b` = ?", false),
        ]
    );
    assert_eq!(
        all(Grouping::Fingerprint),
        [
            is("insert into t values(?+)", false),
            is("select a from t where id in(?+) ...", true),
            is("select a from t where id in(?+) and b = ?", false),
        ]
    );
}

#[test]
fn digests_are_as_long_as_the_server_keeps_them() {
    let columns: Vec<String> = (0..200).map(|number| format!("column_{number}")).collect();
    let texts = ["a", "b"].map(|end| format!("SELECT {} FROM {end}", columns.join(", ")));
    let digests = |length| {
        let of_server = Server { max_digest_length: length, ..server(Flavour::Mysql, "9.7.4") };
        let mut books = Books::open(&server(Flavour::Mysql, "9.7.4"), Grouping::Digest, 1_000);
        books.follow(&of_server);
        texts.iter().for_each(|text| {
            books.count(&query(text, 1_000, 1_100));
        });
        let interval = close(&mut books, 2_000, &[]);
        assert!(interval.digests.values().flat_map(|it| &it.name).all(|name| !name.cut));
        interval.digests.len()
    };
    assert_eq!(digests(Reading::Value(4096)), 2);
    assert_eq!(digests(Reading::Value(1024)), 1);
    assert_eq!(digests(Reading::Value(256)), 1);
    // No digests on the server, or nothing known: as long as they are by default.
    assert_eq!(digests(Reading::Value(0)), 1);
    assert_eq!(digests(Reading::absent("no such symbol")), 1);
}

#[test]
fn a_secret_is_gone_from_a_sample_though_what_tells_it_stands_behind_the_sample() {
    let mut books = books();
    let text = format!("UPDATE t SET a = 'hunter2', b = '{}', password = 'x'", "b".repeat(2000));
    books.count(&query(&text, 1_000, 1_100));
    let interval = close(&mut books, 2_000, &[]);
    let totals = interval.digests.values().next().unwrap();
    let sample = totals.samples.slowest.as_ref().unwrap();
    let kept = String::from_utf8(sample.text.clone().unwrap()).unwrap();
    assert_eq!(kept, "UPDATE t SET a = '<secret>', b = '<secret>', password = '<secret>'");
    assert_eq!(sample.text_length, kept.len() as u64);
}

/// The same statement with all of its time in one class.
fn spent(class: TimeClass, statement: Statement<'_>) -> Statement<'_> {
    let mut parts = Parts::default();
    parts.add(class, statement.latency_ns.unwrap());
    Statement { parts: Some(parts), ..statement }
}

#[test]
fn where_time_went_is_told_of_the_closing_interval_also_by_what_ends_just_after_it() {
    let mut books = books();
    let late = spent(TimeClass::Sync, query("COMMIT", 1_500, 2_100));
    let longer = query("SELECT SLEEP(1)", 1_900, 9_000);
    books.count(&spent(TimeClass::Cpu, query("SELECT 1", 1_100, 1_200)));
    books.begin_closing(2_000);
    books.count(&late);
    let first = books.close(&mut [running(&late), running(&longer)], Losses::default());
    let load = first.spent.load(false).unwrap();
    assert_eq!((load.get(TimeClass::Cpu), load.get(TimeClass::Sync)), (100, 500));
    assert_eq!(
        first.spent.not_told_ns(first.active_ns, false),
        Some(100),
        "of the one that runs on"
    );
    assert_eq!(first.spent.parts.get().unwrap().total(), 100, "the late one ends in the next");
    let second = close(&mut books, 3_000, &[]);
    assert_eq!(second.spent.parts.get().unwrap().get(TimeClass::Sync), 600);
    assert_eq!(second.spent.load(false).unwrap().total(), 100);
    assert_eq!(second.spent.not_told_ns(second.active_ns, false), Some(0));
}

/// What was told after the replies of a digest, nanoseconds.
fn after_reply(interval: &Interval, text: &str) -> Option<u64> {
    let is_it = |name: &waggle_model::DigestName| &*name.text == text;
    let mut digests = interval.digests.values();
    let digest = digests.find(|totals| totals.name.as_ref().is_some_and(is_it)).unwrap();
    digest.spent.after_reply.get()
}

/// A statement that tells what followed the one before it.
fn telling(ns: u64, statement: Statement<'_>) -> Statement<'_> {
    Statement { after_reply_before_ns: Some(ns), ..statement }
}

#[test]
fn what_follows_a_reply_belongs_to_the_statement_before_it_in_the_same_session() {
    let mut books = books();
    let other = |statement| Statement { thd: 8, connection_id: Some(6), ..statement };
    books.count(&telling(1_000_000, query("COMMIT", 1_000, 1_100)));
    books.count(&other(query("SELECT 1", 1_000, 1_150)));
    books.count(&telling(20, query("ROLLBACK", 1_200, 1_300)));
    books.count(&other(telling(3, query("SELECT 1", 1_400, 1_500))));
    let interval = close(&mut books, 2_000, &[]);
    assert_eq!(after_reply(&interval, "COMMIT"), Some(20));
    assert_eq!(after_reply(&interval, "SELECT ?"), Some(3), "its second call is not told yet");
    assert_eq!(after_reply(&interval, "ROLLBACK"), None);
    // What was before the first is not known: it is in the sum only.
    assert_eq!(interval.spent.after_reply.get(), Some(1_000_023));
}

#[test]
fn what_follows_a_ping_or_another_session_at_the_same_address_is_not_booked_wrongly() {
    let mut books = books();
    books.count(&query("COMMIT", 1_000, 1_100));
    let ping = Statement { command: Some(Command(14)), text: None, ..query("", 1_200, 1_210) };
    books.count(&telling(20, ping));
    books.count(&telling(5, query("SELECT 1", 1_300, 1_400)));
    let nested = Statement { origin: Origin::Nested, ..query("ROLLBACK", 1_310, 1_390) };
    books.count(&nested);
    let newer = Statement { connection_id: Some(99), ..query("SELECT 1", 1_500, 1_600) };
    books.count(&telling(7, newer));
    let interval = close(&mut books, 2_000, &[]);
    assert_eq!(after_reply(&interval, "COMMIT"), Some(20), "the ping tells it");
    assert_eq!(after_reply(&interval, "SELECT ?"), None);
    assert_eq!(interval.spent.after_reply.get(), Some(27), "not what followed the ping");
}

#[test]
fn many_sessions_are_forgotten_together_and_none_is_taken_for_another() {
    let mut books = books();
    let of = |thd| Statement { thd, connection_id: Some(thd), ..query("COMMIT", 1_000, 1_100) };
    for thd in 0..40_000 {
        books.count(&of(thd));
    }
    for thd in 0..40_000 {
        books.count(&telling(1, of(thd)));
    }
    let interval = close(&mut books, 2_000, &[]);
    let spent = &interval.digests.values().next().unwrap().spent.after_reply;
    assert!(spent.statements < 40_000, "some are forgotten: {spent:?}");
    assert_eq!(interval.spent.after_reply.statements, 40_000, "and none is lost from the sum");
}
