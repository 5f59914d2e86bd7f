//! The loads: long runs of sysbench that keep the server busy.

use std::fmt;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use waggle_testkit::Server;
use waggle_testkit::sysbench::{Running, Sysbench};

/// Until the caches are warm and every session is at work.
const WARM_UP: Duration = Duration::from_secs(2);
const TABLES: u32 = 2;
const ROWS: u32 = 10_000;
/// Statements of 60 KB that cost the server little.
const LONG_TEXTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/long_texts.lua");

/// A kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Load {
    script: &'static str,
    prepared: bool,
}

impl Load {
    /// Every load, in the order of the tables.
    pub(crate) const ALL: [Load; 6] = [
        Load { script: "oltp_point_select", prepared: false },
        Load { script: "oltp_point_select", prepared: true },
        Load { script: "oltp_read_write", prepared: false },
        Load { script: "oltp_read_write", prepared: true },
        Load { script: LONG_TEXTS, prepared: false },
        Load { script: "oltp_write_only", prepared: false },
    ];

    /// Those that price limits of texts: short and long statements.
    pub(crate) const OF_TEXTS: [Load; 2] = [Load::ALL[0], Load::ALL[4]];

    /// Those that price waits: what hardly waits, what commits, and what does little else.
    pub(crate) const OF_WAITS: [Load; 3] = [Load::ALL[0], Load::ALL[2], Load::ALL[5]];

    /// The load with the most statements per second.
    pub(crate) const DENSEST: Load = Load::ALL[1];

    /// The name in tables and files.
    pub(crate) fn name(self) -> &'static str {
        match (self.script, self.prepared) {
            ("oltp_point_select", false) => "point select, text",
            ("oltp_point_select", true) => "point select, prepared",
            ("oltp_read_write", false) => "read write, text",
            ("oltp_read_write", true) => "read write, prepared",
            ("oltp_write_only", _) => "write only",
            _ => "texts of 60 KB",
        }
    }

    /// What the limit of waits under it is called in files.
    pub(crate) fn limit_of_waits(self) -> &'static str {
        match self.script {
            "oltp_point_select" => "waits_us_point_select",
            "oltp_read_write" => "waits_us_read_write",
            _ => "waits_us_write_only",
        }
    }

    fn sysbench(self, threads: u32) -> Sysbench {
        let mut sysbench = Sysbench::endless(self.script);
        (sysbench.tables, sysbench.table_size, sysbench.threads) = (TABLES, ROWS, threads);
        sysbench.ps_mode = self.prepared;
        sysbench
    }

    /// Starts the load and returns when it is warm. It ends when it is dropped.
    pub(crate) fn start(self, server: &Server, threads: u32) -> Result<Running> {
        let running = self.sysbench(threads).start(server)?;
        thread::sleep(WARM_UP);
        Ok(running)
    }
}

impl fmt::Display for Load {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

/// Makes the tables that every load uses.
pub(crate) fn prepare(server: &Server) -> Result<()> {
    Ok(Load::ALL[2].sysbench(1).prepare(server)?)
}
