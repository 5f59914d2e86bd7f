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
mod tests {
    use waggle_model::{Identity, NowWait, SAMPLE_TEXT_MAX};

    use super::*;

    fn news(class: TimeClass, at_ns: u64, waited_ns: Option<u64>) -> LockWaitNews {
        LockWaitNews { pid: 1, thd: 7, noted_start_us: 5, class, at_ns, waited_ns }
    }

    fn take(book: &mut LockWaitBook) -> Vec<LockWait> {
        let identity = Identity::default();
        let statement = Statement::unread(0, &identity);
        book.take(&Statement { pid: 1, thd: 7, noted_start_us: Some(5), ..statement })
    }

    fn keep(
        book: &mut LockWaitBook,
        running: &[RunningStatement],
        looked_ns: u64,
    ) -> Vec<Unanswered> {
        book.keep(1, running, looked_ns, &mut |_| None)
    }

    /// What is kept of a statement that waits and ends without a reply; the digest is the length of its text.
    fn kept_of(text: Vec<u8>) -> Seen {
        let running = [RunningStatement {
            thd: 7,
            noted_start_us: Some(5),
            text_length: text.len() as u64,
            text: Some(text),
            ..Default::default()
        }];
        let mut digest = |running: &RunningStatement| {
            let name = DigestName { text: "SELECT".into(), schema: None, cut: false };
            Some((DigestKey { text: running.text_length, schema: 0 }, name))
        };
        let mut book = LockWaitBook::default();
        book.hear(&news(TimeClass::MetadataLock, 100, None));
        assert!(book.keep(1, &running, 200, &mut digest).is_empty());
        book.hear(&news(TimeClass::MetadataLock, 100 + LONG_WAIT_NS, Some(LONG_WAIT_NS)));
        *keep(&mut book, &[], 200).pop().unwrap().seen.unwrap()
    }

    #[test]
    fn of_a_long_text_the_head_is_kept_without_its_password_and_the_digest_of_the_whole() {
        let mut long = b"SELECT '".to_vec();
        long.resize(1 << 20, b'x');
        let seen = kept_of(long);
        let kept = seen.statement.text.unwrap();
        assert_eq!(kept.len(), SAMPLE_TEXT_MAX);
        assert!(kept.capacity() < 2 * SAMPLE_TEXT_MAX, "{}", kept.capacity());
        assert_eq!(seen.digest.unwrap().0.text, 1 << 20);
        let secret = kept_of(b"ALTER USER a IDENTIFIED BY 'tell nobody'".to_vec());
        let kept = String::from_utf8(secret.statement.text.unwrap()).unwrap();
        assert!(kept.starts_with("ALTER USER a IDENTIFIED BY ") && !kept.contains("nobody"));
    }

    #[test]
    fn each_long_wait_is_kept_and_the_short_ones_are_not() {
        let mut book = LockWaitBook::default();
        book.hear(&news(TimeClass::RowLock, 100, None));
        book.hear(&news(TimeClass::RowLock, 200, None));
        book.hear(&news(TimeClass::RowLock, 250 + LONG_WAIT_NS, Some(LONG_WAIT_NS)));
        book.hear(&news(TimeClass::MetadataLock, 900 + LONG_WAIT_NS, None));
        let waits = take(&mut book);
        assert_eq!(waits.len(), 1);
        assert_eq!((waits[0].begin_ns, waits[0].length_ns), (200, LONG_WAIT_NS));
        assert!(take(&mut book).is_empty());
    }

    #[test]
    fn a_wait_from_before_waggle_came_begins_where_its_length_says_and_has_its_holder() {
        let mut book = LockWaitBook::default();
        let ended = news(TimeClass::RowLock, 5 * LONG_WAIT_NS, Some(2 * LONG_WAIT_NS));
        book.hear(&ended);
        let held = |by| Blocked { by: vec![by], ..Blocked::default() };
        book.explain_ended(&ended, (2 * LONG_WAIT_NS, 4 * LONG_WAIT_NS), &held(3));
        book.explain_ended(&ended, (3 * LONG_WAIT_NS, 4 * LONG_WAIT_NS), &held(4));
        let waits = take(&mut book);
        assert_eq!((waits[0].begin_ns, &waits[0].blocked), (3 * LONG_WAIT_NS, &Some(held(4))));
    }

    #[test]
    fn a_wait_in_pieces_is_one_and_those_for_rows_are_each_their_own() {
        for (class, lengths) in [
            (TimeClass::MetadataLock, vec![3 * LONG_WAIT_NS]),
            (TimeClass::RowLock, vec![LONG_WAIT_NS, 2 * LONG_WAIT_NS]),
        ] {
            let mut book = LockWaitBook::default();
            book.hear(&news(class, 100, None));
            book.hear(&news(class, 100 + LONG_WAIT_NS, Some(LONG_WAIT_NS)));
            book.hear(&news(class, 900 + LONG_WAIT_NS, None));
            book.hear(&news(class, 900 + 3 * LONG_WAIT_NS, Some(2 * LONG_WAIT_NS)));
            book.hear(&news(class, 950 + 3 * LONG_WAIT_NS, None));
            let told: Vec<u64> = take(&mut book).iter().map(|wait| wait.length_ns).collect();
            assert_eq!(told, lengths, "{class:?}");
        }
    }

    #[test]
    fn a_wait_that_goes_on_is_dated_from_its_first_piece_and_one_for_a_row_from_its_own_begin() {
        let dated = |book: &LockWaitBook, class, since_ns| {
            let waits = Some(NowWait { class, since_ns });
            let mut running =
                RunningStatement { thd: 7, noted_start_us: Some(5), waits, ..Default::default() };
            book.date(1, &mut running);
            running.waits.unwrap().since_ns
        };
        let later = 900 + LONG_WAIT_NS;
        for (class, since_ns) in [(TimeClass::MetadataLock, 100), (TimeClass::RowLock, later)] {
            let mut book = LockWaitBook::default();
            book.hear(&news(class, 100, None));
            book.hear(&news(class, 100 + LONG_WAIT_NS, Some(LONG_WAIT_NS)));
            assert_eq!(dated(&book, class, later), later, "{class:?}: the first piece is over");
            book.hear(&news(class, later, None));
            assert_eq!(dated(&book, class, later), since_ns, "{class:?}");
            assert_eq!(dated(&book, TimeClass::Cpu, later), later);
            // The look was before the end of the piece that it saw, which is heard of first.
            book.hear(&news(class, later + LONG_WAIT_NS, Some(LONG_WAIT_NS)));
            assert_eq!(dated(&book, class, later), since_ns, "{class:?}");
        }
    }

    #[test]
    fn who_waits_already_when_waggle_comes_is_met_by_the_first_look() {
        let mut book = LockWaitBook::default();
        let waits = Some(NowWait { class: TimeClass::RowLock, since_ns: 100 });
        let running = RunningStatement {
            thd: 7,
            connection_id: 12,
            noted_start_us: Some(5),
            waits,
            ..Default::default()
        };
        assert!(keep(&mut book, &[running], 300).is_empty());
        assert_eq!(book.unexplained(100), BTreeSet::from([1]));
        book.hear(&news(TimeClass::RowLock, 100 + LONG_WAIT_NS, Some(LONG_WAIT_NS)));
        let killed = keep(&mut book, &[], 400).pop().unwrap();
        assert_eq!(
            (killed.seen.unwrap().statement.connection_id, killed.waits[0].begin_ns),
            (12, 100)
        );
    }

    #[test]
    fn who_holds_a_lock_is_asked_once_the_wait_is_long_and_until_it_is_known() {
        let mut book = LockWaitBook::default();
        book.hear(&news(TimeClass::RowLock, 100, None));
        assert!(book.unexplained(99).is_empty());
        assert_eq!(book.unexplained(100), BTreeSet::from([1]));
        let holder = Blocked { by: vec![3], ..Blocked::default() };
        book.explain(1, (99, 99), &BTreeMap::from([(7, holder.clone())]));
        assert_eq!(book.unexplained(100), BTreeSet::from([1]), "the look was before");
        book.explain(1, (101, 105), &BTreeMap::from([(7, holder.clone())]));
        assert!(book.unexplained(100).is_empty());
        book.hear(&news(TimeClass::RowLock, 100 + LONG_WAIT_NS, Some(LONG_WAIT_NS)));
        assert_eq!(take(&mut book)[0].blocked, Some(holder));
    }

    #[test]
    fn a_look_that_was_answered_late_tells_of_the_waits_that_lasted_as_long() {
        let mut book = LockWaitBook::default();
        let end_ns = 100 + LONG_WAIT_NS;
        book.hear(&news(TimeClass::RowLock, 100, None));
        book.hear(&news(TimeClass::RowLock, end_ns, Some(LONG_WAIT_NS)));
        let held = |by| BTreeMap::from([(7, Blocked { by: vec![by], ..Blocked::default() })]);
        book.explain(1, (200, end_ns), &held(3));
        book.explain(1, (200, end_ns + 1), &held(4));
        assert_eq!(take(&mut book)[0].blocked.as_ref().unwrap().by, [3]);
    }

    #[test]
    fn an_unknown_holder_is_asked_for_again_while_the_wait_lasts() {
        let mut book = LockWaitBook::default();
        book.hear(&news(TimeClass::RowLock, 100, None));
        let unknown = Blocked { unknown: Some("changing".to_owned()), ..Blocked::default() };
        book.explain(1, (101, 105), &BTreeMap::from([(7, unknown)]));
        assert_eq!(book.unexplained(100), BTreeSet::from([1]));
        let holder = Blocked { by: vec![3], ..Blocked::default() };
        book.explain(1, (106, 107), &BTreeMap::from([(7, holder)]));
        assert!(book.unexplained(100).is_empty());
    }

    #[test]
    fn what_ended_without_a_reply_is_told_with_what_a_look_saw_of_it() {
        let mut book = LockWaitBook::default();
        book.hear(&news(TimeClass::RowLock, 100, None));
        let running = RunningStatement {
            thd: 7,
            connection_id: 12,
            noted_start_us: Some(5),
            ..Default::default()
        };
        assert!(keep(&mut book, &[running], 200).is_empty());
        book.hear(&news(TimeClass::RowLock, 100 + LONG_WAIT_NS, Some(LONG_WAIT_NS)));
        assert!(keep(&mut book, &[], 100).is_empty(), "the look was before");
        let killed = keep(&mut book, &[], 200).pop().unwrap();
        assert_eq!(killed.seen.unwrap().statement.connection_id, 12);
        assert_eq!(killed.waits[0].length_ns, LONG_WAIT_NS);
        assert!(book.statements.is_empty());
    }

    #[test]
    fn of_what_was_never_long_nothing_is_told() {
        let mut book = LockWaitBook::default();
        book.hear(&news(TimeClass::RowLock, 100, None));
        assert!(keep(&mut book, &[], 200).is_empty() && book.statements.is_empty());
    }

    #[test]
    fn what_finds_no_room_is_counted_once_when_it_ends() {
        let mut book = LockWaitBook::default();
        let of = |thd, waited_ns| LockWaitNews { thd, ..news(TimeClass::RowLock, 5, waited_ns) };
        (0..STATEMENTS_MAX as u64).for_each(|thd| book.hear(&of(thd, None)));
        let late = STATEMENTS_MAX as u64;
        book.hear(&of(late, None));
        assert_eq!(book.lost(1), 0);
        book.hear(&of(late, Some(LONG_WAIT_NS)));
        assert_eq!((book.lost(1), book.lost(2)), (1, 0));
        (0..WAITS_MAX + 2).for_each(|_| book.hear(&of(7, Some(LONG_WAIT_NS))));
        assert_eq!((book.lost(1), take(&mut book).len()), (3, WAITS_MAX));
        book.forget(1);
        assert_eq!(book.lost(1), 0);
    }

    #[test]
    fn the_probe_tells_of_waits_from_the_same_length_on() {
        let probe = include_str!("../../probes/src/carrier/parts.bpf.h");
        assert!(probe.contains("#define LONG_WAIT_NS (10 * 1000 * 1000)"));
        assert_eq!(LONG_WAIT_NS, 10 * 1000 * 1000);
    }
}
