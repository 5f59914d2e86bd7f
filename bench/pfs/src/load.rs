//! The loads: long runs of sysbench. None of them is the one that prices are measured under, which has a client of its
//! own.

use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use waggle_testkit::Server;
use waggle_testkit::sysbench::{Running, Sysbench};

/// Until the caches are warm and every session is at work.
const WARM_UP: Duration = Duration::from_secs(3);
const TABLES: u32 = 4;
const ROWS: u32 = 10_000;
/// Rows of a wide scan.
const SCANNED: &str = "--range-size=2000";

/// A kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) name: &'static str,
    script: &'static str,
    arguments: &'static [&'static str],
}

/// Every load, in the order of the tables.
pub(crate) const LOADS: [Load; 4] = [
    Load { name: "read write", script: "oltp_read_write", arguments: &[] },
    Load { name: "index updates", script: "oltp_update_index", arguments: &[] },
    Load {
        name: "wide scan",
        script: "oltp_read_only",
        arguments: &[
            "--skip-trx=on",
            "--point-selects=0",
            "--simple-ranges=1",
            "--sum-ranges=1",
            "--order-ranges=0",
            "--distinct-ranges=0",
            SCANNED,
        ],
    },
    // As those of the calibration, by another client: what the product predicts most often.
    Load { name: "point selects", script: "oltp_point_select", arguments: &[] },
];

impl Load {
    fn sysbench(self, threads: u32) -> Sysbench {
        let mut sysbench = Sysbench::endless(self.script);
        (sysbench.tables, sysbench.table_size, sysbench.threads) = (TABLES, ROWS, threads);
        sysbench.arguments = self.arguments.iter().map(|&argument| argument.to_owned()).collect();
        sysbench
    }

    /// Starts it and returns when it is warm. It ends when it is dropped.
    pub(crate) fn start(self, server: &Server, threads: u32) -> Result<Running> {
        let running = self.sysbench(threads).start(server)?;
        sleep(WARM_UP);
        Ok(running)
    }
}

/// Makes the tables that every load uses.
pub(crate) fn prepare(server: &Server) -> Result<()> {
    Ok(LOADS[0].sysbench(1).prepare(server)?)
}
