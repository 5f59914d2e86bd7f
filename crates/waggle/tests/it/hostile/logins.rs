//! To whom waggle logs in on this host.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;
use tempfile::TempDir;
use waggle_testkit::{Account, Server, Version};

use super::thief::Thief;
use super::{NOBODY, PASSWORD, assert_told, open_to, option_file, run};
use crate::load;
use crate::watching::Waggle;

/// Commands that log in. Those that watch name a process, too.
const COMMANDS: [&[&str]; 5] = [
    &["locks"],
    &["pfs", "status", "--interval", "10ms"],
    &["pfs", "rollback"],
    &["innodb", "status"],
    &["ddl", "tail", "--source", "pfs"],
];

#[test]
fn a_process_that_looks_like_a_server_is_not_logged_in_to() {
    let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    open_to(dir.path(), 0o1777);
    let thief = Thief::at(&dir.path().join("mysql.sock"));
    let file = option_file(dir.path(), "c.cnf", &format!("user=root\npassword={PASSWORD}"));
    let pid = thief.pid().to_string();
    let watching = [&["watch", "--json", "--pid", &pid][..], &["verify", "--pid", &pid]];
    for words in COMMANDS.into_iter().chain(watching) {
        let said = run(words, &file).err;
        // A place that the clients of MySQL try where none is named.
        assert!(
            !said.contains("/tmp/mysql.sock") && !said.contains("panicked"),
            "{words:?}: {said}"
        );
    }
    let listed = Waggle::start(&["servers"]).end().out;
    assert!(listed.contains(&format!("pid {pid},")), "it looks like a server: {listed}");
    Waggle::start(&["doctor", "--pid", &pid]).end();
    assert_eq!(thief.met(), 0, "nobody named it");
    assert!(!thief.has_password());
}

#[test]
fn a_socket_that_nobody_has_taken_over_gets_no_password() {
    let server = Server::start(Version::Mysql80).unwrap();
    let mut session = load::session(&server);
    let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let socket = server.socket();
    // What a server that was taken over can do with its own directory.
    let own = socket.parent().unwrap();
    chown(own, Some(NOBODY), Some(NOBODY)).unwrap();
    let thief = Thief::at(&socket);
    let account = format!("user=root\npassword={PASSWORD}");
    let link = dir.path().join("link");
    symlink(&socket, &link).unwrap();
    let refused = [format!("belongs to uid {NOBODY}"), format!("server-user = {NOBODY}")];
    let refused = refused.each_ref().map(String::as_str);
    let pid = server.pid().to_string();
    let verify = ["verify", "--for", "100ms", "--pid", &pid];
    for place in [&socket, &link] {
        let text = format!("{account}\nsocket={}", place.display());
        let named = option_file(dir.path(), "named.cnf", &text);
        for words in COMMANDS.into_iter().chain([&verify[..]]) {
            let place = place.to_str().unwrap();
            assert_told(&run(words, &named), &format!("{words:?}"), 3, &[refused[0], place]);
        }
    }
    // The socket of a watched server is used where the option file names none.
    for name in ["named.cnf", "unnamed.cnf"] {
        if name == "unnamed.cnf" {
            option_file(dir.path(), name, &account);
        }
        let file = dir.path().join(name);
        let asked = ["--defaults-file", file.to_str().unwrap(), "--interval", "100ms"];
        let mut watch = Waggle::start(&[&["watch", "--json", "--pid", &pid], &asked[..]].concat());
        watch.wait_for("why it is not asked", |watch| {
            session.run("SELECT 'watched'").unwrap();
            watch.err().contains("no server digests")
        });
        assert_told(&watch.interrupt(), name, 0, &refused);
    }
    assert_eq!((thief.met(), thief.has_password()), (0, false));
}

#[test]
fn who_knows_a_password_leaves_no_core_dump() {
    let server = Server::start(Version::Mysql80).unwrap();
    let account = server.option_file(Account::SECRET).unwrap();
    let dumps = ["prlimit", "--core=unlimited:unlimited"];
    let words = ["watch", "--json", "--interval", "100ms", "--defaults-file"];
    let mut watch = Waggle::through(&dumps, &[&words[..], &[account.to_str().unwrap()]].concat());
    watch.wait_for("its first interval", |watch| !watch.lines().is_empty());
    let limits = fs::read_to_string(format!("/proc/{}/limits", watch.pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let words: Vec<&str> = core.split_ascii_whitespace().skip(4).collect();
    assert_eq!(words, ["0", "0", "bytes"], "{limits}");
    watch.signal(Signal::ABORT);
    let status = watch.wait_for_status();
    assert_eq!((status.signal(), status.core_dumped()), (Some(6), false), "{status}");
}
