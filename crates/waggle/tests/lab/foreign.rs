//! A suite on a server that runs already: measured, and left as it was, however the run ends.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use waggle_instrumentation::state::{Key, Settings};
use waggle_instrumentation::{State, Table};
use waggle_mysql::{Connection, Options, Sources};
use waggle_testkit::{Account, Client, Server, Version, wait_until};

use super::{Place, done, ended, windows};

/// Two blocks of one cell.
const ONE_CELL: [&str; 8] =
    ["--only", "read-only", "--only", "4", "--only", "closed", "--blocks", "2"];
const YES: [&str; 9] =
    ["--yes", "--only", "read-only", "--only", "4", "--only", "closed", "--blocks", "2"];
/// Windows of that: five scenarios, and the baseline again.
const WINDOWS: usize = 2 * 6;

/// A server with Performance Schema on and a setting that no profile has.
struct InUse {
    server: Server,
}

/// What is set, and which schemas there are.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    rows: BTreeSet<(Table, Key, Settings)>,
    schemas: BTreeSet<String>,
}

impl InUse {
    fn of(version: Version) -> InUse {
        let builder = Server::builder(version).arg("--performance-schema=ON").max_connections(400);
        let server = builder.arg("--max-prepared-stmt-count=100000").start().unwrap();
        let in_use = InUse { server };
        let odd = "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'NO' WHERE \
                   NAME = 'stage/sql/Opening tables'";
        in_use.root().run(odd).unwrap();
        in_use
    }

    fn root(&self) -> Client {
        self.server.root().unwrap()
    }

    /// An account that has a password.
    fn account(&self) -> PathBuf {
        self.server.option_file(Account::SECRET).unwrap()
    }

    /// Everything but the threads, which come and go.
    fn found(&self) -> Found {
        let file = Some(self.server.defaults_file());
        let options = Options::read(&Sources { defaults_file: file, ..Sources::default() });
        let mut connection = Connection::open(&options.unwrap()).unwrap();
        let state = State::read(&mut connection).unwrap();
        let tables = Table::ALL.into_iter().filter(|table| *table != Table::Threads);
        let rows = tables.flat_map(|table| {
            state.rows(table).map(move |(key, settings)| (table, key.clone(), settings.clone()))
        });
        let schemas = connection.rows("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA");
        let schemas = schemas.unwrap();
        let name = |row: &Vec<Option<Vec<u8>>>| waggle_mysql::connection::text(row, 0);
        Found { rows: rows.collect(), schemas: schemas.iter().map(name).collect() }
    }
}

fn assert_same(now: &Found, before: &Found, what: &str) {
    let differing: Vec<_> = now.rows.symmetric_difference(&before.rows).collect();
    assert!(differing.is_empty(), "{what}: {differing:?}");
    assert_eq!(now.schemas, before.schemas, "{what}");
}

#[test]
fn what_can_be_changed_while_a_server_runs_is_measured_and_all_is_as_before() {
    for version in [Version::Mysql9, Version::Mariadb114] {
        let (place, in_use) = (Place::new(), InUse::of(version));
        let before = in_use.found();
        let said = ended(place.foreign("rds", &in_use.account(), &YES).output(), 0);
        assert!(said.contains("compared with pfson_conoff_insoff, since pfsoff"), "{said}");
        assert_same(&in_use.found(), &before, version.name());

        let windows = windows(&place.run());
        assert_eq!(windows.len(), WINDOWS, "{version}");
        let counted = windows.iter().filter(|window| window["void"].is_null());
        assert!(counted.count() > 0, "{version}: {windows:?}");
        for window in &windows {
            assert!(window["arm"] != "pfsoff", "{version}: {window}");
            let measured = &window["measured"];
            // Its process is on this host.
            assert!(measured["server_cpu_ns"].as_u64() > Some(0), "{version}: {window}");
            assert!(measured["transactions"].as_u64() > Some(0), "{version}: {window}");
        }
        let markdown = fs::read_to_string(place.run().join("report.md")).unwrap();
        assert!(markdown.contains("not run: needs a restart"), "{version}: {markdown}");
        let report = fs::read_to_string(place.run().join("report.json")).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["server"]["is_foreign"], true);
        let caveats = report["caveats"].to_string();
        assert!(caveats.contains("those of all its sessions"), "{caveats}");
        let left_out = report["not_run"].as_array().unwrap();
        let is_off = |one: &&Value| {
            let threads = one["threads"].as_array().unwrap();
            one["scenario"] == "pfsoff" && threads.contains(&4.into())
        };
        assert_eq!(left_out.iter().find(is_off).unwrap()["reason"], "needs a restart");
    }
}

#[test]
fn without_yes_it_says_what_it_would_do_and_does_nothing() {
    let (place, in_use) = (Place::new(), InUse::of(Version::Mysql9));
    let before = in_use.found();
    let said = ended(place.foreign("rds", &in_use.account(), &ONE_CELL).output(), 2);
    for word in ["--yes", "pfson_conon_inson", "not run: needs a restart", "waggle_lab"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert_same(&in_use.found(), &before, "refused");
    assert!(!place.run().exists() && !place.dir.path().join("journal").exists());
}

/// Starts a run, and interrupts it when it has made some windows.
fn interrupt(place: &Place, in_use: &InUse, signal: Signal) -> Option<i32> {
    let mut run = place.foreign("rds", &in_use.account(), &YES);
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("three windows", || {
        assert!(child.try_wait().unwrap().is_none());
        windows(&place.run()).len() >= 3
    });
    kill_process(Pid::from_child(&child), signal).unwrap();
    child.wait().unwrap().code()
}

#[test]
fn after_ctrl_c_all_is_as_before_at_once_and_the_rest_is_made_later() {
    let (place, in_use) = (Place::new(), InUse::of(Version::Mysql9));
    let before = in_use.found();
    assert_eq!(interrupt(&place, &in_use, Signal::INT), Some(1));
    assert_same(&in_use.found(), &before, "interrupted");
    resume(&place, &in_use, &before);
}

#[test]
fn after_a_kill_the_guardian_undoes_and_the_next_run_drops_the_schema() {
    let (place, in_use) = (Place::new(), InUse::of(Version::Mysql9));
    let before = in_use.found();
    assert_eq!(interrupt(&place, &in_use, Signal::KILL), None);
    wait_until("the guardian's work", || in_use.found().rows == before.rows);
    assert!(in_use.found().schemas.contains("waggle_lab"));
    let said = resume(&place, &in_use, &before);
    assert!(said.contains("which was killed, was dropped"), "{said}");
}

/// Goes on with a run, and gives what it says.
fn resume(place: &Place, in_use: &InUse, before: &Found) -> String {
    let run = place.run();
    let resume = |more: &[&str]| {
        let mut command = place.lab(&["resume", run.to_str().unwrap(), "--defaults-file"]);
        command.arg(in_use.account()).args(more);
        command
    };
    let schemas = in_use.found().schemas;
    ended(resume(&[]).output(), 2);
    assert_eq!(in_use.found().schemas, schemas);
    let said = ended(resume(&["--yes"]).output(), 0);
    assert_same(&in_use.found(), before, "resumed");
    assert_eq!(windows(&run).len(), WINDOWS);
    // Nothing is loaded into the server for a run that is whole.
    let whole = fs::read(run.join("windows.jsonl")).unwrap();
    let again = ended(resume(&["--yes"]).output(), 0);
    assert!(said.contains("data:") && !again.contains("data:"), "{again}");
    assert_same(&in_use.found(), before, "resumed when it was whole");
    assert_eq!(fs::read(run.join("windows.jsonl")).unwrap(), whole);
    said
}

#[test]
fn each_right_that_is_missing_is_named_with_its_grant_and_nothing_is_changed() {
    const READ: &str = "SELECT ON performance_schema.*";
    const WRITE: &str = "SELECT, INSERT, UPDATE, DELETE ON performance_schema.*";
    const PROCESS: &str = "PROCESS ON *.*";
    const COUNTERS: &str = "SYSTEM_VARIABLES_ADMIN ON *.*";
    let (place, in_use) = (Place::new(), InUse::of(Version::Mysql9));
    let before = in_use.found();
    for (suite, grants, named) in [
        ("modb", &[] as &[&str], READ),
        ("modb", &[READ][..], WRITE),
        ("modb", &[WRITE][..], PROCESS),
        ("modb", &[WRITE, PROCESS][..], "ALL ON waggle_lab.*"),
        ("line", &[WRITE, PROCESS][..], COUNTERS),
    ] {
        let file = in_use.server.few(grants).unwrap();
        let said = ended(place.foreign(suite, &file, &["--only", "closed", "--yes"]).output(), 4);
        assert!(said.contains(&format!("GRANT {named} TO 'few'@'localhost'")), "{named}: {said}");
        assert_same(&in_use.found(), &before, named);
        assert!(!place.run().exists(), "{named}: a run was begun");
    }
}

#[test]
fn what_cannot_be_run_on_this_server_is_told_and_nothing_is_changed() {
    let (place, in_use) = (Place::new(), InUse::of(Version::Mysql9));
    let mut root = in_use.root();
    root.run("CREATE DATABASE waggle_lab").unwrap();
    let said = ended(place.foreign("rds", &in_use.account(), &YES).output(), 4);
    assert!(said.contains("there is an empty schema waggle_lab"), "{said}");
    root.run("CREATE TABLE waggle_lab.orders (id INT PRIMARY KEY)").unwrap();
    let before = in_use.found();
    let account = in_use.account();
    let file = account.to_str().unwrap();
    let alone = ["--only", "pfsoff", "--only", "4", "--only", "closed", "--yes"];
    let cases = [
        (place.foreign("rds", &account, &alone), "--server", 4),
        (place.foreign("rds", &account, &["--only", "open", "--yes"]), "a fixed rate", 3),
        (place.foreign("rds", &account, &["--only", "1024", "--yes"]), "no room", 3),
        (place.foreign("rds", &account, &["--server", "mysql-9"]), "--server", 2),
        (place.small("rds", "mysql-9", &["--defaults-file", file]), "--dsn", 2),
        (place.small("rds", "mysql-9", &["--yes"]), "--dsn", 2),
        (place.foreign("rds", &account, &YES), "that waggle did not make", 4),
    ];
    for (mut command, named, code) in cases {
        let said = ended(command.output(), code);
        assert!(said.contains(named), "{named}: {said}");
        assert!(!place.run().exists(), "{named}: a run was begun");
        assert_same(&in_use.found(), &before, named);
    }
    let kept = root.run("SELECT COUNT(*) FROM waggle_lab.orders").unwrap()[0].text(0, 0);
    assert_eq!(kept.as_deref(), Some("0"));
}

#[test]
fn under_the_load_of_others_statements_are_measured_and_transactions_are_not() {
    let (place, in_use) = (Place::new(), InUse::of(Version::Mysql9));
    let before = in_use.found();
    // A password that sysbench cannot be given: nobody needs it here.
    let mut root = in_use.root();
    root.run(r#"CREATE USER odd@localhost IDENTIFIED BY 'a"b\'c'"#).unwrap();
    root.run("GRANT ALL ON *.* TO odd@localhost").unwrap();
    let account = place.servers().join("odd.cnf");
    let socket = in_use.server.socket();
    let text = format!("[client]\nuser=odd\npassword=a\"b'c\nsocket={}\n", socket.display());
    fs::write(&account, text).unwrap();
    let stop = AtomicBool::new(false);
    scope(|threads| {
        let (mut other, stop) = (in_use.root(), &stop);
        threads.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                other.run("SELECT 1").unwrap();
            }
        });
        let output =
            place.foreign("rds", &account, &["--no-load", "--yes", "--blocks", "2"]).output();
        stop.store(true, Ordering::Relaxed);
        done(output);
    });
    assert_same(&in_use.found(), &before, "without a load");
    let windows = windows(&place.run());
    assert_eq!(windows.len(), WINDOWS);
    for window in &windows {
        let measured = &window["measured"];
        assert!(measured["statements"].as_u64() > Some(0), "{window}");
        assert!(measured["transactions"].is_null() && measured["latency"].is_null(), "{window}");
    }
    assert!(windows.iter().any(|window| window["void"].is_null()), "{windows:?}");
    assert_tables_of_report(&place.run());
}

/// What was not measured is printed so.
fn assert_tables_of_report(run: &Path) {
    let markdown = fs::read_to_string(run.join("report.md")).unwrap();
    assert!(markdown.contains("that of others"), "{markdown}");
    let text = fs::read_to_string(run.join("windows.csv")).unwrap();
    let (head, line) = (text.lines().next().unwrap(), text.lines().nth(1).unwrap());
    let at = head.split(',').position(|name| name == "transactions").unwrap();
    assert_eq!(line.split(',').nth(at), Some(""), "{line}");
}
