//! Every server against its own digests.

use waggle_sql::Charset;
use waggle_sql::Dialect;
use waggle_sql::SessionSettings;
use waggle_testkit::Server;
use waggle_testkit::Version;

use crate::compare::Tally;
use crate::compare::cases;
use crate::compare::sessions;
use crate::history;
use crate::history::History;
use crate::server::Oracle;
use crate::server::Reply;
use crate::template::Grammar;

/// Statements that a server must have parsed.
const STATEMENTS_MIN: usize = 50_000;
const STATEMENTS_MIN_OLDER: usize = 3_000;
/// Digest texts among them.
const TEXTS_MIN: usize = 5_000;
/// Equal digests in a hundred thousand.
const EQUAL_MIN: usize = 99_900;

/// By STATEMENT_DIGEST_TEXT(). A server that ends is started again.
fn ask_function(version: Version, dialect: Dialect, counts: [usize; 3]) -> (Grammar, Tally) {
    let mut server = Server::start(version).unwrap();
    let grammar = Grammar::read();
    let mut tally = Tally::new(dialect, &grammar);
    // STATEMENT_DIGEST_TEXT() does not take `binary`.
    let charsets = Charset::all().filter(|it| it.name() != "binary");
    let mut oracle: Option<(SessionSettings, Oracle)> = None;
    for case in cases(&grammar, &sessions(counts, charsets), |_| true) {
        if oracle.as_ref().is_none_or(|(settings, _)| *settings != case.settings) {
            oracle = Some((case.settings, Oracle::open(&server, case.settings)));
        }
        // The function of 8.0.12 counts a semicolon at the end; sent as a statement, it is cut off.
        let cut =
            if version == Version::Mysql80 { case.statement.strip_suffix(b";") } else { None };
        let reply = oracle.as_mut().unwrap().1.ask(cut.unwrap_or(&case.statement));
        if matches!(reply, Reply::Lost) {
            oracle = None;
            // It is gone: what matters is that nothing of it is left.
            let _ = server.kill9();
            server.restart().unwrap();
        }
        tally.add(&case, reply);
    }
    tally.print(version.name());
    (grammar, tally)
}

/// By the rows of Performance Schema. A server that ends is started again.
fn ask_history(version: Version, dialect: Dialect) -> Tally {
    let mut server = history::start(version);
    let grammar = Grammar::read();
    let mut tally = Tally::new(dialect, &grammar);
    let charsets = ["latin1", "gbk", "sjis", "utf8", "binary"];
    let charsets = charsets.into_iter().filter_map(Charset::from_name);
    let mut session: Option<(SessionSettings, History)> = None;
    for case in cases(&grammar, &sessions([12, 2, 2], charsets), history::is_safe) {
        if session.as_ref().is_none_or(|(settings, _)| *settings != case.settings) {
            session = Some((case.settings, History::open(&server, case.settings)));
        }
        let reply = session.as_mut().unwrap().1.ask(&server, &case.statement);
        if matches!(reply, Reply::Lost) {
            session = None;
            let _ = server.kill9();
            server.restart().unwrap();
        }
        tally.add(&case, reply);
    }
    tally.print(version.name());
    tally
}

fn check(tally: &Tally, statements: usize) {
    assert!(tally.total() >= statements, "only {} statements", tally.total());
    assert!(tally.share() >= EQUAL_MIN, "only {} in 100,000 are equal", tally.share());
    assert!(tally.classes.agree(), "{}", tally.classes.report());
}

#[test]
fn digests_and_their_classes_are_those_of_mysql_9() {
    let (grammar, tally) = ask_function(Version::Mysql9, Dialect::Mysql9, [70, 10, 3]);
    let never = tally.never_accepted(&grammar);
    assert!(never.is_empty(), "no statement of a template is one:\n{}", never.join("\n"));
    assert!(tally.texts.len() >= TEXTS_MIN, "only {} texts", tally.texts.len());
    check(&tally, STATEMENTS_MIN);
}

#[test]
fn digests_and_their_classes_are_those_of_mysql_8_0() {
    let (_, tally) = ask_function(Version::Mysql80, Dialect::Mysql80, [12, 2, 1]);
    check(&tally, STATEMENTS_MIN_OLDER);
}

#[test]
fn digests_and_their_classes_are_those_of_mysql_5_7() {
    check(&ask_history(Version::Mysql57, Dialect::Mysql57), STATEMENTS_MIN_OLDER);
}

#[test]
fn digests_and_their_classes_are_those_of_mariadb_10_11() {
    check(&ask_history(Version::Mariadb1011, Dialect::Mariadb), STATEMENTS_MIN_OLDER);
}

#[test]
fn digests_and_their_classes_are_those_of_mariadb_11_4() {
    check(&ask_history(Version::Mariadb114, Dialect::Mariadb11), STATEMENTS_MIN_OLDER);
}
