//! The result of the comparison.

use std::collections::BTreeMap;
use std::fmt;

use waggle_model::{Loss, Losses};

/// Where the server's count came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `performance_schema.events_statements_summary_global_by_event_name`.
    ByEventName,
    /// `Questions`, less `COM_QUIT` and the other commands that are no statements.
    QuestionsLessQuit,
}

impl Source {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Source::ByEventName => "by_event_name",
            Source::QuestionsLessQuit => "questions_less_quit",
        }
    }
}

waggle_model::named! {
    /// A field that is compared per digest.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Field {
        /// Statements that ended.
        Calls = "calls",
        /// Statements that ended with an error.
        Errors = "errors",
        /// Rows sent.
        RowsSent = "rows_sent",
        /// Rows examined.
        RowsExamined = "rows_examined",
        /// Rows affected.
        RowsAffected = "rows_affected",
        /// Time in locks, nanoseconds.
        LockTime = "lock_time",
        /// Sum of latencies, nanoseconds.
        LatencySum = "latency_sum",
        /// p50, p95 and p99, nanoseconds.
        LatencyPercentiles = "latency_percentiles",
    }
}

impl Field {
    /// Whether the two sides count the same thing, so that any difference is a fault; times are
    /// taken at different instants and have a tolerance.
    pub fn is_exact(self) -> bool {
        !matches!(self, Field::LockTime | Field::LatencySum | Field::LatencyPercentiles)
    }
}

/// A known reason for a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Threads add to a digest row at once without a lock (`aggregate_value` in
    /// `storage/perfschema/pfs_stat.h`), while each counts by event name for itself.
    UnlockedRow,
    /// The server's digest table was full.
    DigestTableFull,
    /// The session sums the inner statements of a CALL, Performance Schema does not.
    CallSums,
    /// SQL EXECUTE: the session shows the inner statement, the digest is that of the EXECUTE.
    SqlExecute,
    /// The server takes the rest of the packet into the digest of each of its statements.
    MultiStatement,
    /// A killed connection on MySQL sends no reply.
    EndedUnseen,
    /// Statements longer than the capture limit are captured, but their digest text is not whole.
    Truncated,
    /// More digests were captured than are kept.
    NotKept,
    /// The capture lost statements and says so.
    Lost,
    /// Performance Schema's timer runs on through clean-up after the reply.
    TimedLonger,
    /// The same, and it was seen that the time lies between the reply and the server's next read.
    TimedBetween,
}

impl fmt::Display for Why {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Why::UnlockedRow => {
                "server miscount: threads add to a digest row at once without a lock, so that it \
                 misses some; the count by event name is right"
            }
            Why::DigestTableFull => {
                "the server's digest table was full (performance_schema_digests_size)"
            }
            Why::CallSums => {
                "the session sums the inner statements of a CALL, Performance Schema does not"
            }
            Why::SqlExecute => {
                "SQL EXECUTE: the session shows the inner statement, the server files the EXECUTE"
            }
            Why::MultiStatement => {
                "the server takes the rest of a multi-statement packet into the digest"
            }
            Why::EndedUnseen => "blind spot: a killed connection sends no reply",
            Why::Truncated => {
                "captured, but longer than --text-limit, so that the digest text is not whole"
            }
            Why::NotKept => "captured, but of more digests than are kept",
            Why::Lost => "the capture lost statements (see lost)",
            Why::TimedLonger => {
                "Performance Schema's timer runs on through clean-up after the reply was sent"
            }
            Why::TimedBetween => {
                "Performance Schema's timer stops between the reply and the server's next read, \
                 which were both timed"
            }
        })
    }
}

impl Why {
    /// Whether the reason lies with the server or the moment, so that the capture is not at fault.
    pub fn excuses(self) -> bool {
        self != Why::Lost
    }
}

/// A field of a digest in which the two sides differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differing {
    /// The default database.
    pub schema: Option<String>,
    /// The digest text: ours, or the server's where only the server has it.
    pub digest_text: String,
    /// The field.
    pub field: Field,
    /// What was captured.
    pub ours: u64,
    /// What the server counted.
    pub theirs: u64,
    /// The known reason; `None` if there is none.
    pub why: Option<Why>,
}

/// How one field compared over all digests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldSummary {
    /// Digests in which it was compared.
    pub compared: u64,
    /// Digests in which it is equal, or within the tolerance of a time.
    pub equal: u64,
    /// Digests in which it differs, with or without a known reason.
    pub differing: u64,
}

/// The result of the comparison.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Statements captured.
    pub captured: u64,
    /// Statements that the server counted; `None` if it counts nothing that can be compared.
    pub server_counted: Option<u64>,
    /// Where that count came from.
    pub source: Option<Source>,
    /// Counted by the server, not captured, and not explained by `in_flight` or `ended_unseen`.
    pub missing: u64,
    /// Captured, and not counted by the server.
    pub extra: u64,
    /// Differences in the totals by statements that the server may have counted while it was asked for them.
    pub in_flight: u64,
    /// What the capture says it lost.
    pub lost: Losses,
    /// Statements inside others, counted apart.
    pub nested: u64,
    /// Digests that were compared.
    pub digests_compared: u64,
    /// Digests in which an exact field differs by more than what is in doubt, with or without a known
    /// reason.
    pub digests_differing: u64,
    /// Statements of these digests that the server may have counted while it was asked for the digests, and
    /// so before or after a reading. No other difference is allowed.
    pub in_doubt: u64,
    /// Every difference.
    pub differing: Vec<Differing>,
    /// By field.
    pub fields: BTreeMap<Field, FieldSummary>,
    /// What could not be compared, and why.
    pub not_compared: Vec<String>,
}

impl Report {
    /// Whether everything was captured: the counts agree, nothing was lost, and every exact field of
    /// every digest agrees or differs for a known reason that is not ours.
    pub fn passed(&self) -> bool {
        let excused = |one: &Differing| !one.field.is_exact() || one.why.is_some_and(Why::excuses);
        self.server_counted.is_some()
            && self.missing == 0
            && self.extra == 0
            && self.lost.statements() == 0
            && self.differing.iter().all(excused)
    }

    /// Which share of the captured statements is in doubt; `None` where none was captured.
    pub fn share_in_doubt(&self) -> Option<f64> {
        (self.captured > 0).then(|| self.in_doubt as f64 / self.captured as f64)
    }

    /// The count of one kind of loss.
    pub fn lost(&self, kind: Loss) -> u64 {
        self.lost.get(kind)
    }
}
