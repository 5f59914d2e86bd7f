//! Which process is looked into next. Everybody can start processes that look like servers: those of trusted users
//! come first, the others share a little time, and each of their users has as much of it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::allowance::Allowance;
use super::discover::Found;
use super::file_id::FileId;
use super::owner::Owner;

/// Processes that are looked into at once.
const AT_ONCE: usize = 4;
/// Of these, of other users; one of each at most.
const OTHERS_AT_ONCE: usize = 2;
/// The share of one processor that may be spent on the processes of other users, and what of it can be saved up:
/// a new host with fifty servers is read at once.
const SHARE: f64 = 0.05;
const SAVED_MAX_S: f64 = 5.0;
/// Users whose time is kept.
const USERS_MAX: usize = 4096;

/// A process that waits.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) found: Found,
    pub(super) owner: Owner,
    /// Its program; `None` if that is not known yet.
    pub(super) file: Option<FileId>,
}

/// Those that wait, and what the users have had.
#[derive(Debug)]
pub(super) struct Turns {
    waiting: Vec<Asked>,
    /// What may be spent on other users' processes.
    allowance: Allowance,
    spent: HashMap<Owner, Duration>,
}

impl Turns {
    pub(super) fn new() -> Turns {
        let (waiting, spent) = (Vec::new(), HashMap::new());
        Turns { waiting, allowance: Allowance::new(SHARE, SAVED_MAX_S), spent }
    }

    pub(super) fn add(&mut self, asked: Asked) {
        self.waiting.push(asked);
    }

    /// Takes those out for which `is_meant` holds.
    pub(super) fn take(&mut self, is_meant: impl Fn(&Asked) -> bool) -> Vec<Asked> {
        self.waiting.extract_if(.., |asked| is_meant(asked)).collect()
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = &Asked> {
        self.waiting.iter()
    }

    /// The next one, while others are looked into; `held_up` are users whose turn does not come.
    pub(super) fn next(
        &mut self,
        now: Instant,
        running: &[&Asked],
        held_up: impl Fn(Owner) -> bool,
    ) -> Option<Asked> {
        if running.len() >= AT_ONCE {
            return None;
        }
        let others = running.iter().filter(|asked| !asked.owner.is_trusted()).count();
        let may_others = self.allowance.is_left(now) && others < OTHERS_AT_ONCE;
        // What is learned of a file serves all processes of the user that run it.
        let is_read = |asked: &Asked| {
            let is_same = |other: &&Asked| other.owner == asked.owner && other.file == asked.file;
            asked.file.is_some() && running.iter().any(is_same)
        };
        let may = |asked: &Asked| {
            let may_user = asked.owner.is_trusted()
                || may_others
                    && !held_up(asked.owner)
                    && !running.iter().any(|other| other.owner == asked.owner);
            may_user && !is_read(asked)
        };
        let spent = |asked: &Asked| self.spent.get(&asked.owner).copied().unwrap_or_default();
        let may = self.waiting.iter().enumerate().filter(|(_, asked)| may(asked));
        let (at, _) = may.min_by_key(|(_, asked)| (!asked.owner.is_trusted(), spent(asked)))?;
        Some(self.waiting.remove(at))
    }

    /// Counts what was spent on a process of this user.
    pub(super) fn spend(&mut self, owner: Owner, time: Duration) {
        if owner.is_trusted() {
            return;
        }
        self.allowance.spend(time);
        if self.spent.len() >= USERS_MAX {
            self.spent.clear();
        }
        *self.spent.entry(owner).or_default() += time;
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use waggle_model::Reading;

    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn asked(pid: u32, owner: Owner) -> Asked {
        let [executable, root] = [(); 2].map(|()| Reading::Value(PathBuf::from("/")));
        let (start_ticks, is_named, deleted) = (1, true, false);
        let found = Found { pid, start_ticks, executable, is_named, deleted, root };
        Asked { found, owner, file: None }
    }

    /// As many as may be looked into at once.
    fn all_at_once(turns: &mut Turns, now: Instant) -> Vec<Asked> {
        let mut running: Vec<Asked> = Vec::new();
        loop {
            let beside: Vec<&Asked> = running.iter().collect();
            let Some(next) = turns.next(now, &beside, |_| false) else { return running };
            running.push(next);
        }
    }

    fn pids(all: &[Asked]) -> Vec<u32> {
        all.iter().map(|asked| asked.found.pid).collect()
    }

    #[test]
    fn trusted_servers_come_first_and_always_find_room() {
        let mut turns = Turns::new();
        (1..=300).for_each(|pid| turns.add(asked(pid, Owner::Other(1000 + pid % 3))));
        let now = Instant::now();
        let hostile = all_at_once(&mut turns, now);
        assert_eq!(hostile.len(), OTHERS_AT_ONCE, "one of each user");
        [401, 402].into_iter().for_each(|pid| turns.add(asked(pid, Owner::Trusted)));
        let mut running: Vec<&Asked> = hostile.iter().collect();
        let real = turns.next(now, &running, |_| false).unwrap();
        running.push(&real);
        assert_eq!(real.found.pid, 401);
        assert_eq!(turns.next(now, &running, |_| false).unwrap().found.pid, 402);
    }

    #[test]
    fn a_user_who_had_much_comes_behind_one_who_had_little() {
        let mut turns = Turns::new();
        let [greedy, modest] = [Owner::Other(1000), Owner::Other(1001)];
        turns.spend(greedy, S);
        (1..=9).for_each(|pid| turns.add(asked(pid, greedy)));
        turns.add(asked(10, modest));
        let now = Instant::now();
        assert_eq!(turns.next(now, &[], |_| false).unwrap().found.pid, 10);
        assert_eq!(turns.next(now, &[], |owner| owner == greedy).map(|one| one.found.pid), None);
        assert!(turns.next(now, &[], |_| false).is_some());
    }

    #[test]
    fn what_other_users_may_have_is_a_share_of_the_time() {
        let mut turns = Turns::new();
        let other = Owner::Other(1000);
        (1..=9).for_each(|pid| turns.add(asked(pid, other)));
        let now = Instant::now();
        turns.spend(other, 6 * S);
        assert!(turns.next(now, &[], |_| false).is_none(), "it is used up");
        turns.add(asked(10, Owner::Trusted));
        assert_eq!(turns.next(now, &[], |_| false).unwrap().found.pid, 10);
        assert!(turns.next(now + 19 * S, &[], |_| false).is_none());
        assert!(turns.next(now + 21 * S, &[], |_| false).is_some());
        // What is saved up has an end.
        let later = now + 100_000 * S;
        assert!(turns.next(later, &[], |_| false).is_some());
        turns.spend(other, 6 * S);
        assert!(turns.next(later, &[], |_| false).is_none());
    }

    #[test]
    fn a_file_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = FileId::at(folder.path());
        let mut turns = Turns::new();
        (1..=3).for_each(|pid| turns.add(Asked { file, ..asked(pid, Owner::Trusted) }));
        let running = all_at_once(&mut turns, Instant::now());
        assert_eq!(pids(&running), [1]);
        assert_eq!(turns.take(|asked| asked.file == file).len(), 2);
    }
}
