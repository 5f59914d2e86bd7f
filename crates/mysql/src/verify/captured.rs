//! The captured side of the comparison.

use std::collections::BTreeMap;

use waggle_model::{Command, Histogram, Losses, Origin, Statement};

/// `ER_PARSE_ERROR`, `ER_EMPTY_QUERY` and `ER_SYNTAX_ERROR`: the server gives no digest to a text
/// that it cannot parse (tried on all five servers).
const PARSE_ERRORS: [u32; 3] = [1064, 1065, 1149];

/// Digests that are kept separately. A server keeps 10,000 by default
/// (`performance_schema_digests_size`).
pub(super) const DIGESTS_MAX: usize = 100_000;

/// The id that no connection has.
pub(super) const NOT_KNOWN: u64 = 0;

/// Where a statement stands to two readings of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The server counted it after the first reading and before the second.
    Inside,
    /// The server may have counted it while the table was read, so nobody can say on which side of the
    /// reading it is.
    AtEdge,
}

/// Where a statement stands to the readings. `None` is outside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edges {
    /// To those of the counts: status, event names and connections.
    pub counts: Option<Edge>,
    /// To those of the digests, which are read later.
    pub digests: Option<Edge>,
}

impl From<Edge> for Edges {
    fn from(edge: Edge) -> Edges {
        Edges { counts: Some(edge), digests: Some(edge) }
    }
}

/// One statement or command that ended, as far as it is compared.
#[derive(Clone, Debug)]
pub struct Ended {
    is_nested: bool,
    command: Command,
    connection: u64,
    digest: CapturedKey,
    is_truncated: bool,
    error: u32,
    rows_sent: Option<u64>,
    rows_examined: Option<u64>,
    rows_affected: Option<u64>,
    lock_ns: Option<u64>,
    latency_ns: Option<u64>,
    /// Until the server was done with it, as Performance Schema times it; `None` if that is not known.
    pub duration_ns: Option<u64>,
}

impl Ended {
    /// `digest_text` is that of our own normaliser.
    pub fn of(statement: &Statement<'_>, digest_text: &str) -> Ended {
        // The capture hands out nothing but statements where it does not know the command.
        let command = statement.command.unwrap_or(Command::QUERY);
        let schema = statement.identity.database.as_deref();
        // A text that fills the digest before the cut has the digest of the whole.
        let is_cut = statement.text.is_some_and(|text| text.is_truncated());
        Ended {
            is_nested: statement.origin == Origin::Nested,
            command,
            connection: statement.connection_id.unwrap_or(NOT_KNOWN),
            digest: CapturedKey {
                schema: schema.map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
                text: digest_text.to_owned(),
                prepared: command.is_prepared(),
            },
            is_truncated: is_cut && digest_text.ends_with("..."),
            error: statement.error.unwrap_or(0),
            rows_sent: statement.rows_sent,
            rows_examined: statement.rows_examined,
            rows_affected: statement.rows_affected,
            lock_ns: statement.lock_ns,
            latency_ns: statement.latency_ns,
            duration_ns: None,
        }
    }

    /// Whether it ran inside another one, or without a client.
    pub fn is_nested(&self) -> bool {
        self.is_nested
    }
}

/// How many, and how many of unknown side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Certainly between the two readings.
    pub certain: u64,
    /// While one of them was read.
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
    /// Statements by connection id; all under [`NOT_KNOWN`] where the capture lacks it.
    pub connections: BTreeMap<u64, Calls>,
    /// What was lost meanwhile.
    pub lost: Losses,
    /// Statements inside others. The server counts them apart, and so do we.
    pub nested: u64,
    /// Why digests cannot be compared, where the capture lacks what makes one.
    pub no_digests: Option<String>,
}

/// What statements are put together by.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapturedKey {
    /// The default database; `None` if none was chosen.
    pub schema: Option<String>,
    /// The digest text by our own rules; empty if the text could not be read.
    pub text: String,
    /// Whether it was prepared before, by the binary protocol.
    pub prepared: bool,
}

/// Sums of one digest.
#[derive(Clone, Debug, Default)]
pub struct CapturedDigest {
    /// How many.
    pub calls: Calls,
    /// How many failed to parse; they are in `calls`, and the server has no digest for them.
    pub unparsed: u64,
    /// Of these, the sums of those of unknown side.
    pub at_edges: Option<Box<CapturedDigest>>,
    /// The text was cut by the capture limit before it filled the digest, so that its digest text is
    /// not the server's.
    pub truncated: bool,
    /// How many ended with an error.
    pub errors: u64,
    /// Rows sent; `None` if the layout does not give them. The same holds for the next fields.
    pub rows_sent: Option<u64>,
    /// Rows examined.
    pub rows_examined: Option<u64>,
    /// Rows affected.
    pub rows_affected: Option<u64>,
    /// Time in locks, nanoseconds.
    pub lock_ns: Option<u64>,
    /// Latencies, nanoseconds: until the reply was sent.
    pub latency_ns: Histogram,
    /// Durations until the server was done with the statement, as Performance Schema times it;
    /// nanoseconds. Only statements whose duration is known.
    pub duration_ns: Histogram,
}

impl Captured {
    /// Counts one statement or command. Those of waggle's own connection must not come here.
    pub fn add(&mut self, ended: &Ended, edges: impl Into<Edges>) {
        let Edges { counts, digests } = edges.into();
        if ended.is_nested {
            self.nested += u64::from(counts.is_some());
            return;
        }
        if let Some(edge) = counts {
            *self.commands.entry(ended.command).or_default() += 1;
            if ended.command.is_statement() {
                self.connections.entry(ended.connection).or_default().add(edge);
            }
        }
        if let (Some(edge), true) = (digests, ended.command.is_statement()) {
            self.add_to_digest(ended, edge);
        }
    }

    fn add_to_digest(&mut self, ended: &Ended, edge: Edge) {
        if let Some(digest) = self.digests.get_mut(&ended.digest) {
            digest.add(ended, edge);
        } else if self.digests.len() >= DIGESTS_MAX {
            self.unkept += 1;
        } else {
            let digest = self.digests.entry(ended.digest.clone());
            digest.or_insert_with(CapturedDigest::empty).add(ended, edge);
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

    /// The least and the most that the server may have counted of a sum: without and with what is of
    /// unknown side.
    pub(super) fn bounds(&self, of: impl Fn(&CapturedDigest) -> u64) -> (u64, u64) {
        let (all, at_edges) = (of(self), self.at_edges.as_deref().map_or(0, &of));
        (all.saturating_sub(at_edges), all)
    }

    /// Statements that parsed, and so have a digest on the server.
    pub(super) fn parsed(&self) -> u64 {
        self.calls.all().saturating_sub(self.unparsed)
    }

    fn add(&mut self, ended: &Ended, edge: Edge) {
        self.calls.add(edge);
        if edge == Edge::AtEdge {
            let at_edges = self.at_edges.get_or_insert_with(|| Box::new(CapturedDigest::empty()));
            at_edges.add(ended, Edge::Inside);
        }
        self.truncated |= ended.is_truncated;
        self.errors += u64::from(ended.error != 0);
        self.unparsed += u64::from(PARSE_ERRORS.contains(&ended.error));
        self.rows_sent = sum(self.rows_sent, ended.rows_sent);
        self.rows_examined = sum(self.rows_examined, ended.rows_examined);
        self.rows_affected = sum(self.rows_affected, ended.rows_affected);
        self.lock_ns = sum(self.lock_ns, ended.lock_ns);
        ended.latency_ns.into_iter().for_each(|taken| self.latency_ns.record(taken));
        ended.duration_ns.into_iter().for_each(|taken| self.duration_ns.record(taken));
    }

    pub(super) fn merge(&mut self, other: &CapturedDigest) {
        self.calls = self.calls.plus(other.calls);
        if let Some(other) = &other.at_edges {
            let at_edges = self.at_edges.get_or_insert_with(|| Box::new(CapturedDigest::empty()));
            at_edges.merge(other);
        }
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
