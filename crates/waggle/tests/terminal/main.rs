//! The terminal view as its users have it: in a real terminal, on real servers under load.
#![cfg(test)]
#![allow(dead_code, reason = "the other tests use all of what they share")]

mod held;
mod keys;
#[path = "../it/load.rs"]
mod load;
mod panics;
/// The part of the binary that takes the terminal and gives it back, as it is there.
#[path = "../../src/watch/terminal/screen.rs"]
mod screen;
mod tmux;
#[path = "../../src/watch/terminal/tty.rs"]
mod tty;

use std::time::Duration;
use std::{fs, thread};

use rustix::process::{Signal, kill_process};
use waggle_testkit::sysbench::{Length, Running};
use waggle_testkit::{Server, Version, wait_showing, wait_until};

use tmux::{Tmux, wait_for_end};

const WAGGLE: &str = env!("CARGO_BIN_EXE_waggle");
/// Longer than any test; it ends when it is dropped.
const LONG: Length = Length::Time(Duration::from_secs(600));

/// A server that works.
fn busy(version: Version) -> (Server, Running) {
    let server = Server::start(version).unwrap();
    let mut sysbench = load::read_write(&server);
    sysbench.length = LONG;
    sysbench.threads = 2;
    // Transactions per second: as fast as it goes, a busy machine loses statements.
    sysbench.arguments.push("--rate=100".to_owned());
    let running = sysbench.start(&server).unwrap();
    (server, running)
}

/// A watch of one server, with its first interval on the screen.
fn watch(tmux: &Tmux, server: &Server, arguments: &str) {
    tmux.command(&format!("{WAGGLE} watch --pid {} {arguments}", server.pid()));
    tmux.wait_for("the view", |screen| screen.contains("DIGESTS by load"));
}

/// The lines of the digests on a screen.
fn digests(screen: &str) -> Vec<&str> {
    let lines = screen.lines().skip_while(|line| !line.starts_with("DIGESTS by")).skip(2);
    lines.take_while(|line| !line.is_empty()).collect()
}

/// The line that is selected.
fn selected(screen: &str) -> &str {
    screen.lines().find(|line| line.starts_with("> ")).unwrap_or("")
}

/// Puts a server in front, whatever else runs on this host.
fn show(tmux: &Tmux, server: &Server) {
    let pid = format!("pid {} ", server.pid());
    wait_showing(&pid, || {
        let screen = tmux.screen();
        if screen.contains(&pid) {
            return Ok(());
        }
        tmux.press(&["Tab"]);
        thread::sleep(Duration::from_millis(200));
        Err(screen)
    });
}

#[test]
fn two_servers_of_which_one_is_killed() {
    let (mysql, _load) = busy(Version::Mysql80);
    let (mut mariadb, its_load) = busy(Version::Mariadb1011);
    let tmux = Tmux::start(120, 40);
    let before = tmux.state();
    tmux.command(&format!("{WAGGLE} watch"));
    tmux.wait_for("the view", |screen| screen.contains("DIGESTS by load"));
    let tab = |server: &Server| format!(" {}", server.pid());
    let (of_mysql, of_mariadb) = (tab(&mysql), tab(&mariadb));
    // Other servers of this host may be watched, too.
    let tabs = |screen: &str| screen.lines().next().unwrap_or_default().to_owned();
    show(&tmux, &mysql);
    tmux.wait_for("its tab", |screen| tabs(screen).contains(&format!("{of_mysql}]")));
    show(&tmux, &mariadb);
    let works = |screen: &str| screen.contains("mariadb 10.11") && digests(screen).len() > 5;
    tmux.wait_for("statements of MariaDB", works);
    mariadb.kill9().unwrap();
    drop(its_load);
    let screen = tmux.wait_for("its end", |screen| screen.contains("ENDED at "));
    assert!(tabs(&screen).contains(&format!("{of_mariadb} ended]")), "{screen}");
    tmux.press(&["["]);
    tmux.wait_for("what it ran", |screen| screen.contains("BACK ") && digests(screen).len() > 5);
    show(&tmux, &mysql);
    let goes_on = |screen: &str| screen.contains("mysql 8.0") && digests(screen).len() > 5;
    tmux.wait_for("the other one", |screen| goes_on(screen) && screen.contains("live "));
    tmux.press(&["C-c"]);
    tmux.last_screen();
    assert_eq!(tmux.state(), before, "the terminal is as it was");
}

#[test]
fn a_blocked_session_comes_first_and_nothing_that_it_says_reaches_the_terminal_raw() {
    let server = Server::start(Version::Mysql9).unwrap();
    let mut holder = load::session(&server);
    holder.run("CREATE TABLE held (id INT PRIMARY KEY, v INT) ENGINE = InnoDB").unwrap();
    holder.run("INSERT INTO held VALUES (1, 0), (2, 0)").unwrap();
    holder.run("CREATE TABLE altered (v INT) ENGINE = InnoDB").unwrap();
    holder.run("BEGIN").unwrap();
    holder.run("SELECT v FROM held WHERE id = 1 FOR UPDATE").unwrap();
    holder.run("SELECT v FROM altered").unwrap();
    let evil = "SELECT SLEEP(600), '\x1b]0;owned\x07\x1b[2J private words', \
                'x' = 'IDENTIFIED BY \"hunter2\"'";
    let plain = "SELECT SLEEP(600), 'private words'";
    // Its state is that of a statement that waits for a row, but it works.
    let busy = "UPDATE held SET v = BENCHMARK(4000000000, SHA2(v, 256)) WHERE id = 2";
    let locked = "SELECT v FROM held FOR UPDATE";
    let update = "UPDATE held SET v = 1 WHERE id = 1";
    let mut root = load::session(&server);
    for sql in ["ALTER TABLE altered ADD w INT", update, locked, busy, evil, plain] {
        let mut session = load::session(&server);
        let id = session.connection_id();
        // It ends with the server.
        thread::spawn(move || session.run(sql));
        // One after another, since the view shows the longest wait first.
        let runs = format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {id} AND COMMAND = 'Query'"
        );
        wait_until(sql, || root.run(&runs).unwrap()[0].text(0, 0).as_deref() == Some("1"));
    }
    root.quit().unwrap();
    // What is marked by the state alone, and what is where waits are measured.
    let inferred = ["lock", "row?", "for a lock"];
    let measured = ["metadata", "row lock", "Held by"];
    for (arguments, private, [lock, row, told]) in [
        ("", false, measured),
        ("--no-redact", true, measured),
        ("--no-waits", false, inferred),
        ("--no-waits --no-redact", true, inferred),
    ] {
        let tmux = Tmux::start(160, 40);
        let title = tmux.variable("pane_title");
        watch(&tmux, &server, arguments);
        // At the first look it is not known whose thread sleeps.
        let marks = |screen: &str| {
            let marked = |sql: &str| screen.lines().any(|it| it.contains(row) && it.contains(sql));
            marked("SELECT v FROM held") && !marked("BENCHMARK")
        };
        let all = |screen: &str| screen.contains("RUNNING: 6, 3 waiting") && marks(screen);
        let screen = tmux.wait_for("all six", all);
        let sessions: Vec<&str> =
            screen.lines().skip_while(|line| !line.starts_with("RUNNING")).skip(2).collect();
        assert!(
            sessions[0].contains(lock) && sessions[0].contains("ALTER TABLE altered"),
            "{screen}"
        );
        let row_locks = sessions[1..3].concat();
        for sql in ["UPDATE held", "SELECT v FROM held FOR UPDATE"] {
            assert!(row_locks.contains(sql), "{screen}");
        }
        assert_eq!(row_locks.matches(row).count(), 2, "{screen}");
        assert_eq!(screen.contains("private words"), private, "{screen}");
        assert!(!screen.contains("hunter2"), "{screen}");
        assert_eq!(tmux.variable("pane_title"), title, "no escape sequence came through");
        tmux.press(&["r", "Enter"]);
        tmux.wait_for("the session", |screen| {
            screen.contains("SESSION ") && screen.contains("metadata lock") && screen.contains(told)
        });
        tmux.press(&["Escape", "q"]);
        tmux.quit();
    }
}

#[test]
fn signals_leave_the_terminal_as_it_was() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let tmux = Tmux::start(80, 24);
    let before = tmux.state();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        watch(&tmux, &server, "");
        assert_eq!(tmux.variable("alternate_on"), "1");
        let waggle = tmux.process("waggle").unwrap();
        kill_process(waggle, signal).unwrap();
        tmux.last_screen();
        assert_eq!(tmux.state(), before, "{signal:?}");
    }
    tmux.command_to_its_end(&format!("clear; {WAGGLE} watch --pid {} --for 4s", server.pid()));
    tmux.last_screen();
    assert_eq!(tmux.state(), before, "--for");
}

#[test]
fn waggle_ends_where_its_terminal_closes_or_takes_no_output() {
    let (server, _load) = busy(Version::Mariadb1011);
    let closed = Tmux::start(80, 24);
    watch(&closed, &server, "");
    let waggle = closed.process("waggle").unwrap();
    closed.close();
    wait_for_end(waggle);

    let stuck = Tmux::start(200, 50);
    let before = stuck.state();
    watch(&stuck, &server, "--interval 100ms");
    let waggle = stuck.process("waggle").unwrap();
    let stopped = stuck.stop();
    // So long that the queue of the terminal is full and drawing hangs.
    thread::sleep(Duration::from_secs(3));
    kill_process(waggle, Signal::TERM).unwrap();
    wait_for_end(waggle);
    drop(stopped);
    assert_eq!(stuck.state(), before, "the terminal is as it was");
}

#[test]
fn nothing_is_lost_while_the_terminal_takes_no_output() {
    let (server, _load) = busy(Version::Mysql9);
    let tmux = Tmux::start(200, 50);
    watch(&tmux, &server, "--interval 100ms");
    let stopped = tmux.stop();
    thread::sleep(Duration::from_secs(4));
    drop(stopped);
    tmux.wait_for("what follows", |screen| {
        let words = ["live ", "lost 0", " intervals not shown"];
        words.iter().all(|word| screen.contains(word))
    });
    let last = tmux.quit();
    assert!(last.contains(", lost 0"), "{last}");
}

#[test]
fn two_watchers_do_not_know_of_each_other() {
    let (server, _load) = busy(Version::Mariadb114);
    let terminals = [Tmux::start(100, 30), Tmux::start(100, 30)];
    for tmux in &terminals {
        watch(tmux, &server, "");
    }
    for tmux in &terminals {
        tmux.wait_for("statements", |screen| digests(screen).len() > 5);
        tmux.quit();
    }
}

#[test]
fn a_terminal_gets_what_it_can_show() {
    let (server, _load) = busy(Version::Mysql57);
    let tmux = Tmux::start(120, 30);
    let pid = server.pid();
    // Colours by number, as xterm has them (SGR 38 ; 5 ; n).
    let is_coloured = |screen: &str| screen.contains("38;5;");
    watch(&tmux, &server, "");
    tmux.wait_for("statements", |screen| digests(screen).len() > 5);
    assert!(is_coloured(&tmux.coloured_screen()), "{}", tmux.coloured_screen());
    tmux.quit();

    tmux.command_to_its_end("export NO_COLOR=1 LANG=C; clear");
    watch(&tmux, &server, "");
    let screen = tmux.wait_for("statements", |screen| digests(screen).len() > 5);
    assert!(screen.is_ascii(), "{screen}");
    assert!(!is_coloured(&tmux.coloured_screen()), "{}", tmux.coloured_screen());
    tmux.quit();

    for command in ["TERM=dumb WAGGLE watch", "WAGGLE watch --table"] {
        let command = command.replace("WAGGLE", WAGGLE);
        tmux.command_to_its_end(&format!("clear; {command} --pid {pid} --limit 5 --for 1500ms"));
        let screen = tmux.screen();
        assert!(screen.contains("EXAM/CALL  ERR/S DIGEST"), "{command}:\n{screen}");
        assert!(screen.contains(&format!("pid {pid} ")) && screen.is_ascii(), "{screen}");
    }
    tmux.command_to_its_end(&format!("{WAGGLE} watch --pid {pid} --for 1500ms > lines"));
    tmux.command_to_its_end(&format!("{WAGGLE} watch --pid {pid} | head -n 2 > head"));
    for file in ["lines", "head"] {
        let lines = fs::read_to_string(tmux.dir().join(file)).unwrap();
        assert!(!lines.is_empty());
        for line in lines.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["server"]["pid"], pid);
        }
    }
}
