//! The circumstances of a run: where, when and how it was measured.

use jiff::Timestamp;
use waggle_calibration::Awake;

use crate::lengths::{LONGER_ABOVE_THREADS, SESSION_TURN_S, TURN_S};
use crate::report::words::{self, NOT_MEASURED};
use crate::run_info::{Host, LoadInfo, Run, RunInfo, Server};
use crate::server_option::ServerOption;

/// The names of all facts and their values, with units.
pub(super) fn all(info: &RunInfo) -> Vec<(&'static str, String)> {
    let (of_server, of_load) = (server(&info.server), load(&info.load));
    let has_load = info.load.sysbench_version.is_some();
    [of_server, of_load, host(&info.host), run(&info.run, has_load), turns(&info.server)].concat()
}

fn server(server: &Server) -> Vec<(&'static str, String)> {
    let has_log = server.options.iter().any(|it| ServerOption::of(it).name == "log_bin");
    let without_log = if has_log { "" } else { ", without a binary log" };
    let whose = match (&server.program, server.is_foreign) {
        (_, true) => "a server that runs already; only dynamic scenarios were measured".to_owned(),
        (Some(program), false) => format!("private servers of {program}{without_log}"),
        (None, false) => format!("private servers{without_log}"),
    };
    let options = match server.options.is_empty() {
        true => "those of its configuration".to_owned(),
        false => server.options.join(" "),
    };
    vec![
        ("server", server.version.clone()),
        ("whose", whose),
        ("settings of every arm", options),
        ("size of the data", amount(server.data_bytes)),
        ("buffer pool", amount(server.buffer_pool_bytes)),
    ]
}

fn load(load: &LoadInfo) -> Vec<(&'static str, String)> {
    let what = match &load.sysbench_version {
        Some(version) => format!("sysbench {version}"),
        None => "that of others".to_owned(),
    };
    let mut info = vec![("load", what)];
    if let Some((tables, rows)) = load.tables.zip(load.rows_per_table) {
        let rows = words::number(rows as f64, 0);
        info.push(("tables", format!("{tables} of {rows} rows each")));
    }
    info
}

/// A computer, and what of it was used.
pub(super) fn host(host: &Host) -> Vec<(&'static str, String)> {
    let unknown = || "not known".to_owned();
    let pinned = host.pinned.as_ref().map_or("not pinned".to_owned(), |pinned| {
        let list = |processors: &[u32]| {
            processors.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
        };
        format!("server on {}, load on {}", list(&pinned.server), list(&pinned.load))
    });
    vec![
        ("host", host.name.clone()),
        ("CPUs", format!("{} online", host.processors)),
        ("CPU model", host.cpu_model.clone().unwrap_or_else(unknown)),
        ("CPUs of server and load", pinned),
        ("memory", host.memory_bytes.map_or_else(unknown, |bytes| words::bytes(bytes as f64))),
        ("hypervisor", host.hypervisor.clone().unwrap_or_else(|| "none known".to_owned())),
        ("kernel", host.kernel.clone()),
        ("operating system", host.system.clone().unwrap_or_else(unknown)),
    ]
}

/// How the windows of servers of our own are made. Nobody else's is changed in each turn.
fn turns(server: &Server) -> Vec<(&'static str, String)> {
    if server.is_foreign {
        return Vec::new();
    }
    let turn = words::duration(TURN_S);
    let long = words::number(TURN_S / SESSION_TURN_S, 0);
    let turn = format!(
        "{turn} in closed loads whose arms follow each other at random, longer in proportion with more than {long} sessions; none where each arm has a restart"
    );
    let awake = format!("in closed loads of up to {} sessions for each of them", Awake::BUSY);
    vec![("turns of the arms", turn), ("CPUs kept from halting", awake)]
}

/// The lengths of the windows. The sessions of others are never stopped, and most of them may be idle.
fn window(run: &Run, has_load: bool) -> String {
    let window = words::duration(run.window_s);
    let settle = words::duration(run.settle_s);
    let settle = format!("before it {settle} under load that do not count");
    match has_load {
        false => format!("{window}; {settle}"),
        true => format!(
            "{window}, longer in proportion with more than {LONGER_ABOVE_THREADS} sessions; {settle}, shared among its turns, none in closed loads from {LONGER_ABOVE_THREADS} sessions on"
        ),
    }
}

fn run(run: &Run, has_load: bool) -> Vec<(&'static str, String)> {
    let end = run.end.map_or("not finished".to_owned(), time);
    let budget = run.budget_s.map_or("none".to_owned(), words::duration);
    let only = match run.only.is_empty() {
        true => "everything".to_owned(),
        false => run.only.join(", "),
    };
    vec![
        ("waggle", run.waggle_version.clone()),
        ("command", run.command.clone()),
        ("begin and end", format!("{} to {end}", time(run.begin))),
        ("taken up again", format!("{} times", run.resumed)),
        ("scale", run.scale.clone()),
        ("confined to", only),
        ("time budget", budget),
        ("seed of the order", run.seed.to_string()),
        ("blocks of each cell", run.blocks.to_string()),
        ("window", window(run, has_load)),
        ("a window is void above a steal of", words::share(run.steal_limit * 100.0)),
    ]
}

fn amount(bytes: Option<u64>) -> String {
    bytes.map_or(NOT_MEASURED.to_owned(), |bytes| words::bytes(bytes as f64))
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}
