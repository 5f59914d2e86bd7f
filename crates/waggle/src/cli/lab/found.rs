//! Describes the host of a run, for the report.

use std::fs;
use std::io;

use waggle_host::{kernel_release, memory, processors};
use waggle_lab::run_info::{Host, Pinned};

/// The first and the second half of the processors that we may use. Processors of one core share
/// its parts, so they are in the same half.
///
/// # Errors
/// The system does not say which ones (sched_getaffinity(2)).
pub(super) fn halves() -> io::Result<[Vec<usize>; 2]> {
    Ok(halves_of(&processors::usable()?, processors::core))
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
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let system = system.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let is_virtual = processors::are_virtual() == Some(true);
    Ok(Host {
        name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        system: system.map(|name| name.trim().trim_matches('"').to_owned()),
        kernel: kernel_release(),
        cpu_model: processors::model(),
        processors: processors::online()? as u32,
        memory_bytes: memory::total_bytes(),
        hypervisor: is_virtual
            .then(|| processors::vendor().unwrap_or_else(|| "unknown".to_owned())),
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
