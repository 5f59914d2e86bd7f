//! A thread that does not wait for the processor.
//!
//! The thread that empties the rings needs little time, but needs it soon. On a host with all
//! processors busy, an ordinary thread can wait for most of a second, and the rings overflow. (On
//! two processors with two busy servers and their clients it waited 700 of 1000 ms for 27 ms of
//! work.) A round-robin thread (`sched(7)`) does not wait. An urgent thread must do little work:
//! meanwhile no server runs on its processor.

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
        set_policy(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, PRIORITY)?;
        Ok(Urgent { _of_this_thread: std::marker::PhantomData })
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        // To go back is always allowed.
        let _ = set_policy(0, libc::SCHED_OTHER, 0);
    }
}

/// Makes a process of ours urgent, whose only thread does little work.
pub(crate) fn hasten(pid: u32) -> io::Result<()> {
    set_policy(pid, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, PRIORITY)
}

/// Of a thread; 0 names the calling one.
fn set_policy(tid: u32, policy: i32, priority: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads the parameter, which outlives the call.
    let failed =
        unsafe { libc::sched_setscheduler(tid.cast_signed(), policy, &raw const parameter) };
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
