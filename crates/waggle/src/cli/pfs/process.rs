//! The process of the server at the other end of a connection.

use std::net::{ToSocketAddrs, UdpSocket};
use std::path::Path;

use anyhow::anyhow;
use waggle_host::{Endpoint, Meter, MeterError, Process};
use waggle_model::Reading;
use waggle_mysql::Connection;
use waggle_mysql::connection::{Endpoint as Reached, MARK, absent_or, text};
use waggle_probes::servers::discover::servers;

/// Why the process of a server is not known.
pub(super) const NOT_FOUND: &str = "the process of the server was not found on this host: it runs elsewhere, or is \
                                    another user's, which only root may look at";

/// Processor time of a process, ns.
pub(super) fn cpu_of(pid: u32) -> Result<u64, MeterError> {
    Meter::of(pid)?.cpu_ns()
}

/// The same for the process of a server, where there is one on this host.
pub(super) fn cpu_of_server(pid: Option<u32>) -> Reading<u64> {
    match pid.map(cpu_of) {
        Some(Ok(ns)) => Reading::Value(ns),
        Some(Err(error)) => Reading::absent(error.to_string()),
        None => Reading::absent(NOT_FOUND),
    }
}

/// The server process of this host that takes connections where the server says that it does; `None`
/// where there is none, or more than one, or the server was reached on another host.
pub(in super::super) fn process_of(connection: &mut Connection) -> anyhow::Result<Option<u32>> {
    // As the server itself counts it: a tunnel may end at a server of another host that says the same as one of here.
    let thread = thread_of(connection)?;
    if thread.is_none() && !is_here(connection.endpoint()) {
        return Ok(None);
    }
    let rows = connection.rows(&format!("SELECT @@port AS {MARK}, @@socket"))?;
    let row = rows.first().ok_or_else(|| anyhow!("the server does not say where it listens"))?;
    let (port, socket) = (text(row, 0).parse::<u16>().ok(), text(row, 1));
    let is_it = |endpoint: &Endpoint| match endpoint {
        Endpoint::Tcp(address) => Some(address.port()) == port,
        Endpoint::Unix(path) => path == Path::new(&socket),
    };
    let found = servers(Path::new("/proc")).into_iter().filter(|found| {
        let process = Process::of(found.pid);
        thread.is_none_or(|thread| process.has_thread(thread))
            && process.listens().value().is_some_and(|listens| listens.iter().any(is_it))
    });
    let pids: Vec<u32> = found.map(|found| found.pid).collect();
    Ok(match pids[..] {
        [pid] => Some(pid),
        _ => None,
    })
}

/// The number that the server's host gives the thread of this session; `None` if Performance Schema does not say.
fn thread_of(connection: &mut Connection) -> anyhow::Result<Option<u64>> {
    let rows = connection.rows(&format!(
        "SELECT THREAD_OS_ID AS {MARK} FROM performance_schema.threads \
         WHERE PROCESSLIST_ID = CONNECTION_ID()"
    ));
    let rows = absent_or(connection, "the threads", rows)?;
    Ok(rows.value().and_then(|rows| text(rows.first()?, 0).parse().ok()))
}

/// Whether that is this host: only its own addresses can be bound.
fn is_here(reached: &Reached) -> bool {
    let Reached::Tcp { host, port } = reached else { return true };
    let addresses = (host.as_str(), *port).to_socket_addrs();
    addresses.is_ok_and(|mut all| all.any(|address| UdpSocket::bind((address.ip(), 0)).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_was_reached_elsewhere_is_not_of_this_host() {
        let at = |host: &str| is_here(&Reached::Tcp { host: host.to_owned(), port: 3306 });
        assert!(is_here(&Reached::Socket("/x".into())) && at("127.0.0.1") && at("localhost"));
        // For documentation only (RFC 5737): nobody has it.
        assert!(!at("192.0.2.7"));
    }
}
