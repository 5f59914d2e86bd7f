//! Memory of the host, and what the control groups that we are in leave of it.

use std::fs;
use std::path::Path;

use crate::bytes;

/// All memory, bytes; `None` where the kernel does not say.
pub fn total_bytes() -> Option<u64> {
    of_host("MemTotal")
}

/// Memory that we may still take, bytes: of the host, and of the control groups that we are in.
pub fn available_bytes() -> Option<u64> {
    let of_groups = fs::read_to_string("/proc/self/cgroup").ok();
    let of_groups = of_groups.and_then(|text| left_in_groups(Path::new("/sys/fs/cgroup"), &text));
    of_host("MemAvailable").into_iter().chain(of_groups).min()
}

/// A line of proc_meminfo(5), bytes.
fn of_host(name: &str) -> Option<u64> {
    bytes(&fs::read_to_string("/proc/meminfo").ok()?, name)
}

/// What the limits of a control group and of those above it leave, bytes, by the line of version 2 in
/// `/proc/self/cgroup`; `None` where none has a limit. Cached files can be given back, except tmpfs and shared memory
/// (`Documentation/admin-guide/cgroup-v2.rst`: `memory.max`, `memory.current`, `memory.stat`).
fn left_in_groups(root: &Path, text: &str) -> Option<u64> {
    let group = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let left = |group: &Path| {
        let read = |file: &str| fs::read_to_string(root.join(group).join(file)).ok();
        let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
        let (limit, used) = (number("memory.max")?, number("memory.current")?);
        let parts = read("memory.stat")?;
        let part = |name: &str| {
            let mut lines = parts.lines();
            let bytes = lines.find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
            bytes.unwrap_or(0)
        };
        let cached = part("file ").saturating_sub(part("shmem "));
        Some(limit.saturating_sub(used.saturating_sub(cached)))
    };
    Path::new(group).ancestors().filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_control_group_counts_without_its_cached_files() {
        let root = tempfile::tempdir().unwrap();
        let within = root.path().join("a/b");
        fs::create_dir_all(&within).unwrap();
        let group = |group: &str, limit: &str, used: u64, files: u64| {
            let file = |name: &str, text: String| {
                fs::write(root.path().join(group).join(name), text).unwrap();
            };
            file("memory.max", format!("{limit}\n"));
            file("memory.current", format!("{used}\n"));
            file("memory.stat", format!("anon 1\nfile {}\nshmem 7\n", files + 7));
        };
        let left = |text: &str| left_in_groups(root.path(), text);
        assert_eq!(left("0::/a/b\n"), None);
        group("a/b", "max", 500, 0);
        assert_eq!(left("0::/a/b\n"), None);
        group("a", "1000", 700, 100);
        assert_eq!(left("1:name=systemd:/\n0::/a/b\n"), Some(400));
        group("a/b", "300", 250, 50);
        assert_eq!(left("0::/a/b\n"), Some(100));
        assert_eq!(left("3:memory:/a\n"), None);
    }

    #[test]
    fn this_host_has_memory() {
        let (total, available) = (total_bytes().unwrap(), available_bytes().unwrap());
        assert!(available > 1 << 20 && available <= total, "{available} of {total}");
    }
}
