//! The side of the capture.

use std::collections::BTreeMap;

use waggle_model::{Command, Histogram, Losses, Origin, Statement};

/// `ER_PARSE_ERROR`, `ER_EMPTY_QUERY` and `ER_SYNTAX_ERROR`: the server gives no digest to a text
/// that it cannot parse (tried on all five servers).
const PARSE_ERRORS: [u32; 3] = [1064, 1065, 1149];

/// Digests that are kept apart. A server keeps 10,000 unless it is told otherwise
/// (`performance_schema_digests_size`).
pub(super) const DIGESTS_MAX: usize = 100_000;

/// Where a statement stands to the two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// It ended after the first reading was complete and before the second began.
    Inside,
    /// It ended while one of them was being read (a few milliseconds more than `begin_ns` to
    /// `end_ns`, since the server counts a statement shortly after its reply): on which side of the
    /// reading it fell cannot be known.
    AtEdge,
}

/// How many, and how many of unknown side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Certainly between the two readings.
    pub certain: u64,
    /// While one of them was being read.
    pub at_edges: u64,
}

/// Everything that was captured between two readings, less waggle's own connection.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// By schema, digest text and command.
    pub digests: BTreeMap<CapturedKey, CapturedDigest>,
    /// Statements of digests that came when [`DIGESTS_MAX`] were kept already.
    pub unkept: u64,
    /// How often each command was answered, statements and others.
    pub commands: BTreeMap<Command, u64>,
    /// Statements by connection id.
    pub connections: BTreeMap<u64, Calls>,
    /// What was lost meanwhile.
    pub lost: Losses,
    /// Statements inside others. The server counts them apart, and so do we.
    pub nested: u64,
}

/// What statements are put together by.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapturedKey {
    /// The default database; `None` where none was chosen.
    pub schema: Option<String>,
    /// The digest text by our own rules; empty where the text could not be read.
    pub text: String,
    /// `COM_STMT_EXECUTE`, not `COM_QUERY`.
    pub prepared: bool,
}

/// Sums of one digest.
#[derive(Clone, Debug, Default)]
pub struct CapturedDigest {
    /// How many.
    pub calls: Calls,
    /// How many failed to parse; they are in `calls`, and the server has no digest for them.
    pub unparsed: u64,
    /// The text was longer than the capture limit, so that its digest text is not the server's.
    pub truncated: bool,
    /// How many ended with an error.
    pub errors: u64,
    /// Rows sent; `None` where the layout does not give them. The same holds for the next fields.
    pub rows_sent: Option<u64>,
    /// Rows examined.
    pub rows_examined: Option<u64>,
    /// Rows affected.
    pub rows_affected: Option<u64>,
    /// Time in locks, nanoseconds.
    pub lock_ns: Option<u64>,
    /// Latencies, nanoseconds: until the reply was sent.
    pub latency_ns: Histogram,
    /// Durations until the server was done with the statement, as Performance Schema times it, of
    /// those of which that is known; nanoseconds.
    pub duration_ns: Histogram,
}

impl Captured {
    /// Counts one statement or command. `digest_text` is that of our own normaliser. Statements of
    /// waggle's own connection must not come here. Gives the key of what was counted in a digest.
    pub fn record(
        &mut self,
        statement: &Statement<'_>,
        digest_text: &str,
        edge: Edge,
    ) -> Option<CapturedKey> {
        if statement.origin == Origin::Nested {
            self.nested += 1;
            return None;
        }
        let command = statement.command?;
        *self.commands.entry(command).or_default() += 1;
        if !command.is_statement() {
            return None;
        }
        if let Some(id) = statement.connection_id {
            self.connections.entry(id).or_default().add(edge);
        }
        let schema = statement.identity.database.as_deref();
        let key = CapturedKey {
            schema: schema.map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
            text: digest_text.to_owned(),
            prepared: command == Command::EXECUTE,
        };
        let is_full = self.digests.len() >= DIGESTS_MAX;
        if is_full && !self.digests.contains_key(&key) {
            self.unkept += 1;
            return None;
        }
        let digest = self.digests.entry(key.clone()).or_insert_with(CapturedDigest::empty);
        digest.add(statement, edge);
        Some(key)
    }

    /// Adds for how long the server had to do with a statement that was recorded before.
    pub fn finish(&mut self, digest: &CapturedKey, duration_ns: u64) {
        if let Some(digest) = self.digests.get_mut(digest) {
            digest.duration_ns.record(duration_ns);
        }
    }

    /// Statements captured.
    pub fn statements(&self) -> u64 {
        let statements = self.commands.iter().filter(|(command, _)| command.is_statement());
        statements.map(|(_, count)| count).sum()
    }
}

impl Calls {
    /// All of them.
    pub fn all(&self) -> u64 {
        self.certain + self.at_edges
    }

    fn add(&mut self, edge: Edge) {
        match edge {
            Edge::Inside => self.certain += 1,
            Edge::AtEdge => self.at_edges += 1,
        }
    }

    pub(super) fn plus(self, other: Calls) -> Calls {
        Calls { certain: self.certain + other.certain, at_edges: self.at_edges + other.at_edges }
    }
}

impl CapturedDigest {
    pub(super) fn empty() -> CapturedDigest {
        CapturedDigest {
            rows_sent: Some(0),
            rows_examined: Some(0),
            rows_affected: Some(0),
            lock_ns: Some(0),
            ..CapturedDigest::default()
        }
    }

    /// Those that parsed, and so have a digest on the server.
    pub(super) fn parsed(&self) -> u64 {
        self.calls.all().saturating_sub(self.unparsed)
    }

    fn add(&mut self, statement: &Statement<'_>, edge: Edge) {
        self.calls.add(edge);
        let error = statement.error.unwrap_or(0);
        self.errors += u64::from(error != 0);
        self.unparsed += u64::from(PARSE_ERRORS.contains(&error));
        self.truncated |= statement.text.is_some_and(|text| text.is_truncated());
        self.rows_sent = sum(self.rows_sent, statement.rows_sent);
        self.rows_examined = sum(self.rows_examined, statement.rows_examined);
        self.rows_affected = sum(self.rows_affected, statement.rows_affected);
        self.lock_ns = sum(self.lock_ns, statement.lock_ns);
        if let Some(latency) = statement.latency_ns {
            self.latency_ns.record(latency);
        }
    }

    pub(super) fn merge(&mut self, other: &CapturedDigest) {
        self.calls = self.calls.plus(other.calls);
        self.errors += other.errors;
        self.unparsed += other.unparsed;
        self.truncated |= other.truncated;
        self.rows_sent = sum(self.rows_sent, other.rows_sent);
        self.rows_examined = sum(self.rows_examined, other.rows_examined);
        self.rows_affected = sum(self.rows_affected, other.rows_affected);
        self.lock_ns = sum(self.lock_ns, other.lock_ns);
        self.latency_ns.merge(&other.latency_ns);
        self.duration_ns.merge(&other.duration_ns);
    }
}

/// One value that was not measured leaves the sum not measured.
fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.saturating_add(other?))
}
