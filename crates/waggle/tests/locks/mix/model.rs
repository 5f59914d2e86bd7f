//! Who holds what, and who waits for it: what the mix knows from its own statements and their answers.

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
    /// One of the tables that only metadata locks are taken of.
    Table(usize),
    /// A user lock.
    Name(usize),
    /// Everything.
    Server,
}

pub(super) type Lock = (Object, Mode);

/// What kind of lock it is, as results call it.
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

/// A statement that has not been answered.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// The locks that it has got, and has until it is answered.
    has: Vec<Lock>,
    /// Those that it still needs, one after the other.
    steps: Vec<Lock>,
    /// Whether it has just got one, and does not wait for the next one yet.
    is_on_its_way: bool,
    /// What it has once it is answered.
    gives: Vec<Lock>,
    /// Whether all that it had is let go of.
    ends_all: bool,
    /// Its place among all statements.
    number: u64,
}

impl Asked {
    /// A statement that needs these locks, one after the other, and has those in the end.
    pub(super) fn new(steps: Vec<Lock>, gives: Vec<Lock>, ends_all: bool, number: u64) -> Asked {
        Asked { has: Vec::new(), steps, is_on_its_way: false, gives, ends_all, number }
    }

    /// One that lets go of all that its session has.
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
    /// Whether it can do nothing but let go.
    pub(super) has_locked_tables: bool,
}

impl Party {
    pub(super) fn holds_names(&self) -> bool {
        self.held.iter().any(|(object, _)| matches!(object, Object::Name(_)))
    }

    pub(super) fn has_inserted(&self) -> bool {
        self.held.iter().any(|(_, mode)| *mode == Mode::Inserts)
    }

    /// All that it has, and all that its statement has got so far.
    fn has(&self) -> impl Iterator<Item = &Lock> {
        self.held.iter().chain(self.asked.iter().flat_map(|asked| &asked.has))
    }

    /// What it waits for.
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

    /// Who has what excludes this lock.
    pub(super) fn holders(&self, at: usize, (object, mode): Lock) -> BTreeSet<usize> {
        let excludes = |(other, held): &Lock| *other == object && mode.excludes(*held);
        let holders = self.others(at).filter(|(_, party)| party.has().any(excludes));
        holders.map(|(at, _)| at).collect()
    }

    /// Who waits, and is let go first.
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

    /// Who asks for what excludes this lock, whoever came first.
    fn rivals(&self, at: usize, (object, mode): Lock) -> BTreeSet<usize> {
        let is_rival = |party: &Party| {
            let awaited = party.awaited();
            awaited.is_some_and(|(other, wanted)| other == object && mode.excludes(wanted))
        };
        self.others(at).filter(|(_, party)| is_rival(party)).map(|(at, _)| at).collect()
    }

    /// What a session waits for.
    pub(super) fn awaited(&self, at: usize) -> Option<Lock> {
        self.parties[at].awaited()
    }

    /// Who may be named as the blocker of one that waits: who holds, else who goes first. Of rows of MySQL 8 and
    /// later the heaviest transaction goes first, so any of those who ask for the same.
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

    /// Who would go first, if it did not have its last lock already: it is shown as waiting until its thread wakes up.
    fn after(&self, at: usize) -> BTreeSet<usize> {
        let asked = self.parties[at].asked.as_ref();
        let last = asked.and_then(|asked| asked.has.last().copied());
        last.map(|lock| self.ahead(at, lock)).unwrap_or_default()
    }

    /// Whether those are the blockers of one that waits, when all has come to rest; else what is wrong.
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

    /// Whether the memory of the server does not tell whom it waits for: nobody has the row, and several asked for
    /// it before, or perhaps after.
    pub(super) fn is_in_doubt(&self, at: usize) -> bool {
        let Some(lock) = self.awaited(at) else { return false };
        matches!(lock.0, Object::Row(_))
            && self.holders(at, lock).is_empty()
            && self.rivals(at, lock).len() > 1
    }

    /// Those who wait.
    pub(super) fn waiting(&self) -> BTreeSet<usize> {
        let due = self.due();
        let waits = |at: &usize| self.parties[*at].asked.is_some() && !due.contains(at);
        (0..self.parties.len()).filter(waits).collect()
    }

    /// Whether some would wait for each other for ever.
    pub(super) fn has_circle(&self) -> bool {
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

    /// For any of the locks that its statement still needs.
    fn may_wait_for(&self, at: usize) -> BTreeSet<usize> {
        let steps = self.parties[at].asked.iter().flat_map(|asked| &asked.steps);
        steps.flat_map(|lock| [self.holders(at, *lock), self.ahead(at, *lock)]).flatten().collect()
    }
}
