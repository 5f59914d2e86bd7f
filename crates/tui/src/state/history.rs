//! The last minutes of one server, in bounded memory.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use waggle_model::{DigestKey, Reading, Sample, StatementLockWait};

use super::frame::{Details, Frame, Name};
use super::session::bytes_of;

/// What the intervals before the newest may take of one server: about half an hour of one with
/// a dozen digests, at one interval per second.
pub(crate) const BUDGET_BYTES: usize = 8 << 20;
/// How far it reaches at most.
const REACH_NS: u64 = 30 * 60 * 1_000_000_000;
/// Users of a digest that are kept.
const USERS_MAX: usize = 32;

/// Intervals, oldest first. The newest is whole; of the others the most important digests and
/// sessions are kept.
#[derive(Debug, Default)]
pub(crate) struct History {
    frames: VecDeque<Arc<Frame>>,
    known: HashMap<DigestKey, Known>,
    /// Of all frames but the newest, and of what is known of their digests.
    bytes: usize,
}

/// A digest of the history.
#[derive(Debug)]
struct Known {
    name: Arc<Name>,
    /// How many frames before the newest have it.
    frames: usize,
    details: Details,
}

impl Known {
    fn bytes(&self) -> usize {
        let schema = self.name.schema.as_ref().map_or(0, |schema| schema.len());
        let users: usize =
            self.details.users.keys().map(|user| size_of::<(Vec<u8>, u64)>() + user.len()).sum();
        let samples = &self.details.samples;
        let samples = [&samples.slowest, &samples.random].into_iter().flatten();
        let texts: usize = samples
            .map(|sample| size_of::<Sample>() + sample.text.as_ref().map_or(0, Vec::len))
            .sum();
        let server_digest = match &self.details.server_digest {
            Some(Reading::Value(hash)) => hash.len(),
            Some(Reading::Absent(why)) => why.len(),
            None => 0,
        };
        let wait = self.details.wait.as_ref().map_or(0, |wait| {
            size_of::<StatementLockWait>() + wait.wait.blocked.as_ref().map_or(0, bytes_of)
        });
        let names = self.name.text.len() + schema + server_digest;
        size_of::<Known>() + size_of::<Name>() + names + users + texts + wait
    }

    fn take(&mut self, newer: &Details) {
        for (user, calls) in &newer.users {
            if let Some(sum) = self.details.users.get_mut(user) {
                *sum += calls;
            } else if self.details.users.len() < USERS_MAX {
                self.details.users.insert(user.clone(), *calls);
            }
        }
        if newer.server_digest.is_some() {
            self.details.server_digest.clone_from(&newer.server_digest);
        }
        let length =
            |wait: &Option<Box<StatementLockWait>>| wait.as_ref().map(|one| one.wait.length_ns);
        if length(&newer.wait) > length(&self.details.wait) {
            self.details.wait.clone_from(&newer.wait);
        }
        let kept = &mut self.details.samples;
        let latency = |sample: &Option<Box<Sample>>| sample.as_ref().map(|one| one.latency_ns);
        if latency(&newer.samples.slowest) > latency(&kept.slowest) {
            kept.slowest.clone_from(&newer.samples.slowest);
        }
        if newer.samples.random.is_some() {
            kept.random.clone_from(&newer.samples.random);
        }
    }
}

impl History {
    /// The name of a digest that is kept.
    pub(crate) fn name(&self, key: &DigestKey) -> Option<Arc<Name>> {
        self.known.get(key).map(|known| known.name.clone())
    }

    /// What is kept of a digest beside its numbers: of the newest interval and of those before.
    pub(crate) fn details(&self, key: &DigestKey) -> (Option<&Details>, Option<&Details>) {
        let newest = self.frames.back().and_then(|frame| frame.details.get(key));
        (newest, self.known.get(key).map(|known| &known.details))
    }

    /// Adds the newest interval, and forgets what is too old or too much.
    pub(crate) fn push(&mut self, frame: Frame, budget: usize) {
        if let Some(before) = self.frames.pop_back() {
            self.keep(&before);
        }
        let oldest_ns = frame.end_ns.saturating_sub(REACH_NS);
        while self.bytes > budget || self.frames.front().is_some_and(|it| it.end_ns < oldest_ns) {
            let Some(oldest) = self.frames.pop_front() else { break };
            self.forget(&oldest);
        }
        self.frames.push_back(Arc::new(frame));
    }

    fn keep(&mut self, frame: &Frame) {
        let thinned = frame.thinned();
        for row in &thinned.rows {
            let known = self.known.entry(row.key);
            let is_new = matches!(known, std::collections::hash_map::Entry::Vacant(_));
            let known = known.or_insert_with(|| Known {
                name: row.name.clone(),
                frames: 0,
                details: Details::default(),
            });
            let before = if is_new { 0 } else { known.bytes() };
            known.frames += 1;
            if let Some(details) = frame.details.get(&row.key) {
                known.take(details);
            }
            self.bytes = self.bytes + known.bytes() - before;
        }
        self.bytes += thinned.bytes();
        self.frames.push_back(Arc::new(thinned));
    }

    fn forget(&mut self, frame: &Frame) {
        self.bytes = self.bytes.saturating_sub(frame.bytes());
        for row in &frame.rows {
            let Some(known) = self.known.get_mut(&row.key) else { continue };
            known.frames -= 1;
            if known.frames == 0 {
                self.bytes = self.bytes.saturating_sub(known.bytes());
                self.known.remove(&row.key);
            }
        }
    }

    /// The newest interval.
    pub(crate) fn newest(&self) -> Option<&Arc<Frame>> {
        self.frames.back()
    }

    /// The interval `by` places after the one that ended at `end_ns`; the first or last one where
    /// there are not so many.
    pub(crate) fn beside(&self, end_ns: u64, by: isize) -> Option<&Arc<Frame>> {
        let at = self.frames.partition_point(|frame| frame.end_ns < end_ns) as isize;
        let last = self.frames.len().checked_sub(1)? as isize;
        self.frames.get((at + by).clamp(0, last) as usize)
    }

    /// Up to `n` intervals that end at `end_ns` or before, oldest first.
    pub(crate) fn until(
        &self,
        end_ns: u64,
        n: usize,
    ) -> impl ExactSizeIterator<Item = &Arc<Frame>> {
        let end = self.frames.partition_point(|frame| frame.end_ns <= end_ns);
        self.frames.range(end.saturating_sub(n)..end)
    }

    /// How far it reaches back, nanoseconds.
    pub(crate) fn reach_ns(&self) -> u64 {
        match (self.frames.front(), self.frames.back()) {
            (Some(first), Some(last)) => last.end_ns.saturating_sub(first.start_ns),
            _ => 0,
        }
    }

    /// Bytes of everything but the newest interval.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
