//! What a server says by SQL, and what its memory tells where that is not enough. Pure.
//!
//! The memory is read later. So it only names blockers that SQL does not name, and adds waits that SQL does not
//! have: it takes nothing away.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::poll::Locks;
use super::sessions::Session;
use super::tree::Tree;
use super::wait::{Key, Lock, Source, Wait};

/// The tree of both.
pub(super) fn tree(by_sql: &Tree, memory: &Tree) -> Tree {
    let mut waits: BTreeMap<Key, Wait> =
        by_sql.waits().into_iter().map(|wait| (wait.waiter.clone(), wait)).collect();
    for seen in memory.waits() {
        match waits.entry(seen.waiter.clone()) {
            Entry::Vacant(place) => drop(place.insert(seen)),
            Entry::Occupied(mut place) => add(place.get_mut(), seen),
        }
    }
    Tree::build(waits.into_values().collect())
}

/// The memory knows who it is where SQL does not, or only as nobody else can be it.
fn add(said: &mut Wait, seen: Wait) {
    if seen.blockers.is_empty() || said.lock.kind != seen.lock.kind {
        return;
    }
    let is_doubtful = said.blockers.is_empty() || said.by_elimination;
    if !is_doubtful {
        if said.not_all.is_some() {
            add_missing(said, seen);
        }
        return;
    }
    let Lock { object, index, mode, record, key, state, kind } = said.lock.clone();
    said.lock = Lock {
        kind,
        object: object.or(seen.lock.object),
        index,
        mode: mode.or(seen.lock.mode),
        record: record.or(seen.lock.record),
        key,
        state: state.or(seen.lock.state),
    };
    (said.blockers, said.not_all) = (seen.blockers, seen.not_all);
    (said.by_elimination, said.unknown, said.source) = (false, None, Source::Memory);
}

/// Who holds a lock that SQL does not show.
fn add_missing(said: &mut Wait, seen: Wait) {
    let missing = seen.blockers.into_iter().filter(|key| !said.blockers.contains(key));
    let missing: Vec<Key> = missing.collect();
    said.blockers.extend(missing);
    said.not_all = seen.not_all;
}

/// Adds what the memory knows of those in the tree.
pub(super) fn sessions(said: &mut BTreeMap<Key, Session>, tree: &Tree, memory: &Locks) {
    let participants = tree.participants();
    for (key, seen) in memory.sessions.iter().filter(|(key, _)| participants.contains(key)) {
        match said.entry(key.clone()) {
            Entry::Vacant(place) => drop(place.insert(seen.clone())),
            Entry::Occupied(mut place) => {
                let session = place.get_mut();
                if session.statement.text.is_none() && seen.statement.text.is_some() {
                    session.statement = seen.statement.clone();
                }
                session.first_write = session.first_write.take().or(seen.first_write.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::wait::{LockKind, Unknown};
    use super::*;

    fn wait(waiter: u64, blockers: &[u64], source: Source) -> Wait {
        let why = || Unknown { why: "off".to_owned(), candidates: Vec::new() };
        Wait {
            waiter: Key::Session(waiter),
            lock: Lock::of(LockKind::Metadata),
            waited_s: (source == Source::Sql).then_some(7.0),
            blockers: blockers.iter().map(|id| Key::Session(*id)).collect(),
            by_elimination: false,
            not_all: None,
            overtaken: false,
            unknown: blockers.is_empty().then(why),
            source,
        }
    }

    fn of(waits: Vec<Wait>) -> Tree {
        Tree::build(waits)
    }

    #[test]
    fn memory_names_whom_sql_does_not_and_adds_whom_it_does_not_see() {
        let by_sql = of(vec![wait(2, &[], Source::Sql)]);
        let memory = of(vec![wait(2, &[1], Source::Memory), wait(3, &[2], Source::Memory)]);
        let both = tree(&by_sql, &memory);
        assert!(both.undetermined.is_empty(), "{both:?}");
        let [root] = &both.roots[..] else { panic!("{both:?}") };
        let below = &root.waiters[0];
        let said = below.wait.as_ref().unwrap();
        assert_eq!((said.source, said.waited_s), (Source::Memory, Some(7.0)));
        assert_eq!(below.waiters[0].key, Key::Session(3));
    }

    #[test]
    fn who_is_named_by_sql_stays_and_an_unknown_one_is_not_taken_over() {
        let by_sql = of(vec![wait(2, &[1], Source::Sql), wait(5, &[4], Source::Sql)]);
        let memory = of(vec![wait(2, &[9], Source::Memory), wait(5, &[], Source::Memory)]);
        assert_eq!(tree(&by_sql, &memory), by_sql);
    }

    #[test]
    fn memory_is_certain_where_sql_only_leaves_one() {
        let mut guess = wait(2, &[1], Source::Sql);
        guess.by_elimination = true;
        let both = tree(&of(vec![guess]), &of(vec![wait(2, &[4], Source::Memory)]));
        assert_eq!(both.roots[0].key, Key::Session(4));
        assert!(!both.waits()[0].by_elimination && both.waits()[0].source == Source::Memory);
    }
}
