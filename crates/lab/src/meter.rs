//! What a server and the host use during a window.

use std::time::{Duration, Instant};

use waggle_host::{HostTime, MeterError, Process, Storage, own_cpu, processors};
use waggle_model::Reading;
use waggle_mysql::connection::children_cost;

/// Reads one server process and the processors that it may use.
#[derive(Clone, Debug)]
pub struct Meter {
    process: waggle_host::Meter,
    pid: u32,
    processors: Vec<usize>,
    /// These, and those that we may use: the load may be pinned to others than the server.
    all: Vec<usize>,
    /// The part of our processors that the server may use, 0 to 1: a thread may keep each of ours awake.
    of_ours: f64,
}

/// What was used so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    at: Instant,
    cpu_ns: u64,
    /// Processor time of this process on these processors.
    own_cpu_ns: u64,
    host: HostTime,
    all: HostTime,
    storage: Reading<Storage>,
    rss_bytes: Reading<u64>,
}

/// What was used between two samples. Shares are of the processors that the server may use, 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage {
    /// Time between them, s.
    pub seconds: f64,
    /// Processor time of all threads of the server, ns.
    pub server_cpu_ns: u64,
    /// What the server used.
    pub server_share: f64,
    /// What was in use at all, but not by this process. It is counted in ticks of 10 ms.
    pub host_share: f64,
    /// What the hypervisor took of the processors of the server and of ours. It is counted in ticks of 10 ms.
    pub steal_share: f64,
    /// The share that is one such tick.
    pub tick_share: f64,
    /// Context switches of the whole host.
    pub context_switches: u64,
    /// What the server had moved; absent where we may not read it (only its user and root may).
    pub storage: Reading<Storage>,
    /// Memory of the server in use (RSS) at the end, bytes.
    pub rss_bytes: Reading<u64>,
}

impl Meter {
    /// Finds the clock of a process.
    ///
    /// # Errors
    /// There is no such process, or the system does not say which processors it may use.
    pub fn of(pid: u32) -> Result<Meter, MeterError> {
        let process = waggle_host::Meter::of(pid)?;
        let failed = |error| MeterError::Processors { pid, error };
        let processors = processors::usable_by(pid).map_err(failed)?;
        let ours = processors::usable().map_err(failed)?;
        let shared = ours.iter().filter(|processor| processors.contains(processor)).count();
        let of_ours = shared as f64 / ours.len().max(1) as f64;
        let all = processors.iter().chain(&ours).copied().collect();
        Ok(Meter { process, pid, processors, all, of_ours })
    }

    /// Reads everything.
    ///
    /// # Errors
    /// The process has ended, or the host does not say what its processors did.
    pub fn read(&self) -> Result<Sample, MeterError> {
        // Time and processor time belong together: nothing stands between them.
        let (at, cpu_ns) = (Instant::now(), self.process.cpu_ns()?);
        let host = |processors: &[usize]| {
            let failed = |error| MeterError::Processors { pid: self.pid, error };
            HostTime::read_of(processors).map_err(failed)
        };
        let process = Process::of(self.pid);
        Ok(Sample {
            at,
            cpu_ns,
            own_cpu_ns: ((own_cpu() + children_cost().0).as_nanos() as f64 * self.of_ours) as u64,
            host: host(&self.processors)?,
            all: host(&self.all)?,
            storage: process.storage(),
            rss_bytes: process.rss_bytes(),
        })
    }
}

impl Sample {
    /// What was used since an earlier sample of the same meter.
    pub fn since(&self, earlier: &Sample) -> Usage {
        let ticks =
            |part: fn(&HostTime) -> u64| part(&self.host).saturating_sub(part(&earlier.host));
        let total = ticks(|host| host.total_ticks);
        let (idle, steal) = (ticks(|host| host.idle_ticks), ticks(|host| host.steal_ticks));
        let of_all =
            |part: fn(&HostTime) -> u64| part(&self.all).saturating_sub(part(&earlier.all));
        let share_of_all = |part: u64| part as f64 / of_all(|all| all.total_ticks).max(1) as f64;
        let own = Duration::from_nanos(self.own_cpu_ns.saturating_sub(earlier.own_cpu_ns));
        let own_ticks = own.as_secs_f64() * HostTime::TICKS_PER_S;
        let used = total.saturating_sub(idle + steal) as f64 - own_ticks;
        let seconds = self.at.duration_since(earlier.at).as_secs_f64();
        let server_cpu_ns = self.cpu_ns.saturating_sub(earlier.cpu_ns);
        let storage = self.storage.as_ref().zip(earlier.storage.as_ref());
        Usage {
            seconds,
            server_cpu_ns,
            server_share: server_cpu_ns as f64
                / (seconds * 1e9 * self.host.processors.max(1) as f64),
            host_share: used / total.max(1) as f64,
            steal_share: share_of_all(of_all(|all| all.steal_ticks)),
            tick_share: share_of_all(1),
            context_switches: ticks(|host| host.context_switches),
            storage: storage.map(|(now, before)| now.since(*before)),
            rss_bytes: self.rss_bytes.clone(),
        }
    }
}

impl Usage {
    /// What was used in this time and in a later one, which do not overlap.
    #[must_use]
    pub fn plus(self, later: Usage) -> Usage {
        let seconds = self.seconds + later.seconds;
        let mean = |part: fn(&Usage) -> f64| {
            (part(&self) * self.seconds + part(&later) * later.seconds) / seconds
        };
        Usage {
            seconds,
            server_cpu_ns: self.server_cpu_ns + later.server_cpu_ns,
            server_share: mean(|usage| usage.server_share),
            host_share: mean(|usage| usage.host_share),
            steal_share: mean(|usage| usage.steal_share),
            tick_share: 1.0 / (1.0 / self.tick_share + 1.0 / later.tick_share),
            context_switches: self.context_switches + later.context_switches,
            storage: self.storage.zip(later.storage).map(|(one, other)| one.plus(other)),
            rss_bytes: later.rss_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate;

    #[test]
    fn processors_that_are_kept_awake_are_not_counted_as_use_of_the_host() {
        // The host counts in ticks of 10 ms: so many that one more or less does not matter.
        const ENOUGH_NS: u64 = 600_000_000;
        let meter = Meter::of(std::process::id()).unwrap();
        let awake = waggle_calibration::Awake::keep();
        let before = meter.read().unwrap();
        // Those that keep them awake run where nobody else does; this thread also runs beside others.
        let mut usage = meter.read().unwrap().since(&before);
        while usage.server_cpu_ns < ENOUGH_NS {
            usage = meter.read().unwrap().since(&before);
        }
        drop(awake);
        let used = usage.server_share + usage.host_share + usage.steal_share;
        assert!(used < 1.2, "{usage:?}");
    }

    #[test]
    fn only_the_processors_that_a_server_may_use_count() {
        let ours = processors::usable().unwrap();
        let only = ours[..1].to_vec();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        processors::keep_on(child.id(), &only).unwrap();
        let meter = Meter::of(child.id()).unwrap();
        assert_eq!((&meter.processors, meter.of_ours), (&only, 1.0 / ours.len() as f64));
        let sample = meter.read().unwrap();
        let counted = (sample.host.processors, sample.all.processors);
        assert_eq!(counted, (1, ours.len() as u64));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn shares_are_of_the_processors_and_counts_are_differences() {
        let at = Instant::now();
        let host = HostTime {
            processors: 2,
            total_ticks: 1000,
            idle_ticks: 600,
            steal_ticks: 10,
            context_switches: 7000,
        };
        let moved =
            |read_bytes, written_bytes| Reading::Value(Storage { read_bytes, written_bytes });
        let (storage, rss_bytes) = (moved(4096, 8192), Reading::Value(1 << 20));
        let (cpu_ns, own_cpu_ns) = (5_000_000_000, 100_000_000);
        let before = Sample { at, cpu_ns, own_cpu_ns, host, all: host, storage, rss_bytes };
        let later = HostTime {
            total_ticks: 1400,
            idle_ticks: 800,
            steal_ticks: 30,
            context_switches: 7500,
            ..host
        };
        let after = Sample {
            at: at + Duration::from_secs(2),
            cpu_ns: 6_000_000_000,
            // 0.2 s of ours are 20 of the 400 ticks.
            own_cpu_ns: 300_000_000,
            host: later,
            all: later,
            storage: moved(4096, 20_480),
            rss_bytes: Reading::Value(2 << 20),
        };
        let usage = after.since(&before);
        assert_eq!((usage.seconds, usage.server_cpu_ns), (2.0, 1_000_000_000));
        assert_eq!((usage.server_share, usage.host_share, usage.steal_share), (0.25, 0.4, 0.05));
        assert_eq!((usage.context_switches, usage.storage.clone()), (500, moved(0, 12_288)));
        assert_eq!((usage.tick_share, gate::stolen(&usage)), (1.0 / 400.0, None));
        let more = Usage { steal_share: 0.053, ..usage.clone() };
        assert_eq!(gate::stolen(&more), Some(0.053));
        assert_eq!(gate::stolen(&Usage { tick_share: 0.1, ..more }), None);
        assert_eq!(usage.rss_bytes, Reading::Value(2 << 20));
        // What the hypervisor takes of the processors of the load counts, and what these do does not.
        let all = HostTime { processors: 4, total_ticks: 1800, steal_ticks: 90, ..later };
        let pinned = Sample { all, ..after.clone() }.since(&before);
        assert_eq!((pinned.host_share, pinned.steal_share), (0.4, 0.1));
        let closed = Sample { storage: Reading::absent("not ours"), ..before.clone() };
        assert_eq!(after.since(&closed).storage.why(), Some("not ours"));
        assert_eq!(before.since(&before).host_share, 0.0);

        // A turn of 2 s and one of 6 s in which nothing was done.
        let rest = Usage {
            seconds: 6.0,
            server_cpu_ns: 0,
            server_share: 0.0,
            host_share: 0.05,
            steal_share: 0.0,
            tick_share: 0.01,
            context_switches: 100,
            storage: moved(0, 8),
            rss_bytes: Reading::Value(3 << 20),
        };
        let both = usage.plus(rest);
        assert_eq!(
            (both.seconds, both.server_cpu_ns, both.server_share),
            (8.0, 1_000_000_000, 0.0625)
        );
        assert!(
            (both.host_share - 0.1375).abs() < 1e-12 && (both.steal_share - 0.0125).abs() < 1e-12
        );
        assert_eq!((both.context_switches, both.storage), (600, moved(0, 12_296)));
        assert_eq!(both.rss_bytes, Reading::Value(3 << 20));
    }

    #[test]
    fn what_this_process_does_is_seen() {
        let meter = Meter::of(std::process::id()).unwrap();
        let before = meter.read().unwrap();
        let mut memory = vec![0_u8; 64 << 20];
        memory.iter_mut().step_by(4096).for_each(|byte| *byte = std::hint::black_box(1));
        while meter.read().unwrap().cpu_ns < before.cpu_ns + 20_000_000 {
            std::hint::black_box(&memory);
        }
        let usage = meter.read().unwrap().since(&before);
        assert!(usage.server_cpu_ns >= 20_000_000 && usage.server_share > 0.0, "{usage:?}");
        let grown =
            *usage.rss_bytes.value().unwrap() as f64 - *before.rss_bytes.value().unwrap() as f64;
        assert!(grown > 32e6, "{grown}");
        assert!(usage.storage.value().is_some(), "{usage:?}");
        assert!(Meter::of(u32::MAX).is_err());
    }
}
