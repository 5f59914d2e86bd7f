//! What the capture hands over.

use std::time::Duration;

use waggle_model::{Cost, Interval, Server};

/// One interval of one server that has ended.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Whose it is.
    pub server: Server,
    /// How long the server ran at the end of the interval; `None` where that could not be read.
    pub uptime: Option<Duration>,
    /// The time of day at its end, as it is to be shown.
    pub time: String,
    /// What ran.
    pub interval: Interval,
    /// Whether the running sessions could be read. Where not, what ran on is not in the load.
    pub sessions_known: bool,
    /// What watching cost.
    pub cost: Cost,
    /// The server ended in this interval.
    pub ended: bool,
}
