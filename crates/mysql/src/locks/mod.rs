//! Who waits for which lock, and who holds it: row locks of InnoDB, metadata locks, and every other
//! wait that the state of a session tells of ([`waggle_model::WaitsFor`]), as a tree.
//!
//! Reading lock tables costs the server something. So [`Poller`] first asks with two cheap
//! statements whether anything waits ([`gate`]). Only then does it read the lock tables, each with a
//! limit, and never those that can hang the server ([`rows`]). [`tree`] is pure: waits in, a tree
//! out. Everything here only reads. The printer names the `KILL`; nothing sends it.

mod appliers;
mod both;
mod compatible;
pub mod deadlock;
mod flush;
mod gate;
mod memory;
mod metadata;
mod poll;
mod remedy;
mod rows;
mod sessions;
mod told;
mod tree;
mod turns;
mod wait;
mod workers;

pub use deadlock::{Deadlock, HeldLock, Party, last_deadlock};
pub use gate::RowWaits;
pub use memory::{About, in_memory, server_in_memory, waits_in_memory};
pub use metadata::read_lock_holders;
pub use poll::{Locks, Memory, Poller, SomebodyWaits};
pub use remedy::Remedy;
pub use sessions::{LastStatement, Session, SessionKind, Transaction};
pub use tree::{Node, Tree};
pub use turns::TURN;
pub use wait::{Key, Lock, LockKind, Source, Unknown, Wait};

/// The maximum number of waiters that one poll reads, longest wait first.
pub const WAITERS_MAX: usize = 100;
/// Most rows of who blocks whom that one poll reads. N waiters for one row have N²/2 of them, as
/// each waits for all that came before it.
pub const BLOCKS_MAX: usize = 1000;

/// A list of values in a statement.
fn list<T: ToString>(values: impl IntoIterator<Item = T>) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(", ")
}

/// A text from the server inside a statement of ours: ids of locks, names of tables.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}
