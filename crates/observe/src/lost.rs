//! What was lost since the look before.

use std::collections::BTreeMap;

use waggle_model::Losses;

/// What had been lost of each server at the last look at it, by pid.
#[derive(Debug, Default)]
pub(crate) struct LostBefore(BTreeMap<u32, Losses>);

impl LostBefore {
    /// What was lost of a server since the last call, of what was lost in all.
    pub(crate) fn since(&mut self, pid: u32, in_all: Losses) -> Losses {
        let before = self.0.insert(pid, in_all).unwrap_or_default();
        in_all.since(&before)
    }

    /// The same for the last time. The next server with this pid has lost nothing yet.
    pub(crate) fn last(&mut self, pid: u32, in_all: Losses) -> Losses {
        let before = self.0.remove(&pid).unwrap_or_default();
        in_all.since(&before)
    }
}

#[cfg(test)]
mod tests {
    use waggle_model::Loss;

    use super::*;

    fn losses(ring_full: u64, unreadable: u64) -> Losses {
        let mut losses = Losses::default();
        losses.add(Loss::RingFull, ring_full);
        losses.add(Loss::UnreadableSession, unreadable);
        losses
    }

    #[test]
    fn a_server_that_gets_the_pid_of_another_has_losses_of_its_own_only() {
        let mut before = LostBefore::default();
        assert_eq!(before.since(7, losses(5, 1)), losses(5, 1));
        assert_eq!(before.since(7, losses(8, 1)), losses(3, 0));
        assert_eq!(before.last(7, losses(9, 4)), losses(1, 3));
        assert_eq!(
            before.since(7, losses(2, 0)),
            losses(2, 0),
            "less than the one before had lost"
        );
        assert_eq!(before.since(7, losses(2, 6)), losses(0, 6));
    }
}
