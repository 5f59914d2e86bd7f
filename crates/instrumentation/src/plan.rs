//! Turns a profile into changes.

mod needed;

use std::collections::BTreeSet;

use waggle_model::ServerVersion;

use crate::change::{Change, difference};
use crate::changeable::{Changeable, changeable};
use crate::class::class_of;
use crate::filter::{Filter, Session};
use crate::metrics::selection::{SelectionError, choose};
use crate::profile::{Base, Profile, ProfileError, builtin};
use crate::state::{Key, Settings, State};
use crate::table::Table;

pub(crate) use needed::is_abstract;
pub use needed::{dead_consumers, parent_of};

/// The position of `ENABLED` in the settings of every table that has it, and of `TIMED` or
/// `HISTORY`.
const ENABLED: usize = 0;
const SECOND: usize = 1;

/// What is to be changed, and what there is to know of it before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// In the order in which they are made.
    pub changes: Vec<Change>,
    /// What was added because something else needs it: its name and what needs it.
    pub added: Vec<(String, String)>,
    /// What the profile asks for and nobody can do, by its name, with the reason.
    pub impossible: Vec<(String, String)>,
    /// What takes effect later than at once, or not for all.
    pub later: Vec<String>,
    /// What the filter names and the server does not show.
    pub unseen: Vec<String>,
    /// The highest number of the threads that it was made for: those with a higher one came later.
    pub last_thread: u64,
}

/// What a plan is made from.
pub struct Wanted<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// What of it is recorded.
    pub filter: &'a Filter,
    /// The existing sessions.
    pub sessions: &'a [Session],
    /// The version of the server.
    pub version: ServerVersion,
}

impl Plan {
    /// The changes that bring the server from `state` to what is wanted.
    ///
    /// # Errors
    /// The filter does not fit this server.
    pub fn new(state: &State, wanted: &Wanted<'_>) -> Result<Plan, PlanError> {
        let mut desired = state.clone();
        apply_profile(&mut desired, wanted.profile, wanted.version)?;
        let added = needed::add(&mut desired, wanted.profile, wanted.version);
        wanted.filter.apply(&mut desired, wanted.sessions)?;
        let mut impossible = withdraw_impossible(state, &mut desired, wanted.version);
        impossible.extend(unmatched(state, wanted.profile, wanted.version));
        for rule in &wanted.profile.metrics {
            for word in &rule.names {
                let switched =
                    switch_metrics(&mut desired, std::slice::from_ref(word), rule.enabled);
                // A profile is for many servers: some lack what it names.
                match switched {
                    Err(PlanError::Metrics(why @ SelectionError::Unknown(_))) => {
                        impossible.push((word.clone(), why.to_string()));
                    }
                    other => other?,
                }
            }
        }
        let changes = difference(state, &desired);
        let later = later(&changes, wanted.version);
        let last_thread = wanted.sessions.iter().map(|session| session.thread).max().unwrap_or(0);
        Ok(Plan { changes, added, impossible, later, unseen: Vec::new(), last_thread })
    }

    /// The changes that switch the counters of InnoDB that words mean, and nothing else.
    ///
    /// # Errors
    /// A word means nothing that can be switched and set back, or the account may not read the table.
    pub fn of_metrics(
        state: &State,
        words: &[String],
        enabled: bool,
        version: ServerVersion,
    ) -> Result<Plan, PlanError> {
        let mut desired = state.clone();
        switch_metrics(&mut desired, words, enabled)?;
        let changes = difference(state, &desired);
        let later = later(&changes, version);
        Ok(Plan { changes, later, ..Plan::default() })
    }
}

/// Why a plan cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A built-in profile cannot be read.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The filter names something that this server does not have.
    #[error("{0}")]
    Filter(String),
    /// What is to be changed cannot be read.
    #[error("{0}")]
    Absent(String),
    /// A word means no counters that can be switched.
    #[error(transparent)]
    Metrics(#[from] SelectionError),
}

fn apply_profile(
    state: &mut State,
    profile: &Profile,
    version: ServerVersion,
) -> Result<(), PlanError> {
    match profile.base {
        Base::Current => {}
        Base::Off => turn_all_off(state),
        Base::Default => {
            turn_all_off(state);
            if let Some(default) = builtin("default") {
                apply_rules(state, &default?, version);
            }
        }
    }
    apply_rules(state, profile, version);
    Ok(())
}

fn switch_metrics(state: &mut State, words: &[String], enabled: bool) -> Result<(), PlanError> {
    if let Some(why) = state.why_absent(Table::Metrics) {
        return Err(PlanError::Absent(why.to_owned()));
    }
    let counters: Vec<Key> = state.rows(Table::Metrics).map(|(key, _)| key.clone()).collect();
    let chosen = choose(&counters, words)?;
    for (key, settings) in state.rows_mut(Table::Metrics).into_iter().flatten() {
        if chosen.contains(key) {
            set(&mut settings[ENABLED], enabled);
        }
    }
    Ok(())
}

fn turn_all_off(state: &mut State) {
    for table in [Table::Instruments, Table::Consumers] {
        for settings in state.rows_mut(table).into_iter().flat_map(|rows| rows.values_mut()) {
            settings.iter_mut().for_each(|setting| set(setting, false));
        }
    }
}

fn apply_rules(state: &mut State, profile: &Profile, version: ServerVersion) {
    for (key, settings) in state.rows_mut(Table::Instruments).into_iter().flatten() {
        for rule in profile.instruments.iter().filter(|rule| rule.applies(&key[0], version)) {
            set_if(&mut settings[ENABLED], rule.enabled);
            set_if(&mut settings[SECOND], rule.timed);
        }
    }
    for (key, settings) in state.rows_mut(Table::Consumers).into_iter().flatten() {
        for rule in profile.consumers.iter().filter(|rule| rule.applies(&key[0], version)) {
            set(&mut settings[ENABLED], rule.enabled);
        }
    }
}

/// Removes from `desired` what the server silently ignores, and reports it.
///
/// `update_row_values` in `storage/perfschema/table_setup_instruments.cc`: the memory of Performance
/// Schema itself is always counted, and memory and errors have no times.
fn withdraw_impossible(
    state: &State,
    desired: &mut State,
    version: ServerVersion,
) -> Vec<(String, String)> {
    let mut impossible = BTreeSet::new();
    for (key, settings) in desired.rows_mut(Table::Instruments).into_iter().flatten() {
        let name = &key[0];
        let Some(now) = state.row(Table::Instruments, key) else { continue };
        if changeable(name, version) == Changeable::Never && settings[ENABLED] != now[ENABLED] {
            settings[ENABLED].clone_from(&now[ENABLED]);
            impossible.insert((
                "memory/performance_schema/%".to_owned(),
                "the server always counts its own Performance Schema".to_owned(),
            ));
        }
        // Told by nobody: that memory has no times is no surprise.
        if matches!(class_of(name), "memory" | "error") {
            settings[SECOND].clone_from(&now[SECOND]);
        }
    }
    impossible.into_iter().collect()
}

/// The names of each rule of this server that fits nothing on it, with the reason.
pub fn unmatched(
    state: &State,
    profile: &Profile,
    version: ServerVersion,
) -> Vec<(String, String)> {
    let has = |table, fits: &dyn Fn(&str) -> bool| state.rows(table).any(|(key, _)| fits(&key[0]));
    let told = |names: &[String], what: &str| {
        (names.join(", "), format!("this server has no {what} of this name"))
    };
    let instruments = profile.instruments.iter().filter(|rule| {
        rule.on.hold(version) && !has(Table::Instruments, &|name| rule.applies(name, version))
    });
    let consumers = profile.consumers.iter().filter(|rule| {
        rule.on.hold(version) && !has(Table::Consumers, &|name| rule.applies(name, version))
    });
    let instruments = instruments.map(|rule| told(&rule.names, "instrument"));
    instruments.chain(consumers.map(|rule| told(&rule.names, "consumer"))).collect()
}

fn later(changes: &[Change], version: ServerVersion) -> Vec<String> {
    let turned = |class: &str, on: bool| {
        let is = |settings: &Option<Settings>, on: bool| {
            settings.as_ref().is_some_and(|settings| is_on(&settings[ENABLED]) == on)
        };
        changes.iter().any(|change| {
            change.table == Table::Instruments
                && class_of(&change.key[0]).starts_with(class)
                && is(&change.before, !on)
                && is(&change.after, on)
        })
    };
    let turned_on = |class: &str| turned(class, true);
    let turned_off = |table| {
        let was_on =
            |change: &Change| change.before.as_ref().is_some_and(|row| is_on(&row[ENABLED]));
        changes.iter().filter(|change| change.table == table && was_on(change)).count()
    };
    let changed = |table| changes.iter().any(|change| change.table == table);
    let mut later = Vec::new();
    let mut tell = |is_so: bool, what: &str| {
        if is_so {
            later.push(what.to_owned());
        }
    };
    tell(
        changed(Table::Actors),
        "setup_actors: for sessions that log in from now on; those that are there are set one by one",
    );
    tell(
        changed(Table::SetupThreads),
        "setup_threads: for threads that start from now on; those that are there are set one by one",
    );
    tell(
        turned_on("memory"),
        "memory: counts from now on; what was allocated before is in no total until the server is \
         started anew with the lines of waggle pfs persist",
    );
    tell(
        turned_on("wait/lock/metadata"),
        "wait/lock/metadata: shows locks that are asked for from now on; those held already stay hidden",
    );
    tell(
        turned_on("wait/synch") && changeable("wait/synch/", version) == Changeable::OnlyAtStart,
        "wait/synch: this version takes it at its start only: write the lines of waggle pfs persist to its \
         option file, and restart it",
    );
    tell(
        turned_on("wait/io/file"),
        "wait/io/file: sees files that are opened from now on; those that were opened while it was off stay hidden \
         until they are opened again",
    );
    tell(
        ["wait/io/file", "wait/lock/metadata", "memory"].iter().any(|class| turned(class, false))
            || changes.iter().any(|change| {
                change.key[0] == "global_instrumentation"
                    && change.after.as_ref().is_some_and(|settings| !is_on(&settings[ENABLED]))
            }),
        "wait/io/file, wait/lock/metadata, memory: what is opened, locked or allocated while they are off stays \
         hidden also when they are on again",
    );
    let stopped = turned_off(Table::Metrics);
    tell(
        stopped > 0,
        &format!(
            "INNODB_METRICS: {stopped} counters that count now stop; when they are on again COUNT goes \
             on from where it stood, without what happened meanwhile, and TIME_ENABLED begins anew: \
             whoever reads them sees a gap"
        ),
    );
    later
}

pub(crate) fn is_on(setting: &Option<String>) -> bool {
    setting.as_deref() == Some("YES")
}

fn set(setting: &mut Option<String>, on: bool) {
    // NULL: it does not apply to this row.
    if setting.is_some() {
        *setting = Some(if on { "YES" } else { "NO" }.to_owned());
    }
}

fn set_if(setting: &mut Option<String>, on: Option<bool>) {
    if let Some(on) = on {
        set(setting, on);
    }
}

pub(crate) fn yes_no(enabled: bool, second: bool) -> Settings {
    [enabled, second].map(|on| Some(if on { "YES" } else { "NO" }.to_owned())).to_vec()
}

#[cfg(test)]
mod tests;
