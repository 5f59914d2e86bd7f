//! Ages new tables.
//!
//! `sysbench … prepare` fills the pages of an index one after another, 15/16 full (`innodb_fill_factor`, and sorted
//! index builds in the manual of MySQL). Nearly every page splits when the first rows change, and a server that has done
//! less work has more of that before it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;

use super::sysbench::LOOK_EVERY;
use super::{Driver, LoadError, Pace, Request};

/// Rows for each transaction of the ageing. `oltp_write_only` moves two entries of the secondary index, so a page of 700
/// entries gets some 70, and has room for 50.
pub const AGE_ROWS: u64 = 20;

/// Lets a workload use its tables for a while. `false` where somebody stopped it.
///
/// # Errors
/// As [`Driver::start`] and [`Driver::count`].
pub fn age(request: &Request<'_>, stop: &AtomicBool) -> Result<bool, LoadError> {
    let enough = u64::from(request.tables) * u64::from(request.rows) / AGE_ROWS;
    let mut driver = Driver::start(request)?;
    driver.go(Pace::Closed)?;
    while driver.transactions()? < enough {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        sleep(LOOK_EVERY);
    }
    driver.pause()?;
    Ok(true)
}
