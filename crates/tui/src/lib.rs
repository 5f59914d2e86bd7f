//! The terminal view of `waggle watch`: what it knows, what a key does, and how it looks.
//!
//! Three parts, of which each knows those before it only: `state` holds the intervals of the
//! servers and knows nothing of colours; `view` draws, as a pure function of state and area; `input`
//! turns a key into a change of the state and an [`Action`]. There is no thread, no clock and
//! no terminal here: times come with the snapshots, and whoever owns the terminal calls [`draw`].
//!
//! All text of a server is untrusted: what reaches a cell has passed `view::text`.
#![forbid(unsafe_code)]

mod input;
mod state;
mod view;

pub use input::{Action, Key};
pub use state::{App, Options, Snapshot};
pub use view::{Look, draw, picture};
