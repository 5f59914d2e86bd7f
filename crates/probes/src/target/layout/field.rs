//! The fields that waggle reads from a session.

/// The object from which the offset of a field counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Base {
    /// The session object (`THD`).
    Session,
    /// The diagnostics area that the session points to.
    Diagnostics,
    /// The security context that the session points to.
    SecurityContext,
}

/// A field of the server's memory. Pointers and times are 8 bytes wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// Pointer to the text of the statement.
    QueryText,
    /// Its length in bytes, 8 bytes wide.
    QueryLength,
    /// Pointer to the default database.
    Database,
    /// Its length in bytes, 8 bytes wide.
    DatabaseLength,
    /// The connection id. 4 bytes are read: ids of all families fit.
    ConnectionId,
    /// The status flags of the reply, 4 bytes wide.
    ServerStatus,
    /// The command, 4 bytes wide.
    Command,
    /// Start of the statement, microseconds of the family's clock. Never `start_time`, which
    /// `SET TIMESTAMP` moves.
    StartTime,
    /// The lock time, 8 bytes wide; see [`super::LockTime`].
    LockTime,
    /// Rows sent, 8 bytes wide.
    RowsSent,
    /// Rows examined, 8 bytes wide.
    RowsExamined,
    /// Pointer to the state text of the session (`proc_info`), which ends with a zero byte.
    State,
    /// The bits of `@@sql_mode`, 8 bytes wide.
    SqlMode,
    /// Pointer to the character set that statements arrive in (`@@character_set_client`).
    Charset,
    /// Pointer to the diagnostics area in use.
    Diagnostics,
    /// Pointer to the security context in use.
    SecurityContext,
    /// Whether the reply was already sent, 1 byte wide.
    IsSent,
    /// The status of the diagnostics area, 4 bytes wide.
    DiagnosticsStatus,
    /// Rows changed, 8 bytes wide.
    RowsAffected,
    /// The error number, 4 bytes wide.
    ErrorNumber,
    /// The user.
    User,
    /// The client's host name.
    Host,
    /// The client's address.
    Address,
}

impl Field {
    /// Every field, in the order in which they are shown.
    pub const ALL: [Field; 23] = [
        Field::QueryText,
        Field::QueryLength,
        Field::Database,
        Field::DatabaseLength,
        Field::ConnectionId,
        Field::ServerStatus,
        Field::Command,
        Field::StartTime,
        Field::LockTime,
        Field::RowsSent,
        Field::RowsExamined,
        Field::State,
        Field::SqlMode,
        Field::Charset,
        Field::Diagnostics,
        Field::SecurityContext,
        Field::IsSent,
        Field::DiagnosticsStatus,
        Field::RowsAffected,
        Field::ErrorNumber,
        Field::User,
        Field::Host,
        Field::Address,
    ];

    /// The name under which `waggle doctor` shows it.
    pub fn name(self) -> &'static str {
        match self {
            Field::QueryText => "query_text",
            Field::QueryLength => "query_length",
            Field::Database => "database",
            Field::DatabaseLength => "database_length",
            Field::ConnectionId => "connection_id",
            Field::ServerStatus => "server_status",
            Field::Command => "command",
            Field::StartTime => "start_time",
            Field::LockTime => "lock_time",
            Field::RowsSent => "rows_sent",
            Field::RowsExamined => "rows_examined",
            Field::State => "state",
            Field::SqlMode => "sql_mode",
            Field::Charset => "character_set_client",
            Field::Diagnostics => "diagnostics",
            Field::SecurityContext => "security_context",
            Field::IsSent => "is_sent",
            Field::DiagnosticsStatus => "diagnostics_status",
            Field::RowsAffected => "rows_affected",
            Field::ErrorNumber => "error_number",
            Field::User => "user",
            Field::Host => "host",
            Field::Address => "address",
        }
    }

    /// What its offset counts from.
    pub fn base(self) -> Base {
        match self {
            Field::IsSent | Field::DiagnosticsStatus | Field::RowsAffected | Field::ErrorNumber => {
                Base::Diagnostics
            }
            Field::User | Field::Host | Field::Address => Base::SecurityContext,
            _ => Base::Session,
        }
    }

    /// Width in bytes of what is read at its offset.
    pub fn width(self) -> u32 {
        match self {
            Field::ConnectionId
            | Field::ServerStatus
            | Field::Command
            | Field::DiagnosticsStatus
            | Field::ErrorNumber => 4,
            Field::IsSent => 1,
            _ => 8,
        }
    }

    /// Whether a statement can be captured at all without it.
    pub fn is_required(self) -> bool {
        matches!(
            self,
            Field::QueryText
                | Field::QueryLength
                | Field::ConnectionId
                | Field::Command
                | Field::StartTime
                | Field::Diagnostics
                | Field::DiagnosticsStatus
        )
    }
}
