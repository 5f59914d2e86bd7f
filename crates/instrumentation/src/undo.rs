//! Undoes changes.

use std::collections::{BTreeMap, BTreeSet};

use waggle_mysql::{Connection, ConnectionError};

use crate::apply::{Pace, write};
use crate::change::Change;
use crate::filter::Session;
use crate::hold::HoldError;
use crate::journal::JournalError;
use crate::plan::{is_on, yes_no};
use crate::rebuild;
use crate::state::{Key, Settings, State};
use crate::table::Table;

/// The result of an undo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Rows that are as before again, as they were read back.
    pub restored: usize,
    /// Rows that somebody else has changed meanwhile: `before` is what they hold now, `after` what
    /// they held before the change.
    pub left_alone: Vec<Change>,
    /// Rows that the server silently did not take back: `before` is what they hold, `after` what
    /// they should hold.
    pub not_restored: Vec<Change>,
}

impl Restored {
    /// Whether all is as before.
    pub fn is_whole(&self) -> bool {
        self.left_alone.is_empty() && self.not_restored.is_empty()
    }

    fn write(
        &mut self,
        connection: &mut Connection,
        back: &[Change],
    ) -> Result<(), ConnectionError> {
        let mut refused = Vec::new();
        write(connection, back, &mut Pace::default(), &mut |made| {
            refused.extend_from_slice(&made.refused)
        })?;
        self.restored += back.len() - refused.len();
        self.not_restored.append(&mut refused);
        Ok(())
    }
}

/// Undoes changes, the last first. If a row holds neither what the change found nor what it wrote,
/// somebody else changed it, and it is left alone. Threads after `last_thread` began under the
/// changes; they get the settings that they would have had otherwise. `None`: there are no such
/// threads. Rows that have to be removed and added again are passed to `intend` first.
///
/// # Errors
/// What `intend` says, a table that was changed cannot be read, the connection is broken, or the server refuses a
/// statement. To take back again what was taken back in part does the rest.
pub fn undo(
    connection: &mut Connection,
    changes: &[Change],
    last_thread: Option<u64>,
    intend: &mut dyn FnMut(&[Change]) -> Result<(), JournalError>,
) -> Result<Restored, HoldError> {
    let now = readable(connection, changes)?;
    let (inverse, left_alone) = inverse(&now, changes);
    let mut restored = Restored { left_alone, ..Restored::default() };
    let mut no_way_back = Ok(());
    for table in order() {
        let of_table: Vec<Change> =
            inverse.iter().filter(|change| change.table == table).cloned().collect();
        if rebuild::is_needed(&of_table, connection.server_identity()) {
            no_way_back = rebuild::check(connection, &of_table);
            if no_way_back.is_err() {
                continue;
            }
            let rows = rebuild::rows(&now, &of_table);
            // Each is about to go: who has to take over lets it come again.
            intend(&rows.iter().map(Change::inverse).collect::<Vec<_>>())?;
            connection.rows(rebuild::EMPTY)?;
            restored.write(connection, &rows)?;
            // Most of them were never changed.
            restored.restored = (restored.restored + of_table.len()).saturating_sub(rows.len());
            continue;
        }
        restored.write(connection, &of_table)?;
    }
    if let Some(last_thread) = last_thread.filter(|_| changes.iter().any(is_rule)) {
        let (now, sessions) = (readable(connection, changes)?, crate::sessions::read(connection)?);
        restored.write(connection, &new_threads(&now, &sessions, changes, last_thread))?;
    }
    // All the rest is undone by then.
    no_way_back.map(|()| restored)
}

/// What is set now. A table that cannot be read is not one whose rows are gone.
fn readable(connection: &mut Connection, changes: &[Change]) -> Result<State, HoldError> {
    let changed = changes.iter().map(|change| change.table);
    let now = State::read_of(
        connection,
        Table::of_instrumentation().chain(changed).collect::<BTreeSet<_>>(),
    )?;
    let of_threads = changes.iter().any(is_rule).then_some(Table::Threads);
    let mut needed = changes.iter().map(|change| change.table).chain(of_threads);
    let unread = needed.find_map(|table| Some((table, now.why_absent(table)?.to_owned())));
    match unread {
        Some((table, why)) => Err(HoldError::NotKnown { table: table.name(), why }),
        None => Ok(now),
    }
}

/// The order of an undo: consumers and instruments before the filters, `setup_actors` last.
/// Sessions that log in meanwhile then follow the restored rules.
fn order() -> impl Iterator<Item = Table> {
    Table::ALL.into_iter().rev().filter(|table| *table != Table::Actors).chain([Table::Actors])
}

/// The changes that take others back, and what cannot be taken back.
fn inverse(now: &State, changes: &[Change]) -> (Vec<Change>, Vec<Change>) {
    // A row that was changed twice gets its first value back.
    let mut rows: BTreeMap<(Table, &Key), Vec<&Change>> = BTreeMap::new();
    for change in changes {
        rows.entry((change.table, &change.key)).or_default().push(change);
    }
    let (mut inverse, mut left_alone) = (Vec::new(), Vec::new());
    for ((table, key), of_row) in rows {
        let before = &of_row[0].before;
        let holds = now.row(table, key).cloned();
        let is_gone = holds.is_none() && !table.shape().grows;
        if is_gone || holds == *before {
            continue;
        }
        let is_ours = of_row.iter().any(|change| holds == change.after);
        let back = Change { table, key: key.clone(), before: holds, after: before.clone() };
        if is_ours { inverse.push(back) } else { left_alone.push(back) }
    }
    // What comes back needs the place of what goes.
    inverse.sort_by_key(|change| change.before.is_none());
    (inverse, left_alone)
}

/// Threads that began while other rules held were set up by those: what leads them back to the rules of now.
fn new_threads(
    now: &State,
    sessions: &[Session],
    changes: &[Change],
    last_thread: u64,
) -> Vec<Change> {
    let rules: Vec<Change> = changes.iter().filter(|change| is_rule(change)).cloned().collect();
    // From the changes, not as it was found: the old rules may be back already, from a try that was cut off.
    let then = now.with(&rules);
    let is_of_command = |key: &Key| {
        changes.iter().any(|change| change.table == Table::Threads && change.key == *key)
    };
    let back =
        sessions.iter().filter(|session| session.thread > last_thread).filter_map(|session| {
            let key = vec![session.thread.to_string()];
            let holds = now.row(Table::Threads, &key)?;
            let by_then = settings_at_start(&then, session)?;
            let by_now = settings_at_start(now, session)?;
            let is_set_up_by_then = *holds == by_then && by_then != by_now && !is_of_command(&key);
            is_set_up_by_then.then_some(Change {
                table: Table::Threads,
                before: Some(by_then),
                after: Some(by_now),
                key,
            })
        });
    back.collect()
}

/// Whether a table says how threads are set up when they begin.
pub(crate) fn is_rule(change: &Change) -> bool {
    matches!(change.table, Table::Actors | Table::SetupThreads)
}

/// How a thread is set up when it begins; `None` if the server has no rule for it.
pub(crate) fn settings_at_start(state: &State, session: &Session) -> Option<Settings> {
    match (&session.user, &session.host) {
        (Some(user), Some(host)) => Some(settings_for(state, user, host)),
        _ => state.row(Table::SetupThreads, &vec![session.name.clone()]).cloned(),
    }
}

/// How a session of an account is set up when it logs in ("The setup_actors Table" of the MySQL
/// manual: the most special row counts; without one, nothing is recorded).
fn settings_for(state: &State, user: &str, host: &str) -> Settings {
    let of = |(host, user): (&str, &str)| {
        let mut rows = state.rows(Table::Actors);
        rows.find(|(key, _)| key[0] == host && key[1] == user).map(|(_, settings)| settings)
    };
    let row = [(host, user), ("%", user), (host, "%"), ("%", "%")].into_iter().find_map(of);
    row.map_or_else(|| yes_no(false, false), |row| yes_no(is_on(&row[0]), is_on(&row[1])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Rows;

    fn rows<const N: usize>(of: [(&[&str], bool); N]) -> Rows {
        let key = |key: &[&str]| key.iter().map(|part| (*part).to_owned()).collect();
        of.into_iter().map(|(row, on)| (key(row), yes_no(on, on))).collect()
    }

    fn session(thread: u64, name: &str, user: Option<&str>) -> Session {
        let (user, host) = (user.map(str::to_owned), user.map(|_| "localhost".to_owned()));
        Session { thread, name: name.to_owned(), user, host }
    }

    /// The rules as they are again; `app` alone was recorded meanwhile, and no purge thread.
    fn undone() -> (State, Vec<Change>) {
        let now = State::of([
            (Table::Actors, rows([(&["%", "%", "%"], true)])),
            (Table::SetupThreads, rows([(&["purge"], true)])),
            (
                Table::Threads,
                rows([(&["7"], false), (&["8"], false), (&["9"], true), (&["10"], false)]),
            ),
        ]);
        let change = |table, key: &[&str], before: Option<bool>, after: Option<bool>| Change {
            table,
            key: key.iter().map(|part| (*part).to_owned()).collect(),
            before: before.map(|on| yes_no(on, on)),
            after: after.map(|on| yes_no(on, on)),
        };
        let changes = vec![
            change(Table::Actors, &["%", "%", "%"], Some(true), None),
            change(Table::Actors, &["%", "app", "%"], None, Some(true)),
            change(Table::SetupThreads, &["purge"], Some(true), Some(false)),
        ];
        (now, changes)
    }

    #[test]
    fn threads_that_began_meanwhile_follow_the_rules_of_before() {
        let (now, changes) = undone();
        let sessions = [
            session(7, "client", Some("old")),
            session(8, "client", Some("other")),
            session(9, "client", Some("app")),
            session(10, "purge", None),
        ];
        let back = new_threads(&now, &sessions, &changes, 7);
        let keys: Vec<_> = back.iter().map(|change| change.key[0].as_str()).collect();
        assert_eq!(keys, ["8", "10"], "7 was there before, 9 is as it would have been");
        assert!(back.iter().all(|change| change.after == Some(yes_no(true, true))));
        // Somebody else has set it since.
        let elsewhere = State::of([
            (Table::Actors, rows([(&["%", "%", "%"], true)])),
            (Table::Threads, rows([(&["8"], true)])),
        ]);
        assert_eq!(new_threads(&elsewhere, &sessions[1..2], &changes, 7), []);
    }

    /// As after a death between emptying `setup_objects` and filling it.
    #[test]
    fn rows_that_had_to_go_on_the_way_come_again() {
        let key = |kind: &str, schema: &str| [kind, schema, "%"].map(str::to_owned).to_vec();
        let change = |key, before: Option<bool>, after: Option<bool>| Change {
            table: Table::Objects,
            key,
            before: before.map(|on| yes_no(on, on)),
            after: after.map(|on| yes_no(on, on)),
        };
        let mut changes = vec![
            change(key("EVENT", "%"), Some(true), Some(false)),
            change(key("EVENT", "one"), None, Some(true)),
        ];
        let held = State::of([(
            Table::Objects,
            [
                (key("EVENT", "%"), yes_no(false, false)),
                (key("EVENT", "one"), yes_no(true, true)),
                (key("TABLE", "mysql"), yes_no(false, false)),
            ]
            .into(),
        )]);
        let rows = rebuild::rows(&held, &inverse(&held, &changes).0);
        changes.extend(rows.iter().map(Change::inverse));
        let emptied = State::of([(Table::Objects, Rows::new())]);
        let (back, left_alone) = inverse(&emptied, &changes);
        assert_eq!((&back, left_alone), (&rows, vec![]));
        let filled: Vec<_> = back.iter().map(|row| (row.key.clone(), row.after.clone())).collect();
        let on = |on| Some(yes_no(on, on));
        assert_eq!(filled, [(key("EVENT", "%"), on(true)), (key("TABLE", "mysql"), on(false))]);
    }
}
