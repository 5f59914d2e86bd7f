//! What the sessions of a server wait for at one moment, as the program at the switch has noted it.

use std::io::Read;
use std::os::fd::AsFd;

use libbpf_rs::Object;
use waggle_model::{NowWait, RunningStatement, TimeClass};

use super::skeleton::types;
use crate::carrier::{self, CarrierError, read_struct, walk_threads};

const LOOK: &str = "on_look";

/// What a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Now {
    thd: u64,
    /// Of its statement when its thread last left the processor.
    noted_start_us: u64,
    class: TimeClass,
    ns: u64,
}

/// The sessions of a server, by their address.
pub(super) fn of(object: &Object, pid: u32) -> Result<Vec<Now>, CarrierError> {
    let program = carrier::program(object, LOOK)?;
    let failed = |error: std::io::Error| CarrierError::Kernel {
        what: "walking the sessions of a server",
        why: error.to_string(),
    };
    // The clock of this thread's run queue is that of its last switch.
    std::thread::yield_now();
    let mut rows = Vec::new();
    let mut file = walk_threads(program.as_fd(), pid).map_err(failed)?;
    file.read_to_end(&mut rows).map_err(failed)?;
    let mut sessions: Vec<Now> =
        rows.chunks_exact(size_of::<types::look_row>()).filter_map(decode).collect();
    sessions.sort_unstable_by_key(|session| session.thd);
    Ok(sessions)
}

/// `None` where a thread is off the processor and nobody has noted why.
fn decode(row: &[u8]) -> Option<Now> {
    let types::look_row { thd, start: noted_start_us, ns, part } = read_struct(row)?;
    let class = TimeClass::of_number(part)?;
    (class != TimeClass::BeforeAttach).then_some(Now { thd, noted_start_us, class, ns })
}

/// Whether it is noted what the thread of a running statement does.
pub(crate) fn is_noted(all: &[Now], running: &RunningStatement) -> bool {
    all.binary_search_by_key(&running.thd, |now| now.thd).is_ok()
}

/// What a running statement waits for; `None` where that is not known. `now_ns` is the moment of the look.
pub(crate) fn wait_of(all: &[Now], running: &RunningStatement, now_ns: u64) -> Option<NowWait> {
    let at = all.binary_search_by_key(&running.thd, |now| now.thd).ok()?;
    let now = &all[at];
    // A thread that came back to the processor may have begun its statement since.
    let is_on_its_way = matches!(now.class, TimeClass::Cpu | TimeClass::RunQueue);
    let is_of_it = running.noted_start_us == Some(now.noted_start_us);
    (is_on_its_way || is_of_it)
        .then(|| NowWait { class: now.class, since_ns: now_ns.saturating_sub(now.ns) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(words: [u64; 4]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_wait_is_that_of_the_statement_that_runs() {
        let lock = TimeClass::RowLock as u64;
        let all =
            [decode(&row([7, 100, 500, lock])).unwrap(), decode(&row([8, 100, 20, 0])).unwrap()];
        let of = |thd, noted_start_us| {
            let running = RunningStatement { thd, noted_start_us, ..RunningStatement::default() };
            wait_of(&all, &running, 10_000).map(|wait| (wait.class, wait.since_ns))
        };
        assert_eq!(of(7, Some(100)), Some((TimeClass::RowLock, 9_500)));
        assert_eq!(of(7, Some(101)), None);
        assert_eq!(of(7, None), None);
        assert_eq!(of(8, Some(101)), Some((TimeClass::Cpu, 9_980)));
        assert_eq!(of(9, Some(100)), None);
    }

    #[test]
    fn a_row_that_is_cut_or_of_no_class_is_none() {
        assert_eq!(decode(&row([7, 100, 500, 18])), None);
        assert_eq!(decode(&row([7, 100, 500, u64::MAX])), None);
        assert_eq!(decode(&row([7, 100, 500, 1])[..31]), None);
    }
}
