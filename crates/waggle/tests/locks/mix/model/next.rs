//! The next steps of the server: it grants locks, and statements request their next lock or end.

use std::collections::BTreeSet;

use super::{Asked, Model};

impl Model {
    /// Sessions with a running statement, in the order of sending.
    fn in_order(&self) -> Vec<usize> {
        let asked = |at: usize| self.parties[at].asked.as_ref();
        let mut all: Vec<usize> =
            (0..self.parties.len()).filter(|at| asked(*at).is_some()).collect();
        all.sort_by_key(|at| asked(*at).map(|asked| asked.number));
        all
    }

    /// Whether no session holds what it waits for, and none is served first.
    fn is_free(&self, at: usize) -> bool {
        self.awaited(at).is_some_and(|lock| {
            self.holders(at, lock).is_empty() && self.ahead(at, lock).is_empty()
        })
    }

    /// The session that is granted a lock next.
    fn next_given(&self) -> Option<usize> {
        self.in_order().into_iter().find(|at| self.is_free(*at))
    }

    /// The session that requests another lock next. All possible grants come before: the session that releases a lock
    /// grants it, and the waiter has to wake up first.
    fn next_asking(&self) -> Option<usize> {
        let asked = |at: usize| self.parties[at].asked.as_ref();
        self.in_order().into_iter().find(|at| asked(*at).is_some_and(|asked| asked.is_on_its_way))
    }

    /// The sessions whose statements hold all that they need.
    fn complete(&self) -> BTreeSet<usize> {
        let is_complete = |asked: &Asked| asked.steps.is_empty();
        let all = self.in_order().into_iter();
        all.filter(|at| self.parties[*at].asked.as_ref().is_some_and(is_complete)).collect()
    }

    /// Grants the lock that a session waits for.
    fn give(&mut self, at: usize) {
        let Some(asked) = self.parties[at].asked.as_mut() else { return };
        if !asked.steps.is_empty() {
            asked.has.push(asked.steps.remove(0));
            asked.is_on_its_way = !asked.steps.is_empty();
        }
    }

    /// A session begins to wait for its next lock.
    fn ask(&mut self, at: usize) {
        if let Some(asked) = self.parties[at].asked.as_mut() {
            asked.is_on_its_way = false;
        }
    }

    /// Grants all locks that can be granted; returns the sessions in order.
    fn give_all(&mut self) -> Vec<usize> {
        let mut given = Vec::new();
        while let Some(at) = self.next_given() {
            self.give(at);
            given.push(at);
        }
        given
    }

    /// The sessions whose replies are due.
    pub(super) fn due(&self) -> BTreeSet<usize> {
        let mut then = self.clone();
        then.give_all();
        then.complete()
    }

    /// Advances statements that need several locks, up to the last one: only the reply confirms that one. Returns the
    /// sessions whose replies are due. While there are any, no session requests another lock.
    pub(in super::super) fn advance(&mut self) -> BTreeSet<usize> {
        loop {
            let mut then = self.clone();
            let given = then.give_all();
            let due = then.complete();
            given.into_iter().filter(|at| !due.contains(at)).for_each(|at| self.give(at));
            match self.next_asking().filter(|_| due.is_empty()) {
                Some(at) => self.ask(at),
                None => return due,
            }
        }
    }

    /// Takes the server's next step, if no other statement is sent. `false` if all has settled.
    pub(in super::super) fn step(&mut self) -> bool {
        if let Some(at) = self.next_given() {
            self.give(at);
        } else if let Some(at) = self.next_asking() {
            self.ask(at);
        } else if let Some(at) = self.complete().into_iter().next() {
            self.answered(at);
        } else {
            return false;
        }
        true
    }

    /// A statement got its reply.
    pub(in super::super) fn answered(&mut self, at: usize) {
        let party = &mut self.parties[at];
        let Some(asked) = party.asked.take() else { return };
        if asked.ends_all {
            party.held.clear();
        }
        party.held.extend(asked.gives);
    }
}
