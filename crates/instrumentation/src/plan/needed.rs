//! What the events of a profile need besides the instruments that it names.

use waggle_model::ServerVersion;

use super::{ENABLED, SECOND, is_on, set, set_if};
use crate::class::class_of;
use crate::profile::{Base, InstrumentRule, Profile};
use crate::state::State;
use crate::table::Table;

/// Turns on what is needed by what the profile asks for, and gives its name and who needs it. What
/// was on before needs nothing new, and what a rule turns off stays off, unless that rule turns off
/// the one that needs it too, and another one overrides it there.
pub(super) fn add(
    state: &mut State,
    profile: &Profile,
    version: ServerVersion,
) -> Vec<(String, String)> {
    let mut added = Vec::new();
    add_abstract_statements(state, profile, version, &mut added);
    add_parents(state, profile, version, &mut added);
    added
}

/// A statement begins as an abstract one and gets its name later. If the abstract instruments are
/// off, no statement is recorded; if they are untimed, none has a time.
fn add_abstract_statements(
    state: &mut State,
    profile: &Profile,
    version: ServerVersion,
    added: &mut Vec<(String, String)>,
) {
    let rules = &profile.instruments;
    let last = |name: &str, says: fn(&InstrumentRule) -> Option<bool>| {
        rules.iter().rfind(|rule| says(rule).is_some() && rule.applies(name, version))
    };
    let enabled = |rule: &InstrumentRule| rule.enabled;
    let timed = |rule: &InstrumentRule| rule.timed;
    let is_asked = |name: &str| {
        let is_enabled =
            last(name, enabled).map_or(profile.base != Base::Current, |r| r.enabled == Some(true));
        is_enabled || last(name, timed).is_some_and(|rule| rule.timed == Some(true))
    };
    let asked = state.rows(Table::Instruments).filter(|(key, settings)| {
        let is_concrete = class_of(&key[0]) == "statement" && !is_abstract(&key[0]);
        is_concrete && is_on(&settings[ENABLED]) && is_asked(&key[0])
    });
    let (mut names, mut is_timed) = (Vec::new(), false);
    for (key, settings) in asked {
        names.push(key[0].clone());
        is_timed |= is_on(&settings[SECOND]);
    }
    let Some(first) = names.first() else { return };
    let is_refused = |name: &str, says: fn(&InstrumentRule) -> Option<bool>| {
        last(name, says).is_some_and(|rule| {
            says(rule) == Some(false) && !names.iter().any(|asked| rule.applies(asked, version))
        })
    };
    for (key, settings) in state.rows_mut(Table::Instruments).into_iter().flatten() {
        if !is_abstract(&key[0]) || is_refused(&key[0], enabled) {
            continue;
        }
        let lacks_time = is_timed && !is_on(&settings[SECOND]) && !is_refused(&key[0], timed);
        if lacks_time || !is_on(&settings[ENABLED]) {
            set(&mut settings[ENABLED], true);
            set_if(&mut settings[SECOND], lacks_time.then_some(true));
            added.push((key[0].clone(), first.clone()));
        }
    }
}

/// Whether it is what a statement is recorded as until its name is known.
pub(crate) fn is_abstract(name: &str) -> bool {
    name.starts_with("statement/abstract/")
}

/// The consumer that another one is fed by ("Pre-Filtering by Consumer" of the MySQL manual).
pub fn parent_of(consumer: &str) -> Option<&'static str> {
    const BY_KIND: [(&str, &str); 4] = [
        ("events_waits_", "events_waits_current"),
        ("events_stages_", "events_stages_current"),
        ("events_statements_", "events_statements_current"),
        ("events_transactions_", "events_transactions_current"),
    ];
    match consumer {
        "global_instrumentation" => None,
        "thread_instrumentation" | "statements_digest" => Some("global_instrumentation"),
        "events_statements_cpu" => Some("thread_instrumentation"),
        current if current.ends_with("_current") => Some("thread_instrumentation"),
        other => {
            BY_KIND.iter().find(|(kind, _)| other.starts_with(kind)).map(|(_, parent)| *parent)
        }
    }
}

fn add_parents(
    state: &mut State,
    profile: &Profile,
    version: ServerVersion,
    added: &mut Vec<(String, String)>,
) {
    let rules = &profile.consumers;
    let last = |name: &str| rules.iter().rfind(|rule| rule.applies(name, version));
    let is_asked =
        |name: &str| last(name).map_or(profile.base != Base::Current, |rule| rule.enabled);
    let on = state.rows(Table::Consumers).filter(|(_, settings)| is_on(&settings[ENABLED]));
    let names = on.map(|(key, _)| key[0].clone());
    let mut open: Vec<String> = names.filter(|name| is_asked(name)).collect();
    while let Some(consumer) = open.pop() {
        let Some(parent) = parent_of(&consumer) else { continue };
        let is_refused =
            last(parent).is_some_and(|rule| !rule.enabled && !rule.applies(&consumer, version));
        let rows = state.rows_mut(Table::Consumers).filter(|_| !is_refused);
        let Some(settings) = rows.and_then(|rows| rows.get_mut(&vec![parent.to_owned()])) else {
            continue;
        };
        if !is_on(&settings[ENABLED]) {
            set(&mut settings[ENABLED], true);
            added.push((parent.to_owned(), consumer));
        }
        open.push(parent.to_owned());
    }
}

/// Consumers that are on but get nothing because one above them is off: their name and that parent.
pub fn dead_consumers(state: &State) -> Vec<(String, String)> {
    let is_on = |name: &str| {
        state.row(Table::Consumers, &vec![name.to_owned()]).is_none_or(|row| is_on(&row[ENABLED]))
    };
    let mut dead = Vec::new();
    for (key, _) in state.rows(Table::Consumers).filter(|(key, _)| is_on(&key[0])) {
        let mut above = parent_of(&key[0]);
        while let Some(parent) = above {
            if !is_on(parent) {
                dead.push((key[0].clone(), parent.to_owned()));
                break;
            }
            above = parent_of(parent);
        }
    }
    dead
}
