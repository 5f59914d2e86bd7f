//! Where a return probe can kill the process that it stands in.
//!
//! Since Linux 6.11 a probed function of x86-64 returns through a system call of its own, `uretprobe`. A filter of system
//! calls (seccomp) that does not know it ends the process. Linux 6.14, 6.13.3 and 6.12.14 let that call pass every filter
//! (cf6cb56ef244, "seccomp: passthrough uretprobe systemcall without filtering"). Distributors may have it earlier.

use waggle_host::{Process, kernel_release, release_numbers};
use waggle_model::Reading;

use crate::carrier::CarrierError;

/// The first kernel with the system call, and the first of each line whose filters let it pass.
const FROM: [u32; 3] = [6, 11, 0];
const MENDED: [[u32; 3]; 3] = [[6, 12, 14], [6, 13, 3], [6, 14, 0]];

/// Refuses a process that a return probe can kill.
pub(super) fn refuse(pid: u32) -> Result<(), CarrierError> {
    match why_deadly(&kernel_release(), || Process::of(pid).has_call_filter()) {
        Some(why) => Err(CarrierError::Kernel { what: "return probes", why }),
        None => Ok(()),
    }
}

/// Why a return probe can kill a process under the kernel of this release. What is not known counts as dangerous.
fn why_deadly(release: &str, has_filter: impl FnOnce() -> Reading<bool>) -> Option<String> {
    if release_numbers(release).is_some_and(is_safe) || cfg!(not(target_arch = "x86_64")) {
        return None;
    }
    let filter = match has_filter() {
        Reading::Value(false) => return None,
        Reading::Value(true) => "which has a system call filter (seccomp)".to_owned(),
        Reading::Absent(why) => {
            format!("which may have a system call filter (seccomp): that is not known: {why}")
        }
    };
    Some(format!(
        "Linux {release}: a return probe may kill this server, {filter}; use Linux 6.12.14, 6.13.3 or 6.14, or later"
    ))
}

fn is_safe(kernel: [u32; 3]) -> bool {
    let is_of_line = |mended: &&[u32; 3]| mended[..2] == kernel[..2];
    let last = MENDED[MENDED.len() - 1];
    kernel < FROM
        || kernel >= last
        || MENDED.iter().find(is_of_line).is_some_and(|it| kernel >= *it)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn only_the_kernels_whose_filters_stop_the_system_call_are_deadly_and_only_with_a_filter() {
        let why = |release: &str, filter: Reading<bool>| why_deadly(release, || filter);
        for release in
            ["5.13.0", "6.10.14-generic", "6.12.48+deb13-amd64", "6.13.3", "6.18.44", "7.0.0"]
        {
            assert_eq!(why(release, Reading::Value(true)), None, "{release}");
            assert_eq!(why(release, Reading::absent("no right")), None, "{release}");
        }
        for release in ["6.11.0-rc1", "6.11.11", "6.12.13", "6.13.2-arch1", "of my own"] {
            assert_eq!(why(release, Reading::Value(false)), None, "{release}");
            let told = why(release, Reading::Value(true)).unwrap();
            for words in [release, "may kill this server", "seccomp", "use Linux 6.12.14"] {
                assert!(told.contains(words), "{told}");
            }
            let told = why(release, Reading::absent("no right")).unwrap();
            assert!(told.contains("is not known: no right"), "{told}");
        }
    }

    #[test]
    fn a_safe_kernel_reads_no_thread() {
        assert_eq!(why_deadly("6.18.44", || unreachable!()), None);
    }

    /// Sets a filter on this thread that lets every system call pass.
    fn filter_this_thread() {
        rustix::thread::set_no_new_privs(true).unwrap();
        const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
        let mut all = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: ALLOW };
        let program = libc::sock_fprog { len: 1, filter: &raw mut all };
        let filter = libc::SECCOMP_MODE_FILTER as libc::c_ulong;
        // SAFETY: the kernel copies the one instruction that `program` points to before the call returns.
        let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, filter, &raw const program) };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    }

    #[test]
    fn the_filter_of_one_thread_is_seen_in_a_real_process() {
        let has_filter = || Process::of(std::process::id()).has_call_filter();
        let seen = thread::spawn(move || {
            filter_this_thread();
            has_filter()
        });
        assert_eq!(seen.join().unwrap(), Reading::Value(true));
    }
}
