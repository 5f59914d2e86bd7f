//! The tap and Performance Schema beside each other.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use waggle_testkit::client::Client;
use waggle_testkit::{Account, Server, Version};

use super::everything::{
    STATEMENTS, Script, WITHOUT_TEXT, Way, is_without_text, is_written_anew, scripts,
};
use super::{Audit, PFS, TAP, missing, session, session_of, start, statements, text};

/// One for each session.
const USERS: [&str; 8] = ["ddl_0", "ddl_1", "ddl_2", "ddl_3", "ddl_4", "ddl_5", "ddl_6", "ddl_7"];
/// Bytes of a text that every server keeps.
const TEXT_LIMIT: usize = 1024;
/// Times of the two sources are the same where they differ by no more than one of these.
const CLOSE_US: f64 = 1000.0;
const CLOSE: f64 = 0.05;
/// Performance Schema's timer runs on through clean-up, and somebody else can take the processor from
/// the session then: of eight sessions on two processors so many may be longer there.
const APART_MAX: usize = STATEMENTS / 50;
/// Rounds that are made where more are apart.
const ROUNDS: usize = 3;

/// Between two statements of a session, as where people and migrations make changes: sessions that
/// never rest take the processors from each other just where a statement ends.
const REST: Duration = Duration::from_millis(100);

fn run(client: &mut Client, script: &Script) {
    for (number, (way, statement)) in script.iter().enumerate() {
        thread::sleep(REST);
        match way {
            Way::Text => {
                client.query(statement).unwrap();
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
                client.run(format!("CREATE PROCEDURE {name}() {statement}")).unwrap();
                client.run(format!("CALL {name}()")).unwrap();
            }
        }
    }
}

fn run_everything(server: &Server) -> Vec<Client> {
    let sessions: Vec<_> = scripts()
        .into_iter()
        .zip(USERS)
        .map(|(script, user)| {
            let mut client = session_of(server, Account { user, password: "" });
            thread::spawn(move || {
                run(&mut client, &script);
                client
            })
        })
        .collect();
    // Prepared statements are there as long as their session.
    sessions.into_iter().map(|session| session.join().unwrap()).collect()
}

/// The statements of each user, in the order in which they were listed.
fn by_user(lines: &[Value]) -> BTreeMap<&str, Vec<&Value>> {
    let mut users: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for line in statements(lines) {
        users.entry(text(line, "user")).or_default().push(line);
    }
    users
}

fn assert_same(version: Version, tap: &Value, pfs: &Value) {
    let keys = ["kind", "objects", "user", "host", "connection_id", "error", "nested", "temporary"];
    for key in keys {
        assert_eq!(tap[key], pfs[key], "{version} {key}\n{tap:#}\n{pfs:#}");
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
/// version another. All else is the same, and the password is masked in both.
fn assert_same_as_written_anew(version: Version, whole: &str, kept: &str) {
    let is_written = |letter: &char| !letter.is_whitespace() && !matches!(letter, '\'' | '`');
    let bare = |text: &str| text.chars().filter(is_written).collect::<String>();
    let (ours, theirs) = (bare(whole), bare(kept));
    let Some((account, identified)) = ours.split_once("IDENTIFIED") else {
        assert_eq!(ours, theirs, "{version}\n{whole}\n{kept}");
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
fn both_list_everything(version: Version) {
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

/// Gives what is further apart in time.
fn list_by_both(version: Version) -> Apart {
    let server = start(version);
    let mut admin = session(&server);
    admin.run("CREATE TABLE test.shared (a INT)").unwrap();
    for user in USERS {
        admin.run(format!("CREATE USER {user}@localhost")).unwrap();
        admin.run(format!("GRANT ALL ON *.* TO {user}@localhost WITH GRANT OPTION")).unwrap();
    }
    let options = ["--nested", "--no-redact", "--text-limit", "8192"];
    let mut tap = Audit::tail(&server, TAP, &options);
    let mut pfs = Audit::tail(&server, PFS, &options[..2]);
    let sessions = run_everything(&server);
    let without_text = if is_without_text(version, "test.literal_") { WITHOUT_TEXT } else { 0 };
    tap.wait_for_statements(STATEMENTS);
    pfs.wait_for_statements(STATEMENTS - without_text);
    drop(sessions);
    let (tap, pfs) = (tap.end(), pfs.end());
    assert_eq!((missing(&tap), missing(&pfs)), (0, without_text as u64), "{version}");
    let (tap, pfs) = (by_user(&tap), by_user(&pfs));
    let count = |users: &BTreeMap<&str, Vec<&Value>>| users.values().map(Vec::len).sum::<usize>();
    let (mut apart, mut failed, mut nested) = (Apart::new(), 0, 0);
    for user in USERS {
        let with_text =
            tap[user].iter().filter(|line| !is_without_text(version, text(line, "text")));
        for (place, (tap, pfs)) in with_text.zip(&pfs[user]).enumerate() {
            assert_same(version, tap, pfs);
            failed += usize::from(tap["error"] != 0);
            nested += usize::from(tap["nested"] == true);
            if !is_close(tap, pfs) {
                let us = |line: &Value| line["duration_us"].as_f64().unwrap();
                let times = (text(tap, "kind").to_owned(), us(tap), us(pfs));
                apart.insert((user, place), times);
            }
        }
    }
    println!(
        "{version}: {} and {} statements, {failed} failed, {nested} nested, {} apart in time: {apart:?}",
        count(&tap),
        count(&pfs),
        apart.len()
    );
    assert_eq!((count(&tap), count(&pfs)), (STATEMENTS, STATEMENTS - without_text), "{version}");
    assert!(failed >= 20 && nested == 20, "{version}: {failed} failed, {nested} nested");
    apart
}

#[test]
fn both_sources_list_everything_once_on_mysql_5_7() {
    both_list_everything(Version::Mysql57);
}

#[test]
fn both_sources_list_everything_once_on_mysql_8_0() {
    both_list_everything(Version::Mysql80);
}

#[test]
fn both_sources_list_everything_once_on_mysql_9() {
    both_list_everything(Version::Mysql9);
}

#[test]
fn both_sources_list_everything_once_on_mariadb_10_11() {
    both_list_everything(Version::Mariadb1011);
}

#[test]
fn both_sources_list_everything_once_on_mariadb_11_4() {
    both_list_everything(Version::Mariadb114);
}
