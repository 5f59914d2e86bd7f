//! The process of a server that is asked by a connection.

use std::fs;
use std::path::Path;

use anyhow::anyhow;
use waggle_model::Reading;
use waggle_mysql::Connection;
use waggle_mysql::connection::{MARK, text};
use waggle_probes::target::discover::{Endpoint, describe, servers};

/// Processor time of a process, ns: `utime` and `stime` of `/proc/PID/stat` (proc(5)), in ticks.
pub(super) fn cpu_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let ticks = ticks()? + ticks()?;
    Some(ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second()))
}

/// The same for the process of a server, where there is one on this host.
pub(super) fn cpu_of_server(pid: Option<u32>) -> Reading<u64> {
    match pid.map(|pid| cpu_of(pid).ok_or(pid)) {
        Some(Ok(ns)) => Reading::Value(ns),
        Some(Err(pid)) => Reading::absent(format!("/proc/{pid}/stat cannot be read")),
        None => Reading::absent("the process of the server was not found on this host"),
    }
}

/// The server process of this host that takes connections where the server says that it does; `None`
/// where there is none, or more than one.
pub(super) fn process_of(connection: &mut Connection) -> anyhow::Result<Option<u32>> {
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
