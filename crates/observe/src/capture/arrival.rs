//! The wait for the servers that run when a command begins, and those of which nobody knows yet whether they are watched.

use std::collections::BTreeMap;
use std::fmt;
use std::thread;
use std::time::Duration;

use waggle_host::{Process, Waited};
use waggle_probes::servers::owner::Owner;

use super::Capture;
use crate::news::News;

/// How long a server is waited for while its program could be read: one whose user comes first, and any other.
const TRUSTED_WAIT: Duration = Duration::from_secs(12);
const OTHERS_WAIT: Duration = Duration::from_secs(1);
/// How long one that starts is waited for where no server is named.
const STARTING_WAIT: Duration = Duration::from_secs(3);
/// Who is younger may become a server by `exec`, or one that can be read.
const YOUNG: Duration = Duration::from_secs(5);
/// Pause of that wait, and how many pauses lie between two questions about one that starts.
const PAUSE: Duration = Duration::from_millis(5);
const AGAIN_EVERY: u32 = 20;

/// A server that is not watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its process.
    pub pid: u32,
    /// Who runs it.
    pub owner: Owner,
    /// Why not.
    pub why: WhyMissing,
}

/// Why a server is not watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyMissing {
    /// Its program is still being read: nobody knows yet whether it can be.
    Reading,
    /// It has only just started, and is tried again.
    Starting(String),
    /// It cannot be.
    Refused(String),
}

impl fmt::Display for WhyMissing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyMissing::Reading => out.write_str("its program is still being read"),
            WhyMissing::Starting(why) => write!(out, "it is starting: {why}"),
            WhyMissing::Refused(why) => out.write_str(why),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Missing { pid, why, .. } = self;
        match why {
            WhyMissing::Refused(_) => write!(out, "pid {pid} cannot be watched: {why}"),
            _ => write!(out, "pid {pid} is not watched yet: {why}"),
        }
    }
}

impl Capture {
    /// Whether programs are being read.
    pub fn is_asking(&self) -> bool {
        self.builds.is_asking()
    }

    /// Whether the program of one has been read that was not attached to yet.
    pub(crate) fn has_answer(&self) -> bool {
        self.builds.has_answer()
    }

    /// The servers that are not watched, by pid.
    pub fn missing(&self) -> Vec<Missing> {
        let asked = self.builds.awaited().map(|(pid, owner)| (pid, owner, WhyMissing::Reading));
        // One that is only tried again is known.
        let all = asked.chain(self.refused.missing());
        let all: BTreeMap<u32, Missing> =
            all.map(|(pid, owner, why)| (pid, Missing { pid, owner, why })).collect();
        all.into_values().collect()
    }

    /// Those of them of which nobody knows yet whether they can be watched.
    pub fn unread(&self) -> Vec<Missing> {
        let mut all = self.missing();
        all.retain(|one| !matches!(one.why, WhyMissing::Refused(_)));
        all
    }

    /// Looks, and waits for the servers that run: until all are watched or refused, for a limited time, or until
    /// `is_over`. Who goes on looking waits for a moment only, as soon as one is watched; processes of other users
    /// hold nobody up for longer. Time in which nobody got to read does not count.
    pub fn look_and_wait(&mut self, goes_on: bool, is_over: &dyn Fn() -> bool) -> Vec<News> {
        let mut waited = Waited::begin();
        let mut news = self.look(&mut |_| {});
        self.take_answers(&mut news);
        for turn in 1.. {
            if is_over() || !self.may_arrive(goes_on, waited.counted()) {
                break;
            }
            thread::sleep(PAUSE);
            waited.look();
            if u32::is_multiple_of(turn, AGAIN_EVERY) {
                self.ask_again(&mut news);
            }
            // Last of all, so that it is judged by what has come.
            self.take_answers(&mut news);
        }
        news
    }

    /// Attaches to all whose programs have been read: nobody reads the rings yet.
    fn take_answers(&mut self, news: &mut Vec<News>) {
        news.extend(self.take_answer(&mut |_| {}));
        while self.has_answer() {
            news.extend(self.take_answer(&mut |_| {}));
        }
    }

    /// Whether it is worth to wait for a server, after such a time.
    fn may_arrive(&self, goes_on: bool, waited: Duration) -> bool {
        let has_some = !self.watched.is_empty();
        let others = if has_some { OTHERS_WAIT } else { TRUSTED_WAIT };
        let is_read = match goes_on {
            true => self.builds.is_asking() && waited < others,
            false => self.builds.may_answer(TRUSTED_WAIT, waited < others),
        };
        if is_read || goes_on && has_some {
            return is_read;
        }
        let is_named = self.pid.is_some();
        let starting = if is_named { TRUSTED_WAIT } else { STARTING_WAIT };
        let is_awaited = waited < starting && (is_named || !goes_on);
        is_awaited && self.refused.has_starting(!is_named) || self.is_young()
    }

    /// Whether the process that is asked for is no server, and so new that it may become one.
    fn is_young(&self) -> bool {
        let is_unknown = |pid: &u32| {
            !self.watched.contains_key(pid) && self.missing().iter().all(|one| one.pid != *pid)
        };
        self.pid.filter(is_unknown).is_some_and(is_new)
    }

    fn ask_again(&mut self, news: &mut Vec<News>) {
        if self.is_young() {
            self.ask_for_new(news, &mut |_| {});
        }
        for found in self.refused.again(self.pid) {
            self.builds.ask(found);
        }
    }
}

/// Whether a process began just now.
pub(super) fn is_new(pid: u32) -> bool {
    Process::of(pid).uptime().value().is_some_and(|age| *age < YOUNG)
}
