//! What is seen of the server beside the trial.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use waggle_model::{Cost, Loss, Losses, Record};
use waggle_observe::{News, RecordSink};

/// A sink; its clones are the same.
#[derive(Clone, Default)]
pub(super) struct Seen(Rc<RefCell<Sums>>);

#[derive(Default)]
struct Sums {
    captured: u64,
    losses: Losses,
    cost: Cost,
    gone: Option<String>,
}

impl RecordSink for Seen {
    fn take(&mut self, records: &[Arc<Record>]) {
        let mut sums = self.0.borrow_mut();
        for record in records {
            sums.captured += record.interval.statements;
            sums.losses = sums.losses.plus(&record.interval.losses);
            // The last interval may be too short to tell.
            if let Some(cost) = record.cost.value().filter(|cost| cost.agent_cores.is_some()) {
                sums.cost = *cost;
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
    /// Why nothing more comes; `None` while the server runs.
    pub(super) fn is_gone(&self) -> Option<String> {
        self.0.borrow().gone.clone()
    }

    /// What watching took in the last whole interval, how many statements were captured, and what was lost. A statement that was
    /// left out on purpose and ran at a look counts as ended unseen there: that is no loss.
    pub(super) fn of_all(&self) -> (Cost, u64, Losses) {
        let sums = self.0.borrow();
        let mut unseen = Losses::default();
        unseen.add(Loss::EndedUnseen, sums.losses.get(Loss::EndedUnseen));
        (sums.cost, sums.captured, sums.losses.since(&unseen))
    }
}
