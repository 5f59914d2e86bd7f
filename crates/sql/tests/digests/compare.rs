//! The statements of the generator, as a server and as waggle see them.

use std::collections::BTreeMap;
use std::collections::HashSet;

use waggle_sql::Charset;
use waggle_sql::Dialect;
use waggle_sql::Normaliser;
use waggle_sql::SessionSettings;
use waggle_sql::SqlModes;
use waggle_testkit::Server;
use waggle_testkit::Version;

use crate::classes::Classes;
use crate::expand;
use crate::random::Random;
use crate::server::Oracle;
use crate::server::Reply;
use crate::template::Grammar;

const SEED: u64 = 0x77a9_91e5_0d16_e575;
/// Of those that the server parses.
const STATEMENTS_MIN: usize = 50_000;
const TEXTS_MIN: usize = 5_000;
/// Statements over which the server may end: defects of STATEMENT_DIGEST_TEXT().
const ENDS_MAX: u32 = 20;
/// Per hundred thousand.
const EQUAL_MIN: usize = 99_900;

/// A statement and the session that it belongs to.
struct Case {
    /// Number of its template.
    template: usize,
    settings: SessionSettings,
    statement: Vec<u8>,
}

/// Sessions and how many statements of each template they have.
fn sessions() -> Vec<(SessionSettings, usize)> {
    let default = SessionSettings::default();
    let mode = |modes| SessionSettings { modes, ..default };
    let mut sessions = vec![(default, 70)];
    for modes in [
        SqlModes::ANSI_QUOTES,
        SqlModes::NO_BACKSLASH_ESCAPES,
        SqlModes::PIPES_AS_CONCAT,
        SqlModes::IGNORE_SPACE,
        SqlModes::HIGH_NOT_PRECEDENCE,
        SqlModes::ANSI,
        SqlModes::ANSI.with(SqlModes::NO_BACKSLASH_ESCAPES).with(SqlModes::HIGH_NOT_PRECEDENCE),
    ] {
        sessions.push((mode(modes), 10));
    }
    for charset in Charset::all() {
        sessions.push((SessionSettings { charset, ..default }, 2));
    }
    for name in ["gbk", "sjis", "big5", "gb18030", "cp932"] {
        let charset = Charset::from_name(name).unwrap();
        let modes = SqlModes::ANSI_QUOTES.with(SqlModes::NO_BACKSLASH_ESCAPES);
        sessions.push((SessionSettings { charset, modes: SqlModes::default() }, 4));
        sessions.push((SessionSettings { charset, modes }, 2));
    }
    sessions
}

fn cases(grammar: &Grammar) -> Vec<Case> {
    let seed = std::env::var("DIGESTS_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = Random::new(seed.unwrap_or(SEED));
    let mut cases = Vec::new();
    for (settings, count) in sessions() {
        for (number, (_, template)) in grammar.statements.iter().enumerate() {
            for _ in 0..count {
                let statement = expand::statement(grammar, template, settings, &mut random);
                cases.push(Case { template: number, settings, statement });
            }
        }
    }
    cases
}

#[test]
fn digests_and_their_classes_are_those_of_mysql_9() {
    let mut server = Server::start(Version::Mysql9).unwrap();
    let grammar = Grammar::read();
    let mut normaliser = Normaliser::new(Dialect::Mysql9);
    let mut classes = Classes::default();
    let (mut equal, mut different, mut ends) = (0, Vec::new(), 0);
    let mut texts = HashSet::new();
    let mut accepted = vec![0_usize; grammar.statements.len()];
    let mut refusals: BTreeMap<usize, (usize, String)> = BTreeMap::new();
    let mut oracle: Option<(SessionSettings, Oracle)> = None;
    for case in cases(&grammar) {
        if oracle.as_ref().is_none_or(|(settings, _)| *settings != case.settings) {
            oracle = Some((case.settings, Oracle::open(&server, case.settings)));
        }
        let answer = match oracle.as_mut().unwrap().1.ask(&case.statement) {
            Reply::Answer(answer) => answer,
            Reply::Refused(error) => {
                let text = String::from_utf8_lossy(&case.statement).into_owned();
                let refused = refusals.entry(case.template).or_default();
                refused.0 += 1;
                refused.1 = format!("{error}\n      {text}");
                continue;
            }
            Reply::Lost => {
                println!("ends the server: {}", String::from_utf8_lossy(&case.statement));
                ends += 1;
                assert!(ends <= ENDS_MAX, "the server ended {ends} times");
                oracle = None;
                let _ = server.kill9();
                server.restart().unwrap();
                continue;
            }
        };
        accepted[case.template] += 1;
        let digest = normaliser.digest_in(&case.statement, case.settings);
        classes.add(&answer.hash, digest.hash, &case.statement);
        texts.insert(answer.text.clone());
        if digest.text.as_bytes() == answer.text {
            equal += 1;
        } else {
            different.push(format!(
                "{:?}\n  statement {}\n  server    {}\n  waggle    {}",
                case.settings,
                String::from_utf8_lossy(&case.statement),
                String::from_utf8_lossy(&answer.text),
                digest.text
            ));
        }
    }
    let total = equal + different.len();
    println!(
        "{total} statements, {} distinct digest texts, {} different",
        texts.len(),
        different.len()
    );
    println!("{}", classes.summary());
    if let Ok(path) = std::env::var("DIGESTS_REPORT") {
        let mut report = different.join("\n");
        report += "\n\nREFUSALS\n";
        for (template, (count, last)) in &refusals {
            report += &format!(
                "{:6} of {:6}  {}\n      {last}\n",
                count,
                count + accepted[*template],
                grammar.statements[*template].0
            );
        }
        report += &classes.report();
        std::fs::write(path, report).unwrap();
    }
    for (number, (line, _)) in grammar.statements.iter().enumerate() {
        if accepted[number] == 0 {
            println!("never accepted: {line}\n   {:?}", refusals.get(&number));
        }
    }
    for text in different.iter().take(20) {
        println!("{text}");
    }
    assert!(total >= STATEMENTS_MIN && texts.len() >= TEXTS_MIN);
    assert!(equal * 100_000 >= total * EQUAL_MIN);
    assert!(classes.agree(), "{}", classes.report());
}
