//! The nouns of waggle: servers, statements, readings and losses.
//!
//! This crate does no input or output, starts no task and reads no clock. It takes bytes and times.
//! Its types are not serialisable on purpose: the crate that prints them has types of its own for
//! that.
#![forbid(unsafe_code)]

mod age;
mod before;
mod command;

mod cost;
mod death;
mod histogram;
mod interval;
mod lock;
mod lock_wait;
mod loss;
mod named;
mod parts;
mod process_state;
mod processor_sample;
mod processor_use;
mod reading;
mod record;
mod sample;
mod server;
mod session;
mod settings;
mod spent;
mod statement;
mod storage_waits;
mod trial;
mod version;
pub mod visible;
mod waiting;

pub use age::Age;
pub use before::{Logins, Unread};
pub use command::{Command, CommandKind};
pub use cost::Cost;
pub use death::{Death, FatalSignal, Sender};
pub use histogram::Histogram;
pub use interval::{CallsByUser, DigestKey, DigestName, DigestTotals, DigestsMax, Interval, Sum};
pub use lock::{SeenLocks, SeenMetadataLock, SeenRowWait, SeenSession};
pub use lock_wait::{LONG_WAIT_NS, LockWait, LockWaitNews, LockWaits, StatementLockWait};
pub use loss::{Loss, Losses};
pub use parts::{Parts, TimeClass, Usage};
pub use process_state::ProcessState;
pub use processor_sample::{ProcessorSample, Waited};
pub use processor_use::{ProcessorLimit, ProcessorUse};
pub use reading::Reading;
pub use record::{Ending, LastLook, Record};
pub use sample::{SAMPLE_TEXT_MAX, Sample, Samples};
pub use server::{BuildKey, Clock, Flavour, Server};
pub use session::{Blocked, Blocker, NowWait, Ran, RunningStatement, is_of_client};
pub use settings::{CharsetName, SessionSettings};
pub use spent::{AfterReply, Spent, SumOf};
pub use statement::{Identity, Origin, ServerStatus, Statement, StatementKey, Text};
pub use storage_waits::StorageWaits;
pub use trial::{Arm, ArmTimes, Bucket, Chooser, Collector, ShapeTimes, Times, Tossed, Trial};
pub use version::ServerVersion;
pub use waiting::{WaitingState, WaitsFor, idle_states, other_waiting_states, waiting_states};
