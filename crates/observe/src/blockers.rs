//! Who holds the locks that running statements wait for. A thread of its own reads it in the memory of the server: where
//! there is much to read that takes a while, and the rings cannot wait.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use waggle_host::{monotonic_ns, thread_cpu_ns};
use waggle_model::{
    Blocked, DigestKey, DigestName, Flavour, LONG_WAIT_NS, LockWait, LockWaitNews, Losses,
    RunningStatement, SeenLocks, Statement, WaitsFor,
};
use waggle_mysql::locks::{Wait, waits_in_memory};
use waggle_probes::servers::reader_cost;

use crate::capture::{Capture, LockQuestion, Running};
use crate::holders::Holders;
use crate::lock_waits::{LockWaitBook, Unanswered};
use crate::remembered::Remembered;

/// How long the end of an interval waits for answers. One that comes later is used at the next.
const PATIENCE: Duration = Duration::from_millis(20);
/// How often it is asked beside the ends of intervals.
const ASK_EVERY_NS: u64 = 250_000_000;
/// The pause after a look at a server is 20 times the processor time of the look, and a minute at most: looks at one
/// server take a twentieth of a processor.
const REST_TIMES: u32 = 20;
const REST_MAX: Duration = Duration::from_secs(60);
/// Questions and answers that wait: one of each server at most.
const SERVERS_MAX: usize = 256;

/// What was read of one server.
struct Answer {
    pid: u32,
    /// Before it was read and after, nanoseconds of `CLOCK_MONOTONIC`.
    looked_ns: u64,
    seen_ns: u64,
    /// Processor time that it took.
    cost: Duration,
    locks: Result<SeenLocks, String>,
}

/// Who blocks whom in one server.
struct Known {
    looked_ns: u64,
    seen_ns: u64,
    /// By the address of the session that waits; or why nothing is known.
    blocked: Result<BTreeMap<u64, Blocked>, String>,
    holders: Holders,
}

/// Asks, remembers the last answer of each server, and the waits that go on.
#[derive(Default)]
pub(crate) struct Blockers {
    /// Whether anybody is told who blocks whom. Else nothing is asked.
    pub(crate) are_wanted: bool,
    worker: Option<Worker>,
    asked: BTreeSet<u32>,
    known: BTreeMap<u32, Known>,
    waits: LockWaitBook,
    book: Remembered,
    /// What had ended by then was heard of, nanoseconds of `CLOCK_MONOTONIC`.
    heard_ns: u64,
    /// When it was last asked beside the end of an interval, nanoseconds of `CLOCK_MONOTONIC`.
    asked_ns: u64,
    /// Until then nobody looks at a server.
    rests_until: BTreeMap<u32, Instant>,
}

struct Worker {
    questions: SyncSender<LockQuestion>,
    answers: Receiver<Answer>,
}

impl Worker {
    fn start() -> Option<Worker> {
        let (questions, asked) = sync_channel::<LockQuestion>(SERVERS_MAX);
        let (answer, answers) = sync_channel(SERVERS_MAX);
        let work = move || {
            let mut readers = BTreeMap::new();
            for question in asked {
                let (pid, looked_ns, before) = (question.pid(), monotonic_ns(), spent());
                let locks = question.answer(&mut readers);
                let cost = spent().saturating_sub(before);
                let seen_ns = monotonic_ns();
                if answer.send(Answer { pid, looked_ns, seen_ns, cost, locks }).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("waggle-blockers".to_owned()).spawn(work).ok()?;
        Some(Worker { questions, answers })
    }
}

/// Processor time of this thread so far, and of the child that reads for all of waggle: what others let it read
/// meanwhile makes a look look dearer than it is.
fn spent() -> Duration {
    Duration::from_nanos(thread_cpu_ns()) + reader_cost().0
}

impl Blockers {
    /// A wait for a lock began or has ended.
    pub(crate) fn hear(&mut self, news: &LockWaitNews) {
        self.waits.hear(news);
        if news.waited_ns.is_some()
            && let Some(known) = self.known.get(&news.pid)
            && let Some(blocked) = known.blocked.as_ref().ok().and_then(|by| by.get(&news.thd))
        {
            self.waits.explain_ended(news, (known.looked_ns, known.seen_ns), blocked);
        }
    }

    /// A statement has ended. Returns its long waits.
    pub(crate) fn take(&mut self, statement: &Statement<'_>) -> Vec<LockWait> {
        let waits = match self.waits.has(statement) {
            true => {
                self.recall(statement.pid);
                self.waits.take(statement)
            }
            false => Vec::new(),
        };
        self.book.hear(statement);
        waits
    }

    /// What had ended by then, nanoseconds of `CLOCK_MONOTONIC`, was heard of.
    pub(crate) fn heard(&mut self, ns: u64) {
        self.heard_ns = ns;
    }

    /// What sessions ran.
    pub(crate) fn remembered(&self) -> &Remembered {
        &self.book
    }

    /// What was lost of a server since the last call.
    pub(crate) fn note_losses(&mut self, pid: u32, losses: &Losses) {
        self.book.lost(pid, losses);
    }

    /// Long waits of a server that found no room, since it is watched.
    pub(crate) fn lost_waits(&self, pid: u32) -> u64 {
        self.waits.lost(pid)
    }

    /// Forgets the waits of a server that are not of what runs. Returns those of statements that ended without a reply.
    pub(crate) fn keep(
        &mut self,
        pid: u32,
        running: &[RunningStatement],
        looked_ns: u64,
        digest: &mut dyn FnMut(&RunningStatement) -> Option<(DigestKey, DigestName)>,
    ) -> Vec<Unanswered> {
        self.recall(pid);
        self.waits.keep(pid, running, looked_ns, digest)
    }

    /// Forgets a server.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.waits.forget(pid);
        self.book.forget_server(pid);
        self.known.remove(&pid);
        self.rests_until.remove(&pid);
    }

    /// Takes the answers that have come, and asks about waits that have become long. It waits for nothing.
    pub(crate) fn turn(&mut self, capture: &mut Capture) {
        if !self.are_wanted {
            return;
        }
        self.take_answers(Duration::ZERO, capture);
        let pids: Vec<u32> = self.known.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.recall(pid));
        let now_ns = monotonic_ns();
        if now_ns.saturating_sub(self.asked_ns) < ASK_EVERY_NS {
            return;
        }
        let mut pids = self.waits.unexplained(now_ns.saturating_sub(LONG_WAIT_NS));
        pids.retain(|pid| self.may_ask(*pid));
        for pid in &pids {
            capture.refresh(*pid);
            self.ask(*pid, capture);
        }
        if !pids.is_empty() {
            self.asked_ns = now_ns;
        }
    }

    /// Notes of every statement that waits for a lock since when, and who holds it, as far as that is known by now.
    pub(crate) fn note(&mut self, capture: &Capture, samples: &mut BTreeMap<u32, Running>) {
        if !self.are_wanted {
            return;
        }
        self.take_answers(Duration::ZERO, capture);
        for (pid, running) in samples.iter_mut() {
            running.iter_mut().flatten().for_each(|one| self.waits.date(*pid, one));
        }
        let waiting = |running: &Running| running.iter().flatten().any(waits);
        let pids: Vec<u32> =
            samples.iter().filter(|(_, running)| waiting(running)).map(|(pid, _)| *pid).collect();
        if pids.is_empty() {
            return;
        }
        for pid in &pids {
            self.ask(*pid, capture);
        }
        self.take_answers(PATIENCE, capture);
        for pid in pids {
            self.recall(pid);
            let (Some(known), Some(Ok(running))) = (self.known.get(&pid), samples.get_mut(&pid))
            else {
                continue;
            };
            for statement in running.iter_mut().filter(|statement| waits(statement)) {
                statement.blocked = known.of(statement);
            }
        }
    }

    fn ask(&mut self, pid: u32, capture: &Capture) {
        if !self.may_ask(pid) {
            return;
        }
        let Some(question) = capture.lock_question(pid) else { return };
        if self.worker.is_none() {
            self.worker = Worker::start();
        }
        let worker = self.worker.as_ref();
        if worker.is_some_and(|worker| worker.questions.try_send(question).is_ok()) {
            self.asked.insert(pid);
        }
    }

    /// Whether it is time for a look at a server. An answer that has not come yet will be as good.
    fn may_ask(&self, pid: u32) -> bool {
        let rests = self.rests_until.get(&pid).is_some_and(|until| Instant::now() < *until);
        !rests && !self.asked.contains(&pid)
    }

    fn take_answers(&mut self, patience: Duration, capture: &Capture) {
        let until = Instant::now() + patience;
        while let Some(worker) = self.worker.as_ref().filter(|_| !self.asked.is_empty()) {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(answer) = worker.answers.recv_timeout(left) else { return };
            self.asked.remove(&answer.pid);
            self.take_answer(answer, capture);
        }
    }

    fn take_answer(&mut self, answer: Answer, capture: &Capture) {
        let Answer { pid, looked_ns, seen_ns, cost, locks } = answer;
        let Some(watched) = capture.watched().get(&pid) else { return };
        let rest = (cost * REST_TIMES).min(REST_MAX);
        self.rests_until.insert(pid, Instant::now() + rest);
        let flavour = watched.server.flavour;
        let (blocked, holders) = match locks {
            Ok(seen) => {
                let blocked = blocked(&seen, flavour);
                let start_ns = |noted_us| capture.start_ns(pid, noted_us);
                let mut holders = Holders::of(seen, seen_ns, blocked.values(), start_ns);
                if let Some(earlier) = self.known.get(&pid) {
                    holders.follow(&earlier.holders);
                }
                (Ok(blocked), holders)
            }
            Err(why) => (Err(why), Holders::default()),
        };
        let mut known = Known { looked_ns, seen_ns, blocked, holders };
        known.holders.recall(pid, &self.book, self.heard_ns);
        self.tell(pid, known);
    }

    /// Adds to what is known of holders what has been heard of their statements since.
    fn recall(&mut self, pid: u32) {
        let Some(known) = self.known.get_mut(&pid) else { return };
        if known.holders.recall(pid, &self.book, self.heard_ns)
            && let Some(known) = self.known.remove(&pid)
        {
            self.tell(pid, known);
        }
    }

    /// Tells the waits that go on what is known.
    fn tell(&mut self, pid: u32, mut known: Known) {
        if let Ok(blocked) = &mut known.blocked {
            blocked.values_mut().for_each(|one| known.holders.tell(one));
            self.waits.explain(pid, (known.looked_ns, known.seen_ns), blocked);
        }
        self.known.insert(pid, known);
    }
}

impl Known {
    /// `None` where the look was before this wait.
    fn of(&self, statement: &RunningStatement) -> Option<Blocked> {
        let since_ns = statement.waits.map(|wait| wait.since_ns).or(statement.start_ns);
        if since_ns.is_some_and(|since| since > self.looked_ns) {
            return None;
        }
        let not_known = |why: &str| Blocked { unknown: Some(why.to_owned()), ..Blocked::default() };
        match &self.blocked {
            Ok(blocked) => blocked.get(&statement.thd).cloned().or_else(|| {
                let is_lock = statement.waits.is_some_and(|wait| wait.class.is_lock());
                is_lock.then(|| not_known("waggle found no such wait in the memory of the server"))
            }),
            Err(why) => Some(not_known(why)),
        }
    }
}

/// Who blocks each session that waits, by its address.
fn blocked(seen: &SeenLocks, flavour: Flavour) -> BTreeMap<u64, Blocked> {
    let sessions: HashMap<u64, u64> =
        seen.sessions.iter().map(|session| (session.connection_id, session.thd)).collect();
    let of = |wait: Wait| {
        let blocked = Blocked {
            by: wait.blockers.iter().filter_map(|key| key.connection_id()).collect(),
            blockers: Vec::new(),
            object: wait.lock.object,
            unknown: wait.unknown.map(|unknown| unknown.why),
        };
        let waiter = wait.waiter.connection_id()?;
        Some((*sessions.get(&waiter)?, blocked))
    };
    // Of two waits of one session that for a row is told first, and counts.
    waits_in_memory(seen, flavour).into_iter().rev().filter_map(of).collect()
}

/// Whether somebody may hold what a statement waits for.
fn waits(running: &RunningStatement) -> bool {
    let state = || String::from_utf8_lossy(running.state.as_deref().unwrap_or_default());
    match running.waits {
        Some(wait) => {
            wait.class.is_lock() && monotonic_ns().saturating_sub(wait.since_ns) >= LONG_WAIT_NS
        }
        // Without waits, what slept all the time since the look before may wait for a row.
        None => {
            running.has_slept == Some(true)
                || matches!(WaitsFor::of(&state()), Some(WaitsFor::MetadataLock))
        }
    }
}

#[cfg(test)]
mod tests {
    use waggle_model::{NowWait, TimeClass};

    use super::*;

    fn statement(class: TimeClass, since_ns: u64) -> RunningStatement {
        let waits = Some(NowWait { class, since_ns });
        RunningStatement { thd: 7, waits, ..RunningStatement::default() }
    }

    /// By a look at 100.
    fn known(blocked: Result<BTreeMap<u64, Blocked>, String>) -> Known {
        Known { looked_ns: 100, seen_ns: 100, blocked, holders: Holders::default() }
    }

    #[test]
    fn an_answer_from_before_the_wait_says_nothing_of_it() {
        let holder = Blocked { by: vec![3], ..Blocked::default() };
        let blocked = Ok(BTreeMap::from([(7, holder.clone())]));
        let known = known(blocked);
        assert_eq!(known.of(&statement(TimeClass::RowLock, 99)), Some(holder));
        assert_eq!(known.of(&statement(TimeClass::RowLock, 101)), None);
    }

    #[test]
    fn a_lock_whose_wait_was_not_found_is_unknown_and_other_waits_have_no_holder() {
        let unknown = known(Ok(BTreeMap::new())).of(&statement(TimeClass::RowLock, 9)).unwrap();
        assert!(unknown.by.is_empty() && unknown.unknown.is_some());
        assert_eq!(known(Ok(BTreeMap::new())).of(&RunningStatement::default()), None);
        let refused = known(Err("no right".to_owned()));
        assert_eq!(
            refused.of(&statement(TimeClass::UserLock, 9)).unwrap().unknown.unwrap(),
            "no right"
        );
    }

    #[test]
    fn after_a_look_at_one_server_the_others_are_looked_at() {
        let mut blockers = Blockers::default();
        blockers.rests_until.insert(1, Instant::now() + REST_MAX);
        assert!(!blockers.may_ask(1) && blockers.may_ask(2));
        blockers.forget(1);
        assert!(blockers.may_ask(1));
    }

    #[test]
    fn only_a_long_wait_for_a_lock_is_asked_about() {
        let now = monotonic_ns();
        assert!(waits(&statement(TimeClass::MetadataLock, now - 2 * LONG_WAIT_NS)));
        assert!(!waits(&statement(TimeClass::MetadataLock, now)));
        assert!(!waits(&statement(TimeClass::Cpu, 0)));
        let slept = |has_slept| RunningStatement { has_slept, ..RunningStatement::default() };
        assert!(waits(&slept(Some(true))) && !waits(&slept(Some(false))) && !waits(&slept(None)));
        let state = Some(b"Waiting for table metadata lock".to_vec());
        assert!(waits(&RunningStatement { state, ..slept(None) }));
    }
}
