//! What the capture leaves for the view: never more than a little, and nobody waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::watch::Finished;

/// Intervals that wait to be drawn. While the terminal is slow the newest take the place of the
/// oldest: the view then shows a gap, and the capture goes on.
const WAITING_MAX: usize = 4;
/// Sentences that wait to be drawn.
const NEWS_MAX: usize = 4;

/// Something for the view.
pub(super) enum Item {
    /// The intervals of all servers that ended at a time.
    Intervals(Vec<Finished>, Timestamp),
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
    intervals: VecDeque<(Vec<Finished>, Timestamp)>,
    news: VecDeque<String>,
}

impl Inbox {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Held for a push or a take only, neither of which leaves it half done.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves intervals that have ended.
    pub(super) fn put(&self, finished: Vec<Finished>, time: Timestamp) {
        let mut waiting = self.waiting();
        let dropped = if waiting.intervals.len() == WAITING_MAX {
            waiting.intervals.pop_front()
        } else {
            None
        };
        waiting.intervals.push_back((finished, time));
        // An interval may hold thousands of digests: they are freed without the lock.
        drop(waiting);
        drop(dropped);
    }

    /// Leaves a sentence.
    pub(super) fn tell(&self, news: &str) {
        let mut waiting = self.waiting();
        if waiting.news.len() == NEWS_MAX {
            waiting.news.pop_front();
        }
        waiting.news.push_back(news.to_owned());
    }

    /// Takes all that waits.
    pub(super) fn take(&self) -> Vec<Item> {
        let mut waiting = self.waiting();
        let intervals = std::mem::take(&mut waiting.intervals);
        let news = std::mem::take(&mut waiting.news);
        let intervals =
            intervals.into_iter().map(|(finished, time)| Item::Intervals(finished, time));
        intervals.chain(news.into_iter().map(Item::News)).collect()
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
    use super::*;

    #[test]
    fn a_view_that_is_held_up_gets_the_newest() {
        let inbox = Inbox::default();
        for at in 0..10 {
            inbox.put(Vec::new(), Timestamp::from_second(at).unwrap());
            inbox.tell(&at.to_string());
        }
        let got = inbox.take().into_iter().map(|item| match item {
            Item::Intervals(_, time) => time.as_second().to_string(),
            Item::News(news) => news,
        });
        assert_eq!(got.collect::<String>(), "67896789");
        assert!(inbox.take().is_empty());
    }
}
