//! What the capture passes to the view.

use std::time::Duration;

use waggle_model::{Losses, Record, Server};

/// One interval of one server that has ended.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What ran.
    pub record: Record,
    /// How long the server ran at the end of the interval; `None` if that could not be read.
    pub uptime: Option<Duration>,
    /// The time of day at its end, as it is to be shown.
    pub time: String,
    /// What watching was found to cost this build of the server, in words; `None` where nobody has measured it here.
    pub price: Option<String>,
}

/// Intervals of one server that the view did not get: the terminal took no output.
#[derive(Clone, Debug)]
pub struct Missed {
    /// Whose they are.
    pub server: Server,
    /// How many.
    pub intervals: u64,
    /// What was lost in them.
    pub losses: Losses,
    /// Nothing follows of the server.
    pub ended: bool,
}

impl Missed {
    /// One interval.
    pub fn of(record: &Record) -> Missed {
        let Record { server, interval, ended, .. } = record;
        Missed {
            server: server.clone(),
            intervals: 1,
            losses: interval.losses,
            ended: ended.is_some(),
        }
    }

    /// Adds an interval of the same server.
    pub fn add(&mut self, record: &Record) {
        self.intervals += 1;
        self.losses = self.losses.plus(&record.interval.losses);
        self.ended |= record.ended.is_some();
    }

    /// Whether they are of this life of a server.
    pub fn is_of(&self, server: &Server) -> bool {
        self.server.pid == server.pid && self.server.start_ticks == server.start_ticks
    }
}
