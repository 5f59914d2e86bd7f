//! Intervals as the terminal view takes them.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use waggle_host::{Process, processors};
use waggle_model::{Record, Server};
use waggle_tui::{Options, Snapshot};

use super::time_of;

/// How long a server had run at one moment.
struct Uptime {
    server: Server,
    at_ns: u64,
    uptime: Option<Duration>,
}

/// Makes snapshots of intervals.
#[derive(Default)]
pub(super) struct Snapshots {
    uptimes: Vec<Uptime>,
}

impl Snapshots {
    /// The snapshot of a record. The first call reads the time zones of the host.
    pub(super) fn of(&mut self, record: Arc<Record>) -> Snapshot {
        let time = time_of(record.end_wall_ns).to_zoned(TimeZone::system());
        let uptime = self.uptime(&record.server, record.interval.end_ns);
        let record = Arc::unwrap_or_clone(record);
        Snapshot { record, uptime, time: time.strftime("%H:%M:%S").to_string() }
    }

    /// How long a server had run at `end_ns`. It is asked once: the rest is counting.
    fn uptime(&mut self, server: &Server, end_ns: u64) -> Option<Duration> {
        self.uptimes.retain(|one| one.server.pid != server.pid || one.server == *server);
        let known = self.uptimes.iter().find(|one| one.server == *server);
        if let Some(Uptime { at_ns, uptime, .. }) = known {
            return uptime.map(|up| up + Duration::from_nanos(end_ns.saturating_sub(*at_ns)));
        }
        let uptime = Process::of(server.pid).uptime().value().copied();
        self.uptimes.push(Uptime { server: server.clone(), at_ns: end_ns, uptime });
        uptime
    }
}

/// What the view is told at its start; 0 processors where the system does not say how many there are.
pub(super) fn view_options(literals: bool) -> Options {
    Options { cpus: processors::online().unwrap_or_default(), literals }
}
