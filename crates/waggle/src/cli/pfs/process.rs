//! The process of a server that is asked by a connection.

use std::path::Path;

use anyhow::anyhow;
use waggle_calibration::{Meter, MeterError};
use waggle_model::Reading;
use waggle_mysql::Connection;
use waggle_mysql::connection::{MARK, text};
use waggle_probes::target::discover::{Endpoint, describe, servers};

/// Processor time of a process, ns.
pub(super) fn cpu_of(pid: u32) -> Result<u64, MeterError> {
    Meter::of(pid)?.cpu_ns()
}

/// The same for the process of a server, where there is one on this host.
pub(super) fn cpu_of_server(pid: Option<u32>) -> Reading<u64> {
    match pid.map(cpu_of) {
        Some(Ok(ns)) => Reading::Value(ns),
        Some(Err(error)) => Reading::absent(error.to_string()),
        None => Reading::absent("the process of the server was not found on this host"),
    }
}

/// The server process of this host that takes connections where the server says that it does; `None`
/// where there is none, or more than one.
pub(in super::super) fn process_of(connection: &mut Connection) -> anyhow::Result<Option<u32>> {
    let rows = connection.rows(&format!("SELECT @@port AS {MARK}, @@socket, @@hostname"))?;
    let row = rows.first().ok_or_else(|| anyhow!("the server does not say where it listens"))?;
    let (port, socket) = (text(row, 0).parse::<u16>().ok(), text(row, 1));
    let is_it = |endpoint: &Endpoint| match endpoint {
        Endpoint::Tcp(address) => Some(address.port()) == port,
        Endpoint::Unix(path) => path == Path::new(&socket),
    };
    let proc_root = Path::new("/proc");
    let found = servers(proc_root).into_iter().filter(|found| {
        let listens = describe(proc_root, found.pid).listens;
        listens.value().is_some_and(|listens| listens.iter().any(is_it))
    });
    let pids: Vec<u32> = found.map(|found| found.pid).collect();
    Ok(match pids[..] {
        [pid] => Some(pid),
        _ => None,
    })
}
