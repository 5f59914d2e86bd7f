//! Why changes cannot be held or undone.

use std::path::PathBuf;

use waggle_mysql::ConnectionError;

use crate::journal::JournalError;
use crate::locked::Locked;

/// Why changes cannot be held or undone.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The server.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// A table takes no more rows.
    #[error(
        "{table} is full: it holds as many rows as performance_schema_{table}_size allows; name fewer \
         accounts or objects, or raise that variable in the server's option file and restart it"
    )]
    Full {
        /// `setup_actors` or `setup_objects`.
        table: &'static str,
    },
    /// The changes could be made, and not be taken back.
    #[error(
        "a rule for events, functions, procedures or triggers can be removed on this server only by emptying \
         setup_objects and filling it again, for which the account lacks a right; run {grant}"
    )]
    NoWayBack {
        /// The statement that gives the right.
        grant: String,
    },
    /// A table cannot be read, so that it is not known what of the changes is still there.
    #[error(
        "what {table} holds cannot be read, so that not all is undone: {why}; waggle pfs rollback undoes the rest once \
         it can be read"
    )]
    NotKnown {
        /// Which table.
        table: &'static str,
        /// Why.
        why: String,
    },
    /// The connection of a dead process still exists: its last statement could take effect after
    /// the undo.
    #[error(
        "nothing was undone: connection {connection}, which made the changes, {}; then run waggle pfs rollback",
        crate::left_connection::in_words(*connection, *was_killed)
    )]
    StillRuns {
        /// Its number.
        connection: u64,
        /// Whether waggle has killed it.
        was_killed: bool,
    },
    /// A connection has the number of the one that made the changes, and is not known to be it.
    #[error(
        "nothing was undone: journal {} names connection {connection}, which is there and does not show that it is \
         waggle's, so that waggle does not end it; if waggle did not write that file here, move it away; else run \
         waggle pfs rollback once the connection has ended",
        path.display()
    )]
    NotOurs {
        /// The journal.
        path: PathBuf,
        /// Its number.
        connection: u64,
    },
    /// Somebody else has changed what is switched.
    #[error("somebody else has changed what was to be switched, which is left as it is: {row}")]
    Changed {
        /// The row, and what it holds.
        row: String,
    },
    /// A lock of the whole server keeps the change waiting.
    #[error(transparent)]
    Locked(Locked),
    /// Changes of the same server were to stay: what came on top of them would be undone in the wrong order.
    #[error("`{command}` of {at} stays on this server; undo it first: waggle pfs rollback")]
    Kept {
        /// What was asked for.
        command: String,
        /// When.
        at: String,
    },
    /// Another process holds changes of the same server: what each found would depend on the other.
    #[error(
        "process {pid} holds `{command}` on this server; waggle pfs rollback ends it, and undoes that"
    )]
    Held {
        /// Which process.
        pid: u32,
        /// The request.
        command: String,
    },
}
