//! Sessions that wait for a metadata lock behind a statement of data definition.
//!
//! No server says for free who holds a metadata lock. But a session that waits for one and names the
//! table of a definition that runs is behind it: the definition holds the lock, or asked for it and
//! everybody who came later queues.

use std::collections::HashMap;
use std::hash::Hash;

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
    /// As it is shown.
    pub(crate) line: WaitingLine,
}

/// What was seen of the definitions that run.
pub(crate) struct Waiting<K> {
    seen: HashMap<K, Vec<WaitingLine>>,
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
            .map(|one| (one, named(one)))
            .collect();
        for one in running {
            let Some(ddl) = Ddl::of(&one.text, one.settings) else { continue };
            let about = objects(&ddl, one.default_schema.as_deref());
            let behind = waiters.iter().filter(|(waiter, names)| {
                waiter.keys != one.keys && names.iter().any(|name| is_about(name, &about))
            });
            let behind: Vec<&WaitingLine> = behind.map(|(waiter, _)| &waiter.line).collect();
            for key in &one.keys {
                self.note(*key, &behind);
            }
        }
    }

    fn note(&mut self, key: K, behind: &[&WaitingLine]) {
        if self.seen.len() >= STATEMENTS_MAX && !self.seen.contains_key(&key) {
            return;
        }
        let known = self.seen.entry(key).or_default();
        for line in behind {
            if known.len() < WAITING_MAX && !known.contains(line) {
                known.push((*line).clone());
            }
        }
    }

    /// Who waited behind a statement that has ended, the oldest session first; `None` where it was not
    /// seen while it ran.
    pub(crate) fn take(&mut self, key: &K) -> Option<Vec<WaitingLine>> {
        let mut waiting = self.seen.remove(key)?;
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
    objects.iter().any(|object| match &object.name {
        Some(object_name) => object_name == name && object.schema == *schema,
        None => object.schema.is_some() && object.schema == *schema,
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
        let ids = |lines: Vec<WaitingLine>| -> Vec<u64> {
            lines.iter().filter_map(|line| line.connection_id).collect()
        };
        assert_eq!(ids(waiting.take(&1).unwrap()), [2, 5]);
        assert_eq!(ids(waiting.take(&5).unwrap()), [2]);
        assert_eq!(waiting.take(&2), None);
        assert_eq!(waiting.take(&9), None);
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
