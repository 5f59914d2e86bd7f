//! Sessions that wait for a metadata lock behind a statement of data definition.
//!
//! No server says cheaply who holds a metadata lock. But a session is behind the definition if it
//! waits for such a lock, names a table of the definition and began later: the definition holds the
//! lock, or has asked for it and later sessions queue. A session that began earlier waits for
//! somebody else. If it is not known who began first, the session counts as behind. Inside a stored
//! program, the known start may be that of the program.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use waggle_sql::{Ddl, Reading, SessionSettings, Tables};

use super::line::{ObjectLine, WaitingLine, objects};

/// Waiting sessions that are remembered of one statement.
const WAITING_MAX: usize = 100;
/// Statements that are remembered.
const STATEMENTS_MAX: usize = 10_000;

/// A session that runs a statement now.
pub(crate) struct Running<K> {
    /// What tells its statements from every other; a statement and what runs inside of it both run.
    pub(crate) keys: Vec<K>,
    pub(crate) settings: SessionSettings,
    pub(crate) text: Vec<u8>,
    pub(crate) default_schema: Option<String>,
    pub(crate) since: Since,
    /// As it is shown.
    pub(crate) line: WaitingLine,
}

/// When a statement began, as far as that is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Since {
    /// Its start, on a clock that all sessions of a server share, in a unit of that clock.
    pub(crate) start: Option<u64>,
    /// For how many seconds it runs.
    pub(crate) seconds: Option<u64>,
}

impl Since {
    /// Whether it is known to have begun before another.
    fn is_before(self, other: Since) -> bool {
        match (self.start, other.start) {
            (Some(own), Some(other)) => own < other,
            _ => self.seconds.zip(other.seconds).is_some_and(|(own, other)| own > other),
        }
    }
}

/// What was seen of the definitions that run. One session may wait behind thousands of them: all share its line.
pub(crate) struct Waiting<K> {
    seen: HashMap<K, Vec<Arc<WaitingLine>>>,
}

impl<K> Default for Waiting<K> {
    fn default() -> Self {
        Waiting { seen: HashMap::new() }
    }
}

impl<K: Copy + Eq + Hash> Waiting<K> {
    /// Takes what runs at one moment.
    pub(crate) fn look(&mut self, running: &[Running<K>]) {
        let waiters: Vec<_> = running
            .iter()
            .filter(|one| waits(&one.line.state))
            .map(|one| (one, named(one), Arc::new(one.line.clone())))
            .collect();
        for one in running {
            let Some(ddl) = Ddl::of(&one.text, one.settings) else { continue };
            let about = objects(&ddl, one.default_schema.as_deref());
            let behind = waiters.iter().filter(|(waiter, names, _)| {
                waiter.keys != one.keys
                    && !waiter.since.is_before(one.since)
                    && names.iter().any(|name| is_about(name, &about))
            });
            let behind: Vec<&Arc<WaitingLine>> = behind.map(|(_, _, line)| line).collect();
            for key in &one.keys {
                self.note(*key, &behind);
            }
        }
    }

    fn note(&mut self, key: K, behind: &[&Arc<WaitingLine>]) {
        if self.seen.len() >= STATEMENTS_MAX && !self.seen.contains_key(&key) {
            return;
        }
        let known = self.seen.entry(key).or_default();
        for line in behind {
            if known.len() < WAITING_MAX && !known.contains(line) {
                known.push(Arc::clone(line));
            }
        }
    }

    /// Who waited behind a statement that has ended, the oldest session first; `None` if it was not
    /// seen while it ran.
    pub(crate) fn take(&mut self, key: &K) -> Option<Vec<WaitingLine>> {
        let waiting = self.seen.remove(key)?.into_iter();
        let mut waiting: Vec<WaitingLine> = waiting.map(Arc::unwrap_or_clone).collect();
        waiting.sort_by_key(|line| line.connection_id);
        Some(waiting)
    }

    /// Forgets every statement that is not among these.
    pub(crate) fn keep(&mut self, running: impl Fn(&K) -> bool) {
        self.seen.retain(|key, _| running(key));
    }
}

/// The states of a session that waits for a metadata lock, of a table, a schema, a stored program and
/// so on (`key_memory_MDL…` and `stage_waiting_for_…` in `sql/mdl.cc`, the same in both families).
fn waits(state: &str) -> bool {
    state.starts_with("Waiting for") && state.ends_with("metadata lock")
}

/// What a waiting session names: its tables, or the objects of its own definition.
fn named<K>(waiter: &Running<K>) -> Vec<(Option<String>, String)> {
    let default = || waiter.default_schema.clone();
    let tables = Tables::of(&waiter.text, Reading::EVERYTHING, waiter.settings);
    let tables = tables.names.into_iter().map(|table| (table.schema.or_else(default), table.name));
    let ddl = Ddl::of(&waiter.text, waiter.settings);
    let defined = ddl.iter().flat_map(|ddl| objects(ddl, waiter.default_schema.as_deref()));
    let defined = defined.filter_map(|object| Some((object.schema, object.name?)));
    tables.chain(defined).collect()
}

/// Whether one of the objects is what was named, or the schema in which it lies.
fn is_about((schema, name): &(Option<String>, String), objects: &[ObjectLine]) -> bool {
    // Whether the case of letters tells names apart depends on the server.
    let same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
    objects.iter().any(|object| {
        let is_schema = match (&object.schema, schema) {
            (Some(one), Some(other)) => same(one, other),
            (one, other) => one.is_none() && other.is_none() && object.name.is_some(),
        };
        is_schema && object.name.as_ref().is_none_or(|object_name| same(object_name, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(key: u64, text: &str, state: &str) -> Running<u64> {
        Running {
            keys: vec![key],
            settings: SessionSettings::default(),
            text: text.as_bytes().to_vec(),
            default_schema: Some("shop".to_owned()),
            since: Since::default(),
            line: WaitingLine {
                connection_id: Some(key),
                user: None,
                host: None,
                state: state.to_owned(),
                text: None,
            },
        }
    }

    const WAITS: &str = "Waiting for table metadata lock";

    fn ids(lines: &[WaitingLine]) -> Vec<u64> {
        lines.iter().filter_map(|line| line.connection_id).collect()
    }

    #[test]
    fn those_that_name_the_table_wait_behind_the_statement() {
        let mut waiting = Waiting::default();
        let sessions = [
            running(1, "alter table orders add a int", "altering table"),
            running(2, "select * from shop.orders", WAITS),
            running(3, "select * from elsewhere.orders", WAITS),
            running(4, "select * from orders", "Sending data"),
            running(5, "drop table orders", WAITS),
        ];
        waiting.look(&sessions);
        waiting.look(&sessions);
        assert_eq!(ids(&waiting.take(&1).unwrap()), [2, 5]);
        assert_eq!(ids(&waiting.take(&5).unwrap()), [2]);
        assert_eq!(waiting.take(&2), None);
        assert_eq!(waiting.take(&9), None);
    }

    /// The sessions that wait behind each of these, which began at such a time.
    fn behind_each(sessions: [(&str, Since); 3]) -> Vec<Vec<u64>> {
        let mut waiting = Waiting::default();
        let sessions = (1..)
            .zip(sessions)
            .map(|(key, (text, since))| Running { since, ..running(key, text, WAITS) });
        waiting.look(&sessions.collect::<Vec<_>>());
        (1..=3).filter_map(|key| waiting.take(&key)).map(|lines| ids(&lines)).collect()
    }

    #[test]
    fn of_two_definitions_behind_a_third_session_the_later_waits_behind_the_earlier() {
        let at = |start| Since { start: Some(start), seconds: None };
        let sessions = [
            ("drop table orders", at(20)),
            ("alter table orders add a int", at(10)),
            ("select * from orders", at(15)),
        ];
        // Behind the DROP nobody, and no list for the SELECT, which defines nothing.
        assert_eq!(behind_each(sessions), [vec![], vec![1, 3]]);
    }

    #[test]
    fn without_a_start_whole_seconds_tell_who_came_first_and_none_tells_nothing() {
        let known = Since { start: Some(10), seconds: Some(5) };
        let for_seconds = |seconds| Since { start: None, seconds: Some(seconds) };
        let behind = |one: Since, other: Since| {
            behind_each([
                ("alter table orders add a int", known),
                ("select 1 from orders", one),
                ("select 2 from orders", other),
            ])
        };
        assert_eq!(behind(for_seconds(6), for_seconds(4)), [[3]]);
        assert_eq!(behind(for_seconds(5), Since::default()), [[2, 3]]);
    }

    #[test]
    fn nobody_behind_a_statement_that_was_seen_is_no_unknown() {
        let mut waiting = Waiting::default();
        waiting
            .look(&[running(1, "drop database shop", "x"), running(2, "select 1 from t", WAITS)]);
        assert_eq!(waiting.take(&1).unwrap().len(), 1);
        waiting.look(&[running(1, "drop database other", "x")]);
        assert_eq!(waiting.take(&1), Some(Vec::new()));
    }
}
