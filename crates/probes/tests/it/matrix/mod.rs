//! The matrix: server × transport × kind of statement. What the tap captures is compared with what
//! the client sent and what the server answered, one by one and in order: none missing, none extra,
//! every field equal.

mod absent;
mod expected;
mod hidden;
mod kinds;
mod scene;
mod talker;

use std::any::Any;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use waggle_model::Loss;
use waggle_testkit::client::Transport;
use waggle_testkit::{Server, Version, on_each_server};

use kinds::{KINDS, Kind, Over};
use scene::Scene;

const TRANSPORTS: [Transport; 4] =
    [Transport::Tcp, Transport::Unix, Transport::Tls, Transport::Compressed];

/// Faults of one cell that are printed.
const TOLD_MAX: usize = 4;

/// The settings that the kinds need.
fn start(version: Version, query_cache: bool, arguments: &[&str]) -> Server {
    let mut builder = Server::builder(version).binlog(true).max_connections(400);
    builder = builder.arg("--event-scheduler=ON").arg("--max-allowed-packet=128M");
    builder = builder.arg("--log-bin-trust-function-creators=1");
    if query_cache {
        // Only for statements that ask for it.
        builder = builder.arg("--query-cache-type=2").arg("--query-cache-size=16M");
    }
    for argument in arguments {
        builder = builder.arg(*argument);
    }
    builder.start().unwrap()
}

/// Runs one kind; what differs, or why it could not run to its end.
fn run(scene: &mut Scene, kind: &Kind) -> Vec<String> {
    let mut found = Vec::new();
    let mut told = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        found.push(format!("did not run: {}", text.unwrap_or("a panic")));
    };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| kind.run.run(scene))) {
        told(panic);
    }
    match catch_unwind(AssertUnwindSafe(|| scene.reckon())) {
        Ok(different) => found.extend(different),
        Err(panic) => told(panic),
    }
    found
}

/// Runs every kind over the transports, prints the table and fails with all that differs.
fn matrix(version: Version, transports: &[Transport], arguments: &[&str]) {
    let begin = Instant::now();
    let query_cache = arguments.is_empty() && kinds::has_query_cache(version);
    let server = start(version, query_cache, arguments);
    let mut scene = Scene::set(server, query_cache, transports);
    let mut failures = String::new();
    let mut table = format!("{version} {arguments:?}\n{:40}", "");
    transports.iter().for_each(|transport| _ = write!(table, " {transport:>10}"));
    for kind in KINDS {
        let _ = write!(table, "\n{:40}", kind.name);
        for &transport in transports {
            if !(kind.needs)(&scene) || (kind.over == Over::First && transport != transports[0]) {
                let _ = write!(table, " {:>10}", "-");
                continue;
            }
            scene.transport = transport;
            let since = Instant::now();
            let before = scene.losses().get(Loss::NoStatement);
            let mut found = run(&mut scene, kind);
            let without = scene.losses().get(Loss::NoStatement) - before;
            if without > 0 {
                found.push(format!("{without} replies became no statement"));
            }
            let mark = if found.is_empty() { "ok" } else { "FAILED" };
            let _ = write!(table, " {:>10}", format!("{mark} {}", since.elapsed().as_millis()));
            // A fault of a thousand connections is reported by a few of them.
            for one in found.iter().take(TOLD_MAX) {
                let _ = writeln!(failures, "{version} {transport} {}: {one}", kind.name);
            }
            if let Some(more) = found.len().checked_sub(TOLD_MAX + 1) {
                let _ = writeln!(
                    failures,
                    "{version} {transport} {}: and {} more",
                    kind.name,
                    more + 1
                );
            }
        }
    }
    let losses = scene.losses();
    let lost = losses.statements();
    println!("{table}\nlost {lost}, {:.1} s", begin.elapsed().as_secs_f64());
    assert!(failures.is_empty() && lost == 0, "{losses:?}\n{failures}");
}

fn every_kind_over_every_transport(version: Version) {
    matrix(version, &TRANSPORTS, &[]);
}

on_each_server!(every_kind_over_every_transport);

/// The short form, for a build of another compiler.
fn every_kind_over_one_transport(version: Version) {
    matrix(version, &[Transport::Tcp], &[]);
}

on_each_server!(every_kind_over_one_transport: mariadb_11_8 Mariadb118);

#[test]
fn every_kind_without_the_query_cache_of_mysql_57() {
    matrix(Version::Mysql57, &[Transport::Tcp], &["--query-cache-type=0"]);
}

const POOL: [&str; 2] = ["--thread-handling=pool-of-threads", "--thread-pool-size=2"];

fn every_kind_with_a_thread_pool(version: Version) {
    matrix(version, &[Transport::Tcp, Transport::Unix], &POOL);
}

on_each_server!(
    every_kind_with_a_thread_pool: mariadb_10_11 Mariadb1011, mariadb_11_4 Mariadb114
);
