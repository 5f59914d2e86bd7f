//! The server's own counters: one reading of all, and the difference of two readings.
//!
//! Sources: `SHOW GLOBAL STATUS` (through its table), and in `performance_schema`
//! `events_statements_summary_global_by_event_name`, `…_by_thread_by_event_name`, `…_by_digest` and
//! `events_statements_histogram_by_digest` (MySQL 8.0 and later). A source that cannot be read is
//! absent, with the reason. waggle's own statements are subtracted exactly: from `Questions` by
//! their number, from the events by the row of its own thread in the same statement, from the
//! digests by an alias in all of them.

mod event;
mod setup;
mod since;
mod sums;
mod tables;

use std::collections::BTreeMap;

use waggle_model::{Flavour, Reading};

use crate::connection::{Connection, ConnectionError};

pub use event::Event;
pub use since::{ConnectionDifference, Difference, DigestDifference, SinceError};
pub use sums::Sums;

/// What is read together. One part is read after the other, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Status, events and connections.
    Counts,
    /// Digests.
    Digests,
    /// Histograms of digests.
    Histograms,
}

/// One reading of the server's counters. The tables are read one after the other, so under load
/// each shows its own moment.
#[derive(Clone, Debug)]
pub struct Counters {
    /// The family of the server.
    pub flavour: Flavour,
    /// `VERSION()`.
    pub version: String,
    /// The id of the connection that read.
    pub own_connection: u64,
    /// Every global status counter that is a whole number, by its name in lower case.
    pub status: BTreeMap<String, u64>,
    /// How many of `Questions` are statements of this connection.
    pub own_questions: u64,
    /// By event name, all threads.
    pub events: Reading<BTreeMap<String, Sums>>,
    /// By event name, the thread of this connection, at the instant of `events`.
    pub own_events: BTreeMap<String, Sums>,
    /// By connection id, the current connections. A connection that has run nothing is missing.
    pub connections: Reading<BTreeMap<u64, ConnectionCounts>>,
    /// By schema and digest.
    pub digests: Reading<BTreeMap<DigestKey, DigestRow>>,
    /// By schema and digest.
    pub histograms: Reading<BTreeMap<DigestKey, Vec<Bucket>>>,
}

/// What one connection has run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// By event name.
    pub events: BTreeMap<String, u64>,
    /// A thread of the server itself, such as a replica applier.
    pub background: bool,
}

/// Key of a row of `events_statements_summary_by_digest`. The row without schema and digest collects
/// what found no place in the table.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DigestKey {
    /// `SCHEMA_NAME`: the default database; `None` if none was chosen.
    pub schema: Option<String>,
    /// `DIGEST`: the server's hash, which differs from version to version.
    pub digest: Option<String>,
}

/// A row of `events_statements_summary_by_digest`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DigestRow {
    /// `DIGEST_TEXT`.
    pub text: String,
    /// The sums.
    pub sums: Sums,
}

/// A row of `events_statements_histogram_by_digest` that counts something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Lower edge (inclusive), picoseconds.
    pub low_ps: u64,
    /// Upper edge (exclusive), picoseconds.
    pub high_ps: u64,
    /// How many statements took that long.
    pub count: u64,
}

/// Whether the histograms are read as well: they have 450 rows per digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Histograms {
    /// Read them.
    Read,
    /// Leave them out.
    Skip,
}

impl Counters {
    /// Reads everything that the server gives and this account may see.
    ///
    /// # Errors
    /// The connection is broken, or the global status cannot be read. Whatever else is missing is
    /// absent with its reason.
    pub fn read(
        connection: &mut Connection,
        histograms: Histograms,
    ) -> Result<Counters, ConnectionError> {
        Counters::read_telling(connection, histograms, |_| {})
    }

    /// The same. Calls `begins` before it asks for each part, also for a part that it cannot read.
    ///
    /// # Errors
    /// As [`Counters::read`].
    pub fn read_telling(
        connection: &mut Connection,
        histograms: Histograms,
        begins: impl Fn(Part),
    ) -> Result<Counters, ConnectionError> {
        let setup = setup::read(connection)?;
        begins(Part::Counts);
        let (status, own_questions) = tables::status(connection)?;
        let (events, own_events) = match setup.events() {
            None => tables::events(connection)?,
            Some(why) => (Reading::Absent(why), BTreeMap::new()),
        };
        let connections = match setup.events() {
            None => tables::connections(connection)?,
            Some(why) => Reading::Absent(why),
        };
        begins(Part::Digests);
        let digests = match setup.digests() {
            None => tables::digests(connection)?,
            Some(why) => Reading::Absent(why),
        };
        begins(Part::Histograms);
        let histograms = match (setup.digests(), histograms) {
            (None, Histograms::Read) => tables::histograms(connection)?,
            (None, Histograms::Skip) => Reading::absent("histograms were not asked for"),
            (Some(why), _) => Reading::Absent(why),
        };
        let identity = connection.server_identity();
        Ok(Counters {
            flavour: identity.flavour,
            version: identity.version.clone(),
            own_connection: identity.connection_id,
            status,
            own_questions,
            events,
            own_events,
            connections,
            digests,
            histograms,
        })
    }
}
