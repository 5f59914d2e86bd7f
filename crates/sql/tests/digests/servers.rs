//! Every server against its own digests.

use waggle_sql::{Charset, Dialect, SessionSettings};
use waggle_testkit::{Server, Version};

use crate::compare::{Case, Tally, cases, sessions};
use crate::history;
use crate::history::History;
use crate::server::{Oracle, Reply};
use crate::template::Grammar;

/// Statements that a server must have parsed.
const STATEMENTS_MIN: usize = 50_000;
const STATEMENTS_MIN_OLDER: usize = 3_000;
const STATEMENTS_MIN_SHORT: usize = 500;
/// Statements by each template: of the default, of each mode, of each character set.
const OLDER: [usize; 3] = [12, 2, 2];
/// Digest texts among them.
const TEXTS_MIN: usize = 5_000;
/// Equal digests in a hundred thousand.
const EQUAL_MIN: usize = 99_900;

/// Asks a server for the digest of every case, in a session with the settings of the case. A server that ends is
/// started again.
fn ask<S>(
    server: &mut Server,
    grammar: &Grammar,
    dialect: Dialect,
    cases: &[Case],
    open: impl Fn(&Server, SessionSettings) -> S,
    question: impl Fn(&mut S, &Server, &[u8]) -> Reply,
) -> Tally {
    let mut tally = Tally::new(dialect, grammar);
    let mut session: Option<(SessionSettings, S)> = None;
    for case in cases {
        if session.as_ref().is_none_or(|(settings, _)| *settings != case.settings) {
            session = Some((case.settings, open(server, case.settings)));
        }
        let reply = question(&mut session.as_mut().unwrap().1, server, &case.statement);
        if matches!(reply, Reply::Lost) {
            session = None;
            // It is gone: what matters is that nothing of it is left.
            let _ = server.kill9();
            server.restart().unwrap();
        }
        tally.add(case, reply);
    }
    tally.print(server.version().name());
    tally
}

/// By STATEMENT_DIGEST_TEXT().
fn ask_function(version: Version, dialect: Dialect, counts: [usize; 3]) -> (Grammar, Tally) {
    let grammar = Grammar::read();
    // STATEMENT_DIGEST_TEXT() does not take `binary`.
    let charsets = Charset::all().filter(|it| it.name() != "binary");
    let cases = cases(&grammar, &sessions(counts, charsets), |_| true);
    let question = |oracle: &mut Oracle, _: &Server, statement: &[u8]| {
        // The function of 8.0.12 counts a semicolon at the end; sent as a statement, it is cut off.
        let cut = if version == Version::Mysql80 { statement.strip_suffix(b";") } else { None };
        oracle.ask(cut.unwrap_or(statement))
    };
    let mut server = Server::start(version).unwrap();
    let tally = ask(&mut server, &grammar, dialect, &cases, Oracle::open, question);
    (grammar, tally)
}

/// By the rows of Performance Schema.
fn ask_history(version: Version, dialect: Dialect, counts: [usize; 3]) -> Tally {
    let grammar = Grammar::read();
    let charsets = ["latin1", "gbk", "sjis", "utf8", "binary"];
    let charsets = charsets.into_iter().filter_map(Charset::from_name);
    let cases = cases(&grammar, &sessions(counts, charsets), history::is_safe);
    let mut server = history::start(version);
    ask(&mut server, &grammar, dialect, &cases, History::open, History::ask)
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
    check(&ask_history(Version::Mysql57, Dialect::Mysql57, OLDER), STATEMENTS_MIN_OLDER);
}

#[test]
fn digests_and_their_classes_are_those_of_mariadb_10_11() {
    check(&ask_history(Version::Mariadb1011, Dialect::Mariadb, OLDER), STATEMENTS_MIN_OLDER);
}

#[test]
fn digests_and_their_classes_are_those_of_mariadb_11_4() {
    check(&ask_history(Version::Mariadb114, Dialect::Mariadb11, OLDER), STATEMENTS_MIN_OLDER);
}

/// The short form: beside some words, the rules are those of 11.4.
#[test]
fn digests_and_their_classes_are_those_of_mariadb_11_8() {
    check(&ask_history(Version::Mariadb118, Dialect::Mariadb118, [2, 1, 1]), STATEMENTS_MIN_SHORT);
}
