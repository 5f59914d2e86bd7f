//! Which of the servers of this host a connection leads to.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use waggle_host::{Endpoint, Process, Waited, monotonic_ns};
use waggle_model::Loss;
use waggle_mysql::Connection;
use waggle_mysql::connection::{ConnectionError, Endpoint as Leads};
use waggle_observe::Capture;
use waggle_probes::servers::discover::servers;

use crate::lacking;

/// How often the rings are emptied while our own statement is awaited.
const DRAIN_EVERY: Duration = Duration::from_millis(10);
/// How long our own statement may take to come back through the tap, without the time in which we do not get to run.
const MARKER_WAIT: Duration = Duration::from_secs(3);

/// The servers of this host that listen where the connection leads to: on the port that the server names as its own,
/// or on a socket of that name. It may be another one's port, in another network namespace. One of which that cannot be seen may be it.
pub(crate) fn candidates(connection: &Connection) -> Vec<u32> {
    let own_port = connection.server_identity().port;
    let is_it = |endpoint: &Endpoint| match (endpoint, own_port, connection.endpoint()) {
        (Endpoint::Tcp(address), Some(port), _) => address.port() == port,
        (Endpoint::Unix(path), None, Leads::Socket(own)) => path.file_name() == own.file_name(),
        _ => false,
    };
    let listens =
        |pid: u32| Process::of(pid).listens().value().is_none_or(|all| all.iter().any(is_it));
    let found = servers(Path::new("/proc")).into_iter().map(|found| found.pid);
    found.filter(|pid| listens(*pid)).collect()
}

/// Why a server of this host does not answer there; `None` where none is seen to stand still.
pub(crate) fn standstill_at(leads: &Leads) -> Option<String> {
    let mut found = servers(Path::new("/proc")).into_iter().map(|found| Process::of(found.pid));
    found.find_map(|process| process.standstill().filter(|_| listens_at(&process, leads)))
}

/// Whether it is this process that listens there, and no other that names its port or its socket the same.
fn listens_at(process: &Process, leads: &Leads) -> bool {
    let is_it = |endpoint: &Endpoint| match (endpoint, leads) {
        (Endpoint::Tcp(address), Leads::Tcp { host, port }) => {
            address.port() == *port
                && matches!(&**host, "localhost" | "127.0.0.1" | "::1")
                && process.shares_network()
        }
        (Endpoint::Unix(path), Leads::Socket(own)) => process.sees_file(path, own),
        _ => false,
    };
    process.listens().value().is_some_and(|all| all.iter().any(is_it))
}

/// As [`of_connection`].
///
/// # Errors
/// No watched server has it: with what may be the reason.
pub(crate) fn found(
    capture: &mut Capture,
    connection: &mut Connection,
) -> anyhow::Result<(u32, u64)> {
    let found = of_connection(capture, connection)?;
    found.ok_or_else(|| anyhow!(not_heard(capture)))
}

/// That a statement of ours did not come through the tap, and why.
fn not_heard(capture: &Capture) -> String {
    let without = |pid: &u32| capture.losses(*pid).get(Loss::NoStatement);
    match capture.watched().iter().max_by_key(|(pid, _)| without(pid)) {
        Some((pid, watched)) if without(pid) > 0 => format!(
            "a statement of ours did not come through the tap, and {} replies of pid {pid} became no \
             statement: waggle reads this server wrongly; report the build {}",
            without(pid),
            watched.server.build
        ),
        _ => {
            let missing = match &capture.missing()[..] {
                [] => String::new(),
                missing => format!(" ({})", lacking::servers(missing)),
            };
            format!(
                "the option file leads to a server that is not watched here{missing}: a statement of ours did \
                 not come through the tap; name the socket of the server in the option file, or choose it with --pid"
            )
        }
    }
}

/// The process and the session of the connection, by a statement of its own; `None` if no watched server has it.
///
/// # Errors
/// The connection is broken.
pub(crate) fn of_connection(
    capture: &mut Capture,
    connection: &mut Connection,
) -> Result<Option<(u32, u64)>, ConnectionError> {
    let own_connection = connection.server_identity().connection_id;
    let marker = format!("waggle_{}_{}", std::process::id(), monotonic_ns());
    let textless = capture.watched().iter().filter(|(_, one)| !one.layout.shows_texts());
    let textless: Vec<u32> = textless.map(|(pid, _)| *pid).collect();
    let mut waited = Waited::begin();
    let mut found = None;
    while found.is_none() && waited.counted() < MARKER_WAIT {
        // Again, because a full ring may have lost it.
        connection.say(&marker)?;
        thread::sleep(DRAIN_EVERY);
        waited.look();
        capture.drain(|statement| {
            // One of the two may not be known of this build.
            let is_us = statement.connection_id.is_none_or(|id| id == own_connection);
            let is_marker = match statement.text {
                Some(text) => holds(text.bytes, marker.as_bytes()),
                None => textless.contains(&statement.pid) && statement.connection_id.is_some(),
            };
            if is_us && is_marker {
                found = Some((statement.pid, statement.thd));
            }
        });
    }
    Ok(found)
}

fn holds(text: &[u8], marker: &[u8]) -> bool {
    text.windows(marker.len()).any(|window| window == marker)
}
