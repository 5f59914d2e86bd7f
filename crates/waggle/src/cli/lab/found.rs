//! What a run finds: the computer, for the first page of the report.

use std::fs;
use std::io;

use waggle_calibration::{HostTime, processors};
use waggle_lab::facts::{Host, Pinned};

/// The first half of the processors that we may use, and the second. Those of one core, which share what
/// it has, are in one half.
///
/// # Errors
/// The system does not say which ones (sched_getaffinity(2)).
pub(super) fn halves() -> io::Result<[Vec<usize>; 2]> {
    Ok(halves_of(&processors::usable()?, core))
}

/// The first processor of a core, by one of them (`Documentation/admin-guide/cputopology.rst`); itself where the
/// system does not say.
fn core(processor: usize) -> usize {
    let file = format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
    let list = fs::read_to_string(file).unwrap_or_default();
    let first = list.split([',', '-', '\n']).next().and_then(|first| first.parse().ok());
    first.unwrap_or(processor)
}

/// One processor has to do for both, and two of one core are a half each.
fn halves_of(processors: &[usize], core: impl Fn(usize) -> usize) -> [Vec<usize>; 2] {
    if let [one] = processors {
        return [vec![*one], vec![*one]];
    }
    let mut by_core = processors.to_vec();
    by_core.sort_by_key(|processor| (core(*processor), *processor));
    let middle = by_core.len() / 2;
    let begins = |at: &usize| core(by_core[*at]) != core(by_core[*at - 1]);
    let near = (1..by_core.len()).filter(begins).min_by_key(|at| at.abs_diff(middle));
    let load = by_core.split_off(near.unwrap_or(middle));
    [by_core, load]
}

/// The computer.
///
/// # Errors
/// The system does not say what its processors do: then nothing can be measured.
pub(super) fn host(pinned: [Vec<usize>; 2]) -> io::Result<Host> {
    let name = rustix::system::uname();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |text: &str, key: &str, between: char| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(between)?.1.trim().trim_matches('"').to_owned())
    };
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = value(&meminfo, "MemTotal", ':');
    let kib: Option<u64> = total.and_then(|total| total.trim_end_matches(" kB").parse().ok());
    let is_virtual = cpuinfo.lines().any(|line| {
        line.starts_with("flags") && line.split_ascii_whitespace().any(|flag| flag == "hypervisor")
    });
    let vendor = fs::read_to_string("/sys/class/dmi/id/sys_vendor").ok();
    Ok(Host {
        name: name.nodename().to_string_lossy().into_owned(),
        system: value(&system, "PRETTY_NAME=", '='),
        kernel: name.release().to_string_lossy().into_owned(),
        cpu_model: value(&cpuinfo, "model name", ':'),
        processors: HostTime::read()?.processors as u32,
        memory_bytes: kib.map(|kib| kib << 10),
        hypervisor: is_virtual
            .then(|| vendor.map_or_else(|| "unknown".to_owned(), |name| name.trim().to_owned())),
        pinned: (!pinned[0].is_empty()).then(|| {
            let [server, load] = pinned.map(|of| of.into_iter().map(|at| at as u32).collect());
            Pinned { server, load }
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_halved_between_cores() {
        let alone = |processor| processor;
        assert_eq!(halves_of(&[2, 3, 8, 9], alone), [vec![2, 3], vec![8, 9]]);
        assert_eq!(halves_of(&[4, 5, 7], alone), [vec![4], vec![5, 7]]);
        assert_eq!(halves_of(&[6], alone), [vec![6], vec![6]]);
        // Processor n and n + 4 are of one core, as Linux mostly numbers them.
        let siblings = |processor| processor % 4;
        let all: Vec<usize> = (0..8).collect();
        assert_eq!(halves_of(&all, siblings), [vec![0, 4, 1, 5], vec![2, 6, 3, 7]]);
        assert_eq!(halves_of(&[0, 1, 4, 5, 2, 6], siblings), [vec![0, 4], vec![1, 5, 2, 6]]);
        assert_eq!(halves_of(&[3, 7], siblings), [vec![3], vec![7]]);
        let ours = processors::usable().unwrap();
        let [server, load] = halves().unwrap();
        assert!(server.iter().chain(&load).all(|at| ours.contains(at)));
    }
}
