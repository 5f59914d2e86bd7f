//! The failure message: who waits, for what and for whom, and the last actions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use waggle_mysql::locks::Wait;

use super::Mix;
use super::model::{Lock, Mode, Object};
use super::statements;

/// Actions in the message.
const ACTIONS_TOLD: usize = 20;

/// The last actions, and the replies since.
#[derive(Debug, Default)]
pub(super) struct ActionLog {
    /// Whether the line is an action, and its text.
    lines: VecDeque<(bool, String)>,
}

impl ActionLog {
    pub(super) fn did(&mut self, step: u64, session: u64, what: &str) {
        self.lines.push_back((true, format!("step {step}: {session} {what}")));
        while self.lines.iter().filter(|(is_action, _)| *is_action).count() > ACTIONS_TOLD {
            self.lines.pop_front();
        }
    }

    pub(super) fn answered(&mut self, session: u64) {
        self.lines.push_back((false, format!("{session} got its reply")));
    }
}

impl Mix {
    pub(super) fn fail(&self, why: &str, seen: &BTreeMap<u64, Wait>) -> ! {
        panic!("{}", self.told(why, seen));
    }

    fn told(&self, why: &str, seen: &BTreeMap<u64, Wait>) -> String {
        let mut out =
            format!("{}, seed {}, step {}: {why}\n", self.version, self.seed, self.number);
        let waiting = self.model.waiting();
        for (at, party) in self.model.parties.iter().enumerate() {
            let wait = seen.get(&party.connection_id);
            if wait.is_some() || waiting.contains(&at) {
                let _ = writeln!(out, "{}", self.told_of(at, wait));
            }
        }
        if !self.not_known.is_empty() {
            let _ = writeln!(out, "the look could not determine: {}", self.not_known.join("; "));
        }
        out.push_str("last actions:\n");
        self.actions.lines.iter().for_each(|(_, line)| out.push_str(&format!("  {line}\n")));
        out
    }

    /// One waiter in the model, and as it was seen.
    fn told_of(&self, at: usize, wait: Option<&Wait>) -> String {
        let ids = |all: &BTreeSet<usize>| {
            let ids: Vec<String> = all.iter().map(|at| self.id(*at).to_string()).collect();
            if ids.is_empty() { "nobody".to_owned() } else { ids.join(", ") }
        };
        let known = match self.model.awaited(at) {
            Some(lock) => format!("waits for {}", words(lock)),
            None => "waits for nothing".to_owned(),
        };
        let seen = match wait {
            None => "seen: it does not wait".to_owned(),
            Some(wait) => {
                let lock = &wait.lock;
                let named: Vec<String> = wait.blockers.iter().map(ToString::to_string).collect();
                let named = if named.is_empty() { "nobody".to_owned() } else { named.join(", ") };
                let object = lock.object.as_deref().unwrap_or("something");
                let mode = lock.mode.as_deref().unwrap_or("some mode");
                let why = wait.unknown.as_ref().map(|unknown| format!(" ({})", unknown.why));
                format!(
                    "seen: it waits for {object}, {mode}; named: {named}{}",
                    why.unwrap_or_default()
                )
            }
        };
        let may_be = ids(&self.model.may_be_named(at));
        let nameable = ids(self.nameable.get(&at).unwrap_or(&BTreeSet::new()));
        format!("{} {known}; model: {may_be}; since it settled: {nameable}; {seen}", self.id(at))
    }
}

/// A lock in words.
fn words((object, mode): Lock) -> String {
    let object = match object {
        Object::Row(id) => format!("row {id}"),
        Object::Gaps(group) => format!("the gaps of group {group}"),
        Object::Table(number) => format!("table {}", statements::table(number)),
        Object::Name(name) => format!("name {name}"),
        Object::Server => "the server".to_owned(),
    };
    let mode = match mode {
        Mode::Shared => "shared",
        Mode::Exclusive => "alone",
        Mode::Covers => "against inserts",
        Mode::Inserts => "to insert",
        Mode::Reads => "to read",
        Mode::Writes => "to write",
        Mode::Upgradable => "to change it later",
        Mode::ReadOnly => "against writers",
        Mode::NoReadWrite => "against readers and writers",
        Mode::Changes => "to change it",
    };
    format!("{object} {mode}")
}
