//! What is captured, every statement on its side of the two readings.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use waggle_account::{Digests, Grouping};
use waggle_host::monotonic_ns;
use waggle_model::{Losses, Server, Statement, StatementKey};
use waggle_mysql::Captured;
use waggle_mysql::verify::Ended;
use waggle_observe::StatementSink;
use waggle_probes::tap::Ready;

use super::moments::{Counted, Readings, edges};

/// The server counts a statement shortly after its reply. Where nobody tells when it is done, and the
/// session runs nothing else, it has counted by now.
pub(super) const COUNTED_WITHIN: Duration = Duration::from_millis(100);
const COUNTED_WITHIN_NS: u64 = COUNTED_WITHIN.as_nanos() as u64;
/// Statements that are kept, each with its digest text: the last of each session, until the server is
/// done with it. What comes beyond is in doubt. No server has more connections than this.
const OPEN_MAX: usize = 100_000;

/// What is captured. A statement is summed up as soon as the server is done with it, also while the
/// counters are read: what is kept grows with the sessions, not with the statements.
pub(super) struct Book {
    pid: u32,
    /// Address of our own session in the server.
    own_session: u64,
    digests: Digests,
    captured: Captured,
    /// The last statement of each session that the server is not known to be done with.
    open: HashMap<u64, Open>,
    /// Whether it is known when a session is ready for its next request. A thread of a pool reads a
    /// request when it arrives, not when the previous one is done.
    tells_ready: bool,
    readings: Arc<Readings>,
}

/// A statement whose reply was sent.
struct Open {
    key: StatementKey,
    ended: Ended,
    start_ns: Option<u64>,
    end_ns: u64,
}

impl Book {
    pub(super) fn new(
        server: &Server,
        own_session: u64,
        no_digests: Option<String>,
        tells_ready: bool,
    ) -> Book {
        Book {
            pid: server.pid,
            own_session,
            digests: Digests::of(server, Grouping::Digest),
            captured: Captured { no_digests, ..Captured::default() },
            open: HashMap::new(),
            tells_ready,
            readings: Arc::default(),
        }
    }

    /// For the thread that reads the counters.
    pub(super) fn readings(&self) -> Arc<Readings> {
        self.readings.clone()
    }

    /// Everything. What the server is still not known to be done with is in doubt, where it ended
    /// before the last answer.
    pub(super) fn close(mut self, lost: Losses) -> Captured {
        for open in std::mem::take(&mut self.open).into_values() {
            self.sum_up(&open, None);
        }
        Captured { lost, ..self.captured }
    }

    /// Counts a statement on its side of the readings. `done_ns`: when the server was done with it.
    fn sum_up(&mut self, open: &Open, done_ns: Option<u64>) {
        let counted = Counted { after_ns: open.end_ns, before_ns: done_ns };
        self.captured.add(&open.ended, edges(&self.readings, counted));
    }

    /// What ended long before `now_ns` was counted.
    fn sum_up_old(&mut self, now_ns: u64) {
        let done_ns = |open: &Open| open.end_ns.saturating_add(COUNTED_WITHIN_NS);
        let old = self.open.extract_if(|_, open| done_ns(open) <= now_ns);
        for open in old.map(|(_, open)| open).collect::<Vec<_>>() {
            self.sum_up(&open, Some(done_ns(&open)));
        }
    }
}

impl StatementSink for Book {
    fn ended(&mut self, statement: &Statement<'_>) {
        if statement.pid != self.pid || statement.thd == self.own_session {
            return;
        }
        let text = statement.text.map_or("", |text| self.digests.text_of(text, statement.settings));
        let open = Open {
            key: statement.key(),
            ended: Ended::of(statement, text),
            start_ns: statement.start_ns(),
            end_ns: statement.end_ns,
        };
        // A session runs one statement after the other, but for those inside others.
        if let Some(before) = self.open.remove(&statement.thd) {
            self.sum_up(&before, Some(statement.end_ns));
        }
        if open.ended.is_nested() {
            self.sum_up(&open, Some(statement.end_ns));
        } else if self.open.len() < OPEN_MAX {
            self.open.insert(statement.thd, open);
        } else {
            self.sum_up(&open, None);
        }
    }

    /// The server is done with a statement: the time that Performance Schema calls its duration.
    fn ready(&mut self, ready: Ready) {
        if !self.tells_ready {
            return;
        }
        let Entry::Occupied(entry) = self.open.entry(ready.statement.thd) else { return };
        if entry.get().end_ns > ready.at_ns {
            return;
        }
        let mut open = entry.remove();
        if let (Some(start_ns), true) = (open.start_ns, open.key == ready.statement) {
            open.ended.duration_ns = Some(ready.at_ns.saturating_sub(start_ns));
        }
        self.sum_up(&open, Some(ready.at_ns));
    }

    fn turn(&mut self) {
        if !self.tells_ready {
            self.sum_up_old(monotonic_ns());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use waggle_model::{BuildKey, Command, Flavour, Identity, Origin, Reading};
    use waggle_mysql::verify::Calls;

    use super::*;
    use crate::verification::moments::Moments;

    const SESSION: u64 = 7;

    /// A first reading from 100 to 300, and a second one from 1,100 to 1,300.
    fn book(tells_ready: bool) -> Book {
        let readings = [Moments::at([100, 200, 300]), Moments::at([1100, 1200, 1300])];
        let server = Server {
            pid: 0,
            start_ticks: 0,
            flavour: Flavour::Mysql,
            version: "9.7.4".to_owned(),
            build: BuildKey(String::new()),
            executable: PathBuf::new(),
            max_digest_length: Reading::Value(1024),
        };
        Book { readings: Arc::new(readings), ..Book::new(&server, 1, None, tells_ready) }
    }

    fn end(book: &mut Book, thd: u64, end_ns: u64) -> StatementKey {
        let identity = Identity::default();
        let statement = Statement {
            thd,
            command: Some(Command::QUERY),
            connection_id: Some(thd),
            noted_start_us: Some(end_ns),
            latency_ns: Some(10),
            ..Statement::unread(end_ns, &identity)
        };
        book.ended(&statement);
        statement.key()
    }

    /// What is summed up of all digests.
    fn calls(captured: &Captured) -> (u64, u64) {
        let all = captured.digests.values().map(|digest| digest.calls);
        all.fold((0, 0), |(certain, at_edges), one: Calls| {
            (certain + one.certain, at_edges + one.at_edges)
        })
    }

    #[test]
    fn a_session_that_waits_late_for_its_next_request_puts_its_statement_in_doubt() {
        for (at_ns, expected) in [(420, (1, 0)), (1210, (0, 1)), (9000, (0, 1))] {
            let mut book = book(true);
            let statement = end(&mut book, SESSION, 400);
            assert_eq!(calls(&book.captured), (0, 0), "it is not done");
            book.ready(Ready { pid: 0, statement, at_ns });
            assert_eq!(calls(&book.captured), expected, "{at_ns}");
            let digest = book.captured.digests.values().next().unwrap();
            assert_eq!(digest.duration_ns.sum(), at_ns - 390);
        }
        let mut silent = book(true);
        end(&mut silent, SESSION, 400);
        silent.turn();
        assert_eq!(
            calls(&silent.close(Losses::default())),
            (0, 1),
            "nobody knows when it was done"
        );
    }

    #[test]
    fn the_next_statement_of_a_session_says_that_the_one_before_it_is_done() {
        for tells_ready in [true, false] {
            let mut book = book(tells_ready);
            let first = end(&mut book, SESSION, 400);
            let second = end(&mut book, SESSION, 500);
            assert_eq!(calls(&book.captured), (1, 0));
            // Told late, of a statement that is done with.
            book.ready(Ready { pid: 0, statement: first, at_ns: 450 });
            assert_eq!(calls(&book.captured), (1, 0));
            book.ready(Ready { pid: 0, statement: second, at_ns: 550 });
            assert_eq!(calls(&book.captured), (1 + u64::from(tells_ready), 0));
        }
    }

    #[test]
    fn without_the_next_request_a_statement_is_done_after_a_while() {
        let mut book = book(false);
        end(&mut book, SESSION, 400);
        book.sum_up_old(400 + COUNTED_WITHIN_NS - 1);
        assert_eq!(calls(&book.captured), (0, 0));
        book.sum_up_old(400 + COUNTED_WITHIN_NS);
        assert_eq!(calls(&book.captured), (0, 1), "it may have been counted after the readings");
    }

    #[test]
    fn what_is_kept_has_a_limit_and_what_comes_beyond_is_counted_in_doubt() {
        let mut book = book(true);
        let (sessions, calls_of_each) = (OPEN_MAX as u64 + 3, 2);
        for at in 0..calls_of_each {
            (0..sessions).for_each(|of| _ = end(&mut book, SESSION + of, 400 + at));
        }
        assert_eq!(book.open.len(), OPEN_MAX);
        assert_eq!(calls(&book.captured), (OPEN_MAX as u64, 6));
        let all = sessions * calls_of_each;
        assert_eq!(book.close(Losses::default()).statements(), all);
    }

    #[test]
    fn statements_inside_others_are_counted_and_not_kept() {
        let mut book = book(true);
        let identity = Identity::default();
        let nested =
            Statement { thd: SESSION, origin: Origin::Nested, ..Statement::unread(400, &identity) };
        book.ended(&nested);
        assert_eq!((book.open.len(), book.captured.nested), (0, 1));
    }
}
