//! Intervals as the terminal view takes them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use waggle_host::{Process, processors};
use waggle_instrumentation::cost::calibration::Host;
use waggle_instrumentation::cost::proven::Proven;
use waggle_model::{Record, Server};
use waggle_tui::{Options, Snapshot};

use super::time_of;

/// What is kept may change while it is shown.
const READ_EVERY_NS: u64 = 30_000_000_000;

/// What was asked of a server at one moment.
struct Asked {
    server: Server,
    at_ns: u64,
    uptime: Option<Duration>,
    /// The price of watching it, and when that was read.
    proven: Option<Proven>,
    read_ns: u64,
}

/// Makes snapshots of intervals.
pub(super) struct Snapshots {
    /// Where it is kept what `waggle prove` has found; `None` where that is the price of another way to watch.
    prices: Option<PathBuf>,
    asked: Vec<Asked>,
}

impl Snapshots {
    /// None yet. Prices are read from this directory, if any.
    pub(super) fn new(prices: Option<PathBuf>) -> Snapshots {
        Snapshots { prices, asked: Vec::new() }
    }

    /// The snapshot of a record. The first call reads the time zones of the host.
    pub(super) fn of(&mut self, record: Arc<Record>) -> Snapshot {
        let end = time_of(record.end_wall_ns);
        let end_ns = record.interval.end_ns;
        let asked = self.asked(&record.server, end_ns);
        let since = Duration::from_nanos(end_ns.saturating_sub(asked.at_ns));
        let uptime = asked.uptime.map(|up| up + since);
        let price = asked.proven.as_ref().map(|proven| in_words(proven, end));
        let time = end.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string();
        Snapshot { record: Arc::unwrap_or_clone(record), uptime, time, price }
    }

    /// What is known of a server at `end_ns`. How long it has run is asked once: the rest is counting.
    fn asked(&mut self, server: &Server, end_ns: u64) -> &Asked {
        self.asked.retain(|one| one.server.pid != server.pid || one.server == *server);
        let known = self.asked.iter().position(|one| one.server == *server);
        let at = known.unwrap_or_else(|| {
            let uptime = Process::of(server.pid).uptime().value().copied();
            let (server, proven) = (server.clone(), self.price(server));
            self.asked.push(Asked { server, at_ns: end_ns, uptime, proven, read_ns: end_ns });
            self.asked.len() - 1
        });
        if end_ns.saturating_sub(self.asked[at].read_ns) >= READ_EVERY_NS {
            self.asked[at].proven = self.price(server);
            self.asked[at].read_ns = end_ns;
        }
        &self.asked[at]
    }

    /// What watching this build was found to cost. What cannot be read is told by `waggle pfs cost`.
    fn price(&self, server: &Server) -> Option<Proven> {
        let all = Proven::find(self.prices.as_ref()?, &Host::look(), &server.build.0).ok()?;
        all.into_iter().find(|one| one.what == Proven::WAGGLE)
    }
}

/// A price and its age.
fn in_words(proven: &Proven, now: Timestamp) -> String {
    let Proven { ns, low_ns, high_ns, base_ns, .. } = proven;
    let ago = proven.ago(now);
    let percent = |ns: f64| 100.0 * ns / base_ns;
    if *low_ns <= 0.0 {
        let most = percent(high_ns.max(0.0));
        return format!("costs at most {most:.1} % of a statement, measured {ago}");
    }
    format!("costs {:.2} µs per statement ({:.1} %), measured {ago}", ns / 1e3, percent(*ns))
}

/// What the view is told at its start; 0 processors where the system does not say how many there are.
pub(super) fn view_options(literals: bool) -> Options {
    Options { cpus: processors::online().unwrap_or_default(), literals }
}

#[cfg(test)]
mod tests {
    use waggle_instrumentation::cost::proven::Method;

    use super::*;

    #[test]
    fn a_price_is_told_with_its_age_and_one_that_may_be_nothing_by_its_end() {
        let proven = |ns, low_ns, high_ns| Proven {
            at: Timestamp::UNIX_EPOCH,
            host: Host::look(),
            build: "b".to_owned(),
            version: "9.7.4".to_owned(),
            what: Proven::WAGGLE.to_owned(),
            method: Method::Coin,
            ns,
            low_ns,
            high_ns,
            base_ns: 20_000.0,
        };
        let now = Timestamp::from_second(3 * 3_600).unwrap();
        assert_eq!(
            in_words(&proven(1_610.0, 1_583.0, 1_637.0), now),
            "costs 1.61 µs per statement (8.1 %), measured 3 h ago"
        );
        assert_eq!(
            in_words(&proven(100.0, -300.0, 500.0), now),
            "costs at most 2.5 % of a statement, measured 3 h ago"
        );
        assert_eq!(
            in_words(&proven(-100.0, -150.0, -50.0), now),
            "costs at most 0.0 % of a statement, measured 3 h ago"
        );
    }
}
