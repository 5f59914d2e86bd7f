//! How often the rings are emptied.

use std::time::{Duration, Instant};

/// While statements come. A ring of 2 MiB lasts this long at 100 MB/s of records from one processor.
const WHILE_BUSY: Duration = Duration::from_millis(20);
/// While a ring fills: long texts, or a host with many processors, whose rings are of 512 KiB.
const WHILE_FILLING: Duration = Duration::from_millis(4);
/// From this share of a ring on it fills.
const FILLING: f64 = 0.25;
/// While no statements come or run, because waking up is most of the cost of watching an idle server. A flood
/// that follows silence may bring 40 MB/s to a ring of 2 MiB.
const WHILE_IDLE: Duration = Duration::from_millis(50);
/// How long no statement must have come before that.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// Follows whether anything happens.
#[derive(Debug)]
pub(crate) struct Pace {
    /// When the last statement came.
    heard_at: Instant,
    /// Whether statements ran at the last look: where they wait for one lock, all end at once.
    is_busy: bool,
    /// Whether a ring was filling at the last drain.
    is_filling: bool,
}

impl Pace {
    pub(crate) fn begin() -> Pace {
        Pace { heard_at: Instant::now(), is_busy: false, is_filling: false }
    }

    /// A statement came.
    pub(crate) fn heard(&mut self) {
        self.heard_at = Instant::now();
    }

    /// Whether statements run.
    pub(crate) fn looked(&mut self, is_busy: bool) {
        self.is_busy = is_busy;
    }

    /// The rings were drained, the fullest of which was `filled`, 0 to 1.
    pub(crate) fn drained(&mut self, filled: f64) {
        self.is_filling = filled >= FILLING;
    }

    /// How long to leave the rings alone.
    pub(crate) fn pause(&self) -> Duration {
        let is_idle = !self.is_busy && self.heard_at.elapsed() >= IDLE_AFTER;
        if self.is_filling {
            WHILE_FILLING
        } else if is_idle {
            WHILE_IDLE
        } else {
            WHILE_BUSY
        }
    }
}
