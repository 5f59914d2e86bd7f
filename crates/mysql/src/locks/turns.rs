//! Sessions that take turns: each lets go of the lock soon, and others get it before the one who waits.
//!
//! The length of a wait proves nothing: it is the time of a statement, which may have begun to wait late. So two looks
//! are compared. Pure.

use std::time::Duration;

use super::poll::Locks;
use super::sessions::Session;
use super::tree::{Node, Tree};
use super::wait::{Key, Wait};

/// How long after a look the next one can tell who takes turns.
pub const TURN: Duration = Duration::from_secs(1);

impl Locks {
    /// Whether somebody may have got a lock since it was asked for, so that another look can tell.
    pub fn may_take_turns(&self) -> bool {
        let has_come_later = |holder: &Key, wait: &Wait| {
            let session = self.sessions.get(holder);
            let age_s = session.and_then(Session::holds_at_most_s);
            !matches!((age_s, wait.waited_s), (Some(age_s), Some(waited_s)) if age_s > waited_s)
        };
        let is_open = |holder: &Key, waiter: &Node| {
            let wait = waiter.wait.as_ref();
            !waiter.also_blocked_by.is_empty()
                || wait.is_some_and(|wait| has_come_later(holder, wait))
        };
        let of = |root: &Node| root.waiters.iter().any(|waiter| is_open(&root.key, waiter));
        self.tree.roots.iter().any(of)
    }

    /// Marks those who wait since before, for whom everybody who has the lock now has got it since then.
    pub fn compare(&mut self, before: &Locks) {
        let between = self.over.saturating_duration_since(before.over);
        let earlier = before.tree.held();
        let held = self.tree.held();
        let overtaken = held.into_iter().filter(|(waiter, holders)| {
            let Some((was, had)) = earlier.iter().find(|(was, _)| was.waiter == waiter.waiter)
            else {
                return false;
            };
            let is_new = |holder: &&Key| {
                let sessions = (before.sessions.get(*holder), self.sessions.get(*holder));
                !had.contains(holder) || is_another(sessions, between)
            };
            waits_on(was, waiter) && waiter.not_all.is_none() && holders.iter().all(is_new)
        });
        let overtaken: Vec<Key> = overtaken.map(|(waiter, _)| waiter.waiter.clone()).collect();
        self.tree.overtaken(&overtaken);
    }
}

impl Tree {
    /// Every wait with those who hold the lock.
    fn held(&self) -> Vec<(&Wait, Vec<&Key>)> {
        fn add<'a>(node: &'a Node, all: &mut Vec<(&'a Wait, Vec<&'a Key>)>) {
            for waiter in &node.waiters {
                let holders = std::iter::once(&node.key).chain(&waiter.also_blocked_by).collect();
                all.extend(waiter.wait.as_ref().map(|wait| (wait, holders)));
                add(waiter, all);
            }
        }
        let mut all = Vec::new();
        self.roots.iter().for_each(|root| add(root, &mut all));
        all
    }

    fn overtaken(&mut self, waiters: &[Key]) {
        fn mark(node: &mut Node, waiters: &[Key]) {
            for waiter in &mut node.waiters {
                if let Some(wait) = waiter.wait.as_mut() {
                    wait.overtaken = waiters.contains(&wait.waiter);
                }
                mark(waiter, waiters);
            }
        }
        self.roots.iter_mut().for_each(|root| mark(root, waiters));
    }
}

/// Whether it is the same wait, which goes on.
fn waits_on(before: &Wait, now: &Wait) -> bool {
    let lasts = match (before.waited_s, now.waited_s) {
        (Some(before), Some(now)) => now >= before,
        _ => false,
    };
    let (one, two) = (&before.lock, &now.lock);
    lasts && one.kind == two.kind && one.object == two.object && one.record == two.record
}

/// Whether a session that held the lock at both looks is in another transaction now.
fn is_another(looks: (Option<&Session>, Option<&Session>), between: Duration) -> bool {
    let (Some(before), Some(now)) = looks else { return false };
    match (&before.transaction, &now.transaction) {
        // Transactions of MariaDB that wrote nothing have no id of their own.
        (Some(before), Some(now)) => before.id != now.id && now.id != "0",
        (None, None) => now.transaction_s.is_some_and(|age_s| age_s < between.as_secs_f64()),
        _ => false,
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
