//! Who used the processors of a server, from interval to interval.

use std::io;

use waggle_host::{HostTime, Meter, ProcessorTimes, monotonic_ns, processors};
use waggle_model::{ProcessorUse, Reading};

/// In a shorter interval, such as the last one, the ticks of processors mean nothing.
const SHORTEST_NS: u64 = 50_000_000;

/// Reads the processors of one server.
pub(crate) struct Processors {
    pid: u32,
    /// Whether no steal is none: a virtual machine need not be told.
    tells_steal: bool,
    last: Result<Look, String>,
}

/// What was read at one moment.
struct Look {
    at_ns: u64,
    usable: Vec<usize>,
    all: HostTime,
    server_ns: u64,
}

impl Processors {
    /// Begins with a server.
    pub(crate) fn open(pid: u32, times: &io::Result<ProcessorTimes>) -> Processors {
        let tells_steal = processors::are_virtual() == Some(false);
        Processors { pid, tells_steal, last: Look::at(pid, times) }
    }

    /// What was used since the call before. `times` are of now.
    pub(crate) fn read(&mut self, times: &io::Result<ProcessorTimes>) -> Reading<ProcessorUse> {
        let before = std::mem::replace(&mut self.last, Look::at(self.pid, times));
        let used = match (&before, &self.last) {
            (Ok(before), Ok(now)) => {
                self.tells_steal |= now.all.steal_ticks > 0;
                now.since(before, self.tells_steal)
            }
            (_, Err(why)) | (Err(why), _) => Err(why.clone()),
        };
        used.map_or_else(Reading::Absent, Reading::Value)
    }
}

impl Look {
    fn at(pid: u32, times: &io::Result<ProcessorTimes>) -> Result<Look, String> {
        let words = |error: &io::Error| error.to_string();
        let times = times.as_ref().map_err(words)?;
        let usable = processors::usable_by(pid).map_err(|error| words(&error))?;
        let all = times.of(&usable).map_err(|error| words(&error))?;
        let server_ns = Meter::of(pid).and_then(|meter| meter.cpu_ns());
        let server_ns = server_ns.map_err(|error| error.to_string())?;
        Ok(Look { at_ns: monotonic_ns(), usable, all, server_ns })
    }

    fn since(&self, before: &Look, tells_steal: bool) -> Result<ProcessorUse, String> {
        let passed_ns = self.at_ns.saturating_sub(before.at_ns);
        if passed_ns < SHORTEST_NS {
            return Err("the interval is too short for the ticks of the processors".to_owned());
        }
        if self.usable != before.usable || self.all.processors != before.all.processors {
            return Err("the server may use other processors than before".to_owned());
        }
        let passed =
            |of: fn(&HostTime) -> u64| of(&self.all).saturating_sub(of(&before.all)) as f64;
        let all = passed(|time| time.total_ticks);
        if all <= 0.0 {
            return Err("the processors have not ticked since".to_owned());
        }
        let processors = self.all.processors;
        let cores = |ticks: f64| ticks / all * processors as f64;
        let stolen = passed(|time| time.steal_ticks);
        let used = all - passed(|time| time.idle_ticks) - stolen;
        Ok(ProcessorUse {
            processors,
            busy: cores(used.max(0.0)),
            server: self.server_ns.saturating_sub(before.server_ns) as f64 / passed_ns as f64,
            stolen: tells_steal.then(|| cores(stolen)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at_s: u64, ticks: [u64; 3], server_ns: u64) -> Look {
        let [total_ticks, idle_ticks, steal_ticks] = ticks;
        let all =
            HostTime { processors: 2, total_ticks, idle_ticks, steal_ticks, context_switches: 0 };
        Look { at_ns: at_s * 1_000_000_000, usable: vec![0, 1], all, server_ns }
    }

    #[test]
    fn what_is_taken_is_told_of_the_server_of_others_and_of_the_hypervisor() {
        let (before, now) = (look(1, [1_000, 500, 7], 50), look(3, [1_400, 540, 47], 400_000_050));
        let used = now.since(&before, true).unwrap();
        let close = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert!(close(used.busy, 1.6) && close(used.server, 0.2), "{used:?}");
        assert!(close(used.others(), 1.4) && close(used.stolen.unwrap(), 0.2), "{used:?}");
        assert!(close(used.share(used.busy), 0.8), "{used:?}");
        assert_eq!(now.since(&before, false).unwrap().stolen, None, "not known is not none");
    }

    #[test]
    fn what_cannot_be_compared_is_not_measured() {
        let before = look(1, [1_000, 500, 7], 50);
        let other = Look { usable: vec![0], ..look(3, [1_400, 540, 47], 50) };
        for now in [other, look(1, [1_400, 540, 47], 50), look(3, [1_000, 500, 7], 50)] {
            assert!(now.since(&before, true).is_err());
        }
        let mut gone = Processors::open(u32::MAX, &ProcessorTimes::read());
        assert!(gone.read(&ProcessorTimes::read()).why().is_some());
    }
}
