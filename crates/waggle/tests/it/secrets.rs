//! No password leaves waggle, whatever is on.

use std::fs;
use std::path::Path;

use waggle_testkit::Account;
use waggle_testkit::Client;
use waggle_testkit::Server;
use waggle_testkit::Transport;
use waggle_testkit::Version;
use waggle_testkit::client::Command;

use crate::load;
use crate::watching::Ended;
use crate::watching::WAGGLE;
use crate::watching::Waggle;

/// The password of every statement below; nothing else has these letters.
const PASSWORD: &str = "hUnTeR2zQ";
/// The account that every statement is about, where it is about one.
const ACCOUNT: &str = "waggle_ann";

/// Who runs them: `SET PASSWORD` is about this account, not about the administrator.
const SPEAKER: Account = Account { user: "waggle_bob", password: "" };

/// Statements with a secret (`$`). A server that does not know one refuses it, and its text is
/// captured all the same. The word for word list with every way to write it is in waggle-sql.
const STATEMENTS: &[&str] = &[
    "CREATE USER 'waggle_ann'@'localhost' IDENTIFIED BY '$'",
    "CREATE USER IF NOT EXISTS waggle_ann@'%' IDENTIFIED WITH caching_sha2_password BY '$'",
    "CREATE USER waggle_ann IDENTIFIED WITH mysql_native_password AS '$' REQUIRE SSL",
    "CREATE USER waggle_ann IDENTIFIED BY PASSWORD '$'",
    "CREATE USER waggle_ann IDENTIFIED BY '$' AND IDENTIFIED WITH x BY '$'",
    "CREATE USER waggle_ann IDENTIFIED VIA mysql_native_password USING '$' OR unix_socket",
    "CREATE USER waggle_ann IDENTIFIED VIA ed25519 USING PASSWORD('$')",
    "CREATE USER waggle_ann /*!50000 IDENTIFIED BY '$' */",
    "CREATE USER waggle_ann IDENTIFIED BY \"$\"",
    "ALTER USER 'waggle_ann'@'localhost' IDENTIFIED BY '$' REPLACE '$' RETAIN CURRENT PASSWORD",
    "ALTER USER USER() IDENTIFIED BY '$'",
    "ALTER USER waggle_ann 2 FACTOR FINISH REGISTRATION SET CHALLENGE_RESPONSE AS '$'",
    "SET PASSWORD = '$'",
    "SET PASSWORD FOR 'waggle_ann'@'localhost' = '$'",
    "SET PASSWORD FOR 'waggle_ann'@'localhost' = PASSWORD('$')",
    "GRANT ALL ON *.* TO 'waggle_ann'@'localhost' IDENTIFIED BY '$' WITH GRANT OPTION",
    "GRANT USAGE ON *.* TO waggle_ann@localhost IDENTIFIED BY PASSWORD '$'",
    "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h', USER 'u', PASSWORD '$')",
    "ALTER SERVER s OPTIONS (PASSWORD '$', PORT 3306)",
    "CHANGE MASTER TO MASTER_HOST = 'h', MASTER_USER = 'u', MASTER_PASSWORD = '$'",
    "CHANGE REPLICATION SOURCE TO SOURCE_USER = 'u', SOURCE_PASSWORD = '$' FOR CHANNEL 'c'",
    "START SLAVE USER = 'u' PASSWORD = '$'",
    "START REPLICA SQL_THREAD USER = 'u' PASSWORD = '$'",
    "START GROUP_REPLICATION USER = 'u', PASSWORD = '$'",
    "SET GLOBAL authentication_ldap_simple_bind_root_pwd = '$'",
    "SET PERSIST ssl_passphrase = '$'",
    "CLONE INSTANCE FROM 'waggle_ann'@'h':3306 IDENTIFIED BY '$'",
    "CREATE TABLE f (a INT) ENGINE = FEDERATED CONNECTION = 'mysql://u:$@h:3306/d/t'",
    "CREATE TABLE k (a INT) ENCRYPTION_KEY = '$'",
    "PREPARE s FROM \"ALTER USER waggle_ann@localhost IDENTIFIED BY '$'\"",
    "EXECUTE s",
    "EXECUTE IMMEDIATE \"SET PASSWORD FOR waggle_ann@localhost = PASSWORD('$')\"",
    "SET @s = \"ALTER USER waggle_ann@localhost IDENTIFIED BY '$'\"",
    "SELECT PASSWORD('$'), OLD_PASSWORD('$')",
    "SELECT AES_ENCRYPT('a', '$'), AES_DECRYPT('a', '$')",
    "SELECT 1; CREATE USER waggle_ann IDENTIFIED BY '$'; SELECT 2",
    "CREATE USER waggle_ann IDENTIFIED BY '$",
    "CREATE TABLE oops IDENTIFIED BY '$', '$' (",
];

/// Statements with a secret that run for a while.
const SLOW: &[&str] = &[
    "SELECT SLEEP(5) AS waggle_slow, AES_ENCRYPT('a', '$')",
    "SELECT SLEEP(5) AS waggle_slow, 'ALTER USER u IDENTIFIED BY \"$\"'",
    "DO SLEEP(5) /* SET PASSWORD FOR u = '$' */",
];

fn with_password(statement: &str) -> String {
    statement.replace('$', PASSWORD)
}

fn speaker(server: &Server) -> Client {
    Client::builder().database("test").connect(server, Transport::Unix, SPEAKER).unwrap()
}

/// Runs everything: each statement by itself, then each in a session of its own that waits for a
/// lock, so that it is seen running, too. `SET PASSWORD` comes to nobody's harm.
fn say_everything(server: &Server, seen: impl FnOnce()) {
    let mut client = speaker(server);
    for statement in STATEMENTS {
        client.query(with_password(statement)).unwrap();
    }
    let mut admin = load::session(server);
    admin.query("DROP USER IF EXISTS waggle_ann, waggle_ann@localhost").unwrap();
    // Prepared in the binary protocol, where the server knows the statement.
    let text = format!("CREATE USER waggle_ann@localhost IDENTIFIED BY '{PASSWORD}'");
    if let Ok(prepared) = client.prepare(&text) {
        client.execute(&prepared, &[], false).unwrap();
    }
    // The speaker's own password may be another by now.
    admin.run(format!("DROP USER {0}@localhost", SPEAKER.user)).unwrap();
    make_speaker(&mut admin);
    // The table lists those first that run longest.
    let all = SLOW.iter().chain(STATEMENTS);
    let mut waiting: Vec<Client> = all.clone().map(|_| speaker(server)).collect();
    admin.run("FLUSH TABLES WITH READ LOCK").unwrap();
    for (client, statement) in waiting.iter_mut().zip(all) {
        client.send(Command::Query, with_password(statement).as_bytes()).unwrap();
    }
    seen();
    admin.run("UNLOCK TABLES").unwrap();
    for client in &mut waiting {
        client.read_reply().unwrap();
    }
}

fn make_speaker(admin: &mut Client) {
    admin.run(format!("CREATE USER {0}@localhost", SPEAKER.user)).unwrap();
    admin
        .run(format!("GRANT ALL ON *.* TO {0}@localhost WITH GRANT OPTION", SPEAKER.user))
        .unwrap();
}

fn assert_no_password(what: &str, ended: &Ended) {
    for (name, text) in [("output", &ended.out), ("error output", &ended.err)] {
        let found = text.lines().find(|line| line.contains(PASSWORD));
        let around = found.and_then(|line| {
            let at = line.find(PASSWORD)?;
            line.get(at.saturating_sub(300)..(at + 60).min(line.len()))
        });
        assert_eq!(around, None, "{what}: {name}");
    }
    assert_no_file_holds(&ended.dir.path().join("home"));
}

fn assert_no_file_holds(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_no_file_holds(&path);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let holds = bytes.windows(PASSWORD.len()).any(|bytes| bytes == PASSWORD.as_bytes());
        assert!(!holds, "{} holds a password", path.display());
    }
}

fn no_password_leaves_waggle(version: Version) {
    let server = Server::start(version).unwrap();
    make_speaker(&mut load::session(&server));
    let pid = server.pid().to_string();
    let with_literals = ["--interval", "500ms", "--limit", "1000", "--no-redact"];
    let mut json = Waggle::watch(&server, &with_literals);
    let redacted = Waggle::watch(&server, &["--interval", "500ms"]);
    let with_literals = with_literals.join(" ");
    let table = format!("{WAGGLE} watch --table {with_literals} --pid {pid}");
    let mut table = Waggle::in_terminal(&table);
    table.wait_for("the table", |table| table.printed().contains(&pid));
    let options = server.defaults_file();
    let verify = ["verify", "--json", "--pid", &pid, "--defaults-file", options.to_str().unwrap()];
    let mut verify = Waggle::start(&verify);
    verify.wait_for("the first reading", |verify| verify.err().contains("counters are read"));

    say_everything(&server, || {
        let told = "waggle_slow";
        table.wait_for("a slow statement", |table| table.printed().contains(told));
        json.wait_for_lines(2);
    });
    json.wait_for_lines(2);
    drop(load::wait_until_alone(&server));

    let json = json.interrupt();
    assert!(json.out.contains(ACCOUNT), "{version}: the statements themselves are shown");
    assert!(json.out.contains("waggle_slow"), "{version}: those that run, too");
    assert!(json.out.contains("<secret>"), "{version}: and their secret is masked");
    let verify = verify.interrupt();
    assert!(verify.out.contains("\"captured\""), "{version}: {}", verify.err);
    let table = table.interrupt();
    assert!(table.out.contains(ACCOUNT), "{version}: the table, too");
    let all = [("json", json), ("redacted", redacted.interrupt()), ("table", table)];
    for (what, ended) in all.into_iter().chain([("verify", verify)]) {
        assert_no_password(&format!("{version} {what}"), &ended);
    }
}

#[test]
fn no_password_of_mysql_5_7_leaves_waggle() {
    no_password_leaves_waggle(Version::Mysql57);
}

#[test]
fn no_password_of_mysql_8_0_leaves_waggle() {
    no_password_leaves_waggle(Version::Mysql80);
}

#[test]
fn no_password_of_mysql_9_leaves_waggle() {
    no_password_leaves_waggle(Version::Mysql9);
}

#[test]
fn no_password_of_mariadb_10_11_leaves_waggle() {
    no_password_leaves_waggle(Version::Mariadb1011);
}

#[test]
fn no_password_of_mariadb_11_4_leaves_waggle() {
    no_password_leaves_waggle(Version::Mariadb114);
}
