//! What one record of the ring says.

use waggle_model::{Clock, Flavour, Identity, StatementKey};

use super::plan::{Plan, context_of};
use super::skeleton::types;
use crate::target::layout::{DiagnosticsCodes, Field, Layout, LockTime};

pub(super) const RECORD_STATEMENT: u32 = 1;
pub(super) const RECORD_IDENTITY: u32 = 2;
pub(super) const RECORD_NESTED: u32 = 3;
pub(super) const RECORD_READY: u32 = 4;

/// The facts of a build that turn the bytes of a record into numbers.
#[derive(Clone, Debug)]
pub(super) struct Meaning {
    pub(super) clock: Clock,
    pub(super) lock_time: Option<LockTime>,
    pub(super) codes: DiagnosticsCodes,
    /// MariaDB calls `log_slow_statement` of a prepared statement once, before the reply
    /// (`Prepared_statement::execute` in `sql/sql_prepare.cc`). What runs inside a procedure is not
    /// logged by itself (`log_slow_disabled_statements` holds `sp` by default).
    pub(super) logs_early: bool,
    /// Whether what a session tells of its user and host is that.
    pub(super) has_account: bool,
    /// The same for its database.
    pub(super) has_database: bool,
}

impl Meaning {
    pub(super) fn of(layout: &Layout) -> Self {
        Self {
            clock: layout.clock,
            lock_time: layout.lock_time.value().copied(),
            codes: layout.diagnostics,
            logs_early: layout.flavour == Flavour::Mariadb,
            has_account: context_of(layout).is_some(),
            has_database: [Field::Database, Field::DatabaseLength]
                .iter()
                .all(|field| layout.offset(*field).is_some()),
        }
    }

    /// Who a session is, less what the layout does not show.
    pub(super) fn trusted(&self, told: Identity) -> Identity {
        Identity {
            user: told.user.filter(|_| self.has_account),
            host: told.host.filter(|_| self.has_account),
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
pub(super) fn head_of(record: &[u8]) -> Option<types::head> {
    read_struct(record)
}

/// A session told who it is.
pub(super) fn identity_of(record: &[u8]) -> Option<Identity> {
    let raw: types::identity = read_struct(record)?;
    let string = |length: i32, bytes: &[u8]| {
        let length = usize::try_from(length).ok()?.min(bytes.len());
        Some(bytes[..length].to_vec())
    };
    Some(Identity {
        user: string(raw.user_length, &raw.user),
        host: string(raw.host_length, &raw.host),
        database: string(raw.database_length, &raw.database),
    })
}

/// A reply, with its fields still in the server's own form.
#[derive(Clone, Copy)]
pub(crate) struct Reply<'a> {
    pub(crate) head: types::head,
    data: &'a [u8],
    pub(super) text: &'a [u8],
    plan: &'a Plan,
}

impl<'a> Reply<'a> {
    pub(crate) fn new(record: &'a [u8], plan: &'a Plan) -> Option<Self> {
        let head = head_of(record)?;
        let rest = record.get(std::mem::size_of::<types::head>()..)?;
        let (data, text) = rest.split_at_checked(plan.config.data_length as usize)?;
        let text = text.get(..head.text_length as usize)?;
        Some(Self { head, data, text, plan })
    }

    /// The value of a field, zero-extended; `None` where the layout lacks it.
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

    /// What tells one statement of a session from the next.
    pub(super) fn statement_key(&self) -> StatementKey {
        let or_zero = |field| self.get(field).unwrap_or(0);
        StatementKey {
            thd: self.head.thd,
            connection_id: or_zero(Field::ConnectionId),
            noted_start_us: or_zero(Field::StartTime),
        }
    }
}

/// Time in locks in nanoseconds.
pub(super) fn lock_ns(reply: &Reply<'_>, meaning: &Meaning) -> Option<u64> {
    let field = reply.get(Field::LockTime)?;
    match meaning.lock_time? {
        LockTime::Duration => field.checked_mul(1000),
        LockTime::Until => {
            let start = reply.get(Field::StartTime)?;
            Some(field.saturating_sub(start).saturating_mul(1000))
        }
    }
}
