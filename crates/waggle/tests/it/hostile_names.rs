//! Names and texts that hold escape sequences and ends of lines reach no terminal and no file that people print,
//! by no command.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use waggle_model::visible::visible;
use waggle_testkit::{Account, Client, Killed, Server, Transport, Version};

use crate::load;
use crate::watching::{Ended, Waggle};

/// Sets a title, clears the screen (also by C1), turns the direction of writing, hides, and begins a line that
/// looks like one of a slow log.
const EVIL: &str = "\x1b]0;owned\x07\u{9b}2J\u{202e}\u{200b}\n# Time: \r\x7f!";
/// What of it has to be shown.
const SEEN: &str = "owned";

/// A process that looks like a server, in a directory with such a name, which is also its own, and with such a
/// name of a command.
struct Impostor {
    child: Killed,
    place: TempDir,
}

impl Impostor {
    fn start() -> Impostor {
        let place = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let evil = place.path().join(EVIL);
        fs::create_dir(&evil).unwrap();
        let program = evil.join("mysqld");
        fs::copy("/bin/bash", &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let script = "printf '\\033[2Jx' > /proc/$$/comm; read -r";
        let mut command = Command::new(&program);
        command.args(["-c", script]).current_dir(&evil);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Impostor { child: Killed(command.spawn().unwrap()), place }
    }
}

/// That no character of it moves, turns or hides anything, and that no name has begun a line.
fn assert_plain(what: &str, text: &str) {
    let bad = text.chars().find(|c| !matches!(c, '\n' | '\t') && visible(*c) != *c);
    assert_eq!(bad, None, "{what}: {text:?}");
    // The text of a statement has its own lines in a slow log, and tells of none that is a head.
    let forged = text.lines().find(|line| line.starts_with("# Time: ") && line.ends_with('!'));
    assert_eq!(forged, None, "{what}: {text:?}");
}

fn assert_ended(what: &str, ended: &Ended, is_named: bool) {
    assert_plain(what, &ended.out);
    assert_plain(what, &ended.err);
    let said = format!("{}{}", ended.out, ended.err);
    assert!(!is_named || said.contains(SEEN), "{what}: {said}");
}

/// A schema, a table, an account and rules of Performance Schema with such a name.
fn prepare(server: &Server) {
    let mut root = load::session(server);
    root.run(format!("CREATE DATABASE `{EVIL}`")).unwrap();
    root.run(format!("CREATE TABLE `{EVIL}`.`{EVIL}` (`{EVIL}` INT) ENGINE = InnoDB")).unwrap();
    root.run(format!("CREATE USER '{EVIL}'@localhost")).unwrap();
    root.run(format!("GRANT ALL ON *.* TO '{EVIL}'@localhost")).unwrap();
    let setup = "INSERT INTO performance_schema.setup";
    root.run(format!("{setup}_objects VALUES ('TABLE', '{EVIL}', '{EVIL}', 'NO', 'NO')")).unwrap();
    root.run(format!("{setup}_actors (HOST, USER, ROLE) VALUES ('%', '{EVIL}', '%')")).unwrap();
}

fn evil_session(server: &Server) -> Client {
    let account = Account { user: EVIL, password: "" };
    Client::builder().database(EVIL).connect(server, Transport::Unix, account).unwrap()
}

/// Commands that meet such names, and whether they have to print one: of the server with a pid, of the impostor with his
/// `own`, and about a path.
fn commands<'a>(
    pid: &'a str,
    own: &'a str,
    evil_path: &'a str,
    account: [&'a str; 2],
) -> Vec<(bool, Vec<&'a str>)> {
    let on_server = |words: &[&'a str]| [words, &account[..]].concat();
    vec![
        (true, vec!["servers"]),
        (true, vec!["servers", "--json"]),
        (false, vec!["doctor", "--pid", own]),
        (false, vec!["doctor", "--pid", pid, "--verbose"]),
        (false, vec!["watch", "--pid", own]),
        (true, vec!["locks", "--defaults-file", evil_path]),
        (true, vec!["watch", "--pid", pid, "--slowlog", evil_path, "--for", "1s"]),
        (true, vec!["pfs", "plan", evil_path]),
        (true, vec!["lab", "show", evil_path]),
        (true, on_server(&["locks", "--no-redact"])),
        (true, on_server(&["locks", "--no-redact", "--json"])),
        (true, on_server(&["pfs", "status"])),
        (true, on_server(&["pfs", "status", "--json"])),
        (false, on_server(&["pfs", "plan", "default", "-v"])),
        (false, on_server(&["pfs", "plan", "default", "--json"])),
        (false, on_server(&["innodb", "status", "-v"])),
        (true, on_server(&["pfs", "plan", "waits", "-v", "--schema", EVIL])),
        (false, on_server(&["pfs", "history"])),
    ]
}

/// They wait more than they work.
fn run_at_once(version: Version, commands: Vec<(bool, Vec<&str>)>) {
    let begin = |(is_named, command): (bool, Vec<&str>)| {
        (is_named, format!("{version} {command:?}"), Waggle::start(&command))
    };
    let begun: Vec<_> = commands.into_iter().map(begin).collect();
    for (is_named, command, waggle) in begun {
        assert_ended(&command, &waggle.end(), is_named);
    }
}

fn nothing_hostile_is_printed(version: Version) {
    let impostor = Impostor::start();
    let server = Server::builder(version).arg("--performance-schema=ON").start().unwrap();
    prepare(&server);
    let pid = server.pid().to_string();
    let options = server.defaults_file();
    let account = ["--defaults-file", options.to_str().unwrap()];
    let watch = |words: &[&str]| {
        let all = ["watch", "--interval", "300ms", "--no-redact", "--pid", &pid];
        Waggle::start(&[&all, words].concat())
    };
    let mut watching = vec![
        ("json", watch(&["--json", "--slowlog", "slow.log"])),
        ("csv", watch(&["--csv"])),
        ("fingerprints", watch(&["--csv", "--fingerprint", "percona"])),
        ("table", watch(&["--table"])),
        ("ddl", Waggle::start(&["ddl", "tail", "--no-redact", "--pid", &pid])),
        ("ddl json", Waggle::start(&["ddl", "tail", "--json", "--no-redact", "--pid", &pid])),
    ];
    let mut root = load::session(&server);
    watching[4].1.wait_for("the tap", |it| it.err().contains("is watched"));
    watching[5].1.wait_for("the tap", |it| it.err().contains("is watched"));
    for (name, waggle) in watching.iter_mut().take(4) {
        waggle.wait_for(name, |it| {
            // CSV begins with the first statement.
            root.run("SELECT 1").unwrap();
            !it.printed().is_empty()
        });
    }

    // One session holds the table, and another one waits for it.
    let (mut holder, mut waiter) = (evil_session(&server), evil_session(&server));
    holder.run("BEGIN").unwrap();
    holder.run(format!("SELECT '{EVIL}' AS `{EVIL}`, `{EVIL}` FROM `{EVIL}`")).unwrap();
    let alter = format!("ALTER TABLE `{EVIL}` COMMENT '{EVIL}'");
    waiter.send(waggle_testkit::client::Command::Query, alter.as_bytes()).unwrap();
    watching[0].1.wait_for("the waiting session", |it| it.printed().contains("ALTER TABLE"));

    let evil_path = impostor.place.path().join(EVIL).join("no/thing");
    let evil_path = evil_path.to_str().unwrap();
    let own = impostor.child.id().to_string();
    run_at_once(version, commands(&pid, &own, evil_path, account));
    // By itself: it changes what the plan of the same would name.
    let apply = ["pfs", "apply", "waits", "--schema", EVIL, "--for", "1s"];
    run_at_once(version, vec![(false, [&apply[..], &account].concat())]);

    holder.run("COMMIT").unwrap();
    waiter.read_reply().unwrap();
    for (name, waggle) in &mut watching {
        waggle.wait_for(name, |it| it.printed().contains(SEEN));
    }
    for (name, waggle) in watching {
        let ended = waggle.interrupt();
        assert_ended(&format!("{version} {name}"), &ended, true);
        if name == "json" {
            let log = fs::read(ended.dir.path().join("home/slow.log")).unwrap();
            let log = String::from_utf8(log).unwrap();
            assert!(log.contains(SEEN), "{log}");
            assert_plain("slow log", &log);
        }
    }
}

#[test]
fn nothing_hostile_is_printed_by_any_command() {
    [Version::Mysql9, Version::Mariadb114].into_iter().for_each(nothing_hostile_is_printed);
}
