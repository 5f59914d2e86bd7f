//! Whether the threads of a process may run, all of them together.

use std::fs;

use waggle_model::{ProcessState, Reading};

use crate::process::{Process, fields_from_3};
use crate::value;

impl Process {
    /// What holds it as a whole. Nothing, where one thread alone is held.
    pub fn whole_state(&self) -> Reading<ProcessState> {
        match self.state() {
            // A signal stops all threads of a process.
            Reading::Value('T') => Reading::Value(ProcessState::Stopped),
            Reading::Value('Z' | 'X') => Reading::absent("the process has ended"),
            Reading::Value('t') if self.is_all_traced() => self.tracer(),
            Reading::Value(_) => self.frozen(),
            Reading::Absent(why) => Reading::Absent(why),
        }
    }

    /// Why nothing goes on in it, and what helps; `None` where it may run, or that is not known.
    pub fn standstill(&self) -> Option<String> {
        self.whole_state().value()?.standstill(self.pid)
    }

    /// Whether no thread of it runs: a debugger holds those in state `t`, a signal those in `T` (proc_pid_stat(5)).
    fn is_all_traced(&self) -> bool {
        let tasks = fs::read_dir(self.folder.join("task")).into_iter().flatten().flatten();
        let mut stats = tasks.flat_map(|task| fs::read(task.path().join("stat")));
        stats.all(|stat| {
            let state = fields_from_3(&stat).and_then(|mut fields| fields.next());
            // One that has ended does nothing either.
            matches!(state, Some("t" | "T" | "Z" | "X"))
        })
    }

    fn tracer(&self) -> Reading<ProcessState> {
        self.read("status", |status| {
            Some(match value(status, "TracerPid")?.parse().ok()? {
                // It has just let go.
                0 => ProcessState::Runs,
                by => ProcessState::Traced { by },
            })
        })
    }

    fn frozen(&self) -> Reading<ProcessState> {
        self.frozen_by().map(|by| by.map_or(ProcessState::Runs, |by| ProcessState::Frozen { by }))
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn awaited(process: &Process, state: &ProcessState) {
        let begun = Instant::now();
        while process.whole_state().value() != Some(state) {
            assert!(begun.elapsed().as_secs() < 120, "{:?}", process.whole_state());
            sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_process_that_is_stopped_is_so_until_it_goes_on() {
        let sleeper = Killed(Command::new("sleep").arg("600").spawn().unwrap());
        let pid = Pid::from_raw(sleeper.0.id().cast_signed()).unwrap();
        let process = Process::of(sleeper.0.id());
        awaited(&process, &ProcessState::Runs);
        kill_process(pid, Signal::STOP).unwrap();
        awaited(&process, &ProcessState::Stopped);
        kill_process(pid, Signal::CONT).unwrap();
        awaited(&process, &ProcessState::Runs);
    }

    #[test]
    fn a_process_that_is_dead_and_not_waited_for_does_not_run() {
        let mut child = Command::new("true").spawn().unwrap();
        let process = Process::of(child.id());
        let begun = Instant::now();
        while process.whole_state().why() != Some("the process has ended") {
            assert!(begun.elapsed().as_secs() < 120, "{:?}", process.whole_state());
            sleep(Duration::from_millis(1));
        }
        child.wait().unwrap();
    }

    #[test]
    fn a_debugger_holds_a_process_only_where_it_holds_each_thread() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join("7").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let process = Process::below(root.path(), 7);
        assert!(process.whole_state().why().is_some(), "it has ended");
        write("cgroup", "0::/\n");
        write("status", "Name:\tmysqld\nTracerPid:\t12\n");
        write("task/7/stat", "7 (mysqld) t 1");
        write("task/8/stat", "8 (c) d) S 1");
        assert_eq!(process.whole_state(), Reading::Value(ProcessState::Runs));
        write("task/8/stat", "8 (c) d) t 1");
        assert_eq!(process.whole_state(), Reading::Value(ProcessState::Traced { by: 12 }));
        write("status", "TracerPid:\t0\n");
        assert_eq!(process.whole_state(), Reading::Value(ProcessState::Runs));
    }
}
