//! What was lost, by kind.

/// A way in which a statement, or a part of one, can be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Loss {
    /// The ring of a processor was full: a statement was not recorded.
    RingFull,
    /// The session could not be read: a statement was not recorded.
    UnreadableSession,
    /// The text could not be read (its page was not in memory): the statement counts, its text is
    /// absent.
    UnreadableText,
    /// A map of the kernel was full: the statement counts, its first sends do not.
    MapFull,
    /// The session ended without a reply (a killed connection): counted, but not captured.
    EndedUnseen,
    /// More sessions held back a reply than are remembered: their statements are missing.
    SessionsFull,
    /// Dropped on purpose by the test switch.
    Injected,
}

impl Loss {
    /// Every kind, in the order in which they are shown.
    pub const ALL: [Loss; 7] = [
        Loss::RingFull,
        Loss::UnreadableSession,
        Loss::UnreadableText,
        Loss::MapFull,
        Loss::EndedUnseen,
        Loss::SessionsFull,
        Loss::Injected,
    ];

    /// The name under which it appears in JSON and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Loss::RingFull => "ring_full",
            Loss::UnreadableSession => "unreadable_session",
            Loss::UnreadableText => "unreadable_text",
            Loss::MapFull => "map_full",
            Loss::EndedUnseen => "ended_unseen",
            Loss::SessionsFull => "sessions_full",
            Loss::Injected => "injected",
        }
    }

    /// Whether a whole statement is missing from what was captured, not just a part of it.
    pub fn is_a_statement(self) -> bool {
        matches!(
            self,
            Loss::RingFull | Loss::UnreadableSession | Loss::SessionsFull | Loss::Injected
        )
    }
}

/// Counts of every kind of loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses([u64; Loss::ALL.len()]);

impl Losses {
    /// Counts `n` more of one kind.
    pub fn add(&mut self, kind: Loss, n: u64) {
        self.0[kind as usize] += n;
    }

    /// The count of one kind.
    pub fn get(&self, kind: Loss) -> u64 {
        self.0[kind as usize]
    }

    /// Statements lost whole.
    pub fn statements(&self) -> u64 {
        Loss::ALL.iter().filter(|kind| kind.is_a_statement()).map(|kind| self.get(*kind)).sum()
    }

    /// Both together.
    pub fn plus(&self, other: &Losses) -> Losses {
        let mut sum = *self;
        for kind in Loss::ALL {
            sum.add(kind, other.get(kind));
        }
        sum
    }

    /// What was lost since an earlier count.
    pub fn since(&self, earlier: &Losses) -> Losses {
        let mut difference = Losses::default();
        for kind in Loss::ALL {
            difference.add(kind, self.get(kind).saturating_sub(earlier.get(kind)));
        }
        difference
    }
}
