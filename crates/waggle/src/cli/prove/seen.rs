//! What is seen of the server beside the trial.

use std::cell::{Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use waggle_model::{Loss, Losses, Record};
use waggle_observe::{News, RecordSink};

/// A sink; its clones are the same.
#[derive(Clone, Default)]
pub(super) struct Seen(Rc<RefCell<Sums>>);

/// Over all intervals.
#[derive(Clone, Default)]
pub(super) struct Sums {
    /// Statements.
    pub(super) captured: u64,
    /// What was lost, but for what ended unseen.
    pub(super) losses: Losses,
    /// Statements that a look saw running and whose end was not seen: they were left out, or killed.
    pub(super) ended_unseen: u64,
    /// Processor time of waggle itself in the intervals in which it was measured, nanoseconds, and their statements.
    own_ns: f64,
    own_statements: u64,
    /// Memory of waggle itself, bytes.
    pub(super) rss_bytes: Option<u64>,
    /// Why nothing more comes; `None` while the server runs.
    pub(super) gone: Option<String>,
}

impl Sums {
    /// Processor time of waggle's own process per statement that it captured, nanoseconds.
    pub(super) fn own_ns(&self) -> Option<f64> {
        (self.own_statements > 0).then(|| self.own_ns / self.own_statements as f64)
    }
}

impl RecordSink for Seen {
    fn take(&mut self, records: &[Arc<Record>]) {
        let mut sums = self.0.borrow_mut();
        for record in records {
            let interval = &record.interval;
            sums.captured += interval.statements;
            let mut unseen = Losses::default();
            unseen.add(Loss::EndedUnseen, interval.losses.get(Loss::EndedUnseen));
            sums.ended_unseen += unseen.get(Loss::EndedUnseen);
            sums.losses = sums.losses.plus(&interval.losses.since(&unseen));
            let Some(cost) = record.cost.value() else { continue };
            sums.rss_bytes = cost.rss_bytes.or(sums.rss_bytes);
            if let Some(cores) = cost.agent_cores {
                sums.own_ns += cores * interval.end_ns.saturating_sub(interval.start_ns) as f64;
                sums.own_statements += interval.statements;
            }
        }
    }

    fn news(&mut self, news: &News) {
        if let News::Gone(gone) = news {
            self.0.borrow_mut().gone = Some(gone.reason());
        }
    }
}

impl Seen {
    /// What was seen so far.
    pub(super) fn sums(&self) -> Ref<'_, Sums> {
        self.0.borrow()
    }
}
