//! What a run finds: the computer, for the first page of the report.

use std::fs;
use std::io;

use waggle_calibration::processors;
use waggle_lab::report::facts::{Host, Pinned};

/// The first half of the processors that we may use, and the second.
///
/// # Errors
/// The system does not say which ones (sched_getaffinity(2)).
pub(super) fn halves() -> io::Result<[Vec<usize>; 2]> {
    Ok(halves_of(&processors::usable()?))
}

/// One processor has to do for both.
fn halves_of(processors: &[usize]) -> [Vec<usize>; 2] {
    if let [one] = processors {
        return [vec![*one], vec![*one]];
    }
    let (server, load) = processors.split_at(processors.len() / 2);
    [server.to_vec(), load.to_vec()]
}

/// The computer.
pub(super) fn host(pinned: [Vec<usize>; 2]) -> Host {
    let name = rustix::system::uname();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |text: &str, key: &str, between: char| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(between)?.1.trim().trim_matches('"').to_owned())
    };
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = value(&meminfo, "MemTotal", ':').unwrap_or_default();
    let kib: u64 = total.trim_end_matches(" kB").parse().unwrap_or(0);
    let is_virtual = cpuinfo.lines().any(|line| {
        line.starts_with("flags") && line.split_ascii_whitespace().any(|flag| flag == "hypervisor")
    });
    let vendor = fs::read_to_string("/sys/class/dmi/id/sys_vendor").ok();
    Host {
        name: name.nodename().to_string_lossy().into_owned(),
        system: value(&system, "PRETTY_NAME=", '='),
        kernel: name.release().to_string_lossy().into_owned(),
        cpu_model: value(&cpuinfo, "model name", ':'),
        processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        memory_bytes: kib << 10,
        hypervisor: is_virtual
            .then(|| vendor.map_or_else(|| "unknown".to_owned(), |name| name.trim().to_owned())),
        pinned: (!pinned[0].is_empty()).then(|| {
            let [server, load] = pinned.map(|of| of.into_iter().map(|at| at as u32).collect());
            Pinned { server, load }
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_halved_as_they_are_numbered() {
        assert_eq!(halves_of(&[2, 3, 8, 9]), [vec![2, 3], vec![8, 9]]);
        assert_eq!(halves_of(&[4, 5, 7]), [vec![4], vec![5, 7]]);
        assert_eq!(halves_of(&[6]), [vec![6], vec![6]]);
        let ours = processors::usable().unwrap();
        let [server, load] = halves().unwrap();
        assert!(server.iter().chain(&load).all(|at| ours.contains(at)));
    }
}
