//! Watches servers that come and go, and feeds what it sees to *sinks*.
//!
//! [`Observer`] empties the rings, looks at the sessions, and closes intervals. A [`StatementSink`] gets every
//! statement that ended. A [`RecordSink`] gets a [`waggle_model::Record`] per interval and server. The observer
//! never waits for a sink: one that may wait has a [`Queue`] in front, which counts what it loses.
#![forbid(unsafe_code)]

mod account;
mod blockers;
mod capture;
mod clocks;
mod cost;
mod hidden;
mod holders;
mod lock_waits;
mod lost;
mod news;
mod observer;
mod pace;
mod places;
mod processors;
mod queue;
mod refused;
mod remembered;
mod silence;
mod sink;
mod storage;
mod unread;

pub use capture::{Capture, CaptureOptions, Missing, Running, RunningTexts, Watched, WhyMissing};
pub use clocks::Clocks;
pub use cost::Meter;
pub use hidden::{hidden_servers, no_server};
pub use news::{Gone, News};
pub use observer::{Observer, ObserverOptions, Summary};
pub use queue::{Ended, Queue, Room, Size, Trouble, Writer};
pub use remembered::{OpenTransaction, Remembered, RememberedStatements};
pub use sink::{Companion, RecordSink, Sinks, Standing, StatementSink};
pub use unread::UnreadBook;
