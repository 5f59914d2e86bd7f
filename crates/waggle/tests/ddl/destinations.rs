//! Files, the system's log, and a table for people.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use waggle_testkit::Version;

use super::watching::{Waggle, lines};
use super::{Audit, PATIENCE, READY, TAP, session, start, statements};

/// The files of a log, the oldest first.
fn files(log: &Path) -> Vec<PathBuf> {
    let numbered = |number: u32| PathBuf::from(format!("{}.{number}", log.display()));
    let mut files: Vec<PathBuf> = (1..20).map(numbered).filter(|path| path.exists()).collect();
    files.reverse();
    files.push(log.to_owned());
    files
}

/// What a file holds. One that is put aside just now is not there for a moment.
fn text_of(file: &Path) -> String {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read.unwrap(),
    }
}

fn lines_in(files: &[PathBuf]) -> Vec<Value> {
    let text: String = files.iter().map(|file| text_of(file)).collect();
    lines(&text)
}

#[test]
fn a_log_is_put_aside_when_it_is_full_and_no_line_is_lost_or_cut() {
    const RUN: usize = 40;
    const SIZE: u64 = 4096;
    let server = start(Version::Mysql80);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("ddl.jsonl");
    let words = ["log", "--file", log.to_str().unwrap(), "--rotate-size", "4K"];
    let mut audit = Audit::spawn(&server, TAP, &words);
    let is_ready = |_: &Waggle| text_of(&log).contains(READY);
    audit.wait_until_ready(&server, is_ready);
    let mut second = Audit::spawn(&server, TAP, &words);
    assert_eq!(second.wait_for_end(), Some(3), "{}", second.err());
    assert!(second.err().contains("another process writes it"), "{}", second.err());
    let mut client = session(&server);
    for number in 0..RUN {
        client.run(format!("DROP TABLE IF EXISTS number_{number}")).unwrap();
    }
    audit.wait_for("all lines", |_| statements(&lines_in(&files(&log))).len() >= RUN);
    audit.stop();
    let files = files(&log);
    assert!(files.len() > 2, "{files:?}");
    for file in &files {
        let metadata = fs::metadata(file).unwrap();
        assert!(metadata.len() <= SIZE, "{}: {} bytes", file.display(), metadata.len());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        assert!(fs::read(file).unwrap().ends_with(b"\n"), "{}", file.display());
    }
    let lines = lines_in(&files);
    let names: Vec<&str> = statements(&lines)
        .iter()
        .map(|line| line["objects"][0]["name"].as_str().unwrap())
        .collect();
    let expected: Vec<String> = (0..RUN).map(|number| format!("number_{number}")).collect();
    assert_eq!(names, expected);
}

/// The message of a datagram, as journald finds it: `syslog_skip_timestamp` and
/// `syslog_parse_identifier` in `src/journal/journald-syslog.c` of systemd.
fn message(told: &str, pid: u32) -> &str {
    let (_, rest) = told.split_once('>').unwrap();
    let (time, rest) = rest.split_at("Nov  2 03:04:05 ".len());
    let shape = |letter: char| match letter {
        letter if letter.is_ascii_alphabetic() => 'a',
        letter if letter.is_ascii_digit() => '0',
        other => other,
    };
    let time: String = time.chars().map(shape).collect();
    assert!(["aaa 00 00:00:00 ", "aaa  0 00:00:00 "].contains(&time.as_str()), "{told}");
    rest.strip_prefix(&format!("waggle[{pid}]: ")).unwrap_or_else(|| panic!("{told}"))
}

#[test]
fn the_systems_log_gets_a_datagram_for_each_line_also_when_it_was_away() {
    let server = start(Version::Mariadb1011);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let listen = || {
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    };
    let receive = |socket: &UnixDatagram| {
        let mut datagram = vec![0; 65536];
        let length = socket.recv(&mut datagram).unwrap();
        String::from_utf8(datagram[..length].to_vec()).unwrap()
    };
    let log = listen();
    let mut audit = Audit::spawn(&server, TAP, &["log", "--syslog", path.to_str().unwrap()]);
    log.set_nonblocking(true).unwrap();
    audit.wait_until_ready(&server, |_| log.recv(&mut [0; 65536]).is_ok());
    drop(log);
    fs::remove_file(&path).unwrap();
    let mut client = session(&server);
    client.run("CREATE TABLE told (a INT)").unwrap();
    client.query("DROP TABLE nosuch").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let log = listen();
    let told = std::iter::repeat_with(|| receive(&log)).find(|told| !told.contains(READY)).unwrap();
    // LOG_AUTHPRIV with LOG_NOTICE.
    assert!(told.starts_with("<85>"), "{told}");
    let json = message(&told, audit.pid());
    let line: Value = serde_json::from_str(json).unwrap();
    assert_eq!(line["kind"], "create_table", "{told}");
    let failed = receive(&log);
    assert!(failed.starts_with("<84>"), "{failed}");
    let line: Value = serde_json::from_str(message(&failed, audit.pid())).unwrap();
    assert_eq!(line["kind"], "drop_table", "{failed}");
    audit.stop();
}

#[test]
fn the_table_says_who_did_what_without_literals() {
    let server = start(Version::Mysql57);
    let mut audit = Audit::spawn(&server, TAP, &["tail"]);
    audit.wait_until_ready(&server, |audit| audit.printed().contains(READY));
    session(&server).run("CREATE TABLE shown (a CHAR(3) COMMENT 'a\n\x1bb')").unwrap();
    audit.wait_for("the statement", |audit| audit.printed().contains("shown"));
    let out = audit.printed();
    let line = out.lines().find(|line| line.contains("shown")).unwrap();
    for word in ["root@localhost", "ok", "create_table", "test.shown", "COMMENT ?)"] {
        assert!(line.contains(word), "{word}: {line}");
    }
    assert!(!out.contains('\x1b'), "{out}");
}

#[test]
fn wrong_words_are_refused_with_what_is_right() {
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_waggle"));
        let output = command.arg("ddl").args(words).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (words, code, said) in [
        (&["tail", "--kind", "creat_table"][..], 2, "create_table"),
        (&["log"], 2, "--file"),
        (&["log", "--file", "/nowhere/x"], 3, "--file /nowhere/x"),
        (&["log", "--syslog", "/nowhere/x"], 3, "--syslog /nowhere/x"),
        (&["log", "--file", "x", "--rotate-size", "5 apples"], 2, "is no size"),
        (&["tail", "--source", "pfs", "--every", "9ms"], 2, "at least 10ms"),
        (&["tail", "--login-path", "x"], 2, "add --source pfs"),
        (&["tail", "--source", "pfs", "--pid", "1"], 2, "for the tap"),
    ] {
        let (ended, err) = run(words);
        assert_eq!(ended, Some(code), "{words:?}: {err}");
        assert!(err.contains(said), "{words:?}: {err}");
    }
}
