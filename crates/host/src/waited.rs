//! How long something was waited for, of the time in which it could have come.

use std::time::{Duration, Instant};

use crate::{Meter, Process};

/// The most that counts from one look to the next: who was stopped meanwhile, or had no processor, has not waited.
const TURN: Duration = Duration::from_millis(100);
/// Looks that follow each other faster count together: they need not ask the kernel.
const SHORT: Duration = Duration::from_millis(5);

/// A wait. It is looked at again and again, and what counts of it is what passed between the looks. Where it is for a
/// process of ours, the time in which that was stopped or waited for a processor is kept apart: it says nothing of what
/// that process looks at.
#[derive(Debug)]
pub struct Waited {
    pid: Option<u32>,
    looked_at: Instant,
    /// Processor time of the process at the look before.
    cpu: Option<Duration>,
    blocked: Duration,
    ran: Duration,
    withheld: Duration,
}

impl Waited {
    /// Begins to wait for what is no process of ours.
    pub fn begin() -> Waited {
        Waited {
            pid: None,
            looked_at: Instant::now(),
            cpu: None,
            blocked: Duration::ZERO,
            ran: Duration::ZERO,
            withheld: Duration::ZERO,
        }
    }

    /// Begins to wait for a process that has one thread.
    pub fn begin_for(pid: u32) -> Waited {
        Waited { pid: Some(pid), ..Waited::begin() }
    }

    /// Counts what has passed since the look before.
    pub fn look(&mut self) {
        let passed = self.looked_at.elapsed();
        if passed < SHORT {
            return;
        }
        self.looked_at = Instant::now();
        let Some(pid) = self.pid else { return self.count(passed, None, Duration::ZERO) };
        let cpu_ns = Meter::of(pid).and_then(|meter| meter.cpu_ns()).ok();
        let before = std::mem::replace(&mut self.cpu, cpu_ns.map(Duration::from_nanos));
        let ran =
            self.cpu.zip(before).map_or(Duration::ZERO, |(now, before)| now.saturating_sub(before));
        self.count(passed, Process::of(pid).state().value().copied(), ran);
    }

    /// `state`: as proc_pid_stat(5) names it.
    fn count(&mut self, passed: Duration, state: Option<char>, ran: Duration) {
        let passed = passed.min(TURN);
        match state {
            // It runs or would like to, or it is stopped.
            Some('R' | 'T' | 't') => {
                let ran = ran.min(passed);
                self.ran += ran;
                self.withheld += passed - ran;
            }
            _ => self.blocked += passed,
        }
    }

    /// What counts, up to the last look.
    pub fn counted(&self) -> Duration {
        self.blocked + self.ran
    }

    /// Of that, what the process itself waited for something.
    pub fn blocked(&self) -> Duration {
        self.blocked
    }

    /// How long the process was stopped or had no processor. It does not count.
    pub fn withheld(&self) -> Duration {
        self.withheld
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::thread::sleep;

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn a_long_pause_between_two_looks_counts_as_one_turn() {
        let mut waited = Waited::begin();
        waited.count(3 * MS, None, Duration::ZERO);
        waited.count(5000 * MS, None, Duration::ZERO);
        assert_eq!((waited.counted(), waited.withheld()), (103 * MS, Duration::ZERO));
    }

    #[test]
    fn what_a_process_waits_and_works_counts_and_what_is_withheld_from_it_does_not() {
        let mut waited = Waited::begin_for(1);
        waited.count(10 * MS, Some('D'), Duration::ZERO);
        waited.count(10 * MS, Some('S'), Duration::ZERO);
        waited.count(10 * MS, Some('R'), 4 * MS);
        waited.count(10 * MS, Some('T'), Duration::ZERO);
        waited.count(10 * MS, None, Duration::ZERO);
        assert_eq!(
            (waited.counted(), waited.blocked(), waited.withheld()),
            (34 * MS, 30 * MS, 16 * MS)
        );
    }

    #[test]
    fn a_process_that_sleeps_is_waited_for_and_one_that_is_stopped_is_not() {
        let sleeper = Killed(Command::new("sleep").arg("600").spawn().unwrap());
        let pid = sleeper.0.id();
        let looked = |state: char, is_so: &dyn Fn(&Waited) -> bool| {
            let begun = Instant::now();
            while Process::of(pid).state().value() != Some(&state) {
                assert!(begun.elapsed().as_secs() < 120, "it is not {state}");
                sleep(MS);
            }
            let mut waited = Waited::begin_for(pid);
            while !is_so(&waited) {
                assert!(begun.elapsed().as_secs() < 120, "{waited:?}");
                sleep(10 * MS);
                waited.look();
            }
            waited
        };
        let asleep = looked('S', &|waited| waited.blocked() >= 50 * MS);
        assert_eq!(asleep.withheld(), Duration::ZERO);
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::STOP).unwrap();
        let stopped = looked('T', &|waited| waited.withheld() >= 50 * MS);
        assert_eq!(stopped.counted(), Duration::ZERO);
    }
}
