//! Looks at the server until its locks have settled, and counts what was seen.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use waggle_mysql::locks::Wait;
use waggle_testkit::PATIENCE;

use super::Mix;
use super::model::{Lock, kind};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// What was seen of the waits for one kind of lock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kind {
    pub(super) waits: u64,
    /// Those with an unknown blocker after settling, where memory does not show it ([`Model::is_in_doubt`]).
    ///
    /// [`Model::is_in_doubt`]: super::model::Model::is_in_doubt
    pub(super) unknown: u64,
    /// Those without the name of the table or user lock.
    pub(super) nameless: u64,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    pub(super) kinds: BTreeMap<&'static str, Kind>,
    pub(super) looks: u64,
    /// Blockers that were named, in all looks.
    pub(super) named: u64,
    /// Waits in all looks, and those of them without a named blocker.
    pub(super) sights: u64,
    pub(super) blind_sights: u64,
    /// The longest time from a change until a look matched the model, milliseconds.
    pub(super) slowest_ms: u64,
    /// Waits that have been counted, with the waiter.
    seen: BTreeSet<(usize, Lock)>,
}

impl Counted {
    pub(super) fn waits(&self) -> u64 {
        self.kinds.values().map(|kind| kind.waits).sum()
    }
}

impl Mix {
    fn take_answer(&mut self, at: usize) {
        self.actions.answered(self.id(at));
        self.model.answered(at);
        self.counted.seen.retain(|(other, _)| *other != at);
        self.model.advance();
        self.note_nameable();
    }

    fn take_answers(&mut self) {
        for at in self.sessions.answered() {
            self.take_answer(at);
        }
    }

    /// Looks until the server has settled and what is seen matches the model. Then looks once more, and that look must
    /// match.
    pub(super) fn settle(&mut self) {
        let begin = Instant::now();
        loop {
            self.wait_until_settled(begin);
            let seen = self.look();
            // A lock may have been granted while the reply was still on its way.
            let answered = self.sessions.answered();
            if answered.is_empty() {
                if let Some(why) = self.difference(&seen) {
                    self.fail(&why, &seen);
                }
                return self.count(&seen);
            }
            answered.into_iter().for_each(|at| self.take_answer(at));
        }
    }

    fn wait_until_settled(&mut self, begin: Instant) {
        loop {
            self.take_answers();
            let due = self.model.advance();
            let seen = self.look();
            self.unchecked.extend(seen.values().cloned());
            let differs = match due.is_empty() {
                true => self.difference(&seen),
                false => {
                    let ids: Vec<String> = due.iter().map(|at| self.id(*at).to_string()).collect();
                    Some(format!("replies are due: {}", ids.join(", ")))
                }
            };
            let Some(why) = differs else { break };
            if begin.elapsed() > PATIENCE {
                self.fail(&why, &seen);
            }
            if let Some(at) = self.sessions.wait_a_moment(PAUSE) {
                self.take_answer(at);
            }
        }
        let took = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.counted.slowest_ms = self.counted.slowest_ms.max(took);
        self.assert_only_blockers_were_named();
        self.nameable.clear();
        self.note_nameable();
    }

    fn look(&mut self) -> BTreeMap<u64, Wait> {
        let (seen, not_known) = (self.look)();
        self.not_known = not_known;
        self.counted.looks += 1;
        self.counted.named += seen.values().map(|wait| wait.blockers.len() as u64).sum::<u64>();
        self.counted.sights += seen.len() as u64;
        let blind = seen.values().filter(|wait| wait.blockers.is_empty()).count();
        self.counted.blind_sights += blind as u64;
        seen
    }

    /// Counts the waits that are new.
    fn count(&mut self, seen: &BTreeMap<u64, Wait>) {
        for at in self.model.waiting() {
            let (Some(wait), Some(lock)) = (seen.get(&self.id(at)), self.model.awaited(at)) else {
                continue;
            };
            if self.counted.seen.insert((at, lock)) {
                let kind = self.counted.kinds.entry(kind(lock)).or_default();
                kind.waits += 1;
                kind.unknown += u64::from(wait.blockers.is_empty());
                kind.nameless += u64::from(wait.lock.object.is_none());
            }
        }
    }
}
