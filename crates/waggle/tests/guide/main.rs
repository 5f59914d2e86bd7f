//! What the pages of the guide show is what waggle prints: their commands are run on a real server, and
//! their outputs compared, but for numbers and the width of columns. `UPDATE=1` writes them anew. The
//! JSON has the paths of the reference.
#![cfg(test)]

mod page;
#[path = "../pfs/prices.rs"]
mod prices;
mod reference;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use page::Page;
use prices::Price;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use waggle_testkit::client::Command as Packet;
use waggle_testkit::sysbench::{Length, Running, Sysbench};
use waggle_testkit::{Account, Client, Killed, Server, Version, wait_showing, wait_until};

/// Longer than anything here takes.
const LONG: Length = Length::Time(Duration::from_secs(3000));
/// Sessions that wait behind a definition.
const WAITING: usize = 2;
/// For how long they wait, at the first try and at the next ones. waggle looks at the sessions four times a
/// second, where the host lets it, and nobody is told when: where it did not look meanwhile, it is given
/// more time.
const HELD: [Duration; 3] =
    [Duration::from_secs(3), Duration::from_secs(20), Duration::from_secs(120)];

fn session(server: &Server, statements: &[&str]) -> Client {
    let mut client = server.root().unwrap();
    statements.iter().for_each(|statement| drop(client.run(statement).unwrap()));
    client
}

fn with_a_table() -> Server {
    let server = Server::builder(Version::Mysql9).start().unwrap();
    session(&server, &["CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)"]);
    server
}

/// Waits until this many sessions wait for a metadata lock.
fn until_waiting(server: &Server, sessions: usize) {
    until(server, sessions, "threads WHERE PROCESSLIST_STATE = 'Waiting for table metadata lock'");
}

/// Waits until Performance Schema has this many rows of this kind.
fn until(server: &Server, rows: usize, which: &str) {
    let mut client = session(server, &[]);
    let sql = format!("SELECT 1 FROM performance_schema.{which}");
    wait_until(which, || client.run(&sql).unwrap()[0].rows.len() >= rows);
}

/// Point selects by two sessions at a steady rate, until it is dropped.
fn busy(server: &Server) -> Running {
    let sysbench = Sysbench::new("oltp_point_select");
    sysbench.prepare(server).unwrap();
    let (arguments, length) = (vec!["--rate=1000".to_owned()], LONG);
    let running = Sysbench { arguments, length, threads: 2, ..sysbench }.start(server).unwrap();
    // Its sessions are there some time before they do anything.
    let selects = format!(
        "events_statements_summary_by_user_by_event_name WHERE USER = '{}' AND \
         EVENT_NAME = 'statement/sql/select' AND COUNT_STAR >= 1000",
        Account::APP.user
    );
    until(server, 1, &selects);
    running
}

#[test]
fn performance_schema_is_set_as_the_guide_says() {
    let (server, old) = (with_a_table(), Server::start(Version::Mysql57).unwrap());
    let _load = busy(&server);
    let page = Page::read("performance-schema.md");
    page.naming("/etc/mysql/mysql57.cnf", &old).check(&server);
}

#[test]
fn performance_schema_is_priced_as_the_guide_says() {
    let server = with_a_table();
    let _load = busy(&server);
    Page::read("price-of-instrumentation.md").check(&server);
}

#[test]
fn the_counters_of_innodb_are_shown_as_the_guide_says() {
    let server = with_a_table();
    // Somebody who would lose a baseline.
    let _reader =
        session(&server, &["SELECT NAME, COUNT_RESET FROM information_schema.INNODB_METRICS"]);
    Page::read("innodb-metrics.md").check(&server);
}

#[test]
fn who_blocks_whom_is_drawn_as_the_guide_says() {
    let server = with_a_table();
    let _root = session(&server, &["BEGIN", "SELECT * FROM shop.t LIMIT 1"]);
    let mut middle = session(&server, &[]);
    middle.send(Packet::Query, b"ALTER TABLE shop.t ADD COLUMN price INT").unwrap();
    until_waiting(&server, 1);
    let mut last = session(&server, &[]);
    last.send(Packet::Query, b"SELECT * FROM shop.t").unwrap();
    until_waiting(&server, 2);
    Page::read("locks.md").check(&server);
}

#[test]
fn where_the_time_goes_is_told_as_the_guide_says() {
    const WAITERS: usize = 5;
    let server = with_a_table();
    session(&server, &["INSERT INTO shop.t VALUES (1)"]);
    let update = "UPDATE shop.t SET id = id + 1 WHERE id = 1";
    let pid = server.pid().to_string();
    let mut locks = Command::new("setpriv");
    locks.args(["--pdeathsig", "KILL", env!("CARGO_BIN_EXE_waggle"), "locks", "--pid", &pid]);
    let locks = locks.args(["--watch", "500ms"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut locks = Killed(locks);
    let mut looks = BufReader::new(locks.0.stdout.take().unwrap());
    look_that_says(&mut looks, &["nobody waits"]);
    let made = ["BEGIN", "UPDATE shop.t SET id = 1 WHERE id = 1", "SELECT * FROM shop.t LIMIT 1"];
    let _holder = session(&server, &made);
    let mut waiters = [(); WAITERS].map(|()| session(&server, &[]));
    for waiter in &mut waiters {
        waiter.send(Packet::Query, update.as_bytes()).unwrap();
    }
    let waits = "data_lock_waits WHERE ENGINE = 'INNODB'";
    until(&server, WAITERS, waits);
    let command = "waggle watch --table --for 3s --limit 3";
    let words = command.split(' ').skip(1).chain(["--pid", &pid]);
    let waggle = Command::new(env!("CARGO_BIN_EXE_waggle")).args(words).output().unwrap();
    let page = || Page::read("where-the-time-goes.md");
    page().check_one(command, String::from_utf8(waggle.stdout).unwrap());
    let look = look_that_says(&mut looks, &["waits: 5 for row locks", "ran last", "wrote first"]);
    page().check_one("waggle locks --watch", look);
}

/// The first look of `waggle locks --watch` with all of this.
fn look_that_says(out: &mut impl BufRead, words: &[&str]) -> String {
    let mut look = String::new();
    loop {
        let mut line = String::new();
        assert!(out.read_line(&mut line).unwrap() > 0, "it ended: {look}");
        let is_next = line.contains(", by its memory): ");
        if is_next && words.iter().all(|word| look.contains(word)) {
            return look;
        }
        look = if is_next { String::new() } else { look } + &line;
    }
}

/// A `waggle ddl` at work.
struct Audit {
    child: Child,
    out: BufReader<ChildStdout>,
    /// What it has printed on both of its streams.
    printed: String,
}

impl Audit {
    /// Starts it, and returns when it watches the server.
    fn start(server: &Server, words: &str) -> Self {
        let (waggle, pid) = (env!("CARGO_BIN_EXE_waggle"), server.pid());
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("exec '{waggle}' ddl {words} --pid {pid} 2>&1"));
        let mut child = shell.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut audit = Self { child, out, printed: String::new() };
        audit.read_line();
        audit
    }

    fn read_line(&mut self) {
        let bytes = self.out.read_line(&mut self.printed).unwrap();
        assert!(bytes > 0, "it ended: {}", self.printed);
    }

    /// Ends it as Ctrl-C does. What it has printed.
    fn end(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.out.read_to_string(&mut self.printed).unwrap();
        self.child.wait().unwrap();
        self.printed
    }
}

/// A column is added to a table that somebody reads, so that others wait behind it so long; then come quick
/// definitions, the last of them `DROP TABLE orders`.
fn define(server: &Server, held: Duration) {
    let mut root = session(server, &["USE shop"]);
    let mut reader = session(server, &["USE shop"]);
    let mut waiting = [(); WAITING].map(|()| session(server, &["USE shop"]));
    reader.run("BEGIN").unwrap();
    reader.run("SELECT * FROM orders").unwrap();
    let alter = b"ALTER TABLE orders ADD COLUMN total DECIMAL(10,2) NOT NULL DEFAULT 0";
    root.send(Packet::Query, alter).unwrap();
    until_waiting(server, 1);
    for session in &mut waiting {
        session.send(Packet::Query, b"SELECT * FROM orders").unwrap();
    }
    until_waiting(server, 1 + WAITING);
    std::thread::sleep(held);
    reader.run("COMMIT").unwrap();
    root.read_reply().unwrap();
    // Nobody is to wait behind the next ones.
    waiting.iter_mut().for_each(|session| drop(session.read_reply().unwrap()));
    for sql in [
        "CREATE USER clerk@localhost IDENTIFIED BY 'secret'",
        "GRANT SELECT ON shop.* TO clerk@localhost",
        "DROP TABLE order_items",
        "DROP TABLE orders",
    ] {
        root.query(sql).unwrap();
    }
}

/// What is printed of definitions.
struct Listed {
    tail: String,
    log: String,
    /// The first line of the file of the log.
    first: String,
}

impl Listed {
    fn names_who_waited(&self) -> bool {
        let names = self.tail.matches("root (id ").count();
        names == WAITING && self.first.matches("\"state\":\"Waiting").count() == WAITING
    }
}

/// Defines, with others that wait so long, and lists it.
fn list(held: Duration) -> Listed {
    const LAST: &str = "DROP TABLE orders";
    let server = Server::start(Version::Mysql80).unwrap();
    let tables = ["CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)"];
    session(&server, &tables);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("ddl.jsonl");
    let mut tail = Audit::start(&server, "tail");
    let log = Audit::start(&server, &format!("log --file '{}'", file.display()));
    define(&server, held);
    while !tail.printed.lines().last().unwrap().contains(LAST) {
        tail.read_line();
    }
    wait_until(LAST, || fs::read_to_string(&file).unwrap().contains(LAST));
    let (tail, log) = (tail.end(), log.end());
    let first = fs::read_to_string(&file).unwrap().lines().next().unwrap().to_owned();
    Listed { tail, log, first }
}

#[test]
fn definitions_are_listed_as_the_guide_says() {
    let mut listed = list(HELD[0]);
    for held in &HELD[1..] {
        if listed.names_who_waited() {
            break;
        }
        listed = list(*held);
    }
    let page = || Page::read("ddl-audit.md");
    page().check_one("waggle ddl tail", listed.tail);
    page().check_one("waggle ddl log --file /var/log/waggle/ddl.jsonl", listed.log);
    page().check_one("head -n 1 /var/log/waggle/ddl.jsonl", listed.first);
}

#[test]
fn json_is_printed_as_the_reference_says() {
    let server = with_a_table();
    let state = TempDir::new().unwrap();
    let prices = [
        Price { class: "statement", events_per_statement: 1.0, rest_ns: 200.0 },
        Price { class: "wait/io/file", events_per_statement: 1.0, rest_ns: 30.0 },
    ];
    prices::keep(&server, state.path(), &prices);
    let pages = ["pfs-json.md", "pfs-cost-json.md"];
    for (command, documented) in pages.into_iter().flat_map(reference::documented) {
        let (about, needs_account) = match command.as_str() {
            "waggle pfs plan --json" => ("minimal --schema shop --object TABLE:shop.none", true),
            "waggle pfs apply --json" => ("minimal --for 1s", true),
            "waggle pfs profiles --json" | "waggle pfs history --json" => ("", false),
            "waggle innodb watch --json" => ("--for 2s", true),
            "waggle innodb enable --json" => ("module_log --for 1s", true),
            _ => ("", true),
        };
        let mut waggle = Command::new(env!("CARGO_BIN_EXE_waggle"));
        waggle.args(command.split(' ').skip(1)).args(about.split_whitespace());
        if needs_account {
            waggle.arg("--defaults-file").arg(server.defaults_file());
        }
        let output = waggle.env("WAGGLE_STATE_DIR", state.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{command}: {said}");
        let printed = String::from_utf8(output.stdout).unwrap();
        reference::compare(&command, &documented, &printed);
    }
}

/// A session that converts texts until the server ends or this is over.
fn converting(server: &Server, is_over: &AtomicBool) {
    let mut session = session(server, &["SET NAMES utf8mb4"]);
    let sql = "SELECT BENCHMARK(20000, CONVERT(CONCAT(RAND(), REPEAT('é€', 200)) USING utf16))";
    while !is_over.load(Ordering::Relaxed) {
        session.run(sql).unwrap();
    }
}

#[test]
fn processor_time_is_told_as_the_guide_says() {
    let server = Server::start(Version::Mysql9).unwrap();
    let folder = TempDir::new().unwrap();
    let stacks = folder.path().join("stacks.txt");
    let mut waggle = Command::new(env!("CARGO_BIN_EXE_waggle"));
    waggle.args(["profile", "--for", "3s", "--limit", "8", "--pid", &server.pid().to_string()]);
    waggle.arg("--folded").arg(&stacks);
    let child = waggle.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the clocks tick", || {
        let open = fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten().flatten();
        let mut targets = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        targets.any(|target| target.to_string_lossy().contains("perf_event"))
    });
    let is_over = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| converting(&server, &is_over));
        let output = child.wait_with_output();
        is_over.store(true, Ordering::Relaxed);
        output.unwrap()
    });
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let page = Page::read("profile.md");
    let stacks = fs::read_to_string(stacks).unwrap();
    for words in ["SELECT `BENCHMARK`", "String::copy("] {
        assert!(stacks.contains(words), "no {words} in the stacks");
    }
    page.check_one("waggle profile --for 30s --limit 8", printed);
}

#[test]
fn a_price_is_told_as_the_guide_says() {
    let server = Server::start(Version::Mysql9).unwrap();
    let sysbench = Sysbench::new("oltp_point_select");
    sysbench.prepare(&server).unwrap();
    let _load = Sysbench { length: LONG, threads: 2, ..sysbench }.start(&server).unwrap();
    let pid = server.pid().to_string();
    let file = server.defaults_file();
    let file = ["--defaults-file", file.to_str().unwrap()];
    // Whatever the host does, the price is known well enough to have a sign.
    for (command, more) in [
        ("waggle prove", &["--for", "120s", "--within", "250ns"][..]),
        ("waggle prove pfs waits", &["--for", "50s", "--give-up", "100%"]),
    ] {
        let words = command.split(' ').skip(1);
        let mut waggle = Command::new(env!("CARGO_BIN_EXE_waggle"));
        waggle.args(words).args(more).args(["--pid", &pid]);
        waggle.args(file.iter().filter(|_| command.contains("pfs")));
        // A noisy host may need more than one try to see a sign.
        let printed = wait_showing("a price", || {
            let output = waggle.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let printed = String::from_utf8(output.stdout).unwrap();
            let is_price = output.status.success() && printed.contains(" costs the server ");
            if is_price { Ok(printed) } else { Err(format!("{printed}{said}")) }
        });
        Page::read("what-does-it-cost-me.md").check_one(command, printed);
    }
}
