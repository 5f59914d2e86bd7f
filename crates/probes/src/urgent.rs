//! A thread that is not kept waiting.
//!
//! The rings are emptied by a thread that needs little, but must get it soon. Where every processor
//! is taken, an ordinary thread can wait for most of a second, and the rings run over (seen with
//! two busy servers and their clients on two processors: 700 of 1000 ms spent waiting for 27 ms of
//! work). As a round-robin thread (`sched(7)`) it waits for none of them. Whoever is urgent must do
//! little: nothing that belongs to a server runs on its processor meanwhile.

use std::io;

/// The lowest priority of all that come before ordinary threads.
const PRIORITY: i32 = 1;

/// The calling thread is urgent until this is dropped, on the thread that made it. Threads that it
/// starts are not.
#[derive(Debug)]
pub struct Urgent {
    /// A thread's own: it must be dropped where it was made.
    _of_this_thread: std::marker::PhantomData<*const ()>,
}

impl Urgent {
    /// Makes the calling thread urgent.
    ///
    /// # Errors
    ///
    /// The kernel's, where that needs `CAP_SYS_NICE` or an `RLIMIT_RTPRIO` of 1.
    pub fn begin() -> io::Result<Urgent> {
        set_policy(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, PRIORITY)?;
        Ok(Urgent { _of_this_thread: std::marker::PhantomData })
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        // To go back is always allowed.
        let _ = set_policy(libc::SCHED_OTHER, 0);
    }
}

fn set_policy(policy: i32, priority: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads the parameter; 0 names the calling thread.
    let failed = unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> i32 {
        // SAFETY: no memory is involved; 0 names the calling thread.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn a_thread_is_urgent_until_the_end_and_those_that_it_starts_are_not() {
        assert_eq!(policy(), libc::SCHED_OTHER);
        let urgent = Urgent::begin().expect("run the tests as root, or with CAP_SYS_NICE");
        assert_eq!(policy(), libc::SCHED_RR | libc::SCHED_RESET_ON_FORK);
        assert_eq!(std::thread::spawn(policy).join().unwrap(), libc::SCHED_OTHER);
        drop(urgent);
        assert_eq!(policy(), libc::SCHED_OTHER);
    }
}
