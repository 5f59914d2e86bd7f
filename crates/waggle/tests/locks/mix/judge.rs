//! Compares what was seen with the model.

use std::collections::{BTreeMap, BTreeSet};

use waggle_mysql::locks::{Key, Wait};

use super::Mix;
use super::looks::is_object;
use super::model::{Model, Party};

impl Mix {
    /// Adds the blockers that may be named now, and after each step that the server takes next: its replies arrive later.
    pub(super) fn note_nameable(&mut self) {
        let mut then = self.model.clone();
        self.note(&then);
        while then.step() {
            self.note(&then);
        }
    }

    fn note(&mut self, model: &Model) {
        for at in 0..model.parties.len() {
            self.nameable.entry(at).or_default().extend(model.may_be_named(at));
        }
    }

    /// The index of this session.
    fn at(&self, key: &Key) -> Option<usize> {
        let is_it = |party: &Party| Some(party.connection_id) == key.connection_id();
        self.model.parties.iter().position(is_it)
    }

    fn named(&self, wait: &Wait) -> BTreeSet<usize> {
        wait.blockers.iter().map(|key| self.at(key).unwrap_or(usize::MAX)).collect()
    }

    /// While locks changed, only sessions that were or became blockers may have been named.
    pub(super) fn assert_only_blockers_were_named(&mut self) {
        for wait in std::mem::take(&mut self.unchecked) {
            let at = self.at(&wait.waiter);
            let may_be = at.and_then(|at| self.nameable.get(&at)).cloned().unwrap_or_default();
            if !self.named(&wait).is_subset(&may_be) {
                let id = wait.waiter.connection_id().unwrap_or(0);
                let seen = BTreeMap::from([(id, wait)]);
                self.fail(&format!("{id} never waited for these blockers"), &seen);
            }
        }
    }

    /// The first difference between what was seen and the model.
    pub(super) fn difference(&self, seen: &BTreeMap<u64, Wait>) -> Option<String> {
        let waiting = self.model.waiting();
        for (at, party) in self.model.parties.iter().enumerate() {
            let id = party.connection_id;
            let wait = match (seen.get(&id), waiting.contains(&at)) {
                (None, false) => continue,
                (Some(wait), true) => wait,
                (Some(_), false) => return Some(format!("{id} does not wait")),
                (None, true) => return Some(format!("{id} waits")),
            };
            let Some(lock) = self.model.awaited(at) else { continue };
            if let Err(wrong) = self.model.judge(at, &self.named(wait)) {
                return Some(format!("{id} {wrong}"));
            }
            if wait.lock.object.as_ref().is_some_and(|object| !is_object(lock.0, object)) {
                return Some(format!("{id} waits for something else"));
            }
        }
        None
    }
}
