//! What was lost, by kind.

crate::named! {
    /// A way in which a statement, or a part of one, can be lost.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Loss {
        /// The ring of a processor was full: a statement was not recorded.
        RingFull = "ring_full",
        /// The session could not be read: a statement was not recorded.
        UnreadableSession = "unreadable_session",
        /// The text could not be read (its page was not in memory): the statement counts, its text is
        /// absent.
        UnreadableText = "unreadable_text",
        /// A map of the kernel was full: the statement counts, its first sends do not.
        MapFull = "map_full",
        /// The session ended without a reply (a killed connection): counted, but not captured.
        EndedUnseen = "ended_unseen",
        /// More sessions held back a reply than are remembered: their statements are missing.
        SessionsFull = "sessions_full",
        /// A reply to a client became no statement, although its command runs one or nobody knows whose
        /// it was. A few of them mean nothing.
        NoStatement = "no_statement",
        /// These replies, where they are more than a few: the server is read wrongly.
        ReadWrongly = "read_wrongly",
        /// A reply to a client of the X protocol became no statement. Those of logins are among them.
        XProtocol = "x_protocol",
        /// The ring of a processor was full: a sample of a profile was not recorded. No statement is
        /// missing.
        ProfileSample = "profile_sample",
        /// It was not told that a wait for a lock began or ended, for the ring of a processor was full; or a wait found no
        /// room in the memory of waits. No statement is missing.
        LockWait = "lock_wait",
        /// Dropped on purpose by the test switch.
        Injected = "injected",
    }
}

impl Loss {
    /// Whether a whole statement is missing from what was captured, not just a part of it.
    pub fn is_a_statement(self) -> bool {
        matches!(
            self,
            Loss::RingFull
                | Loss::UnreadableSession
                | Loss::SessionsFull
                | Loss::ReadWrongly
                | Loss::Injected
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
