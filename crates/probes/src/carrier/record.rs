//! What a record of the rings says, whichever probe wrote it.

use std::collections::HashMap;

use waggle_model::{
    Command, Flavour, Identity, Loss, Losses, Origin, ServerStatus, Statement, StatementKey, Text,
};

use super::plan::Plan;
use super::skeleton::types;
use crate::servers::layout::{DiagnosticsCodes, Field, Layout, LockTime};

// `enum record_kind` of `shared.h`.
pub(crate) const RECORD_STATEMENT: u32 = 1;
pub(crate) const RECORD_IDENTITY: u32 = 2;
pub(crate) const RECORD_NESTED: u32 = 3;
pub(crate) const RECORD_READY: u32 = 4;
pub(crate) const RECORD_SAMPLE: u32 = 5;
pub(crate) const RECORD_WAIT: u32 = 6;
pub(crate) const RECORD_LEFT: u32 = 7;
pub(crate) const RECORD_RESTS: u32 = 8;
pub(crate) const RECORD_FATAL: u32 = 9;
pub(crate) const RECORD_DYING: u32 = 10;

/// The facts of a build that turn the bytes of a record into numbers.
#[derive(Clone, Debug)]
pub(crate) struct Meaning {
    lock_time: Option<LockTime>,
    pub(crate) codes: DiagnosticsCodes,
    /// MariaDB calls `log_slow_statement` of a prepared statement once, before the reply
    /// (`Prepared_statement::execute` in `sql/sql_prepare.cc`). What runs inside a procedure is not
    /// logged by itself (`log_slow_disabled_statements` holds `sp` by default).
    pub(crate) logs_early: bool,
    /// Whether what a session tells of its user is that.
    has_user: bool,
    /// The same for its host.
    has_host: bool,
    /// The same for its database.
    has_database: bool,
}

impl Meaning {
    pub(crate) fn of(layout: &Layout) -> Self {
        let knows = |fields: [Field; 2]| fields.iter().all(|field| layout.offset(*field).is_some());
        Self {
            lock_time: layout.lock_time.value().copied(),
            codes: layout.diagnostics,
            logs_early: layout.flavour == Flavour::Mariadb,
            has_user: knows([Field::SecurityContext, Field::User]),
            has_host: knows([Field::SecurityContext, Field::Host]),
            has_database: knows([Field::Database, Field::DatabaseLength]),
        }
    }

    /// Who a session is, less what the layout does not show.
    pub(crate) fn trusted(&self, told: Identity) -> Identity {
        Identity {
            user: told.user.filter(|_| self.has_user),
            host: told.host.filter(|_| self.has_host),
            database: told.database.filter(|_| self.has_database),
        }
    }
}

/// Reads a plain C structure from the start of `bytes`.
pub(crate) fn read_struct<T: Copy>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < std::mem::size_of::<T>() {
        return None;
    }
    // SAFETY: only the generated types of `shared.h` are passed, which are integers and arrays of
    // integers, so every pattern of bytes is a value; the length was checked; the read needs no
    // alignment.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// The common start of every record.
pub(crate) fn head_of(record: &[u8]) -> Option<types::head> {
    read_struct(record)
}

/// A session told who it is.
pub(crate) fn identity_of(record: &[u8]) -> Option<Identity> {
    let raw: types::identity = read_struct(record)?;
    Some(Identity {
        user: name_of(&raw.user, raw.user_length),
        host: name_of(&raw.host, raw.host_length),
        database: name_of(&raw.database, raw.database_length),
    })
}

/// A name in a record; `None` where there is none: its length is negative.
pub(crate) fn name_of(bytes: &[u8], length: i32) -> Option<Vec<u8>> {
    let length = usize::try_from(length).ok()?.min(bytes.len());
    Some(bytes[..length].to_vec())
}

/// A session of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Session {
    pub(crate) tgid: u32,
    pub(crate) thd: u64,
}

impl Session {
    /// The one that a record is about.
    pub(crate) fn of(head: &types::head) -> Session {
        Session { tgid: head.tgid, thd: head.thd }
    }
}

/// What a program copied of a session at the end of a statement, with the fields still in the
/// server's own form.
#[derive(Clone, Copy)]
pub(crate) struct SessionData<'a> {
    pub(crate) head: types::head,
    data: &'a [u8],
    pub(crate) text: &'a [u8],
    /// Where its time went, as the record has it; empty: that is not known.
    pub(crate) parts: &'a [u8],
    plan: &'a Plan,
}

impl<'a> SessionData<'a> {
    fn new(record: &'a [u8], plan: &'a Plan) -> Option<Self> {
        let head = head_of(record)?;
        let rest = record.get(std::mem::size_of::<types::head>()..)?;
        let (data, text) = rest.split_at_checked(plan.config.data_length as usize)?;
        let text = text.get(..head.text_length as usize)?;
        let parts = Some(head.parts_at as usize).filter(|at| *at > 0);
        let parts = parts.and_then(|at| record.get(at..)).unwrap_or_default();
        Some(Self { head, data, text, parts, plan })
    }

    /// The value of a field, zero-extended; `None` if the layout lacks it.
    pub(crate) fn get(&self, field: Field) -> Option<u64> {
        let at = self.plan.at(field)? as usize;
        let bytes = self.data.get(at..at + field.width() as usize)?;
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        Some(u64::from_le_bytes(wide))
    }

    /// The bytes of the fields, in the order of the plan.
    pub(crate) fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The status of the diagnostics area.
    pub(crate) fn status(&self) -> Option<u32> {
        self.get(Field::DiagnosticsStatus).map(|status| status as u32)
    }

    /// What tells one statement of a session from the next. Where the layout has no start, the time of
    /// its request does, but for the statements of one packet.
    pub(crate) fn statement_key(&self) -> StatementKey {
        StatementKey {
            thd: self.head.thd,
            connection_id: self.get(Field::ConnectionId).unwrap_or(0),
            noted_start_us: self.get(Field::StartTime).unwrap_or(self.head.received_ns / 1000),
        }
    }

    /// Its text, where it has one that could be read.
    pub(crate) fn statement_text(&self) -> Option<Text<'a>> {
        let length = self.get(Field::QueryLength)?;
        let is_there = self.get(Field::QueryText)? != 0 && length > 0;
        let is_read = self.head.text_unreadable == 0;
        (is_there && is_read).then_some(Text { bytes: self.text, length })
    }
}

/// How the records of one server are read.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The number of the programs that serve it.
    pub(crate) program: u32,
    pub(crate) plan: Plan,
    pub(crate) meaning: Meaning,
}

impl Target {
    /// The same for a layout that lost fields since; `None` where it needs another program.
    pub(crate) fn narrowed(&self, layout: &Layout) -> Option<Target> {
        let plan = self.plan.narrowed(layout)?;
        Some(Target { program: self.program, plan, meaning: Meaning::of(layout) })
    }

    /// The same for records with room for `bytes` more at the end of their data.
    pub(crate) fn with_room(&self, bytes: u32) -> Target {
        Target { plan: self.plan.with_room(bytes), ..self.clone() }
    }

    /// Reads a record of a statement. Nobody knows what one says that was written by the layout before:
    /// it is lost.
    pub(crate) fn read<'a>(
        &'a self,
        record: &'a [u8],
        lost: &mut HashMap<u32, Losses>,
    ) -> Option<SessionData<'a>> {
        let data = SessionData::new(record, &self.plan)?;
        if data.head.program != self.program {
            lost.entry(data.head.tgid).or_default().add(Loss::UnreadableSession, 1);
            return None;
        }
        Some(data)
    }

    /// What the data tells of a statement, whichever probe it is from. Its times, its bytes and its
    /// settings are left to the probe.
    pub(crate) fn statement<'a>(
        &self,
        data: &SessionData<'a>,
        identity: &'a Identity,
    ) -> Statement<'a> {
        let codes = &self.meaning.codes;
        let status = data.status();
        // The query cache answers without a status and counts no rows: what stands there is older. Only
        // its first send is recorded.
        let is_counted = status != Some(codes.empty);
        let counted = |field: Field| data.get(field).filter(|_| is_counted);
        let only_if = |is_there: bool, field: Field| match status {
            None => None,
            Some(_) if is_there => data.get(field),
            Some(_) => Some(0),
        };
        let is_ok = status.is_some_and(|status| codes.is_ok(status));
        let is_error = status == Some(codes.error);
        Statement {
            pid: data.head.tgid,
            thd: data.head.thd,
            connection_id: data.get(Field::ConnectionId),
            command: data.get(Field::Command).map(|number| Command(number as u8)),
            origin: Origin::Client,
            noted_start_us: data.get(Field::StartTime),
            end_ns: data.head.end_ns,
            latency_ns: None,
            first_byte_ns: None,
            text: data.statement_text(),
            settings: None,
            identity,
            rows_sent: counted(Field::RowsSent),
            rows_examined: counted(Field::RowsExamined),
            rows_affected: only_if(is_ok, Field::RowsAffected),
            lock_ns: self.lock_ns(data),
            error: only_if(is_error, Field::ErrorNumber).map(|number| number as u32),
            server_status: counted(Field::ServerStatus).map(|bits| ServerStatus(bits as u32)),
            bytes_sent: None,
            client_gone: data.head.result < 0,
            parts: None,
            usage: None,
            after_reply_before_ns: None,
            lock_waits: &[],
        }
    }

    /// Time in locks in nanoseconds.
    fn lock_ns(&self, data: &SessionData<'_>) -> Option<u64> {
        let field = data.get(Field::LockTime)?;
        match self.meaning.lock_time? {
            LockTime::Duration => field.checked_mul(1000),
            LockTime::Until => {
                let start = data.get(Field::StartTime)?;
                Some(field.saturating_sub(start).saturating_mul(1000))
            }
        }
    }
}
