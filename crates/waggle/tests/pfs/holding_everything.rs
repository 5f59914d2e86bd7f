//! Everything, and nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::Value;
use waggle_instrumentation::Change;
use waggle_instrumentation::activity::{self, Events};
use waggle_instrumentation::class::class_of;
use waggle_instrumentation::pattern::fits;
use waggle_mysql::Connection;
use waggle_mysql::connection::text;
use waggle_testkit::{Version, wait_showing, wait_until};

use super::costing::json;
use super::holding::{assert_as_before, wait_for_lock, without_threads, work};
use super::{Holding, Scene};

/// Classes that the work of a test need not make MariaDB use, and why; MySQL uses all.
const MAY_BE_SILENT: [(&str, &str); 1] =
    [("wait/synch/sxlock", "MariaDB has only one, of the trees of indexes; MySQL has a dozen")];

fn may_be_silent(version: Version, class: &str) -> bool {
    version.is_mariadb() && MAY_BE_SILENT.iter().any(|(silent, _)| class == *silent)
}

/// The status less what goes on by itself: events, threads, and what keeps them.
fn settings(scene: &Scene) -> Value {
    let mut status = json(&scene.run(&["status", "--interval", "10ms", "--json"]));
    let all = status.as_object_mut().unwrap();
    // Rows and memory that were taken for events are not given back.
    for name in ["threads", "interval_s", "memory", "memory_bytes", "lost", "digests"] {
        all.remove(name).unwrap_or_else(|| panic!("{name} is missing"));
    }
    for classes in ["classes", "tree"] {
        for class in all[classes].as_object_mut().unwrap().values_mut() {
            class.as_object_mut().unwrap().remove("events_per_s").unwrap();
        }
    }
    status
}

fn events(connection: &mut Connection) -> Events {
    activity::read(connection).unwrap().value().unwrap().clone()
}

/// The classes of which an instrument is on.
fn enabled(connection: &mut Connection) -> BTreeSet<String> {
    let sql = "SELECT NAME FROM performance_schema.setup_instruments WHERE ENABLED = 'YES'";
    let rows = connection.rows(sql).unwrap();
    rows.iter().map(|row| class_of(&text(row, 0)).to_owned()).collect()
}

/// Begins to hold, and waits until all is set.
pub(super) fn until_set(command: Command) -> (Holding, BufReader<ChildStderr>) {
    let (holding, stderr, _) = until_said(command, "; Ctrl-C undoes it\n");
    (holding, stderr)
}

/// Starts a command, and waits until it has said this. Gives what it says next, and what it said.
pub(super) fn until_said(
    mut command: Command,
    what: &str,
) -> (Holding, BufReader<ChildStderr>, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let holding = Holding(Some(child));
    let mut said = String::new();
    while !said.ends_with(what) {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "it ended before: {said}");
    }
    (holding, stderr, said)
}

/// A profile that is held.
struct Held<'a> {
    scene: &'a Scene,
    watcher: Connection,
    before: Value,
    /// The highest number of a thread before it began.
    last_thread: u64,
    holding: Holding,
    stderr: BufReader<ChildStderr>,
}

impl<'a> Held<'a> {
    fn begin(scene: &'a Scene, words: &[&str]) -> Self {
        let before = settings(scene);
        let mut watcher = scene.connect();
        let sql = "SELECT MAX(THREAD_ID) FROM performance_schema.threads";
        let last_thread = number(&mut watcher, sql);
        let command = scene.command(&[&["apply"][..], words, &["--json"]].concat());
        let (holding, stderr) = until_set(command);
        Self { scene, watcher, before, last_thread, holding, stderr }
    }

    /// Waits until the command has looked at what was counted before: what happens from here on is in its
    /// proofs. The history of its thread shows that; the table of errors is the last that it reads, also
    /// where the server has none.
    fn until_it_has_looked(&mut self) {
        let sql = format!(
            "SELECT COUNT(*) FROM performance_schema.events_statements_history \
             WHERE THREAD_ID > {} AND SQL_TEXT LIKE '%events_errors_summary_global_by_error%'",
            self.last_thread
        );
        wait_until("its first look", || number(&mut self.watcher, &sql) > 0);
    }

    /// Ends it as Ctrl-C does.
    fn end(self) -> BTreeMap<String, Value> {
        let child = self.holding.0.as_ref().unwrap();
        kill_process(Pid::from_child(child), Signal::INT).unwrap();
        self.wait()
    }

    /// Waits until it ends. Gives what it says of each class.
    fn wait(mut self) -> BTreeMap<String, Value> {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        let ended = self.holding.wait();
        assert_eq!(ended.status.code(), Some(0), "{said}");
        assert!(said.contains("undone: "), "{said}");
        assert_eq!(settings(self.scene), self.before);

        let proofs: Vec<Value> = serde_json::from_slice(&ended.stdout).unwrap();
        let by_class =
            proofs.into_iter().map(|proof| (proof["class"].as_str().unwrap().to_owned(), proof));
        by_class.collect()
    }
}

fn number(connection: &mut Connection, sql: &str) -> u64 {
    text(&connection.rows(sql).unwrap()[0], 0).parse().unwrap()
}

#[test]
fn what_is_held_for_a_time_ends_by_itself() {
    Version::each(|version| {
        let scene = Scene::of(version);
        let begin = Instant::now();
        let held = Held::begin(&scene, &["everything", "--for", "10s"]);
        let proofs = held.wait();
        assert!(begin.elapsed() >= Duration::from_secs(10), "{version}: it ended early");
        assert!(proofs.contains_key("statement"), "{version}: {proofs:?}");
    });
}

/// What is off or has no times though it could. Memory and errors have none.
const OFF: &str = "SELECT NAME FROM performance_schema.setup_instruments WHERE ENABLED = 'NO' \
                   OR TIMED = 'NO' AND NAME NOT LIKE 'memory/%' AND NAME <> 'error' UNION ALL \
                   SELECT NAME FROM performance_schema.setup_consumers WHERE ENABLED = 'NO'";

/// That what was planned is set, and that all is on but what cannot be.
fn assert_all_is_on(scene: &Scene, plan: &Value, version: Version) {
    let now = scene.read();
    for change in <Vec<Change>>::deserialize(&plan["changes"]).unwrap() {
        assert_eq!(now.row(change.table, &change.key), change.after.as_ref(), "{version}");
    }
    let impossible = <Vec<Vec<String>>>::deserialize(&plan["impossible"]).unwrap();
    let off = scene.connect().rows(OFF).unwrap();
    let mut off: Vec<String> = off.iter().map(|row| text(row, 0)).collect();
    off.retain(|name| !impossible.iter().any(|one| fits(name, &one[0])));
    assert!(off.is_empty(), "{version}: still off: {off:?}");
}

/// Classes whose events a session of a client makes on every server.
const BUSY: [&str; 12] = [
    "memory",
    "stage",
    "statement",
    "transaction",
    "idle",
    "wait/io/file",
    "wait/io/socket",
    "wait/io/table",
    "wait/lock/metadata",
    "wait/lock/table",
    "wait/synch/mutex",
    "wait/synch/rwlock",
];

#[test]
fn with_everything_all_is_on_and_every_class_counts() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let before = without_threads(&scene.read());
        assert!(!scene.connect().rows(OFF).unwrap().is_empty(), "{version}: all is on before");
        let plan = json(&scene.run(&["plan", "everything", "--interval", "10ms", "--json"]));
        let mut held = Held::begin(&scene, &["everything"]);
        held.until_it_has_looked();
        assert_all_is_on(&scene, &plan, version);
        let mut client = scene.server.root().unwrap();
        let on = enabled(&mut held.watcher);
        assert!(BUSY.iter().all(|class| on.contains(*class)), "{version}: {on:?}");
        let earlier = events(&mut held.watcher);
        wait_for_lock(&scene);
        wait_showing(format_args!("events of every class, on {version}"), || {
            work(&mut client);
            let counted = activity::by_class(&earlier, &events(&mut held.watcher));
            let is_silent = |class: &&String| {
                !may_be_silent(version, class)
                    && counted.get(*class).is_none_or(|count| *count == 0)
            };
            let silent: Vec<_> = on.iter().filter(is_silent).collect();
            if silent.is_empty() { Ok(()) } else { Err(format!("{silent:?}")) }
        });
        let proofs = held.end();
        assert_as_before(&scene, &before, version.name());
        assert_eq!(proofs.keys().cloned().collect::<BTreeSet<_>>(), on, "{version}");
        for (class, proof) in &proofs {
            let may_be_silent = may_be_silent(version, class);
            let is_as_set =
                proof["verdict"] == "counts" || may_be_silent && proof["verdict"] == "silent";
            assert!(is_as_set && proof["enabled"].as_u64() > Some(0), "{version}: {proof}");
            let has_events = proof["events"].as_u64() > Some(0);
            assert_eq!(has_events, proof["verdict"] == "counts", "{version}: {proof}");
        }
    }
}

#[test]
fn with_off_nothing_counts_but_the_memory_of_performance_schema() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut held = Held::begin(&scene, &["off"]);
        let mut client = scene.server.root().unwrap();
        // The only instruments that nobody can switch off.
        let sql = "SELECT NAME FROM performance_schema.setup_instruments WHERE ENABLED = 'YES' \
                   AND NAME NOT LIKE 'memory/performance\\_schema/%'";
        assert_eq!(held.watcher.rows(sql).unwrap().len(), 0, "{version}");
        let switchable = |connection: &mut Connection| {
            let mut events = events(connection);
            events.retain(|name, _| !name.starts_with("memory/performance_schema/"));
            events
        };
        let earlier = switchable(&mut held.watcher);
        // More statements than there are threads.
        (0..50).for_each(|_| work(&mut client));
        let threads = number(&mut held.watcher, "SELECT COUNT(*) FROM performance_schema.threads");
        for (class, count) in activity::by_class(&earlier, &switchable(&mut held.watcher)) {
            // In each thread one event can have begun before.
            assert!(count <= threads, "{version}: {class} counted {count} with {threads} threads");
        }
        let proofs = held.end();
        assert!(proofs.contains_key("statement"), "{version}");
        for (class, proof) in &proofs {
            if class != "memory" {
                assert_eq!(proof["enabled"], 0, "{version}: {proof}");
                assert_eq!(proof["verdict"], "still", "{version}: {proof}");
            }
        }
    }
}
