//! Where processor time goes: what the threads of a server do when the clocks of the processors tick.
//!
//! `README.md` in this folder has cost, requirements and blind spots.

mod clock;
mod skeleton;

use std::collections::HashMap;

use libbpf_rs::{Link, Object};
use waggle_model::{Command, ProcessorSample, StatementKey};

use crate::carrier::{self, Carrier, CarrierError, Programs, Target, kernel_error, read_struct};
use skeleton::types;

/// The program of `mod.bpf.c`.
const PROGRAM: &str = "on_sample";
/// `USER_FRAMES` of `shared.h`.
const USER_FRAMES: usize = 96;

/// The clocks, as far as they are asked for.
#[derive(Default)]
pub(crate) struct Probe {
    /// Ticks per second of each processor.
    hz: Option<u32>,
    programs: Programs,
    /// Why a server is not sampled; `None`: it is.
    outcome: HashMap<u32, Option<String>>,
}

impl Probe {
    /// One that samples so often.
    pub(crate) fn new(hz: Option<u32>) -> Probe {
        Probe { hz, ..Probe::default() }
    }

    /// Begins with a server that another probe watches as `target`.
    pub(crate) fn attach(&mut self, carrier: &Carrier, target: &Target, pid: u32) {
        let Some(hz) = self.hz else { return };
        let served = self.programs.serve(pid, target.program, || load(carrier, target, hz));
        self.outcome.insert(pid, served.err().map(|error| error.to_string()));
    }

    /// Ends with a server.
    pub(crate) fn detach(&mut self, pid: u32) {
        self.programs.leave(pid);
        self.outcome.remove(&pid);
    }

    /// Why a server is not sampled.
    pub(crate) fn refusal(&self, pid: u32) -> Option<&str> {
        self.outcome.get(&pid)?.as_deref()
    }

    /// What a record of this probe says.
    pub(crate) fn read(&self, record: &[u8]) -> Option<ProcessorSample> {
        sample_of(record).filter(|sample| self.outcome.contains_key(&sample.pid))
    }
}

fn load(carrier: &Carrier, target: &Target, hz: u32) -> Result<(Object, Vec<Link>), CarrierError> {
    let mut open = carrier::open(skeleton::OBJECT, "the program of the profile")?;
    carrier.prepare(&mut open, &target.plan, target.program)?;
    let object = open.load().map_err(kernel_error("loading the program of the profile"))?;
    let links = clock::attach(&object, PROGRAM, hz)?;
    Ok((object, links))
}

fn sample_of(record: &[u8]) -> Option<ProcessorSample> {
    let raw: types::sample = read_struct(record)?;
    let has_session = raw.head.thd != 0;
    let user = frames(&raw.user, raw.user_bytes);
    let length = raw.thread_name.iter().position(|byte| *byte == 0);
    let name = raw.thread_name.get(..length.unwrap_or(raw.thread_name.len()))?;
    let statement =
        StatementKey { thd: raw.head.thd, connection_id: raw.id, noted_start_us: raw.start };
    Some(ProcessorSample {
        pid: raw.head.tgid,
        tid: raw.tid,
        at_ns: raw.head.end_ns,
        took_ns: raw.took_ns,
        statement: has_session.then_some(statement),
        command: has_session.then_some(Command(raw.command as u8)),
        thread: String::from_utf8_lossy(name).into_owned(),
        is_cut: user.len() >= USER_FRAMES,
        user,
        kernel: frames(&raw.kernel, raw.kernel_bytes),
        waited: None,
    })
}

/// As many words as there are bytes; none where they could not be read.
fn frames(words: &[u64], bytes: i32) -> Vec<u64> {
    let count = usize::try_from(bytes).unwrap_or(0) / size_of::<u64>();
    let words = words.get(..count.min(words.len())).unwrap_or_default();
    words.iter().copied().take_while(|word| *word != 0).collect()
}

#[cfg(test)]
mod tests;
