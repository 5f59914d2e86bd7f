//! Processes that look like servers and are not watched: when they are tried again, and which of them are told.

use std::collections::{BTreeMap, HashMap};

use waggle_probes::servers::discover::Found;
use waggle_probes::servers::owner::Owner;

use crate::capture::WhyMissing;

/// Looks at a server that starts before it is tried more rarely.
const STARTING_MAX: u32 = 30;
/// Processes of one user that are told one by one.
const TOLD_OF_USER: usize = 3;
/// Users whose processes are counted.
const USERS_MAX: usize = 4096;

/// Those that are not watched.
#[derive(Default)]
pub(crate) struct RefusedServers {
    all: BTreeMap<u32, Refused>,
    /// How many were refused, by user. A trusted one is always told.
    of_user: HashMap<Owner, usize>,
}

struct Refused {
    found: Found,
    owner: Owner,
    /// `None`: it is no server, and nobody needs to hear of it.
    why: Option<String>,
    /// It has only just started, and is not refused as long as it is tried again.
    is_starting: bool,
    /// Looks since it was refused first.
    looks: u32,
    is_told: bool,
    is_asked: bool,
}

/// How a refusal is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// By itself.
    Alone,
    /// In one line with the others of its user: their number.
    Counted(usize),
    /// Not, or not again.
    Not,
}

impl RefusedServers {
    /// Adds one; says how it is told.
    pub(crate) fn add(
        &mut self,
        found: Found,
        owner: Owner,
        why: String,
        is_starting: bool,
    ) -> Told {
        let refused = self.entry(found, owner);
        refused.why = Some(why);
        refused.is_starting = is_starting && refused.looks + 1 < STARTING_MAX;
        if refused.is_starting || std::mem::replace(&mut refused.is_told, true) {
            return Told::Not;
        }
        if owner.is_trusted() {
            return Told::Alone;
        }
        if self.of_user.len() >= USERS_MAX {
            self.of_user.clear();
        }
        let count = self.of_user.entry(owner).or_default();
        *count += 1;
        match *count {
            count if count <= TOLD_OF_USER => Told::Alone,
            count if count.is_power_of_two() => Told::Counted(count),
            _ => Told::Not,
        }
    }

    /// Adds one that is no server as far as its program says. A loader of programs may map one later.
    pub(crate) fn note_none(&mut self, found: Found, owner: Owner) {
        let refused = self.entry(found, owner);
        (refused.why, refused.is_starting) = (None, false);
    }

    fn entry(&mut self, found: Found, owner: Owner) -> &mut Refused {
        let new = Refused {
            owner,
            why: None,
            is_starting: false,
            looks: 0,
            is_told: false,
            is_asked: false,
            found: found.clone(),
        };
        let entry = self.all.entry(found.pid).or_insert(new);
        entry.is_asked = false;
        entry
    }

    /// Forgets one that is gone, or watched.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.all.remove(&pid);
    }

    /// Those that are to be tried again at this look: more and more rarely.
    pub(crate) fn due(&mut self) -> Vec<Found> {
        let mut due = Vec::new();
        for refused in self.all.values_mut().filter(|refused| !refused.is_asked) {
            refused.looks = refused.looks.saturating_add(1);
            if refused.is_starting || refused.looks.is_power_of_two() {
                refused.is_asked = true;
                due.push(refused.found.clone());
            }
        }
        due
    }

    /// Those that start, for who waits for them: that is no look. Where one process is named, also that one if it is no
    /// server, or none yet.
    pub(crate) fn again(&mut self, named: Option<u32>) -> Vec<Found> {
        let is_meant = |one: &&mut Refused| {
            one.is_starting || one.why.is_none() && named == Some(one.found.pid)
        };
        let ask = |refused: &mut Refused| {
            refused.is_asked = true;
            refused.found.clone()
        };
        let meant = self.all.values_mut().filter(|one| !one.is_asked).filter(is_meant);
        meant.map(ask).collect()
    }

    /// Whether one starts; with `of_trusted`, one whose user comes first.
    pub(crate) fn has_starting(&self, of_trusted: bool) -> bool {
        self.all.values().any(|one| one.is_starting && (one.owner.is_trusted() || !of_trusted))
    }

    /// All that may be servers: pid, owner, and why each is not watched.
    pub(crate) fn missing(&self) -> impl Iterator<Item = (u32, Owner, WhyMissing)> {
        self.all.iter().filter_map(|(pid, one)| {
            let why = one.why.clone()?;
            let why = match one.is_starting {
                true => WhyMissing::Starting(why),
                false => WhyMissing::Refused(why),
            };
            Some((*pid, one.owner, why))
        })
    }

    /// Why, by pid.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &str)> {
        let told = self.all.iter().filter(|(_, refused)| !refused.is_starting);
        told.filter_map(|(pid, refused)| Some((*pid, refused.why.as_deref()?)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use waggle_model::Reading;

    use super::*;

    fn found(pid: u32) -> Found {
        let [executable, root] = [(); 2].map(|()| Reading::Value(PathBuf::from("/")));
        Found { pid, start_ticks: 1, executable, is_named: true, deleted: false, root }
    }

    #[test]
    fn many_processes_of_one_user_take_few_lines() {
        let mut refused = RefusedServers::default();
        let mut tell = |pid, owner| refused.add(found(pid), owner, "why".into(), false);
        let told: Vec<Told> = (1..=300).map(|pid| tell(pid, Owner::Other(65534))).collect();
        let counted = |told: &&Told| matches!(told, Told::Counted(_));
        assert_eq!(told[..3], [Told::Alone; 3]);
        let counts: Vec<&Told> = told.iter().filter(counted).collect();
        assert_eq!(counts.len(), 7, "at 4, 8, 16 and so on up to 256");
        assert_eq!(counts.last(), Some(&&Told::Counted(256)));
        assert_eq!(tell(301, Owner::Other(1000)), Told::Alone, "another user");
        assert!((400..420).all(|pid| tell(pid, Owner::Trusted) == Told::Alone));
        assert_eq!(refused.all().count(), 321);
    }

    #[test]
    fn one_that_is_refused_is_tried_more_and_more_rarely_and_told_once() {
        let mut refused = RefusedServers::default();
        let owner = Owner::Trusted;
        assert_eq!(refused.add(found(7), owner, "why".into(), false), Told::Alone);
        let mut tries = 0;
        for _ in 0..1000 {
            for found in refused.due() {
                tries += 1;
                assert_eq!(refused.add(found, owner, "why".into(), false), Told::Not);
            }
        }
        assert_eq!(tries, 10, "at 1, 2, 4 and so on up to 512");
        refused.forget(7);
        assert_eq!(refused.due(), []);
    }

    #[test]
    fn one_that_starts_is_tried_at_every_look_and_told_when_that_lasts() {
        let mut refused = RefusedServers::default();
        let owner = Owner::Other(1000);
        let mut told = vec![refused.add(found(7), owner, "no key".into(), true)];
        for _ in 0..40 {
            let due = refused.due();
            told.extend(due.into_iter().map(|it| refused.add(it, owner, "no key".into(), true)));
        }
        assert_eq!(
            told.iter().position(|told| *told == Told::Alone),
            Some(STARTING_MAX as usize - 1)
        );
        assert_eq!(told.iter().filter(|told| **told != Told::Not).count(), 1);
        assert_eq!(refused.all().collect::<Vec<_>>(), [(7, "no key")]);
    }

    #[test]
    fn who_waits_for_one_that_starts_may_ask_more_often_than_it_is_looked() {
        let mut refused = RefusedServers::default();
        let add = |refused: &mut RefusedServers| {
            refused.add(found(7), Owner::Trusted, "no key".into(), true)
        };
        assert_eq!(add(&mut refused), Told::Not);
        for _ in 0..1000 {
            assert_eq!(refused.again(None).len(), 1);
            assert_eq!(refused.again(None).len(), 0, "it is asked for");
            assert_eq!(add(&mut refused), Told::Not);
        }
        let missing = |refused: &RefusedServers| refused.missing().next().unwrap().2;
        assert_eq!(missing(&refused), WhyMissing::Starting("no key".into()));
        assert_eq!((refused.has_starting(true), refused.all().count()), (true, 0));
        refused.add(found(7), Owner::Trusted, "no right".into(), false);
        assert_eq!(missing(&refused), WhyMissing::Refused("no right".into()));
        assert_eq!((refused.has_starting(true), refused.again(None).len()), (false, 0));
        refused.note_none(found(7), Owner::Trusted);
        assert_eq!([None, Some(8), Some(7)].map(|pid| refused.again(pid).len()), [0, 0, 1]);
    }

    #[test]
    fn what_is_no_server_is_not_told() {
        let mut refused = RefusedServers::default();
        refused.note_none(found(7), Owner::Trusted);
        assert_eq!(refused.all().count(), 0);
        assert_eq!(refused.due().len(), 1, "a loader may map one");
    }
}
