//! Whether a process filters its system calls.

use std::fs;
use std::io;

use rustix::io::Errno;
use waggle_model::Reading;

use crate::process::{Process, why_not};
use crate::value;

impl Process {
    /// Whether a thread of it has a filter of system calls, in whatever mode (seccomp(2)): each thread has its own.
    pub fn has_call_filter(&self) -> Reading<bool> {
        let folder = self.folder.join("task");
        let threads = match fs::read_dir(&folder) {
            Ok(threads) => threads,
            Err(error) => return Reading::absent(why_not(&folder, &error)),
        };
        for thread in threads.flatten() {
            let path = thread.path().join("status");
            match fs::read(&path) {
                Ok(status) => match value(&String::from_utf8_lossy(&status), "Seccomp") {
                    Some("0") => {}
                    Some(_) => return Reading::Value(true),
                    None => return Reading::absent(format!("{} has no Seccomp", path.display())),
                },
                Err(error) if has_ended(&error) => {}
                Err(error) => return Reading::absent(why_not(&path, &error)),
            }
        }
        Reading::Value(false)
    }
}

fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_with_a_filter_is_enough_and_what_cannot_be_read_is_absent() {
        let root = tempfile::tempdir().unwrap();
        let process = Process::below(root.path(), 10);
        assert!(process.has_call_filter().why().is_some(), "it has ended");
        let status = |thread: &str, text: &str| {
            let folder = root.path().join("10/task").join(thread);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("status"), text).unwrap();
        };
        status("10", "Name:\tmysqld\nSeccomp:\t0\nSeccomp_filters:\t0\n");
        assert_eq!(process.has_call_filter(), Reading::Value(false));
        // It ended after it was listed.
        fs::create_dir(root.path().join("10/task/11")).unwrap();
        assert_eq!(process.has_call_filter(), Reading::Value(false));
        for mode in ["1", "2"] {
            status("12", &format!("Seccomp:\t{mode}\n"));
            assert_eq!(process.has_call_filter(), Reading::Value(true), "mode {mode}");
        }
        status("12", "Name:\tmysqld\n");
        assert!(process.has_call_filter().why().is_some_and(|why| why.contains("Seccomp")));
    }
}
