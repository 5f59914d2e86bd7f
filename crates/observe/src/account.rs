//! What is kept of a server while it is watched.

use waggle_account::Books;
use waggle_host::ProcessorTimes;
use waggle_model::{Reading, RunningStatement};
use waggle_probes::servers::durable_name;
use waggle_sql::stable_hash;

use crate::processors::Processors;
use crate::silence::Silence;
use crate::storage::Storage;

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
    /// What ran at the last look, and when that was, nanoseconds of `CLOCK_MONOTONIC`; `None` before the first one.
    pub(crate) looked: Option<(u64, Vec<RunningStatement>)>,
}

impl Account {
    /// Opens that of the server with this process.
    pub(crate) fn open(
        pid: u32,
        books: Option<Books>,
        [starts_known, is_pooled]: [bool; 2],
        parts: Reading<()>,
    ) -> Account {
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
            looked: None,
        };
        account.identify(pid);
        account
    }

    /// Takes over by what the server is known for longer than it lives. A server that starts goes into its data
    /// directory soon, and has none when it has ended: then the last one holds.
    pub(crate) fn identify(&mut self, pid: u32) {
        if let Some(name) = durable_name(pid) {
            self.identity = stable_hash(name);
        }
    }
}
