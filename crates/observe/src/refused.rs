//! Processes that look like servers and are not watched: when they are tried again, and which of them are told.

use std::collections::{BTreeMap, HashMap};

use waggle_probes::servers::discover::Found;
use waggle_probes::servers::owner::Owner;

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
    /// `None`: it is no server, and nobody needs to hear of it.
    why: Option<String>,
    /// It has only just started, and is not refused as long as it is tried again.
    is_starting: bool,
    tries: u32,
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
        let refused = self.entry(found);
        refused.why = Some(why);
        refused.is_starting = is_starting && refused.tries < STARTING_MAX;
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
    pub(crate) fn note_none(&mut self, found: Found) {
        self.entry(found).why = None;
    }

    fn entry(&mut self, found: Found) -> &mut Refused {
        let new = Refused {
            why: None,
            is_starting: false,
            tries: 0,
            looks: 0,
            is_told: false,
            is_asked: false,
            found: found.clone(),
        };
        let entry = self.all.entry(found.pid).or_insert(new);
        entry.tries += 1;
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
    fn what_is_no_server_is_not_told() {
        let mut refused = RefusedServers::default();
        refused.note_none(found(7));
        assert_eq!(refused.all().count(), 0);
        assert_eq!(refused.due().len(), 1, "a loader may map one");
    }
}
