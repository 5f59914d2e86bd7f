//! Where threads wait, and how long: pairs the records of a thread, one when it leaves the processor and the next when it
//! leaves it again.

use std::collections::HashMap;

use waggle_model::{Command, Loss, Losses, ProcessorSample, StatementKey, TimeClass, Waited};

use super::skeleton::types;
use crate::carrier::read_struct;

/// `WAIT_FRAMES` of `shared.h`.
const USER_FRAMES: usize = 64;
/// Threads that are off the processor at once; a server has ten thousand at most.
const THREADS_MAX: usize = 65_536;
/// A wait that goes on is told in parts of this length or longer, nanoseconds. That often all are looked at.
const PART_NS: u64 = 250_000_000;

/// A wait that goes on, as far as is known.
struct Wait {
    sample: ProcessorSample,
    class: TimeClass,
    /// When it began, by the clock of the run queue.
    since: u64,
    run_delay: u64,
    switches: u64,
    /// What was told of its length.
    told_ns: u64,
    /// What it took to note it, until that is told.
    price_ns: Option<u64>,
}

/// The waits that go on, by server and thread.
#[derive(Default)]
pub(crate) struct Stacks {
    waits: HashMap<(u32, u32), Wait>,
    lost: HashMap<u32, u64>,
    /// When open waits are looked at next.
    next_look_ns: u64,
}

impl Stacks {
    /// A thread left the processor: hands out the wait before, and keeps this one.
    pub(crate) fn begins(&mut self, record: &[u8], consume: &mut dyn FnMut(&ProcessorSample)) {
        let Some(raw) = read_struct::<types::wait_stack>(record) else { return };
        let pid = raw.head.tgid;
        self.end(pid, &raw.turn, consume);
        let Some(wait) = wait_of(&raw) else { return };
        let key = (pid, raw.turn.tid);
        if self.waits.len() < THREADS_MAX {
            self.waits.insert(key, wait);
        } else {
            self.lose(pid);
        }
    }

    /// A thread waits for its next request: hands out the wait before.
    pub(crate) fn rests(&mut self, record: &[u8], consume: &mut dyn FnMut(&ProcessorSample)) {
        if let Some(raw) = read_struct::<types::rests>(record) {
            self.end(raw.head.tgid, &raw.turn, consume);
        }
    }

    fn end(&mut self, pid: u32, turn: &types::turn, consume: &mut dyn FnMut(&ProcessorSample)) {
        let Some(mut wait) = self.waits.remove(&(pid, turn.tid)) else { return };
        // Of records in between that were lost nobody knows how long they were.
        if turn.switches != wait.switches.wrapping_add(1) {
            return self.lose(pid);
        }
        let whole = turn.arrived.saturating_sub(wait.since);
        let queued = turn.run_delay.saturating_sub(wait.run_delay);
        wait.tell(whole, queued, consume);
    }

    /// Hands out what is known by now of the waits that go on for long.
    pub(crate) fn go_on(&mut self, now_ns: u64, consume: &mut dyn FnMut(&ProcessorSample)) {
        if now_ns < self.next_look_ns {
            return;
        }
        self.next_look_ns = now_ns.saturating_add(PART_NS);
        for wait in self.waits.values_mut() {
            let length = now_ns.saturating_sub(wait.sample.at_ns);
            if length.saturating_sub(wait.told_ns) >= PART_NS {
                wait.tell(length, 0, consume);
            }
        }
    }

    /// A server is watched no more.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.waits.retain(|(of, _), _| *of != pid);
        self.lost.remove(&pid);
    }

    /// Waits of unknown length.
    pub(crate) fn losses(&self, pid: u32) -> Losses {
        let mut losses = Losses::default();
        losses.add(Loss::ProfileSample, self.lost.get(&pid).copied().unwrap_or(0));
        losses
    }

    fn lose(&mut self, pid: u32) {
        *self.lost.entry(pid).or_default() += 1;
    }
}

impl Wait {
    /// Hands out what was not told yet of this length, of which so much was in the run queue.
    fn tell(&mut self, length: u64, queued: u64, consume: &mut dyn FnMut(&ProcessorSample)) {
        let ns = length.saturating_sub(self.told_ns);
        self.told_ns = self.told_ns.max(length);
        let queued_ns = if self.class == TimeClass::RunQueue { ns } else { queued.min(ns) };
        self.sample.waited = Some(Waited { class: self.class, ns, queued_ns });
        self.sample.took_ns = self.price_ns.take().unwrap_or(0);
        consume(&self.sample);
    }
}

fn wait_of(raw: &types::wait_stack) -> Option<Wait> {
    let class = TimeClass::of_number(raw.part.into())?;
    let name_length = raw.thread_name.iter().position(|byte| *byte == 0);
    let name = raw.thread_name.get(..name_length.unwrap_or(raw.thread_name.len()))?;
    let count = raw.user_frames as usize;
    let kernel = usize::try_from(raw.kernel_bytes).unwrap_or(0) / size_of::<u64>();
    let statement =
        StatementKey { thd: raw.head.thd, connection_id: raw.id, noted_start_us: raw.start };
    let sample = ProcessorSample {
        pid: raw.head.tgid,
        tid: raw.turn.tid,
        at_ns: raw.head.end_ns,
        took_ns: 0,
        statement: Some(statement),
        command: Some(Command(raw.command as u8)),
        thread: String::from_utf8_lossy(name).into_owned(),
        user: raw.user.get(..count.min(USER_FRAMES))?.to_vec(),
        kernel: raw.kernel.iter().copied().take(kernel).take_while(|word| *word != 0).collect(),
        is_cut: count > USER_FRAMES,
        waited: None,
    };
    Some(Wait {
        sample,
        class,
        since: raw.turn.left,
        run_delay: raw.turn.run_delay,
        switches: raw.turn.switches,
        told_ns: 0,
        price_ns: Some(raw.took_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PID: u32 = 10;

    fn bytes<T: Copy>(raw: &T) -> Vec<u8> {
        // SAFETY: the structure consists of integers and was made by `Default`; the slice is copied while it lives.
        let bytes = unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(raw).cast::<u8>(), size_of_val(raw))
        };
        bytes.to_vec()
    }

    fn turn(arrived: u64, left: u64, run_delay: u64, switches: u64) -> types::turn {
        types::turn { arrived, left, run_delay, switches, tid: 12, unused: 0 }
    }

    fn begins(turn: types::turn, part: u32) -> Vec<u8> {
        let empty = types::wait_stack::default();
        let mut raw = types::wait_stack { turn, part, user_frames: 2, ..empty };
        (raw.head.tgid, raw.head.thd, raw.head.end_ns, raw.took_ns) = (PID, 7, turn.left, 5);
        raw.user[..2].copy_from_slice(&[1, 2]);
        bytes(&raw)
    }

    fn rests(turn: types::turn) -> Vec<u8> {
        let mut raw = types::rests { turn, ..types::rests::default() };
        raw.head.tgid = PID;
        bytes(&raw)
    }

    fn waited(class: TimeClass, ns: u64, queued_ns: u64) -> Waited {
        Waited { class, ns, queued_ns }
    }

    #[test]
    fn a_wait_is_as_long_as_until_its_thread_came_back() {
        let (mut stacks, mut told) = (Stacks::default(), Vec::new());
        let mut take = |sample: &ProcessorSample| told.push(sample.clone());
        stacks.begins(&begins(turn(0, 100, 10, 1), TimeClass::RowLock as u32), &mut take);
        stacks.begins(&begins(turn(400, 450, 60, 2), TimeClass::RunQueue as u32), &mut take);
        stacks.rests(&rests(turn(500, 600, 110, 3)), &mut take);
        stacks.rests(&rests(turn(700, 800, 110, 4)), &mut take);
        let waits: Vec<_> = told.iter().filter_map(|sample| sample.waited).collect();
        let expected = [waited(TimeClass::RowLock, 300, 50), waited(TimeClass::RunQueue, 50, 50)];
        assert_eq!(waits, expected);
        assert_eq!((told[0].tid, &told[0].user[..]), (12, &[1, 2][..]));
        assert_eq!(stacks.losses(PID), Losses::default());
    }

    #[test]
    fn a_wait_whose_end_was_lost_is_counted_and_has_no_length() {
        let (mut stacks, mut told) = (Stacks::default(), 0);
        let mut take = |_: &ProcessorSample| told += 1;
        stacks.begins(&begins(turn(0, 100, 0, 1), TimeClass::Sync as u32), &mut take);
        stacks.begins(&begins(turn(900, 950, 0, 3), TimeClass::Sync as u32), &mut take);
        stacks.begins(&begins(turn(0, 1, 0, 4), 99), &mut take);
        for end in 0..size_of::<types::wait_stack>() {
            stacks.begins(&begins(turn(0, 1, 0, 1), 2)[..end], &mut take);
        }
        assert_eq!(told, 1);
        assert_eq!(stacks.losses(PID).get(Loss::ProfileSample), 1);
        stacks.forget(PID);
        assert_eq!(stacks.losses(PID), Losses::default());
    }

    #[test]
    fn a_long_wait_is_told_while_it_goes_on_and_once_in_all() {
        let (mut stacks, mut told) = (Stacks::default(), Vec::new());
        let mut take = |sample: &ProcessorSample| {
            told.push((sample.waited.unwrap().ns, sample.took_ns));
        };
        stacks.begins(&begins(turn(0, 1000, 0, 1), TimeClass::Sleep as u32), &mut take);
        stacks.go_on(1000 + PART_NS - 1, &mut take);
        stacks.go_on(1000 + 2 * PART_NS, &mut take);
        stacks.go_on(1000 + 2 * PART_NS + 9, &mut take);
        stacks.rests(&rests(turn(1000 + 3 * PART_NS, 0, 0, 2)), &mut take);
        assert_eq!(told, [(2 * PART_NS, 5), (PART_NS, 0)]);
    }

    #[test]
    fn only_a_stack_with_more_functions_than_are_kept_is_cut() {
        let is_cut = |user_frames| {
            let raw = types::wait_stack { user_frames, ..types::wait_stack::default() };
            wait_of(&raw).map(|wait| (wait.sample.user.len(), wait.sample.is_cut))
        };
        let most = USER_FRAMES as u32;
        assert_eq!(is_cut(most), Some((USER_FRAMES, false)));
        assert_eq!(is_cut(most + 1), Some((USER_FRAMES, true)));
        assert_eq!(is_cut(u32::MAX), Some((USER_FRAMES, true)));
    }

    #[test]
    fn the_limits_are_those_of_the_kernels_half() {
        let shared = include_str!("shared.h");
        assert!(shared.contains(&format!("#define WAIT_FRAMES {USER_FRAMES}\n")));
    }
}
