//! What is published in `docs/reference` about the five servers is what they have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use waggle_instrumentation::changeable::changeable;
use waggle_instrumentation::class::class_of;
use waggle_instrumentation::metrics::modules::{MODULES, Module};
use waggle_instrumentation::metrics::selection::{SelectionError, choose};
use waggle_instrumentation::metrics::{Counter, read};
use waggle_instrumentation::{State, Table};
use waggle_model::ServerVersion;
use waggle_mysql::Connection;
use waggle_testkit::{Server, Version};

use crate::{connect, start};

/// Compares a page with what was found; `UPDATE=1` writes it.
fn holds(page: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(page);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, now).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let differing = now.lines().zip(kept.lines()).find(|(now, kept)| now != kept);
    assert!(
        now == kept,
        "docs/reference/{page} is not what the servers have; run UPDATE=1 cargo test -p \
         waggle-instrumentation --test it reference, look at the difference and commit the file; the \
         first line that differs (servers, file): {differing:?}"
    );
}

fn counters(connection: &mut Connection) -> Vec<Counter> {
    read(connection).unwrap().value().unwrap().clone()
}

fn on(connection: &mut Connection) -> BTreeSet<String> {
    let counters = counters(connection).into_iter();
    counters.filter(|counter| counter.enabled).map(|counter| counter.name).collect()
}

/// What a module switches on a server on which everything is off; `None`: the server has none such.
fn switched(connection: &mut Connection, module: &Module) -> Option<BTreeSet<String>> {
    let set = |verb, name| format!("SET GLOBAL innodb_monitor_{verb} = '{name}'");
    // Error 1231: wrong value.
    connection.rows(&set("enable", module.name)).ok()?;
    let switched = on(connection);
    connection.rows(&set("disable", module.name)).unwrap();
    assert_eq!(on(connection), BTreeSet::new(), "{}", module.name);
    Some(switched)
}

/// What waggle takes the module for.
fn meant(all: &[Counter], module: &Module) -> Option<BTreeSet<String>> {
    let key = |counter: &Counter| vec![counter.subsystem.clone(), counter.name.clone()];
    let keys: Vec<_> = all.iter().map(key).collect();
    match choose(&keys, &[module.name.to_owned()]) {
        Ok(chosen) => Some(chosen.into_iter().map(|key| key[1].clone()).collect()),
        Err(SelectionError::Unknown(_)) => None,
        Err(other) => panic!("{other}"),
    }
}

/// A row of the page: the subsystem, as the table counts it.
struct Row {
    module: &'static str,
    in_manual: &'static str,
    subsystem: String,
    total: usize,
    enabled: usize,
    /// How many counters the name of the module switches; 0: the server switches them one by one.
    switched: usize,
}

fn rows(version: Version) -> Vec<Row> {
    let (_server, mut connection) = start(version);
    let all = counters(&mut connection);
    connection.rows("SET GLOBAL innodb_monitor_disable = 'all'").unwrap();
    let mut rows = Vec::new();
    for module in &MODULES {
        let meant = meant(&all, module);
        let switched = switched(&mut connection, module);
        let is_counter = all.iter().any(|counter| counter.name == module.name);
        match (&meant, &switched) {
            (None, None) => continue,
            // A counter has the name of a module, and nothing switches its kind.
            (Some(_), Some(switched)) if is_counter => assert_eq!(switched.len(), 1, "{version}"),
            _ => assert_eq!(meant, switched, "{version} {}", module.name),
        }
        let of_subsystem =
            |counter: &&Counter| module.subsystems.contains(&counter.subsystem.as_str());
        let found: Vec<&Counter> = all.iter().filter(of_subsystem).collect();
        rows.push(Row {
            module: module.name,
            in_manual: module.in_manual.unwrap_or(module.name),
            subsystem: found[0].subsystem.clone(),
            total: found.len(),
            enabled: found.iter().filter(|counter| counter.enabled).count(),
            switched: if is_counter { 0 } else { switched.map_or(0, |names| names.len()) },
        });
    }
    assert_eq!(
        rows.iter().map(|row| row.total).sum::<usize>(),
        all.len(),
        "{version}: all of them"
    );
    rows
}

/// Modules, subsystems and counters as LINE published them for 5.7.22, with the manual's names:
/// "MySQLのperformance-schema-instruments利用によるパフォーマンス影響を調べてみた", 2018.
const PUBLISHED: [(&str, &str, usize); 17] = [
    ("module_metadata", "metadata", 3),
    ("module_lock", "lock", 16),
    ("module_buffer", "buffer", 75),
    ("module_buf_page", "buffer_page_io", 32),
    ("module_os", "os", 9),
    ("module_trx", "transaction", 12),
    ("module_purge", "purge", 7),
    ("module_compress", "compression", 4),
    ("module_file", "file_system", 1),
    ("module_index", "index", 6),
    ("module_adaptive_hash", "adaptive_hash_index", 8),
    ("module_ibuf_system", "change_buffer", 8),
    ("module_srv", "server", 25),
    ("module_ddl", "ddl", 6),
    ("module_dml", "dml", 4),
    ("module_log", "recovery", 15),
    ("module_icp", "icp", 4),
];

const METRICS_HEAD: &str = "# The counters of InnoDB, by module\n\n\
    Generated from the five servers of the tests; `UPDATE=1 cargo test -p waggle-instrumentation --test \
    it reference` writes it.\n\n\
    `subsystem`, `counters` and `on by default` are what `information_schema.INNODB_METRICS` has. \
    `switched` is how many counters the server switches when it is given the name of the module: \
    `buffer_pool_size` has the subsystem `server` and is switched by `module_buffer`. Where it is \
    `one by one` the server has no switch for all of them; waggle takes the name all the same. The \
    manual writes `module_buf_page` for `module_buffer_page` and `module_srv` for `module_innodb`; \
    waggle takes both.\n";

#[test]
fn the_modules_of_innodb_are_those_of_the_reference() {
    let mut page = METRICS_HEAD.to_owned();
    for version in Version::ALL {
        let rows = rows(version);
        if version == Version::Mysql57 {
            let found: BTreeSet<_> =
                rows.iter().map(|row| (row.in_manual, row.subsystem.as_str(), row.total)).collect();
            assert_eq!(found, BTreeSet::from(PUBLISHED));
            assert_eq!(PUBLISHED.iter().map(|(_, _, total)| total).sum::<usize>(), 235);
        }
        writeln!(page, "\n## {version}\n").unwrap();
        page.push_str("| module | subsystem | counters | on by default | switched |\n");
        page.push_str("|---|---|---:|---:|---:|\n");
        for Row { module, subsystem, total, enabled, switched, .. } in &rows {
            let switched = match switched {
                0 => "one by one".to_owned(),
                number => number.to_string(),
            };
            writeln!(page, "| `{module}` | {subsystem} | {total} | {enabled} | {switched} |")
                .unwrap();
        }
        let (total, enabled) =
            rows.iter().fold((0, 0), |sum, row| (sum.0 + row.total, sum.1 + row.enabled));
        writeln!(page, "| all | | {total} | {enabled} | |").unwrap();
    }
    holds("innodb-metrics.md", &page);
}

/// The instruments of a class: all, enabled, timed, and those that can be changed while the server runs, at
/// its start only, and never.
type Counts = [usize; 6];

/// By class, such as `wait/io/file`, or by its first part, such as `wait`.
fn classes(connection: &mut Connection, part: fn(&str) -> &str) -> BTreeMap<String, Counts> {
    let state = State::read(connection).unwrap();
    let identity = connection.server_identity();
    let version = ServerVersion::parse(identity.flavour, &identity.version);
    let mut classes = BTreeMap::new();
    for (key, settings) in state.rows(Table::Instruments) {
        let counts: &mut Counts = classes.entry(part(&key[0]).to_owned()).or_default();
        counts[0] += 1;
        counts[1] += usize::from(settings[0].as_deref() == Some("YES"));
        counts[2] += usize::from(settings[1].as_deref() == Some("YES"));
        counts[3 + changeable(&key[0], version) as usize] += 1;
    }
    classes
}

const CLASSES_HEAD: &str = "# The instruments of Performance Schema, by class\n\n\
    Generated from the five servers of the tests, started with `performance_schema=ON` and nothing else \
    of it; `UPDATE=1 cargo test -p waggle-instrumentation --test it reference` writes it.\n\n\
    A plugin brings instruments of its own, and so does replication: a server in use has more. \
    Published for 5.7.22 are 379 of memory, 132 of stages and 326 of waits. The server of the tests has \
    376, 129 and 320. `federated` adds 1 of memory and 2 waits; `log_bin` with a `server_id` adds 1 of \
    memory (`Relay_log_info::mts_coor`). What is left, 1 of memory, 3 stages and 4 waits, is what the \
    source of the plugin `rpl_semi_sync_master` registers, which that build \
    comes without. That adds up to the published numbers; whether the published server ran with these \
    three is not known.\n\n\
    The last three columns say when a change takes effect. Mutexes, rwlocks and conditions are changed at \
    run time from MySQL 5.7.12 and MariaDB 10.5 on, at the start of the server only before. A server \
    counts its own memory for Performance Schema whatever is set.\n";

#[test]
fn the_classes_of_instruments_are_those_of_the_reference() {
    let mut page = CLASSES_HEAD.to_owned();
    for version in Version::ALL {
        let (_server, mut connection) = start(version);
        writeln!(page, "\n## {version}\n").unwrap();
        page.push_str(
            "| class | instruments | enabled | timed | changed at run time | only at start | never |\n\
             |---|---:|---:|---:|---:|---:|---:|\n",
        );
        let mut sum = [0; 6];
        let mut row = |class: &str, counts: Counts| {
            let counts = counts.map(|count| count.to_string()).join(" | ");
            writeln!(page, "| {class} | {counts} |").unwrap();
        };
        for (class, counts) in classes(&mut connection, class_of) {
            row(&class, counts);
            sum = std::array::from_fn(|at| sum[at] + counts[at]);
        }
        row("all", sum);
    }
    holds("performance-schema-classes.md", &page);
}

/// Instruments by the first part of the name, as LINE published them for 5.7.22.
const PUBLISHED_CLASSES: [(&str, usize); 6] = [
    ("idle", 1),
    ("memory", 379),
    ("stage", 132),
    ("statement", 193),
    ("transaction", 1),
    ("wait", 326),
];

/// What `rpl_semi_sync_master` registers (`init_semisync_psi_keys` in
/// `plugin/semisync/semisync_master_plugin.cc` of 5.7). The build of the tests comes without plugins.
const SEMISYNC: [&str; 8] = [
    "memory/semisync/TranxNodeAllocator::block",
    "stage/semisync/Reading semi-sync ACK from slave",
    "stage/semisync/Waiting for semi-sync ACK from slave",
    "stage/semisync/Waiting for semi-sync slave connection",
    "wait/synch/cond/semisync/Ack_receiver::m_cond",
    "wait/synch/cond/semisync/COND_binlog_send_",
    "wait/synch/mutex/semisync/Ack_receiver::m_mutex",
    "wait/synch/mutex/semisync/LOCK_binlog_",
];

#[test]
fn mysql_5_7_22_has_the_published_instruments_less_those_of_semisync() {
    let builder = Server::builder(Version::Mysql57).arg("--performance-schema=ON");
    let server = builder.binlog(true).arg("--federated").start().unwrap();
    assert!(server.version_string().starts_with("5.7.22"), "{}", server.version_string());
    let kind_of: fn(&str) -> &str = |name| name.split('/').next().unwrap();
    let mut found = classes(&mut connect(&server), kind_of);
    for name in SEMISYNC {
        found.get_mut(kind_of(name)).unwrap()[0] += 1;
    }
    let found: Vec<(&str, usize)> =
        found.iter().map(|(kind, counts)| (kind.as_str(), counts[0])).collect();
    assert_eq!(found, PUBLISHED_CLASSES);
}
