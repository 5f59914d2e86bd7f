//! Taking changes back.

use std::collections::BTreeMap;

use waggle_mysql::{Connection, ConnectionError};

use crate::apply::{Pace, write};
use crate::change::Change;
use crate::plan::{is_on, yes_no};
use crate::state::{Key, Settings, State};
use crate::table::Table;

/// What came of taking changes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Rows that are as before again.
    pub restored: usize,
    /// Rows that somebody else has changed meanwhile: `before` is what they hold now, `after` what
    /// they held before the change.
    pub left_alone: Vec<Change>,
}

/// Takes changes back, the last first. A row that holds neither what the change found nor what it
/// wrote was changed by somebody else and is left alone.
///
/// # Errors
/// The connection is broken, or the server refuses a statement.
pub fn undo(connection: &mut Connection, changes: &[Change]) -> Result<Restored, ConnectionError> {
    let now = State::read(connection)?;
    let (inverse, left_alone) = inverse(&now, changes);
    for table in order() {
        let of_table: Vec<Change> =
            inverse.iter().filter(|change| change.table == table).cloned().collect();
        write(connection, &of_table, &mut Pace::default(), &mut |_| {})?;
    }
    let mut restored = inverse.len();
    restored += restore_new_sessions(connection, &now, changes)?;
    Ok(Restored { restored, left_alone })
}

/// What keeps events goes first, and who is watched last: sessions that log in meanwhile then follow
/// the rules that are there again.
fn order() -> impl Iterator<Item = Table> {
    Table::ALL.into_iter().rev().filter(|table| *table != Table::Actors).chain([Table::Actors])
}

/// The changes that lead back, and those that cannot be taken back.
fn inverse(now: &State, changes: &[Change]) -> (Vec<Change>, Vec<Change>) {
    // A row that was changed twice goes back to what it was at first.
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

/// A session that logged in while other accounts were chosen was set up by the rules of then.
fn restore_new_sessions(
    connection: &mut Connection,
    then: &State,
    changes: &[Change],
) -> Result<usize, ConnectionError> {
    if !changes.iter().any(|change| change.table == Table::Actors) {
        return Ok(0);
    }
    let rules = State::read(connection)?;
    let known: Vec<&Key> = changes
        .iter()
        .filter(|change| change.table == Table::Threads)
        .map(|change| &change.key)
        .collect();
    let mut back = Vec::new();
    for session in crate::sessions::read(connection)? {
        let key = vec![session.thread.to_string()];
        let (Some(user), Some(host)) = (&session.user, &session.host) else { continue };
        let Some(holds) = rules.row(Table::Threads, &key) else { continue };
        let by_then = settings_for(then, user, host);
        let by_now = settings_for(&rules, user, host);
        if !known.contains(&&key) && *holds == by_then && *holds != by_now {
            let (before, after) = (Some(holds.clone()), Some(by_now));
            back.push(Change { table: Table::Threads, key, before, after });
        }
    }
    write(connection, &back, &mut Pace::default(), &mut |_| {})?;
    Ok(back.len())
}

/// How a session of an account is set up when it logs in ("The setup_actors Table" of the MySQL
/// manual: the most special row counts; without one, nothing is recorded).
pub(crate) fn settings_for(state: &State, user: &str, host: &str) -> Settings {
    let of = |(host, user): (&str, &str)| {
        let mut rows = state.rows(Table::Actors);
        rows.find(|(key, _)| key[0] == host && key[1] == user).map(|(_, settings)| settings)
    };
    let row = [(host, user), ("%", user), (host, "%"), ("%", "%")].into_iter().find_map(of);
    row.map_or_else(|| yes_no(false, false), |row| yes_no(is_on(&row[0]), is_on(&row[1])))
}
