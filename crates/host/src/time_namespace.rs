//! Time namespaces (time_namespaces(7)): the monotonic clock of a process may be ahead of the kernel's, or behind it.

use std::fs;
use std::io::ErrorKind;
use std::sync::OnceLock;

use crate::process::Process;

const NS_PER_S: i64 = 1_000_000_000;

impl Process {
    /// By how much its `CLOCK_MONOTONIC` is ahead of the kernel's, nanoseconds; `None` where that cannot be told.
    pub fn monotonic_ahead_ns(&self) -> Option<i64> {
        let own = fs::read_link(self.folder.join("ns/time"));
        match own {
            // Linux before 5.6, or built without time namespaces.
            Err(error) if error.kind() == ErrorKind::NotFound && !self.is_gone() => Some(0),
            Err(_) => None,
            Ok(own) => {
                // The file tells of the namespace of its children to come, which may be another.
                let of_children = fs::read_link(self.folder.join("ns/time_for_children")).ok()?;
                (own == of_children).then_some(())?;
                offset(&fs::read_to_string(self.folder.join("timens_offsets")).ok()?)
            }
        }
    }
}

/// The same of waggle itself; nothing where it cannot be told.
pub(crate) fn own_monotonic_ahead_ns() -> i64 {
    static AHEAD_NS: OnceLock<i64> = OnceLock::new();
    *AHEAD_NS.get_or_init(|| Process::own().monotonic_ahead_ns().unwrap_or(0))
}

/// `monotonic SECONDS NANOSECONDS` in lines of `timens_offsets`.
fn offset(lines: &str) -> Option<i64> {
    let numbers = lines.lines().find_map(|line| line.strip_prefix("monotonic "))?;
    let mut numbers = numbers.split_ascii_whitespace().map(str::parse::<i64>);
    let (seconds, nanoseconds) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    seconds.checked_mul(NS_PER_S)?.checked_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_clock_of_a_process_is_ahead_by_the_offset_of_its_own_namespace() {
        let root = tempfile::tempdir().unwrap();
        let process = Process::below(root.path(), 7);
        assert_eq!(process.monotonic_ahead_ns(), None, "it has ended");
        let folder = root.path().join("7");
        fs::create_dir_all(folder.join("ns")).unwrap();
        assert_eq!(process.monotonic_ahead_ns(), Some(0), "a kernel without time namespaces");
        symlink("time:[1]", folder.join("ns/time")).unwrap();
        symlink("time:[1]", folder.join("ns/time_for_children")).unwrap();
        assert_eq!(process.monotonic_ahead_ns(), None);
        let offsets = "monotonic           -3000         5\nboottime            7         0\n";
        fs::write(folder.join("timens_offsets"), offsets).unwrap();
        assert_eq!(process.monotonic_ahead_ns(), Some(-3000 * NS_PER_S + 5));
        fs::remove_file(folder.join("ns/time_for_children")).unwrap();
        symlink("time:[2]", folder.join("ns/time_for_children")).unwrap();
        assert_eq!(process.monotonic_ahead_ns(), None, "the offset is that of its children");
    }

    #[test]
    fn an_offset_that_is_none_is_not_known() {
        for lines in
            ["", "monotonic", "monotonic x 0", "boottime 1 0", "monotonic 9223372036854775807 0"]
        {
            assert_eq!(offset(lines), None, "{lines}");
        }
    }
}
