//! What a thread does in the kernel (proc_pid_syscall(5)).

use nix::libc;
use waggle_model::Reading;

use crate::process::Process;

/// What a thread of a process does in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadCall {
    /// It runs, or waits for a processor.
    Runs,
    /// It sleeps in the system call of this number.
    In(u64),
    /// It sleeps in none, as in a page fault.
    Outside,
}

impl ThreadCall {
    /// Whether it waits for another thread of its process (futex(2)): a mutex, a condition, a semaphore.
    pub fn waits_for_thread(self) -> bool {
        let calls = [libc::SYS_futex, libc::SYS_futex_waitv];
        matches!(self, ThreadCall::In(call) if calls.iter().any(|it| u64::try_from(*it) == Ok(call)))
    }
}

impl Process {
    /// What its thread of this id does. Who may not look into its memory may not know.
    pub fn thread_call(&self, tid: u32) -> Reading<ThreadCall> {
        self.read(&format!("task/{tid}/syscall"), thread_call)
    }
}

/// `running`, or the number of the call with what it was given; -1 is none.
fn thread_call(syscall: &str) -> Option<ThreadCall> {
    let (first, rest) = syscall.trim_ascii_end().split_once(' ').unwrap_or((syscall, ""));
    match (first.trim_ascii_end(), rest) {
        ("running", "") => Some(ThreadCall::Runs),
        // A cut number would be another call.
        (_, "") => None,
        ("-1", _) => Some(ThreadCall::Outside),
        (number, _) => number.parse().ok().map(ThreadCall::In),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_call_is_read_and_a_cut_or_mangled_line_gives_nothing() {
        assert_eq!(thread_call("running\n"), Some(ThreadCall::Runs));
        assert_eq!(thread_call("-1 0x7ffd 0x7f94\n"), Some(ThreadCall::Outside));
        let in_poll = "7 0x7f94e816a818 0x1 0x7530 0x0 0x0 0x0 0x7f94 0x7f95\n";
        assert_eq!(thread_call(in_poll), Some(ThreadCall::In(7)));
        for cut in ["", "\n", "7", "7\n", "20", "run", "é 0x1", "0x7 0x1", "-2 0x0", "runs 0x1"] {
            assert_eq!(thread_call(cut), None, "{cut:?}");
        }
    }

    #[test]
    fn a_thread_that_waits_for_another_is_told_from_one_that_sleeps() {
        let (end, ended) = mpsc::channel::<()>();
        let (say, said) = mpsc::channel();
        let waits = thread::spawn(move || {
            say.send(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
            ended.recv()
        });
        let tid = said.recv().unwrap();
        let begun = Instant::now();
        while !Process::own().thread_call(tid).value().is_some_and(|call| call.waits_for_thread()) {
            assert!(begun.elapsed().as_secs() < 120, "{:?}", Process::own().thread_call(tid));
        }
        end.send(()).unwrap();
        waits.join().unwrap().unwrap();
        assert!(!ThreadCall::Runs.waits_for_thread() && !ThreadCall::Outside.waits_for_thread());
        assert!(Process::own().thread_call(u32::MAX).why().is_some(), "there is no such thread");
    }
}
