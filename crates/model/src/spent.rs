//! Where the time of many statements went.

use crate::{Parts, Statement, TimeClass, Usage};

/// A sum of numbers that are measured together. Like [`crate::Sum`], it is not known where a part of it was not
/// measured. Where nothing was, it is not known, either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SumOf<T> {
    total: T,
    measured: u64,
    absent: u64,
}

impl<T> SumOf<T> {
    /// Adds what was measured of one statement.
    fn add(&mut self, value: Option<&T>, merge: impl Fn(&mut T, &T)) {
        match value {
            Some(value) => {
                merge(&mut self.total, value);
                self.measured += 1;
            }
            None => self.absent += 1,
        }
    }

    fn merge(&mut self, other: &SumOf<T>, merge: impl Fn(&mut T, &T)) {
        merge(&mut self.total, &other.total);
        self.measured += other.measured;
        self.absent += other.absent;
    }

    /// The sum; `None` if nothing was measured, or a part of it was not.
    pub fn get(&self) -> Option<&T> {
        (self.measured > 0 && self.absent == 0).then_some(&self.total)
    }
}

/// What threads worked after replies. A session tells it with its next statement, so that the last one of each
/// session is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AfterReply {
    /// Time on a processor, nanoseconds.
    pub ns: u64,
    /// Statements after which it was told.
    pub statements: u64,
}

impl AfterReply {
    /// Adds what was told of one statement.
    pub fn add(&mut self, ns: u64) {
        self.merge(&AfterReply { ns, statements: 1 });
    }

    /// Adds another's.
    pub fn merge(&mut self, other: &AfterReply) {
        self.ns = self.ns.saturating_add(other.ns);
        self.statements += other.statements;
    }

    /// The time; `None` if it was told after no statement.
    pub fn get(&self) -> Option<u64> {
        (self.statements > 0).then_some(self.ns)
    }
}

/// What a statement that has ended did inside an interval, in which it spent so much time.
///
/// **The rule**: nobody knows in which order a statement spent its parts. Where only a share of its time is
/// inside, the same share of every part is.
pub(crate) fn parts_inside(statement: &Statement<'_>, inside_ns: u64) -> Option<Parts> {
    statement.parts_of_latency().map(|parts| parts.scaled_to(inside_ns))
}

/// Where the time of statements went, and what they used beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Of the statements that ended and whose latency is known: the sum of all classes is the sum of their
    /// latencies.
    pub parts: SumOf<Parts>,
    /// What the statements that ended used.
    pub usage: SumOf<Usage>,
    /// What their threads worked after the replies.
    pub after_reply: AfterReply,
    /// Time inside the interval by class.
    load: SumOf<Parts>,
}

impl Spent {
    /// Counts a statement that ended.
    pub(crate) fn count(&mut self, statement: &Statement<'_>) {
        self.usage.add(statement.usage.as_ref(), Usage::merge);
        if statement.latency_ns.is_some() {
            self.parts.add(statement.parts_of_latency(), Parts::merge);
        }
    }

    /// Books the time that a statement which has ended spent inside an interval: what [`parts_inside`] gave.
    pub(crate) fn book(&mut self, statement: &Statement<'_>, inside: Option<&Parts>) {
        if statement.latency_ns.is_some() {
            self.load.add(inside, Parts::merge);
        }
    }

    /// Books time inside an interval of a statement that still runs, of which it is known what it did.
    pub(crate) fn book_now(&mut self, class: TimeClass, ns: u64) {
        let mut parts = Parts::default();
        parts.add(class, ns);
        self.load.add(Some(&parts), Parts::merge);
    }

    /// Adds another's.
    pub(crate) fn merge(&mut self, other: &Spent) {
        self.parts.merge(&other.parts, Parts::merge);
        self.usage.merge(&other.usage, Usage::merge);
        self.after_reply.merge(&other.after_reply);
        self.load.merge(&other.load, Parts::merge);
    }

    /// Time inside the interval by class. Statements that ended tell all of theirs; one that still runs tells what it
    /// does at the end of the interval. The rest of the time inside it is not told yet: its statements still run. `None` if a part of it was not measured. Where nothing has ended it is
    /// known only if parts are measured at all (`is_measured`, [`crate::Record::parts`]).
    pub fn load(&self, is_measured: bool) -> Option<&Parts> {
        let is_known = self.load.absent == 0 && (self.load.measured > 0 || is_measured);
        is_known.then_some(&self.load.total)
    }

    /// How much of the time inside the interval is not told yet, nanoseconds: of all of it, `active_ns`, what no
    /// statement that ended has told. `None` as [`Spent::load`].
    pub fn not_told_ns(&self, active_ns: u64, is_measured: bool) -> Option<u64> {
        Some(active_ns.saturating_sub(self.load(is_measured)?.total()))
    }
}
