//! What waggle costs, on each server and load.

use anyhow::Result;
use serde_json::Value;
use waggle_bench_frame::{Run, prove};
use waggle_testkit::Server;
use waggle_testkit::sysbench::Sysbench;

use crate::settings::Settings;

/// The loads: a read of a row, a change of one, a read of a hundred.
const LOADS: [(&str, &str); 3] = [
    ("point select", "oltp_point_select"),
    ("row update", "oltp_update_non_index"),
    ("range of 100 rows", "select_random_ranges"),
];
const THREADS: u32 = 4;

/// One server under one load.
pub(crate) struct Priced {
    pub(crate) server: String,
    pub(crate) load: &'static str,
    /// What `waggle prove --json` said.
    pub(crate) json: Value,
}

pub(crate) fn measure(settings: &Settings, run: &Run) -> Result<Vec<Priced>> {
    let (most, within) = settings.price();
    let words =
        ["--for".to_owned(), format!("{most}s"), "--within".to_owned(), format!("{within}ns")];
    let mut all = Vec::new();
    for version in settings.servers() {
        let server = Server::start(version)?;
        for (load, script) in LOADS {
            run.say(&format!("{version}, {load}"))?;
            let sysbench = Sysbench { threads: THREADS, tables: 1, ..Sysbench::endless(script) };
            sysbench.prepare(&server)?;
            let running = sysbench.start(&server)?;
            let json = prove(server.pid(), &words)?;
            drop(running);
            sysbench.cleanup(&server)?;
            all.push(Priced { server: server.version_string().to_owned(), load, json });
        }
    }
    Ok(all)
}
