//! The terminal view of `waggle watch`: its data, its keys, and how it looks.
//!
//! It has three parts, and each knows only the parts before it. `state` holds the servers'
//! intervals and knows no colours. `view` draws, as a pure function of state and area. `input`
//! turns a key into a change of the state and an [`Action`]. There is no thread, clock or terminal
//! here: times come with the snapshots, and the owner of the terminal calls [`draw`].
//!
//! No text from a server is trusted. It reaches a cell only through `view::text`.
#![forbid(unsafe_code)]

mod input;
mod state;
mod view;

pub use input::{Action, Key};
pub use state::{App, Missed, Options, Snapshot};
pub use view::{Look, draw, picture, table};
