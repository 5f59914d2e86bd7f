//! The loads: long runs of sysbench that keep the server busy.

use std::fmt;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use waggle_testkit::Server;
use waggle_testkit::sysbench::{Length, Running, Sysbench};

/// Until the caches are warm and every session is at work.
const WARM_UP: Duration = Duration::from_secs(2);
const TABLES: u32 = 2;
const ROWS: u32 = 10_000;

/// A kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Load {
    script: &'static str,
    prepared: bool,
}

impl Load {
    /// Every load, in the order of the tables.
    pub(crate) const ALL: [Load; 4] = [
        Load { script: "oltp_point_select", prepared: false },
        Load { script: "oltp_point_select", prepared: true },
        Load { script: "oltp_read_write", prepared: false },
        Load { script: "oltp_read_write", prepared: true },
    ];

    /// The load with the most statements per second.
    pub(crate) const DENSEST: Load = Load::ALL[1];

    /// The name in tables and files.
    pub(crate) fn name(self) -> &'static str {
        match (self.script, self.prepared) {
            ("oltp_point_select", false) => "point select, text",
            ("oltp_point_select", true) => "point select, prepared",
            (_, false) => "read write, text",
            (_, true) => "read write, prepared",
        }
    }

    fn sysbench(self, threads: u32) -> Sysbench {
        let mut sysbench = Sysbench::new(self.script);
        (sysbench.tables, sysbench.table_size, sysbench.threads) = (TABLES, ROWS, threads);
        sysbench.ps_mode = self.prepared;
        // For sysbench, zero seconds and no number of events is without end.
        sysbench.length = Length::Time(Duration::ZERO);
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
