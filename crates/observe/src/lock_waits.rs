//! The waits for locks of the statements that run, until those end.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use waggle_account::head_without_secrets;
use waggle_model::{
    Blocked, DigestKey, DigestName, LONG_WAIT_NS, LockWait, LockWaitNews, RunningStatement,
    Statement, TimeClass,
};

/// Statements that are remembered, and waits of each.
const STATEMENTS_MAX: usize = 10_000;
const WAITS_MAX: usize = 100;

/// Process of the server, session, and start of the statement as the server notes it.
type Key = (u32, u64, u64);

/// A wait whose statement runs.
#[derive(Clone, Debug)]
struct Wait {
    /// The length is 0 until one has ended that was long.
    wait: LockWait,
    /// When that was, nanoseconds of `CLOCK_MONOTONIC`.
    end_ns: u64,
    /// It goes on, as far as is known: a short one tells its end to nobody.
    is_open: bool,
}

/// Those of a statement.
#[derive(Debug, Default)]
struct Waits {
    waits: Vec<Wait>,
    /// The statement, once a look has found it.
    seen: Option<Box<Seen>>,
}

/// A statement as the first look found it, and the digest of all that was read of its text.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Its text is shortened, and has no secrets.
    pub(crate) statement: RunningStatement,
    pub(crate) digest: Option<(DigestKey, DigestName)>,
}

/// A statement that ended without a reply, and its long waits.
#[derive(Debug)]
pub(crate) struct Unanswered {
    /// As it ran; `None` where no look found it.
    pub(crate) seen: Option<Box<Seen>>,
    pub(crate) waits: Vec<LockWait>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct LockWaitBook {
    statements: HashMap<Key, Waits>,
    /// Long waits that found no room, by server.
    lost: BTreeMap<u32, u64>,
}

impl LockWaitBook {
    /// A wait began or has ended.
    pub(crate) fn hear(&mut self, news: &LockWaitNews) {
        let key = (news.pid, news.thd, news.noted_start_us);
        if self.statements.len() >= STATEMENTS_MAX && !self.statements.contains_key(&key) {
            return self.lose(news);
        }
        let of = self.statements.entry(key).or_default();
        let is_kept = match news.waited_ns {
            None => {
                of.begin(news.class, news.at_ns);
                true
            }
            Some(length_ns) => of.end(news.class, news.at_ns, length_ns),
        };
        if !is_kept {
            self.lose(news);
        }
    }

    /// Long waits of a server that found no room, since it is watched.
    pub(crate) fn lost(&self, pid: u32) -> u64 {
        self.lost.get(&pid).copied().unwrap_or(0)
    }

    /// Whether waits of a statement are remembered.
    pub(crate) fn has(&self, statement: &Statement<'_>) -> bool {
        !self.statements.is_empty()
            && key_of(statement).is_some_and(|key| self.statements.contains_key(&key))
    }

    /// The long waits of a statement that has ended.
    pub(crate) fn take(&mut self, statement: &Statement<'_>) -> Vec<LockWait> {
        let of = key_of(statement).and_then(|key| self.statements.remove(&key));
        of.map(Waits::long).unwrap_or_default()
    }

    /// Servers in which a wait that began by `long_ago_ns` goes on, and it is not known who holds its lock.
    pub(crate) fn unexplained(&self, long_ago_ns: u64) -> BTreeSet<u32> {
        let is_known = |wait: &LockWait| {
            wait.blocked.as_ref().is_some_and(|blocked| blocked.unknown.is_none())
        };
        let is_unexplained = |wait: &Wait| {
            wait.is_open && !is_known(&wait.wait) && wait.wait.begin_ns <= long_ago_ns
        };
        let of = |(key, of): (&Key, &Waits)| of.waits.iter().any(is_unexplained).then_some(key.0);
        self.statements.iter().filter_map(of).collect()
    }

    /// Somebody has looked from `looked_ns` to `seen_ns` who holds the locks that sessions of a server wait for. It is
    /// told of the waits that lasted all the time.
    pub(crate) fn explain(
        &mut self,
        pid: u32,
        (looked_ns, seen_ns): (u64, u64),
        by_session: &BTreeMap<u64, Blocked>,
    ) {
        let of_server = self.statements.iter_mut().filter(|((server, ..), _)| *server == pid);
        for ((_, thd, _), Waits { waits, .. }) in of_server {
            let Some(blocked) = by_session.get(thd) else { continue };
            // The last who held it is the one that it waited for until the end.
            for wait in waits.iter_mut().filter(|wait| wait.lasted(looked_ns, seen_ns)) {
                wait.wait.blocked = Some(blocked.clone());
            }
        }
    }

    /// The same of a wait that has just ended, and may have begun before waggle came: nobody could be asked about it.
    pub(crate) fn explain_ended(
        &mut self,
        news: &LockWaitNews,
        (looked_ns, seen_ns): (u64, u64),
        blocked: &Blocked,
    ) {
        let of = self.statements.get_mut(&(news.pid, news.thd, news.noted_start_us));
        let last = of.and_then(|of| of.waits.last_mut());
        let last = last.filter(|wait| !wait.is_open && wait.lasted(looked_ns, seen_ns));
        if let Some(wait) = last {
            wait.wait.blocked.get_or_insert_with(|| blocked.clone());
        }
    }

    /// Forgets what ran in a server and is not among what runs: it ended without a reply. Returns its waits. `digest`
    /// is asked for what is found for the first time.
    pub(crate) fn keep(
        &mut self,
        pid: u32,
        running: &[RunningStatement],
        looked_ns: u64,
        digest: &mut dyn FnMut(&RunningStatement) -> Option<(DigestKey, DigestName)>,
    ) -> Vec<Unanswered> {
        self.meet(pid, running);
        if self.statements.is_empty() {
            return Vec::new();
        }
        let start = |one: &RunningStatement| Some((one.thd, one.noted_start_us?));
        let runs: BTreeMap<(u64, u64), &RunningStatement> =
            running.iter().filter_map(|one| Some((start(one)?, one))).collect();
        let is_over = |(server, thd, start): &Key, of: &mut Waits| {
            if *server != pid {
                return false;
            }
            if let Some(now) = runs.get(&(*thd, *start)) {
                of.seen.get_or_insert_with(|| {
                    Box::new(Seen { statement: shortened(now), digest: digest(now) })
                });
                return false;
            }
            of.waits.iter().all(|wait| wait.wait.begin_ns < looked_ns)
        };
        let over = self.statements.extract_if(is_over);
        let unanswered = over.map(|(_, mut of)| {
            let seen = of.seen.take();
            Unanswered { seen, waits: of.long() }
        });
        unanswered.filter(|one| !one.waits.is_empty()).collect()
    }

    /// Takes over waits that a look has found, and whose begin was not told: they are from before waggle came.
    fn meet(&mut self, pid: u32, running: &[RunningStatement]) {
        for one in running {
            let (Some(now), Some(start)) = (one.waits, one.noted_start_us) else { continue };
            let is_new = !self.statements.contains_key(&(pid, one.thd, start));
            if now.class.is_lock() && is_new && self.statements.len() < STATEMENTS_MAX {
                let of = self.statements.entry((pid, one.thd, start)).or_default();
                of.begin(now.class, now.since_ns);
            }
        }
    }

    /// Dates the wait of a running statement from its begin: what a look sees may be the last of its pieces.
    pub(crate) fn date(&self, pid: u32, running: &mut RunningStatement) {
        let key = running.noted_start_us.map(|start| (pid, running.thd, start));
        let of = key.and_then(|key| self.statements.get(&key));
        let (Some(now), Some(of)) = (&mut running.waits, of) else { return };
        let has_it =
            |one: &&Wait| one.wait.class == now.class && one.lasted(now.since_ns, now.since_ns);
        let found = of.waits.iter().find(has_it).filter(|_| is_in_pieces(now.class));
        now.since_ns = found.map_or(now.since_ns, |one| one.wait.begin_ns);
    }

    /// Forgets a server.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.statements.retain(|(server, ..), _| *server != pid);
        self.lost.remove(&pid);
    }

    /// One finds no room. That it begins is no loss yet.
    fn lose(&mut self, news: &LockWaitNews) {
        if news.waited_ns.is_some() {
            *self.lost.entry(news.pid).or_default() += 1;
        }
    }
}

impl Wait {
    fn begun(class: TimeClass, begin_ns: u64) -> Wait {
        let wait = LockWait { class, begin_ns, length_ns: 0, blocked: None };
        Wait { wait, end_ns: begin_ns, is_open: true }
    }

    /// Whether it lasted from here to there.
    fn lasted(&self, from_ns: u64, to_ns: u64) -> bool {
        self.wait.begin_ns <= from_ns && (self.is_open || to_ns <= self.end_ns)
    }

    /// Whether a wait of this class that begins now is the same.
    fn goes_on(&self, class: TimeClass, at_ns: u64) -> bool {
        let gap_ns = at_ns.saturating_sub(self.end_ns);
        let is_same = self.wait.class == class && is_in_pieces(class);
        is_same && self.wait.length_ns > 0 && gap_ns < LONG_WAIT_NS
    }
}

impl Waits {
    fn begin(&mut self, class: TimeClass, at_ns: u64) {
        self.close();
        let is_full = self.waits.len() >= WAITS_MAX;
        if let Some(last) = self.waits.last_mut().filter(|last| last.goes_on(class, at_ns)) {
            last.is_open = true;
        } else if !is_full {
            // Without room it is lost when it ends and was long.
            self.waits.push(Wait::begun(class, at_ns));
        }
    }

    /// A long one has ended. `false`: there is no room for it.
    fn end(&mut self, class: TimeClass, at_ns: u64, length_ns: u64) -> bool {
        let is_open = |last: &&mut Wait| last.is_open && last.wait.class == class;
        if self.waits.last_mut().filter(is_open).is_none() {
            self.close();
            if self.waits.len() >= WAITS_MAX {
                return false;
            }
            // It may have begun before waggle came.
            self.waits.push(Wait::begun(class, at_ns.saturating_sub(length_ns)));
        }
        if let Some(last) = self.waits.last_mut() {
            last.wait.length_ns = last.wait.length_ns.saturating_add(length_ns);
            (last.end_ns, last.is_open) = (at_ns, false);
        }
        true
    }

    /// One that is still open was short, or its last piece was.
    fn close(&mut self) {
        self.waits.pop_if(|last| last.is_open && last.wait.length_ns == 0);
        self.waits.iter_mut().for_each(|wait| wait.is_open = false);
    }

    fn long(self) -> Vec<LockWait> {
        let long = self.waits.into_iter().map(|wait| wait.wait);
        long.filter(|wait| wait.length_ns > 0).collect()
    }
}

/// Keeps of the text of a running statement what is kept of one that ended.
pub(crate) fn shorten(running: &mut RunningStatement) {
    let head = running.text().map(|text| head_without_secrets(text, running.settings));
    if let Some((text, length)) = head {
        (running.text, running.text_length) = (Some(text), length);
    }
}

/// A copy with a shortened text.
fn shortened(running: &RunningStatement) -> RunningStatement {
    let mut copy = running.clone();
    shorten(&mut copy);
    copy
}

/// Servers wait for locks of these classes in pieces of a second.
fn is_in_pieces(class: TimeClass) -> bool {
    matches!(class, TimeClass::MetadataLock | TimeClass::UserLock)
}

fn key_of(statement: &Statement<'_>) -> Option<Key> {
    Some((statement.pid, statement.thd, statement.noted_start_us?))
}

#[cfg(test)]
mod tests;
