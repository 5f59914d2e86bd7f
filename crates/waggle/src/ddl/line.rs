//! The lines that are written: one for a statement, one for missing statements, and one for what is
//! not shown at all.
//!
//! The shape is documented in `docs/reference/ddl-json.md`; `null` means not known.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use waggle_sql::{Ddl, Object};

/// One line.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Line {
    /// A statement that ended.
    Statement(Box<StatementLine>),
    /// Statements are missing.
    Gap(Gap),
    /// What the source does not show.
    Limits(Limits),
}

/// Bytes of a line beside its texts, about.
const BYTES_BESIDE: usize = 1024;

impl Line {
    /// Bytes that it takes, about.
    pub(crate) fn bytes(&self) -> u64 {
        let texts = match self {
            Line::Statement(line) => {
                let waiting = line.waiting.iter().flatten().map(|one| one.text.as_ref());
                let texts = waiting.chain([line.text.as_ref()]).flatten();
                let names = line.objects.iter().filter_map(|object| object.name.as_ref());
                texts.chain(names).map(String::len).sum()
            }
            Line::Gap(gap) => gap.by.keys().map(String::len).sum(),
            Line::Limits(limits) => limits.not_shown.iter().map(String::len).sum::<usize>(),
        };
        (texts + BYTES_BESIDE) as u64
    }
}

/// Where a line comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(Default, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    /// The tap in the kernel.
    #[cfg_attr(test, default)]
    Tap,
    /// `events_statements_history_long`.
    PerformanceSchema,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(Default, schemars::JsonSchema))]
pub(crate) struct ServerName {
    /// `None` where it is reached by a connection only.
    pub(crate) pid: Option<u32>,
    pub(crate) flavour: String,
    pub(crate) version: String,
}

/// A statement of data definition that ended.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(Default, schemars::JsonSchema))]
pub(crate) struct StatementLine {
    /// When it began.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub(crate) time: Option<Timestamp>,
    pub(crate) server: ServerName,
    pub(crate) source: Source,
    pub(crate) kind: &'static str,
    pub(crate) objects: Vec<ObjectLine>,
    pub(crate) objects_truncated: bool,
    pub(crate) temporary: bool,
    pub(crate) connection_id: Option<u64>,
    pub(crate) user: Option<String>,
    pub(crate) host: Option<String>,
    /// Why user and host are not known.
    pub(crate) account_absent: Option<String>,
    pub(crate) default_schema: Option<String>,
    pub(crate) duration_us: Option<f64>,
    /// Of these, what it waited for locks of others.
    pub(crate) lock_wait_us: Option<f64>,
    /// And the rest.
    pub(crate) work_us: Option<f64>,
    pub(crate) error: Option<u32>,
    /// It ran inside another statement, an event, or a replica applied it.
    pub(crate) nested: bool,
    pub(crate) text: Option<String>,
    /// The true length; `None` where the server cut it.
    pub(crate) text_bytes: Option<u64>,
    pub(crate) waiting: Option<Vec<WaitingLine>>,
}

/// An object of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ObjectLine {
    #[serde(rename = "type")]
    pub(crate) object_type: &'static str,
    pub(crate) schema: Option<String>,
    pub(crate) name: Option<String>,
}

/// A session that waited for a metadata lock behind a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WaitingLine {
    pub(crate) connection_id: Option<u64>,
    pub(crate) user: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) state: String,
    pub(crate) text: Option<String>,
}

/// Statements that may have been of data definition were not seen.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Gap {
    /// When that was noticed.
    #[cfg_attr(test, schemars(with = "String"))]
    pub(crate) time: Timestamp,
    pub(crate) server: ServerName,
    pub(crate) source: Source,
    pub(crate) missing: u64,
    /// By the kind of loss, or by the name of the event.
    pub(crate) by: BTreeMap<String, u64>,
}

/// What the source does not show on this server: before anything is listed, and where somebody leaves something out
/// or switches it off later.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Limits {
    /// When it began, or that was noticed.
    #[cfg_attr(test, schemars(with = "String"))]
    pub(crate) time: Timestamp,
    pub(crate) server: ServerName,
    pub(crate) source: Source,
    /// Each in words, with what to do about it.
    pub(crate) not_shown: Vec<String>,
}

/// The objects of a statement, those without a schema in the default one.
pub(crate) fn objects(ddl: &Ddl, default_schema: Option<&str>) -> Vec<ObjectLine> {
    let line = |object: &Object| ObjectLine {
        object_type: object.object_type.name(),
        schema: object.schema.clone().or_else(|| {
            default_schema.filter(|_| object.object_type.lies_in_a_schema()).map(str::to_owned)
        }),
        name: object.name.clone(),
    };
    ddl.objects.iter().map(line).collect()
}

impl ObjectLine {
    /// `schema.name`, or what there is of it.
    pub(crate) fn full_name(&self) -> String {
        let parts = [&self.schema, &self.name];
        parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(".")
    }
}
