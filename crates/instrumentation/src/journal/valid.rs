//! What an entry of a journal can say. An undo does what a journal says, as root, and a file that waggle did not
//! write can get among the journals: only what waggle can have written is taken from one.

use super::Entry;
use crate::change::Change;
use crate::state::Settings;
use crate::table::{Shape, Table};
use crate::variables::Variable;

/// The longest name of an account, an object or an instrument has half of it (`HOST` of MySQL 8.0: 255 characters).
const NAME_CHARS_MAX: usize = 512;
/// `server_uuid`, or host name, port and data directory; `USER` and `HOST` of an account.
const IDENTITY_BYTES_MAX: usize = 8 << 10;
/// What a process can be told on its command line (`ARG_MAX`).
const COMMAND_BYTES_MAX: usize = 2 << 20;
/// What a setting can be.
const SWITCH: [&str; 2] = ["YES", "NO"];
/// The same for the timers: `performance_timers` of every server.
const TIMERS: [&str; 6] =
    ["CYCLE", "NANOSECOND", "MICROSECOND", "MILLISECOND", "TICK", "THREAD_CPU"];

/// Whether waggle can have written an entry.
///
/// # Errors
/// What of it is wrong. Nothing of the entry is quoted.
pub(super) fn check(entry: &Entry) -> Result<(), String> {
    match entry {
        Entry::Header(header) => {
            let identities = [&header.start.server, &header.account];
            if identities.iter().any(|text| text.len() > IDENTITY_BYTES_MAX)
                || header.command.len() > COMMAND_BYTES_MAX
            {
                return Err("a text is longer than waggle writes any".to_owned());
            }
            Ok(())
        }
        Entry::Change(change) => check_change(change),
        Entry::Reset(counters) => match counters.keys().all(|name| is_own_name(name)) {
            true => Ok(()),
            false => Err("a counter has a name that none can have".to_owned()),
        },
        // What an end says is told and never done.
        Entry::Undone(undone) => {
            let rows = undone.left_alone.iter().chain(&undone.not_restored);
            let is_short = |change: &Change| change.key.iter().all(|part| is_name(part));
            match rows.into_iter().all(is_short) {
                true => Ok(()),
                false => Err("a row has a name that none can have".to_owned()),
            }
        }
        Entry::Planned(_) | Entry::Kept => Ok(()),
    }
}

fn check_change(change: &Change) -> Result<(), String> {
    let Shape { name, key, settings, grows } = change.table.shape();
    if change.key.len() != key.len() {
        let (columns, found) = (key.len(), change.key.len());
        return Err(format!("a row of {name} is told by {columns} columns, not by {found}"));
    }
    let is_possible = |part: &String| match change.table {
        // Its number stands in a statement as it is.
        Table::Threads => part.parse().is_ok_and(|number: u64| number.to_string() == *part),
        Table::Actors | Table::Objects => is_name(part),
        Table::Variables => Variable::of_name(part).is_some(),
        _ => is_own_name(part),
    };
    if !change.key.iter().all(is_possible) {
        return Err(format!("{name} has no row of that name"));
    }
    let sides = [&change.before, &change.after];
    let there = sides.iter().filter(|side| side.is_some()).count();
    if there == 0 || there == 1 && !grows {
        return Err(format!("rows of {name} do not come and go so"));
    }
    let variable = Variable::of_name(&change.key[0]);
    let is_setting = |side: &Settings| {
        if change.table == Table::Variables {
            let is_value = |value: &String| variable.is_some_and(|it| it.can_be(value));
            return side.len() == settings.len() && side.iter().flatten().all(is_value);
        }
        let values: &[&str] = if change.table == Table::Timers { &TIMERS } else { &SWITCH };
        side.len() == settings.len()
            && side.iter().flatten().all(|value| values.contains(&value.as_str()))
    };
    match sides.into_iter().flatten().all(is_setting) {
        true => Ok(()),
        false => Err(format!("{name} has no such settings")),
    }
}

/// Whether somebody can have given an account or an object this name.
fn is_name(text: &str) -> bool {
    text.chars().count() <= NAME_CHARS_MAX && !text.contains('\0')
}

/// Whether the server itself can have a thing of this name.
fn is_own_name(text: &str) -> bool {
    is_name(text) && !text.is_empty() && !text.chars().any(char::is_control)
}
