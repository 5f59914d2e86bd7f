//! The model: who holds and who waits for which lock, from the statements that were sent and their replies.

mod modes;
mod next;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub(super) use modes::Mode;

/// What is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Object {
    /// The row with this id.
    Row(u32),
    /// The gaps between the rows of this group.
    Gaps(u32),
    /// A table with metadata locks only.
    Table(usize),
    /// A user lock.
    Name(usize),
    /// The whole server.
    Server,
}

pub(super) type Lock = (Object, Mode);

/// The kind of a lock, as named in the results.
pub(super) fn kind((object, mode): Lock) -> &'static str {
    match object {
        Object::Row(_) => "row",
        Object::Gaps(_) => "gap",
        // The first lock of `ALTER TABLE`.
        Object::Table(_) if mode == Mode::Upgradable => "alter",
        Object::Table(_) => "table",
        Object::Name(_) => "name",
        Object::Server => "server",
    }
}

/// A statement without a reply yet.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// The locks that it holds until its reply.
    has: Vec<Lock>,
    /// Those that it still needs, in order.
    steps: Vec<Lock>,
    /// Whether it was just granted one, and does not wait for the next one yet.
    is_on_its_way: bool,
    /// What it holds after its reply.
    gives: Vec<Lock>,
    /// Whether its session's locks are released.
    ends_all: bool,
    /// Its place among all statements.
    number: u64,
}

impl Asked {
    /// A statement that needs the locks `steps`, in order, and holds `gives` afterwards.
    pub(super) fn new(steps: Vec<Lock>, gives: Vec<Lock>, ends_all: bool, number: u64) -> Asked {
        Asked { has: Vec::new(), steps, is_on_its_way: false, gives, ends_all, number }
    }

    /// A statement that releases all locks of its session.
    pub(super) fn release(number: u64) -> Asked {
        Asked::new(Vec::new(), Vec::new(), true, number)
    }
}

/// A session.
#[derive(Clone, Debug, Default)]
pub(super) struct Party {
    pub(super) connection_id: u64,
    pub(super) held: Vec<Lock>,
    pub(super) asked: Option<Asked>,
    pub(super) is_in_transaction: bool,
    /// Whether it can only unlock.
    pub(super) has_locked_tables: bool,
}

impl Party {
    pub(super) fn holds_names(&self) -> bool {
        self.held.iter().any(|(object, _)| matches!(object, Object::Name(_)))
    }

    pub(super) fn has_inserted(&self) -> bool {
        self.held.iter().any(|(_, mode)| *mode == Mode::Inserts)
    }

    /// All locks that it holds, with those of its running statement.
    fn has(&self) -> impl Iterator<Item = &Lock> {
        self.held.iter().chain(self.asked.iter().flat_map(|asked| &asked.has))
    }

    /// The lock that it waits for.
    fn awaited(&self) -> Option<Lock> {
        let asked = self.asked.as_ref().filter(|asked| !asked.is_on_its_way)?;
        asked.steps.first().copied()
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) parties: Vec<Party>,
}

impl Model {
    fn others(&self, at: usize) -> impl Iterator<Item = (usize, &Party)> {
        self.parties.iter().enumerate().filter(move |(other, _)| *other != at)
    }

    /// The sessions that hold a conflicting lock.
    pub(super) fn holders(&self, at: usize, (object, mode): Lock) -> BTreeSet<usize> {
        let excludes = |(other, held): &Lock| *other == object && mode.excludes(*held);
        let holders = self.others(at).filter(|(_, party)| party.has().any(excludes));
        holders.map(|(at, _)| at).collect()
    }

    /// The waiting sessions that are served first.
    fn ahead(&self, at: usize, (object, mode): Lock) -> BTreeSet<usize> {
        let number = |party: &Party| party.asked.as_ref().map_or(u64::MAX, |asked| asked.number);
        let own = number(&self.parties[at]);
        let is_ahead = |party: &Party| {
            party.awaited().is_some_and(|(other, wanted)| {
                let came_first = number(party) < own;
                other == object && mode.stands_behind(wanted) && (!mode.is_queued() || came_first)
            })
        };
        self.others(at).filter(|(_, party)| is_ahead(party)).map(|(at, _)| at).collect()
    }

    /// The sessions that wait for a conflicting lock, in any order.
    fn rivals(&self, at: usize, (object, mode): Lock) -> BTreeSet<usize> {
        let is_rival = |party: &Party| {
            let awaited = party.awaited();
            awaited.is_some_and(|(other, wanted)| other == object && mode.excludes(wanted))
        };
        self.others(at).filter(|(_, party)| is_rival(party)).map(|(at, _)| at).collect()
    }

    /// The lock that a session waits for.
    pub(super) fn awaited(&self, at: usize) -> Option<Lock> {
        self.parties[at].awaited()
    }

    /// Who may be named as a blocker of a waiting session: the holders, else those served first. In MySQL 8 and later
    /// the heaviest transaction gets a row first, so that may be any session that waits for it.
    pub(super) fn may_be_named(&self, at: usize) -> BTreeSet<usize> {
        let Some(lock) = self.awaited(at) else { return self.after(at) };
        let holders = self.holders(at, lock);
        if !holders.is_empty() {
            return holders;
        }
        let mut before = self.ahead(at, lock);
        if lock.1.is_queued() {
            before.extend(self.rivals(at, lock));
        }
        before
    }

    /// Those served before its last granted lock: the session is shown as waiting until its thread wakes up.
    fn after(&self, at: usize) -> BTreeSet<usize> {
        let asked = self.parties[at].asked.as_ref();
        let last = asked.and_then(|asked| asked.has.last().copied());
        last.map(|lock| self.ahead(at, lock)).unwrap_or_default()
    }

    /// Whether `named` are the blockers of a waiting session once the locks have settled; else what is wrong.
    pub(super) fn judge(&self, at: usize, named: &BTreeSet<usize>) -> Result<(), &'static str> {
        let Some(lock) = self.awaited(at) else { return Ok(()) };
        if named.is_empty() {
            let is_known = !self.is_in_doubt(at);
            return if is_known { Err("is blocked by somebody unknown") } else { Ok(()) };
        }
        let is_right =
            named.is_subset(&self.may_be_named(at)) && self.holders(at, lock).is_subset(named);
        if is_right { Ok(()) } else { Err("waits for others") }
    }

    /// Whether the server's memory does not show the blocker: no session holds the row, and several wait for it.
    pub(super) fn is_in_doubt(&self, at: usize) -> bool {
        let Some(lock) = self.awaited(at) else { return false };
        matches!(lock.0, Object::Row(_))
            && self.holders(at, lock).is_empty()
            && self.rivals(at, lock).len() > 1
    }

    /// The waiting sessions.
    pub(super) fn waiting(&self) -> BTreeSet<usize> {
        let due = self.due();
        let waits = |at: &usize| self.parties[*at].asked.is_some() && !due.contains(at);
        (0..self.parties.len()).filter(waits).collect()
    }

    /// Whether there is a deadlock.
    pub(super) fn has_deadlock(&self) -> bool {
        let edges: Vec<BTreeSet<usize>> =
            (0..self.parties.len()).map(|at| self.may_wait_for(at)).collect();
        (0..edges.len()).any(|start| {
            let mut seen = BTreeSet::new();
            let mut next: Vec<usize> = edges[start].iter().copied().collect();
            while let Some(at) = next.pop() {
                if seen.insert(at) {
                    next.extend(&edges[at]);
                }
            }
            seen.contains(&start)
        })
    }

    /// Blockers of any lock that its statement still needs.
    fn may_wait_for(&self, at: usize) -> BTreeSet<usize> {
        let steps = self.parties[at].asked.iter().flat_map(|asked| &asked.steps);
        steps.flat_map(|lock| [self.holders(at, *lock), self.ahead(at, *lock)]).flatten().collect()
    }
}
