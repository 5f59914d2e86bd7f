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

waggle_model::named! {
    /// A field of the server's memory. Pointers and times are 8 bytes wide.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Field {
        /// Pointer to the text of the statement.
        QueryText = "query_text",
        /// Its length in bytes, 8 bytes wide.
        QueryLength = "query_length",
        /// Pointer to the default database.
        Database = "database",
        /// Its length in bytes, 8 bytes wide.
        DatabaseLength = "database_length",
        /// The connection id. 4 bytes are read: ids of all families fit.
        ConnectionId = "connection_id",
        /// The status flags of the reply, 4 bytes wide.
        ServerStatus = "server_status",
        /// The command, 4 bytes wide.
        Command = "command",
        /// Start of the statement, microseconds of the family's clock. Never `start_time`, which
        /// `SET TIMESTAMP` moves.
        StartTime = "start_time",
        /// The lock time, 8 bytes wide; see [`super::LockTime`].
        LockTime = "lock_time",
        /// Rows sent, 8 bytes wide.
        RowsSent = "rows_sent",
        /// Rows examined, 8 bytes wide.
        RowsExamined = "rows_examined",
        /// Pointer to the state text of the session (`proc_info`), which ends with a zero byte.
        State = "state",
        /// The bits of `@@sql_mode`, 8 bytes wide.
        SqlMode = "sql_mode",
        /// Pointer to the character set that statements arrive in (`@@character_set_client`).
        Charset = "character_set_client",
        /// Whether the session or its statement was killed: a number other than 0, 4 bytes wide.
        Killed = "killed",
        /// Pointer to the diagnostics area in use.
        Diagnostics = "diagnostics",
        /// Pointer to the security context in use.
        SecurityContext = "security_context",
        /// Whether the reply was already sent, 1 byte wide.
        IsSent = "is_sent",
        /// The status of the diagnostics area, 4 bytes wide.
        DiagnosticsStatus = "diagnostics_status",
        /// Rows changed, 8 bytes wide.
        RowsAffected = "rows_affected",
        /// The error number, 4 bytes wide.
        ErrorNumber = "error_number",
        /// The user.
        User = "user",
        /// The client's host name.
        Host = "host",
        /// The client's address.
        Address = "address",
    }
}

impl Field {
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
            | Field::Killed
            | Field::DiagnosticsStatus
            | Field::ErrorNumber => 4,
            Field::IsSent => 1,
            _ => 8,
        }
    }

    /// What waggle does without it.
    pub fn consequence(self) -> &'static str {
        match self {
            Field::QueryText | Field::QueryLength => "so there are no texts and no digests",
            Field::Database | Field::DatabaseLength => "so there are no default databases",
            Field::ConnectionId => "so there are no connection ids and no running sessions",
            Field::ServerStatus => "so nothing tells which statements use no index",
            Field::Command => {
                "so every reply with a text counts as a statement, and there are no running sessions"
            }
            Field::StartTime => {
                "so latencies run from the end of the request's receive to the reply, and running \
                 statements have no age"
            }
            Field::LockTime => "so there are no lock times",
            Field::RowsSent => "so there are no rows sent",
            Field::RowsExamined => "so there are no rows examined",
            Field::State => "so running sessions have no state",
            Field::SqlMode | Field::Charset => {
                "so digests are made as if every session had the default sql_mode and utf8"
            }
            Field::Killed => "so nothing tells whether the holder of a lock was killed already",
            Field::Diagnostics | Field::DiagnosticsStatus => {
                "so there are no errors and no rows affected, and the last reply before the next \
                 statement counts as the end"
            }
            Field::SecurityContext => "so there are no users and no hosts",
            Field::IsSent => "so what a session sends after its reply is told by its start only",
            Field::RowsAffected => "so there are no rows affected",
            Field::ErrorNumber => "so there are no errors",
            Field::User => "so there are no users",
            Field::Host => "so there are no hosts",
            Field::Address => "so clients whose name is not resolved have no host",
        }
    }
}
