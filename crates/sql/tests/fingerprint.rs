//! Fingerprints against those of the real `pt-query-digest`.
#![cfg(test)]

#[path = "corpus/escape.rs"]
mod escape;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use escape::unescape;
use proptest::prelude::*;
use waggle_sql::{Fingerprinter, QueryId};

const TOOL: &str = "/usr/bin/pt-query-digest";
/// Statements of the digests, one a line before the first tab.
const DIGESTS: &str = include_str!("corpus/digests.tsv");
/// Statements for what fingerprints alone care about.
const FINGERPRINTS: &str = include_str!("corpus/fingerprints.txt");
/// The largest share of the corpus that may differ, each for a known reason.
const SHARE_MAX: f64 = 0.03;

fn corpus() -> Vec<&'static str> {
    let digests = DIGESTS.lines().filter_map(|line| line.split('\t').next());
    digests.chain(FINGERPRINTS.lines()).filter(|line| !line.starts_with("# ")).collect()
}

/// What the tool makes of escaped statements, one for each.
fn by_the_tool(statements: &[&str]) -> Vec<String> {
    assert!(
        Path::new(TOOL).exists(),
        "{TOOL} is missing; `cargo xtask setup` installs it (on Debian: percona-toolkit)"
    );
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pt-query-digest.pl");
    let mut perl = Command::new("perl")
        .arg(driver)
        .arg(TOOL)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("perl: install it");
    let mut input = perl.stdin.take().unwrap();
    let lines = statements.join("\n") + "\n";
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = perl.wait_with_output().unwrap();
    writer.join().unwrap().expect("the tool reads every statement");
    assert!(output.status.success(), "{TOOL} ended with {}", output.status);
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    lines.lines().map(|line| String::from_utf8_lossy(&unescape(line)).into_owned()).collect()
}

/// Why the tool's answer differs from ours, where that is known.
fn reason(statement: &str) -> Option<&'static str> {
    let sql = String::from_utf8_lossy(&unescape(statement)).into_owned();
    let has = |marks: &[&str]| marks.iter().any(|mark| sql.contains(mark));
    let quotes = sql.matches(['\'', '"']).count();
    let reasons = [
        (
            has(&["''", "\"\"", "\\"]),
            "there a doubled quote is two strings, and `\\\\'` escapes the quote",
        ),
        (quotes % 2 == 1, "a string without its end stays as it is there, with what it holds"),
        (quotes > 0 && has(&["\"b'", "\"b\"'"]), "`\"` inside `'` begins a string there"),
        (quotes > 0 && has(&["/*", "-- ", "#"]), "a comment mark in a string counts there"),
        (has(&["--"]), "`--` begins a comment there without a blank behind it"),
        (has(&["/*"]) && !has(&["*/"]), "a comment without its end stays there"),
    ];
    reasons.into_iter().find_map(|(is_so, reason)| is_so.then_some(reason))
}

#[test]
fn fingerprints_are_those_of_pt_query_digest() {
    let corpus = corpus();
    let theirs = by_the_tool(&corpus);
    assert_eq!(theirs.len(), corpus.len(), "one answer for each statement");
    let mut fingerprinter = Fingerprinter::new();
    let (mut explained, mut unexplained) = (Vec::new(), Vec::new());
    for (statement, theirs) in corpus.iter().zip(&theirs) {
        let ours = fingerprinter.fingerprint(&unescape(statement));
        if ours == theirs {
            continue;
        }
        let both = format!("{statement}\n  tool {theirs}\n  here {ours}");
        match reason(statement) {
            Some(reason) => explained.push(format!("{both}\n  {reason}")),
            None => unexplained.push(both),
        }
    }
    let share = explained.len() as f64 / corpus.len() as f64;
    println!(
        "{} statements, {} differ for a known reason ({:.2} %):\n{}",
        corpus.len(),
        explained.len(),
        100.0 * share,
        explained.join("\n")
    );
    assert!(corpus.len() > 1000, "only {} statements", corpus.len());
    assert!(unexplained.is_empty(), "{} differ:\n{}", unexplained.len(), unexplained.join("\n"));
    assert!(share <= SHARE_MAX, "{share} of the corpus differ");
}

#[test]
fn an_identifier_is_that_of_a_report() {
    // The report of pt-query-digest 3.2.1 on a log with one `select c from sbtest1 where id=5`.
    let mut fingerprinter = Fingerprinter::new();
    let id = QueryId::of(fingerprinter.fingerprint(b"select c from sbtest1 where id=5"));
    assert_eq!(id.to_string(), "0xE81D0B3DB4FB31BC558CAEF5F387E929");
    assert_eq!(id.short(), "0x558CAEF5F387E929");
}

#[test]
fn broken_utf8_is_replaced() {
    let mut fingerprinter = Fingerprinter::new();
    assert_eq!(
        fingerprinter.fingerprint(b"SELECT \xff\xfe FROM t1"),
        "select \u{fffd}\u{fffd} from t?"
    );
}

proptest! {
    #[test]
    fn no_value_is_seen(
        number in 1_000_000_u32..,
        text in "[ghijk]{8,20}",
        quote in "['\"]",
        cut in 0..30_usize,
    ) {
        let sql = format!("select a from t where b = {number} and c in ({quote}{text}{quote}, {number})");
        let part = &sql.as_bytes()[..sql.len() - cut];
        let mut fingerprinter = Fingerprinter::new();
        let fingerprint = fingerprinter.fingerprint(part);
        prop_assert!(!fingerprint.contains(&text[..2]) && !fingerprint.contains(char::is_numeric));
    }
}

#[test]
fn a_cut_text_has_the_fingerprint_of_the_whole_or_is_marked() {
    let mut fingerprinter = Fingerprinter::new();
    let settings = waggle_sql::SessionSettings::default();
    for (sql, is) in [
        ("insert into t (a) values (1, 'x'), (2, 'hal", ("insert into t (a) values(?+)", true)),
        ("call p('hal", ("call p", true)),
        ("select a from t where b = 'hal", ("select a from t where b = ...", false)),
        ("select a from t where b = 1 and na", ("select a from t where b = ? and ...", false)),
        ("select a from t where id in (1, 2, 3", ("select a from t where id in(?+) ...", false)),
        ("select a from t where id in (11, 22, ", ("select a from t where id in(?+) ...", false)),
    ] {
        let (text, is_whole) = fingerprinter.fingerprint_cut_in(sql.as_bytes(), settings);
        assert_eq!((text, is_whole), is, "{sql}");
    }
}
