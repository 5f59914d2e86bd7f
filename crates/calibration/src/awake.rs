//! Keeps processors from halting while few sessions work.
//!
//! A processor without work halts. To wake it takes long where the hypervisor gives it to somebody else
//! meanwhile, and that counts as taken (steal): with one session on a virtual machine of two processors 30 % was
//! steal, and a statement took three and a half times as long as with processors that did not halt. So
//! each has a thread of ours then that does nothing, of the class that any other thread displaces
//! (`SCHED_IDLE`, sched(7)).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use waggle_host::processors::{stay_on, usable};

/// Processors are awake as long as this lives. Where the kernel does not let a thread do that, it ends.
#[derive(Debug)]
pub struct Awake {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    /// So many sessions for each processor, which never rest, leave it no time to halt: while one waits for its server,
    /// another, or the server itself, has work.
    pub const BUSY: usize = 2;

    /// Whether this many sessions that never rest leave processors time to halt.
    pub fn helps(sessions: u32) -> bool {
        sessions as usize <= Awake::BUSY * usable().unwrap_or_default().len()
    }

    /// Keeps all processors awake.
    pub fn keep() -> Awake {
        let is_over = Arc::new(AtomicBool::new(false));
        let threads = usable().unwrap_or_default().into_iter().map(|processor| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                if is_displaced_by_any_other() && stay_on(&[processor]).is_ok() {
                    while !is_over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                }
            })
        });
        let threads = threads.collect();
        Awake { is_over, threads }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It does not panic.
            let _ = thread.join();
        }
    }
}

/// Puts the calling thread into the class of those that any other one displaces.
fn is_displaced_by_any_other() -> bool {
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// `policy` of proc_pid_stat(5), the 41st; the second may hold spaces.
    fn policy() -> Option<String> {
        let stat = fs::read_to_string("/proc/thread-self/stat").ok()?;
        let (_, rest) = stat.rsplit_once(") ")?;
        rest.split(' ').nth(38).map(str::to_owned)
    }

    #[test]
    fn a_thread_gives_way_to_any_other() {
        let of_thread = thread::spawn(|| is_displaced_by_any_other().then(policy).flatten());
        // SCHED_IDLE of linux/sched.h.
        assert_eq!(of_thread.join().unwrap().as_deref(), Some("5"));
    }

    #[test]
    fn it_helps_few_sessions() {
        assert!(Awake::helps(1) && !Awake::helps(1_000_000));
    }
}
