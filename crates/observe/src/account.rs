//! What is kept of a server while it is watched.

use waggle_account::Books;
use waggle_host::ProcessorTimes;
use waggle_model::{Reading, RunningStatement};
use waggle_probes::servers::durable_name;
use waggle_probes::servers::layout::Field;
use waggle_sql::stable_hash;

use crate::capture::Watched;
use crate::news::Parted;
use crate::processors::Processors;
use crate::silence::Silence;
use crate::storage::Storage;
use crate::unread::UnreadBook;

/// The account of one server.
pub(crate) struct Account {
    /// `None` where nobody wants records.
    pub(crate) books: Option<Books>,
    pub(crate) identity: u64,
    pub(crate) starts_known: bool,
    pub(crate) is_pooled: bool,
    /// Whether statements have parts.
    pub(crate) parts: Reading<()>,
    pub(crate) silence: Silence,
    pub(crate) processors: Processors,
    pub(crate) storage: Storage,
    pub(crate) unread: UnreadBook,
    /// What ran at the last look, and when that was, nanoseconds of `CLOCK_MONOTONIC`; `None` before the first one.
    pub(crate) looked: Option<(u64, Vec<RunningStatement>)>,
}

impl Account {
    /// Opens that of a server.
    pub(crate) fn open(watched: &Watched, books: Option<Books>, parts: Reading<()>) -> Account {
        let pid = watched.server.pid;
        let starts_known = watched.layout.offset(Field::StartTime).is_some();
        let is_pooled = watched.is_pooled();
        let processors = Processors::open(pid, &ProcessorTimes::read());
        let silence = Silence::default();
        let storage = Storage::open(pid);
        let mut account = Account {
            books,
            identity: 0,
            starts_known,
            is_pooled,
            parts,
            silence,
            processors,
            storage,
            unread: UnreadBook::open(pid),
            looked: None,
        };
        account.identify(pid);
        account
    }

    /// What ran at the last look at a server that has ended and was not seen to end, and when that look was.
    pub(crate) fn last_look(&mut self, parted: &Parted) -> Option<(u64, Vec<RunningStatement>)> {
        let Parted::Ended { ran, death } = parted else { return None };
        if let (Some(at_ns), Some(running)) = (death.at_ns, &death.ran) {
            return Some((at_ns, running.clone()));
        }
        let (looked_ns, mut running) = self.looked.take()?;
        running.retain(|running| ran.contains(&running.key()));
        Some((looked_ns, running))
    }

    /// Takes over by what the server is known for longer than it lives. A server that starts goes into its data
    /// directory soon, and has none when it has ended: then the last one holds.
    pub(crate) fn identify(&mut self, pid: u32) {
        if let Some(name) = durable_name(pid) {
            self.identity = stable_hash(name);
        }
    }
}
