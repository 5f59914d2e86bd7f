//! The hash under which each server files a digest, asked from the server.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use std::{fs, thread};

use serde_json::Value;
use waggle_testkit::{Account, Client, Server, Version, on_each_server};

use crate::watching::Waggle;
use crate::{load, watched};

/// What changes how a text is read, and texts whose digest depends on it.
const SESSIONS: &[(&str, &[&[u8]])] = &[
    (
        "SET sql_mode = DEFAULT",
        &[
            b"CREATE TABLE asked (id INT PRIMARY KEY, v VARCHAR(20))",
            b"INSERT INTO asked VALUES (1, 'a'), (2, 'b')",
            b"SELECT v FROM asked WHERE id IN (1, 2, 3) /* not in the digest */",
            b"SELECT \"a\" \"b\" FROM asked;",
            b"SELECT COUNT (*) FROM asked",
            b"SELECT 'it\\'s' FROM asked",
            b"SHOW WARNINGS",
            b"EXPLAIN SELECT * FROM asked",
            b"BEGIN",
            b"COMMIT",
            b"CREATE USER asked IDENTIFIED BY 'tell nobody'",
            b"CREATE PROCEDURE ask() SELECT v FROM asked",
            b"CALL ask()",
            b"SELECT nobody FROM asked WHERE",
        ],
    ),
    (
        "SET sql_mode = 'ANSI_QUOTES'",
        &[b"SELECT \"v\" FROM \"asked\"", b"SELECT 'v', \"v\" FROM asked"],
    ),
    ("SET sql_mode = 'NO_BACKSLASH_ESCAPES'", &[b"SELECT 'a\\' AS b FROM asked, (SELECT 1) c"]),
    (
        "SET sql_mode = 'PIPES_AS_CONCAT,IGNORE_SPACE'",
        &[b"SELECT v || v, COUNT (*) FROM asked GROUP BY v"],
    ),
    ("SET sql_mode = 'ANSI,TRADITIONAL,HIGH_NOT_PRECEDENCE'", &[b"SELECT NOT id FROM asked"]),
    (
        "SET NAMES gbk",
        &[b"SELECT '\x81\x5c' AS gbk FROM asked", b"SELECT v AS \x81\x5c FROM asked"],
    ),
    ("SET NAMES sjis", &[b"SELECT v AS \x83\x5c FROM asked"]),
    ("SET NAMES latin1", &[b"SELECT v AS caf\xe9 FROM asked"]),
    (
        "SET NAMES utf8mb4",
        &[b"SELECT v AS \xc3\xa9 FROM asked", b"SELECT '\xff' AS broken FROM asked"],
    ),
];

fn say_everything(sessions: &mut [Client]) {
    for (session, (_, texts)) in sessions.iter_mut().zip(SESSIONS) {
        for text in *texts {
            // Some are refused: they are statements, too.
            session.query(text).unwrap();
        }
    }
}

/// Starts a watch that asks as an account with a password.
fn ask(server: &Server, arguments: &[&str]) -> Waggle {
    let file = server.option_file(Account::SECRET).unwrap();
    let account = ["--defaults-file", file.to_str().unwrap(), "--limit", "1000"];
    Waggle::watch(server, &[&account, arguments].concat())
}

/// What the last line that has it says of each digest: text, hash and reason.
fn hashes(lines: &[Value]) -> BTreeMap<String, (String, Option<String>, Option<String>)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let all = lines.iter().flat_map(|line| line["digests"].as_array().unwrap());
    let of = |digest: &Value| {
        let told = (text(&digest["server_digest"]), text(&digest["server_digest_absent"]));
        (text(&digest["digest"]).unwrap(), (text(&digest["digest_text"]).unwrap(), told.0, told.1))
    };
    all.map(of).collect()
}

fn rows(client: &mut Client, sql: &str) -> Vec<Vec<String>> {
    let results = client.run(sql).unwrap();
    let text = |value: &Option<Vec<u8>>| {
        String::from_utf8_lossy(value.as_deref().unwrap_or_default()).into_owned()
    };
    results[0].rows.iter().map(|row| row.iter().map(text).collect()).collect()
}

/// Whether the hash of a digest is known whose text has this part.
fn knows(watch: &Waggle, part: &str) -> bool {
    let mut told = hashes(&watch.lines()).into_values();
    told.any(|(text, hash, _)| text.contains(part) && hash.is_some())
}

fn the_hashes_are_those_of_the_server(version: Version) {
    let server = Server::start(version).unwrap();
    let mut watch = ask(&server, &["--text-limit", "512", "--interval", "200ms"]);
    // They stay, since the settings of a session that has gone cannot be read.
    let mut sessions: Vec<Client> = SESSIONS.iter().map(|_| load::session(&server)).collect();
    for (session, (settings, _)) in sessions.iter_mut().zip(SESSIONS) {
        session.run(settings).unwrap();
    }
    // Met again until everything is answered.
    let told = loop {
        say_everything(&mut sessions);
        let session = &mut sessions[0];
        session.query(format!("SELECT '{}' AS long_one", "x".repeat(600))).unwrap();
        session.run("DROP TABLE asked").unwrap();
        session.run("DROP PROCEDURE ask").unwrap();
        session.run("DROP USER asked").unwrap();
        let before = watch.lines().len();
        watch.wait_for("two intervals", |watch| watch.lines().len() >= before + 2);
        let told = hashes(&watch.lines()[before..]);
        let is_open = |why: &str| why.contains(" yet");
        if told.len() > 25 && !told.values().any(|told| told.2.as_deref().is_some_and(is_open)) {
            break told;
        }
    };
    let ended = watch.interrupt();
    assert_eq!(ended.code, Some(0), "{}", ended.err);

    let mut admin = load::session(&server);
    let theirs: BTreeSet<Vec<String>> = rows(
        &mut admin,
        "SELECT DISTINCT DIGEST, DIGEST_TEXT \
         FROM performance_schema.events_statements_summary_by_digest",
    )
    .into_iter()
    .collect();
    let mut known = 0;
    for (text, hash, why) in told.values() {
        let Some(hash) = hash else { continue };
        known += 1;
        assert_eq!(why, &None);
        let row = vec![hash.clone(), text.clone()];
        assert!(theirs.contains(&row), "{version}: {row:?} is not in {theirs:#?}");
    }
    assert!(known >= 22, "{version}: {known} of {told:#?}");
    let why = |part: &str| {
        let of = told.values().find(|(text, ..)| text.contains(part));
        of.unwrap_or_else(|| panic!("{version}: no {part} in {told:#?}")).2.clone().unwrap()
    };
    assert!(why("SELECT ? ...").contains("cut after 512 bytes"), "{}", why("SELECT ? ..."));
    assert!(why("`nobody`").contains("cannot parse this text"), "{}", why("`nobody`"));
    assert!(why("`broken`").contains("not valid in the character set"), "{}", why("`broken`"));
    // The secret went to nobody, and what went went once for each digest.
    let own = "FROM performance_schema.events_statements_summary_by_user_by_event_name \
               WHERE USER = 'secret' AND EVENT_NAME";
    let count = |admin: &mut Client, which: &str| {
        let sql = format!("SELECT SUM(COUNT_STAR) {own} {which}");
        rows(admin, &sql)[0][0].parse::<u64>().unwrap()
    };
    let sent = count(&mut admin, "LIKE 'statement/sql/%'");
    let left_out = format!(", and {sent} of waggle's own, left out");
    assert!(ended.err.contains(&left_out), "{version}: {left_out}: {}", ended.err);
    let lines = ended.lines();
    assert_eq!(watched::sum(&lines, "/own_statements"), sent, "{version}");
    let asked = count(&mut admin, "= 'statement/sql/select'");
    let is_answered = |(_, hash, why): &(_, Option<_>, Option<String>)| {
        hash.is_some() || why.as_ref().is_some_and(|why| why.contains("(error "))
    };
    let distinct = hashes(&lines).into_values().filter(is_answered).count() as u64;
    let sayings = 1..=5;
    assert!(sayings.contains(&(asked - distinct)), "{version}: {asked} for {distinct} digests");
    assert!(!ended.out.contains("STATEMENT_DIGEST"), "{version}: our own are not shown");
    assert!(!ended.out.contains("'secret'") && !ended.out.contains("\"secret\""), "{version}");
}

on_each_server!(the_hashes_are_those_of_the_server: mysql_8_0 Mysql80, mysql_9 Mysql9);

#[test]
fn no_secret_is_sent_back_to_the_server() {
    let log = "--general-log=1";
    let server = Server::builder(Version::Mysql9).arg(log).start().unwrap();
    let mut watch = ask(&server, &[]);
    let mut session = load::session(&server);
    session.run("CREATE USER asked IDENTIFIED BY 'tell nobody'").unwrap();
    watch.wait_for("the hash", |watch| {
        session.run("ALTER USER asked IDENTIFIED BY 'tell nobody'").unwrap();
        knows(watch, "ALTER SYSTEM_USER")
    });
    drop(watch.interrupt());
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut logged = String::new();
    for entry in fs::read_dir(server.datadir()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "log") {
            logged += &String::from_utf8_lossy(&fs::read(path).unwrap());
        }
    }
    assert!(logged.contains("SELECT STATEMENT_DIGEST"), "{logged}");
    assert!(logged.contains(&hex("IDENTIFIED BY '<secret>'")), "{logged}");
    assert!(!logged.contains(&hex("tell nobody")), "{logged}");
}

fn the_server_has_no_hash(version: Version) {
    let server = Server::start(version).unwrap();
    let watch = ask(&server, &[]);
    watched_and_absent(&server, watch, "has no STATEMENT_DIGEST()");
}

/// That a watch goes on, and says why there is no hash.
fn watched_and_absent(server: &Server, mut watch: Waggle, why: &str) {
    let mut session = load::session(server);
    watch.wait_for("why", |watch| {
        // Each interval should have something to say it of.
        session.run("SELECT 'asked'").unwrap();
        let mut told = hashes(&watch.lines()).into_values();
        told.any(|told| told.2.is_some_and(|told| told.contains(why)))
    });
    watch.wait_for("that it is told", |watch| watch.err().contains(why));
    let ended = watch.interrupt();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(ended.err.matches("no server digests").count(), 1, "told once: {}", ended.err);
    assert!(hashes(&ended.lines()).values().all(|told| told.1.is_none()));
}

on_each_server!(the_server_has_no_hash: mysql_5_7 Mysql57, mariadb_11_4 Mariadb114);

/// An option file beside the server's own.
fn written(server: &Server, text: &str) -> String {
    let path = server.defaults_file().with_file_name("asking.cnf");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_wrong_password_does_not_end_the_watch() {
    let server = Server::start(Version::Mysql80).unwrap();
    let file = written(&server, "[client]\nuser=secret\npassword=wrong\n");
    let watch = Waggle::watch(&server, &["--defaults-file", &file]);
    watched_and_absent(&server, watch, "login of user secret refused");
}

#[test]
fn an_account_without_the_grant_is_told_which_one() {
    let server = Server::start(Version::Mysql9).unwrap();
    load::session(&server).run("CREATE USER bare@localhost").unwrap();
    let file = written(&server, "[client]\nuser=bare\n");
    let watch = Waggle::watch(&server, &["--defaults-file", &file]);
    watched_and_absent(&server, watch, "GRANT SELECT ON performance_schema.*");
}

#[test]
fn no_text_goes_to_another_server() {
    let server = Server::start(Version::Mysql9).unwrap();
    let other = Server::start(Version::Mysql80).unwrap();
    let port = other.port();
    let file = written(&server, &format!("[client]\nuser=app\nhost=127.0.0.1\nport={port}\n"));
    let watch = Waggle::watch(&server, &["--defaults-file", &file]);
    watched_and_absent(&server, watch, "it leads to a server that is not watched here");
    let sql = "SELECT DIGEST_TEXT FROM performance_schema.events_statements_summary_by_digest";
    let texts = rows(&mut load::session(&other), sql);
    assert!(!texts.iter().any(|row| row[0].contains("STATEMENT_DIGEST")), "{texts:?}");
}

#[test]
fn a_connection_that_is_killed_is_opened_again_and_a_killed_server_ends_nothing() {
    let mut server = Server::start(Version::Mysql80).unwrap();
    let mut watch = ask(&server, &[]);
    let mut session = load::session(&server);
    let mut hash_of = |watch: &mut Waggle, alias: &str| {
        watch.wait_for(alias, |watch| {
            session.run(format!("SELECT 1 AS {alias}")).unwrap();
            knows(watch, alias)
        });
    };
    hash_of(&mut watch, "asked_first");
    let mut admin = load::session(&server);
    let sql = "SELECT id FROM information_schema.processlist WHERE user = 'secret'";
    let id = rows(&mut admin, sql)[0][0].clone();
    admin.run(format!("KILL {id}")).unwrap();
    hash_of(&mut watch, "asked_again");
    assert!(watch.err().contains("the connection broke"), "{}", watch.err());
    server.kill9().unwrap();
    // So long that its end was seen, and what it was asked then was given up.
    thread::sleep(Duration::from_secs(3));
    let ended = watch.interrupt();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
}
