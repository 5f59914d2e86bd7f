//! Who waits for which lock, and who holds it: row locks of InnoDB and metadata locks as a tree.
//!
//! Reading lock tables costs the server something, so [`Poller`] asks first whether anything waits,
//! in two cheap statements ([`gate`]). Only then are the lock tables read, each with a limit, and
//! never those that can hang the server ([`rows`]). [`tree`] is pure: waits in, a tree out.
//! Everything here only reads; `KILL` is named by whoever prints, never sent.

mod compatible;
pub mod deadlock;
mod gate;
mod metadata;
mod poll;
mod rows;
mod sessions;
mod tree;
mod wait;

pub use deadlock::{Deadlock, HeldLock, Party, last_deadlock};
pub use gate::RowWaits;
pub use poll::{Locks, Poller};
pub use sessions::{LastStatement, Session, Transaction};
pub use tree::{Node, Tree};
pub use wait::{Key, Lock, LockKind, Unknown, Wait};

/// Most waiters that one poll reads, those that wait longest first.
pub const WAITERS_MAX: usize = 100;
/// Most rows of who blocks whom that one poll reads. N waiters for one row have N²/2 of them, as
/// each waits for all that came before it.
pub const BLOCKS_MAX: usize = 1000;

/// A list of values in a statement.
fn list<T: ToString>(values: impl IntoIterator<Item = T>) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(", ")
}

/// A text of the server in a statement of ours: identifiers of locks and names of tables.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}
