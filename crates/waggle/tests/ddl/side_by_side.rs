//! The tap and Performance Schema beside each other.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use waggle_sql::DdlKind;
use waggle_testkit::client::Client;
use waggle_testkit::{Account, Server, Version, on_each_server};

use super::everything::{
    PASSWORD, STATEMENTS, Script, WITHOUT_TEXT, Way, is_without_text, is_written_anew,
    may_lack_its_text, scripts,
};
use super::{Audit, PFS, TAP, missing, session, session_of, start, statements, text};

/// One for each session.
const USERS: [&str; 8] = ["ddl_0", "ddl_1", "ddl_2", "ddl_3", "ddl_4", "ddl_5", "ddl_6", "ddl_7"];
/// Bytes of a text that every server keeps.
const TEXT_LIMIT: usize = 1024;
/// Times of the two sources are the same where they differ by no more than one of these.
const CLOSE_US: f64 = 1000.0;
const CLOSE: f64 = 0.05;
/// Statements that may be further apart in every round.
///
/// What is known about why: the tap ends at the last byte of the reply, and the timer of Performance
/// Schema runs on through clean-up. Somebody else can take the processor from the session in between, and
/// does where eight sessions, the server and two audits share two processors: then Performance Schema has
/// the longer time, by what a thread waits for its turn. Which statements that are differs from round to
/// round, and with how busy the host is.
const APART_MAX: usize = STATEMENTS / 50;
/// Rounds that are made where more are apart.
const ROUNDS: usize = 3;

/// Between two statements of a session, as where people and migrations make changes: sessions that
/// never rest take the processors from each other just where a statement ends.
const REST: Duration = Duration::from_millis(100);

/// A statement that is to be listed, and what the server told its client.
struct Ran {
    way: Way,
    statement: String,
    /// The error number; 0 for none.
    error: u16,
}

fn run(client: &mut Client, script: &Script) -> Vec<Ran> {
    let mut ran = Vec::new();
    for (number, (way, statement)) in script.iter().enumerate() {
        thread::sleep(REST);
        let mut error = 0;
        match way {
            Way::Text => {
                let results = client.query(statement).unwrap();
                error = results.into_iter().find_map(|it| it.error).map_or(0, |(code, _)| code);
            }
            Way::Prepared => {
                client.run(format!("PREPARE s{number} FROM '{statement}'")).unwrap();
                client.run(format!("EXECUTE s{number}")).unwrap();
            }
            Way::FromVariable => {
                client.run(format!("SET @statement = '{statement}'")).unwrap();
                client.run(format!("PREPARE s{number} FROM @statement")).unwrap();
                client.run(format!("EXECUTE s{number}")).unwrap();
            }
            Way::Procedure => {
                let name = format!("test.p{}_{number}", client.connection_id());
                let create = format!("CREATE PROCEDURE {name}() {statement}");
                client.run(&create).unwrap();
                ran.push(Ran { way: Way::Text, statement: create, error: 0 });
                client.run(format!("CALL {name}()")).unwrap();
            }
        }
        ran.push(Ran { way: *way, statement: statement.clone(), error });
    }
    ran
}

/// Gives the sessions, and what each has run.
fn run_everything(server: &Server) -> (Vec<Client>, Vec<Vec<Ran>>) {
    let sessions: Vec<_> = scripts(server.version())
        .into_iter()
        .zip(USERS)
        .map(|(script, user)| {
            let mut client = session_of(server, Account { user, password: "" });
            thread::spawn(move || {
                let ran = run(&mut client, &script);
                (client, ran)
            })
        })
        .collect();
    // Prepared statements are there as long as their session.
    sessions.into_iter().map(|session| session.join().unwrap()).unzip()
}

/// The statements of each user, in the order in which they were listed.
fn by_user(lines: &[Value]) -> BTreeMap<&str, Vec<&Value>> {
    let mut users: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for line in statements(lines) {
        users.entry(text(line, "user")).or_default().push(line);
    }
    users
}

/// Whether the tap lists what the client has run, once, in its order, with its result.
fn assert_is_what_ran(version: Version, ran: &[Ran], listed: &[&Value]) {
    assert_eq!(ran.len(), listed.len(), "{version}: {listed:#?}");
    for (ran, line) in ran.iter().zip(listed) {
        let expected = ran.statement.replace(PASSWORD, "<secret>");
        assert_eq!(bare(&expected), bare(text(line, "text")), "{version}: {line:#}");
        assert_eq!(line["error"], ran.error, "{version}: {line:#}");
    }
}

/// A text without blanks and quotes.
fn bare(text: &str) -> String {
    let is_written = |letter: &char| !letter.is_whitespace() && !matches!(letter, '\'' | '`');
    text.chars().filter(is_written).collect()
}

fn assert_same(version: Version, tap: &Value, pfs: &Value) {
    let lacks_its_text = pfs["text"].is_null() && may_lack_its_text(version, text(tap, "kind"));
    let keys = ["kind", "user", "host", "connection_id", "error", "nested", "temporary", "objects"];
    for key in &keys[..keys.len() - usize::from(lacks_its_text)] {
        assert_eq!(tap[key], pfs[key], "{version} {key}\n{tap:#}\n{pfs:#}");
    }
    if lacks_its_text {
        return;
    }
    let (whole, kept) = (text(tap, "text"), text(pfs, "text"));
    if is_written_anew(version, text(tap, "kind")) {
        return assert_same_as_written_anew(version, whole, kept);
    }
    match pfs["text_bytes"].as_u64() {
        Some(_) => assert_eq!(whole, kept, "{version}"),
        None => {
            assert!(kept.len() <= TEXT_LIMIT && kept.len() > TEXT_LIMIT - 40, "{version}: {kept}");
            assert!(whole.starts_with(kept), "{version}\n{whole}\n{kept}");
        }
    }
}

/// MySQL sets quotes and blanks in its own way, and writes how an account is identified with what it has by
/// default: `IDENTIFIED BY '…'` becomes `IDENTIFIED WITH '…' AS '…' PASSWORD HISTORY DEFAULT …`, in each
/// version another; what stands behind the `=` of a `SET PASSWORD` is the secret. All else is the same, and
/// the password is masked in both.
fn assert_same_as_written_anew(version: Version, whole: &str, kept: &str) {
    let (ours, theirs) = (bare(whole), bare(kept));
    let Some((account, identified)) = ours.split_once("IDENTIFIED") else {
        let before_secret = |text: &str| text.split('=').next().map(str::to_owned);
        assert_eq!(before_secret(&ours), before_secret(&theirs), "{version}\n{whole}\n{kept}");
        return;
    };
    let (their_account, their_identified) = theirs
        .split_once("IDENTIFIED")
        .unwrap_or_else(|| panic!("{version}: no IDENTIFIED\n{whole}\n{kept}"));
    assert_eq!(account, their_account, "{version}\n{whole}\n{kept}");
    assert_eq!(identified, "BY<secret>", "{version}\n{whole}\n{kept}");
    assert!(their_identified.contains("<secret>"), "{version}\n{whole}\n{kept}");
}

fn is_close(tap: &Value, pfs: &Value) -> bool {
    let us = |line: &Value| line["duration_us"].as_f64().unwrap();
    let apart = (us(tap) - us(pfs)).abs();
    apart <= CLOSE_US || apart <= CLOSE * us(pfs)
}

/// Statements that lie further apart in time, by user and place among those of the user: the kind, and both
/// times, µs.
type Apart = BTreeMap<(&'static str, usize), (String, f64, f64)>;

/// Whatever else runs on the host takes the processor from a session at times, from one statement in this
/// round and from another in the next: what is apart in every round is so by our fault. Everything else
/// has to be the same in each.
fn both_tell_the_same_times(version: Version) {
    let mut apart = list_by_both(version);
    for _ in 1..ROUNDS {
        if apart.len() <= APART_MAX {
            break;
        }
        let again = list_by_both(version);
        apart.retain(|place, _| again.contains_key(place));
    }
    assert!(apart.len() <= APART_MAX, "{version}: apart in each of {ROUNDS} rounds: {apart:?}");
}

fn both_list_everything(version: Version) {
    list_by_both(version);
}

/// Gives what is further apart in time.
fn list_by_both(version: Version) -> Apart {
    let server = start(version);
    let mut admin = session(&server);
    assert_every_instrument_has_a_kind(version, &mut admin);
    admin.run("CREATE TABLE test.shared (a INT)").unwrap();
    for user in USERS {
        admin.run(format!("CREATE USER {user}@localhost")).unwrap();
        admin.run(format!("GRANT ALL ON *.* TO {user}@localhost WITH GRANT OPTION")).unwrap();
    }
    let options = ["--nested", "--no-redact", "--text-limit", "8192"];
    let mut tap = Audit::tail(&server, TAP, &options);
    let mut pfs = Audit::tail(&server, PFS, &options[..2]);
    let (sessions, ran) = run_everything(&server);
    let without_text = if is_without_text(version, "test.literal_") { WITHOUT_TEXT } else { 0 };
    tap.wait_for_statements(STATEMENTS);
    pfs.wait_for_statements(STATEMENTS - without_text);
    drop(sessions);
    let (tap, pfs) = (tap.end(), pfs.end());
    assert_eq!((missing(&tap), missing(&pfs)), (0, without_text as u64), "{version}");
    let (tap, pfs) = (by_user(&tap), by_user(&pfs));
    for (user, ran) in USERS.into_iter().zip(&ran) {
        assert_is_what_ran(version, ran, &tap[user]);
    }
    assert_mix(version, &ran, &tap);
    let count = |users: &BTreeMap<&str, Vec<&Value>>| users.values().map(Vec::len).sum::<usize>();
    assert_eq!((count(&tap), count(&pfs)), (STATEMENTS, STATEMENTS - without_text), "{version}");
    let apart = compare(version, &tap, &pfs);
    println!("{version}: {} of {STATEMENTS} apart in time: {apart:?}", apart.len());
    apart
}

/// Every line of the one source beside that of the other; gives what is further apart in time.
fn compare(
    version: Version,
    tap: &BTreeMap<&str, Vec<&Value>>,
    pfs: &BTreeMap<&str, Vec<&Value>>,
) -> Apart {
    let mut apart = Apart::new();
    for user in USERS {
        let with_text =
            tap[user].iter().filter(|line| !is_without_text(version, text(line, "text")));
        for (place, (tap, pfs)) in with_text.zip(&pfs[user]).enumerate() {
            assert_same(version, tap, pfs);
            if !is_close(tap, pfs) {
                let us = |line: &Value| line["duration_us"].as_f64().unwrap();
                let times = (text(tap, "kind").to_owned(), us(tap), us(pfs));
                apart.insert((user, place), times);
            }
        }
    }
    apart
}

/// Whether all that was promised is among what ran.
fn assert_mix(version: Version, ran: &[Vec<Ran>], tap: &BTreeMap<&str, Vec<&Value>>) {
    let lines: Vec<&Value> = tap.values().flatten().copied().collect();
    let is_prepared = |ran: &&Ran| matches!(ran.way, Way::Prepared | Way::FromVariable);
    let prepared = ran.iter().flatten().filter(is_prepared).count();
    let nested = lines.iter().filter(|line| line["nested"] == true).count();
    let is_long = |line: &&&Value| line["text_bytes"].as_u64().unwrap() > TEXT_LIMIT as u64;
    let long = lines.iter().filter(is_long).count();
    assert_eq!((prepared, nested, long), (20, 20, 5), "{version}: prepared, nested, long");
    let failed = lines.iter().filter(|line| line["error"] != 0).count();
    assert!(failed >= 20, "{version}: {failed} failed");
    for kind in ["create_user", "alter_user", "rename_user", "drop_user", "grant", "revoke"] {
        let done = lines.iter().any(|line| text(line, "kind") == kind && line["error"] == 0);
        assert!(done, "{version}: no {kind}");
    }
}

/// Performance Schema lists a statement whose text is not known by the kind of its instrument.
fn assert_every_instrument_has_a_kind(version: Version, admin: &mut Client) {
    let results = admin.run("SELECT NAME FROM performance_schema.setup_instruments").unwrap();
    let names = (0..results[0].rows.len()).map(|row| results[0].text(row, 0).unwrap());
    let verbs = ["create", "alter", "drop", "rename", "truncate", "grant", "revoke"];
    let defines = |name: &String| {
        let name = name.strip_prefix("statement/sql/");
        name.is_some_and(|name| verbs.iter().any(|verb| name.starts_with(verb)))
    };
    let (known, unknown): (Vec<String>, Vec<String>) =
        names.filter(defines).partition(|name| DdlKind::of_instrument(name).is_some());
    assert!(unknown.is_empty() && !known.is_empty(), "{version}: {unknown:?} of {known:?}");
}

on_each_server!(both_list_everything);
on_each_server!(both_tell_the_same_times);
