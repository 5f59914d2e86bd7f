//! The processors of the host, and which of them a thread may run on.

use std::{fs, io};

use rustix::io::Errno;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use crate::{HostTime, value};

/// How many are online (proc_stat(5)).
///
/// # Errors
/// The system does not say.
pub fn online() -> io::Result<usize> {
    Ok(HostTime::read()?.processors as usize)
}

/// The numbers of the online processors, ascending (`Documentation/admin-guide/cputopology.rst`).
///
/// # Errors
/// The system does not say.
pub fn online_numbers() -> io::Result<Vec<usize>> {
    listed("online")
}

/// The highest number that a processor of this host may have, also one that is plugged in later.
///
/// # Errors
/// The system does not say.
pub fn highest() -> io::Result<usize> {
    Ok(listed("possible")?.into_iter().max().unwrap_or_default())
}

fn listed(name: &str) -> io::Result<Vec<usize>> {
    let file = format!("/sys/devices/system/cpu/{name}");
    let list = fs::read_to_string(&file)?;
    numbers_of(&list).ok_or_else(|| io::Error::other(format!("{file}: {list}")))
}

/// Of a list such as `0-3,8-11`.
fn numbers_of(list: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// Their model; `None` where the kernel names none, as on ARM.
pub fn model() -> Option<String> {
    value(&cpuinfo(), "model name").map(str::to_owned)
}

/// Whether this is a virtual machine; `None` where the kernel shows no flags of the processors.
pub fn are_virtual() -> Option<bool> {
    Some(value(&cpuinfo(), "flags")?.split(' ').any(|flag| flag == "hypervisor"))
}

/// How many tasks were runnable in the minute before, as proc_loadavg(5) writes it; `None` where the kernel does not say.
pub fn load_average() -> Option<String> {
    Some(fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.to_owned())
}

/// Who made the computer, or the virtual machine; `None` where the firmware does not say.
pub fn vendor() -> Option<String> {
    let name = fs::read_to_string("/sys/class/dmi/id/sys_vendor").ok()?;
    Some(name.trim().to_owned())
}

/// The first processor of a core, by one of them (`Documentation/admin-guide/cputopology.rst`); itself where the
/// system does not say.
pub fn core(processor: usize) -> usize {
    let file = format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
    let list = fs::read_to_string(file).unwrap_or_default();
    let first = list.split([',', '-', '\n']).next().and_then(|first| first.parse().ok());
    first.unwrap_or(processor)
}

fn cpuinfo() -> String {
    fs::read_to_string("/proc/cpuinfo").unwrap_or_default()
}

/// The processors that this process may use.
///
/// # Errors
/// The system does not say which ones (sched_getaffinity(2)).
pub fn usable() -> io::Result<Vec<usize>> {
    of(None)
}

/// The processors that another process may use, by its first thread.
///
/// # Errors
/// It has ended.
pub fn usable_by(pid: u32) -> io::Result<Vec<usize>> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    of(Some(pid))
}

fn of(process: Option<Pid>) -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(process)?;
    Ok((0..CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor)).collect())
}

/// Keeps the calling thread on these processors.
///
/// # Errors
/// The kernel does not let it: none of them can be used.
pub fn stay_on(processors: &[usize]) -> io::Result<()> {
    Ok(sched_setaffinity(None, &set_of(processors))?)
}

/// Keeps all threads of a process on these processors; what they start stays there too (sched_setaffinity(2)).
///
/// # Errors
/// The process has ended or belongs to somebody else.
pub fn keep_on(pid: u32, processors: &[usize]) -> io::Result<()> {
    let set = set_of(processors);
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let name = task?.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        match sched_setaffinity(Pid::from_raw(id), &set) {
            // It ended meanwhile.
            Err(Errno::SRCH) => {}
            result => result?,
        }
    }
    Ok(())
}

fn set_of(processors: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for processor in processors {
        set.set(*processor);
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_processors() {
        let ours = usable().unwrap();
        assert!(!ours.is_empty() && online().unwrap() >= ours.len());
        assert!(ours.iter().all(|processor| core(*processor) <= *processor));
    }

    #[test]
    fn a_list_names_each_number_once() {
        for (list, numbers) in [
            ("0", vec![0]),
            ("0-1\n", vec![0, 1]),
            ("0-2,8-9,11", vec![0, 1, 2, 8, 9, 11]),
            ("0,2", vec![0, 2]),
        ] {
            assert_eq!(numbers_of(list), Some(numbers), "{list}");
        }
        assert_eq!((numbers_of(""), numbers_of("0-"), numbers_of("all")), (None, None, None));
        let numbers = online_numbers().unwrap();
        assert_eq!(numbers.len(), online().unwrap());
        assert!(numbers.iter().all(|number| *number <= highest().unwrap()), "{numbers:?}");
    }

    #[test]
    fn a_process_stays() {
        let few = usable().unwrap()[..1].to_vec();
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        keep_on(sleeper.id(), &few).unwrap();
        let kept = usable_by(sleeper.id()).unwrap();
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert_eq!(kept, few);
        assert!(keep_on(sleeper.id(), &few).is_err());
    }
}
