//! Passes intervals from the capture to the view: never more than a few, and without waiting.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use waggle_model::Record;
use waggle_tui::Missed;

/// Intervals that wait to be drawn. While the terminal is slow the newest take the place of the
/// oldest: the view then lacks some and says how many, and the capture goes on.
const WAITING_MAX: usize = 4;
/// Sentences that wait to be drawn.
const NEWS_MAX: usize = 64;

/// Something for the view.
pub(super) enum Item {
    /// Intervals that the view does not get.
    Missed(Missed),
    /// The records of all servers whose interval ended at the same time.
    Records(Vec<Arc<Record>>),
    /// A sentence.
    News(String),
}

/// A bounded queue from the capture to the view.
#[derive(Default)]
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    is_closed: Arc<AtomicBool>,
}

#[derive(Default)]
struct Waiting {
    /// One for each server.
    missed: Vec<Missed>,
    records: VecDeque<Vec<Arc<Record>>>,
    /// Sentences that the view does not get.
    untold: usize,
    news: VecDeque<String>,
}

impl Waiting {
    /// Counts what is left out of the view.
    fn miss(&mut self, records: &[Arc<Record>]) {
        for record in records {
            let is_it = |missed: &&mut Missed| missed.is_of(&record.server);
            match self.missed.iter_mut().find(is_it) {
                Some(missed) => missed.add(record),
                None => self.missed.push(Missed::of(record)),
            }
        }
    }
}

impl Inbox {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Held for a push or a take only, neither of which leaves it half done.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves records.
    pub(super) fn put(&self, records: Vec<Arc<Record>>) {
        let mut waiting = self.waiting();
        let dropped =
            if waiting.records.len() == WAITING_MAX { waiting.records.pop_front() } else { None };
        waiting.miss(dropped.as_deref().unwrap_or_default());
        waiting.records.push_back(records);
        // An interval may hold thousands of digests: they are freed without the lock.
        drop(waiting);
        drop(dropped);
    }

    /// Leaves a sentence.
    pub(super) fn tell(&self, news: &str) {
        let mut waiting = self.waiting();
        if waiting.news.len() == NEWS_MAX {
            waiting.news.pop_front();
            waiting.untold += 1;
        }
        waiting.news.push_back(news.to_owned());
    }

    /// Takes all that waits.
    pub(super) fn take(&self) -> Vec<Item> {
        let Waiting { missed, records, untold, news } = std::mem::take(&mut *self.waiting());
        let missed = missed.into_iter().map(Item::Missed);
        let untold = (untold > 0)
            .then(|| format!("{untold} messages were left out while the terminal took no output"));
        let news = untold.into_iter().chain(news).map(Item::News);
        missed.chain(records.into_iter().map(Item::Records)).chain(news).collect()
    }

    /// Tells the view to end.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Whether the view is to end.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// The flag that says so.
    pub(super) fn closed(&self) -> Arc<AtomicBool> {
        self.is_closed.clone()
    }
}

#[cfg(test)]
mod tests {
    use waggle_model::{BuildKey, Ending, Flavour, Interval, Loss, Losses, Reading, Server};

    use super::*;

    fn server(pid: u32) -> Server {
        Server {
            pid,
            start_ticks: 0,
            flavour: Flavour::Mysql,
            version: String::new(),
            build: BuildKey(String::new()),
            executable: "/".into(),
            max_digest_length: Reading::Value(1024),
        }
    }

    /// An interval in which one statement was lost.
    fn record(pid: u32, end_wall_ns: u64, ended: bool) -> Arc<Record> {
        let mut losses = Losses::default();
        losses.add(Loss::RingFull, 1);
        Arc::new(Record {
            server: server(pid),
            identity: 0,
            begin_wall_ns: 0,
            end_wall_ns,
            state: Reading::absent(""),
            processors: Reading::absent(""),
            storage: Reading::absent(""),
            logins: Reading::absent(""),
            unread: Reading::absent(""),
            interval: Interval { losses, ..Interval::default() },
            running: Reading::absent(""),
            starts_known: true,
            is_pooled: false,
            parts: Reading::absent(""),
            cost: Reading::absent(""),
            ended: ended.then(Ending::default),
        })
    }

    #[test]
    fn a_view_that_is_held_up_gets_the_newest_and_what_it_misses_is_counted() {
        let inbox = Inbox::default();
        for at in 0..10 {
            let of_second = (3..6).contains(&at).then(|| record(2, at, at == 5));
            inbox.put([record(1, at, false)].into_iter().chain(of_second).collect());
        }
        for at in 0..NEWS_MAX + 3 {
            inbox.tell(&at.to_string());
        }
        let mut news = Vec::new();
        let (mut records, mut missed) = (Vec::new(), Vec::new());
        for item in inbox.take() {
            match item {
                Item::Missed(one) => {
                    let lost = one.losses.statements();
                    missed.push((one.server.pid, one.intervals, lost, one.ended));
                }
                Item::Records(all) => records.push((all[0].end_wall_ns, all.len())),
                Item::News(words) => news.push(words),
            }
        }
        assert_eq!(missed, [(1, 6, 6, false), (2, 3, 3, true)]);
        assert_eq!(records, [(6, 1), (7, 1), (8, 1), (9, 1)]);
        assert_eq!(news.len(), NEWS_MAX + 1);
        assert!(news[0].starts_with("3 messages were left out"), "{news:?}");
        assert_eq!((news[1].as_str(), news[NEWS_MAX].as_str()), ("3", "66"));
        assert!(inbox.take().is_empty());
    }
}
