//! Who used the processors of a server, from interval to interval.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use waggle_host::{HostTime, Meter, Process, ProcessorTimes, Quota, monotonic_ns, processors};
use waggle_model::{ProcessorLimit, ProcessorUse, Reading};

use crate::cost::SHORTEST;

/// Reads the processors of one server.
pub(crate) struct Processors {
    pid: u32,
    /// Whether a steal of 0 is true: a virtual machine need not be told of any.
    tells_steal: bool,
    last: Result<Look, String>,
    used: Reading<ProcessorUse>,
}

/// What was read at one moment.
struct Look {
    at_ns: u64,
    usable: Vec<usize>,
    all: HostTime,
    server_ns: u64,
    quotas: BTreeMap<PathBuf, Quota>,
}

impl Processors {
    /// Begins with a server.
    pub(crate) fn open(pid: u32, times: &io::Result<ProcessorTimes>) -> Processors {
        let tells_steal = processors::are_virtual() == Some(false);
        let used = Reading::absent("the server has just been found");
        Processors { pid, tells_steal, last: Look::at(pid, times), used }
    }

    /// Looks again, when the processors had these times.
    pub(crate) fn look(&mut self, times: &io::Result<ProcessorTimes>) {
        let before = std::mem::replace(&mut self.last, Look::at(self.pid, times));
        let used = match (&before, &self.last) {
            (Ok(before), Ok(now)) => {
                self.tells_steal |= now.all.steal_ticks > 0;
                now.since(before, self.tells_steal)
            }
            (_, Err(why)) | (Err(why), _) => Err(why.clone()),
        };
        self.used = used.map_or_else(Reading::Absent, Reading::Value);
    }

    /// What was used between the last two looks; once only.
    pub(crate) fn used(&mut self) -> Reading<ProcessorUse> {
        let looked_no_more = Reading::absent("the processors were not looked at since");
        std::mem::replace(&mut self.used, looked_no_more)
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
        // Where its control groups cannot be seen, no limit is told.
        let quotas = Process::of(pid).quotas().value().cloned().unwrap_or_default();
        Ok(Look { at_ns: monotonic_ns(), usable, all, server_ns, quotas })
    }

    fn since(&self, before: &Look, tells_steal: bool) -> Result<ProcessorUse, String> {
        let passed_ns = self.at_ns.saturating_sub(before.at_ns);
        if u128::from(passed_ns) < SHORTEST.as_nanos() {
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
            limit: self.limit_since(before),
        })
    }

    /// The limit that held the server back in the largest share of its periods; among equals, the lowest limit.
    fn limit_since(&self, before: &Look) -> Option<ProcessorLimit> {
        let limit = |(group, now): (&PathBuf, &Quota)| {
            let before = before.quotas.get(group)?;
            let periods = now.periods.saturating_sub(before.periods);
            let held_back = now.held_back.saturating_sub(before.held_back);
            Some(ProcessorLimit {
                cores: now.cores,
                held_back: held_back as f64 / periods.max(1) as f64,
            })
        };
        self.quotas.iter().filter_map(limit).max_by(|one, other| {
            let by_time = one.held_back.total_cmp(&other.held_back);
            by_time.then(other.cores.total_cmp(&one.cores))
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
        let quotas = BTreeMap::new();
        Look { at_ns: at_s * 1_000_000_000, usable: vec![0, 1], all, server_ns, quotas }
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
    fn of_several_limits_the_one_that_held_back_most_is_told() {
        let quotas = |all: &[(&str, f64, u64, u64)]| {
            let quota = |&(group, cores, periods, held_back): &(&str, f64, u64, u64)| {
                (PathBuf::from(group), Quota { cores, periods, held_back })
            };
            all.iter().map(quota).collect()
        };
        let at = |quotas| Look { quotas, ..look(3, [1_400, 540, 47], 50) };
        let before = at(quotas(&[("pod", 2.0, 10, 1), ("pod/db", 0.5, 10, 2)]));
        let now = at(quotas(&[("pod", 2.0, 30, 6), ("pod/db", 0.5, 30, 17), ("new", 0.1, 9, 9)]));
        let told = now.limit_since(&before);
        assert_eq!(told, Some(ProcessorLimit { cores: 0.5, held_back: 0.75 }));
        assert_eq!(before.limit_since(&before).map(|limit| limit.cores), Some(0.5), "it was idle");
        assert_eq!(look(3, [0; 3], 0).limit_since(&before), None);
    }

    #[test]
    fn what_cannot_be_compared_is_not_measured() {
        let before = look(1, [1_000, 500, 7], 50);
        let other = Look { usable: vec![0], ..look(3, [1_400, 540, 47], 50) };
        for now in [other, look(1, [1_400, 540, 47], 50), look(3, [1_000, 500, 7], 50)] {
            assert!(now.since(&before, true).is_err());
        }
        let mut gone = Processors::open(u32::MAX, &ProcessorTimes::read());
        gone.look(&ProcessorTimes::read());
        assert!(gone.used().why().is_some());
    }
}
