//! Which processors a thread may run on.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

/// So many sessions that never rest leave a processor no time to halt: while one waits for its server, another, or
/// the server itself, has work.
pub(crate) const SESSIONS_EACH: usize = 2;

/// What two sessions write at once goes from one processor to the other then, as on every server that is at work.
const FEWEST: usize = 2;

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

/// So few of them that this many sessions and their server leave none time to halt, but two at the least where there
/// are, which two sessions may leave some; all of them for many sessions.
///
/// # Errors
/// As [`usable`].
pub(crate) fn few_for(sessions: u32) -> io::Result<Vec<usize>> {
    let mut few = usable()?;
    few.truncate(FEWEST.max((sessions as usize).div_ceil(SESSIONS_EACH)));
    Ok(few)
}

/// Keeps the calling thread on these processors.
///
/// # Errors
/// The kernel does not let it: none of them can be used.
pub(crate) fn stay_on(processors: &[usize]) -> io::Result<()> {
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
    fn few_sessions_have_few_processors() {
        let all = usable().unwrap();
        let few = |sessions| few_for(sessions).unwrap();
        assert_eq!(few(2), all[..all.len().min(2)]);
        assert_eq!(few(5).len(), all.len().min(3));
        assert_eq!(few(1_000_000), all);
    }

    #[test]
    fn a_process_stays() {
        let few = usable().unwrap()[..1].to_vec();
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let of = |pid: u32| sched_getaffinity(Pid::from_raw(pid as i32)).unwrap();
        keep_on(sleeper.id(), &few).unwrap();
        let kept = of(sleeper.id());
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert_eq!((kept.count(), kept.is_set(few[0])), (1, true));
        assert!(keep_on(sleeper.id(), &few).is_err());
    }
}
