//! The end of the watch over a server.

use serde::Serialize;
use waggle_model::{Ending, FatalSignal, Record, Sender};

use super::{SessionJson, time_of};

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct EndedJson {
    why: String,
    signal: Option<SignalJson>,
    last_look: Option<String>,
    /// Whether that look was at the end itself: then nothing began later.
    at_end: Option<bool>,
    /// What ran at the last look and was not seen to end.
    ran: Option<Vec<SessionJson>>,
}

/// The signal that ended the server.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SignalJson {
    number: u32,
    name: Option<&'static str>,
    /// `session`: the thread of this session failed; `thread`: another thread of the server did; `kernel`; `process`.
    sender: &'static str,
    session: Option<u64>,
    sender_pid: Option<u32>,
    sender_name: Option<String>,
}

impl EndedJson {
    pub(super) fn new(ended: &Ending, record: &Record, redact: bool) -> EndedJson {
        let look = ended.last_look.as_ref();
        EndedJson {
            why: ended.why.clone(),
            signal: ended.signal.as_ref().map(SignalJson::of),
            last_look: look.map(|look| time_of(look.wall_ns).to_string()),
            at_end: look.map(|look| look.at_end),
            ran: look.map(|look| {
                look.ran.iter().map(|one| SessionJson::new(one, record, redact)).collect()
            }),
        }
    }
}

impl SignalJson {
    fn of(signal: &FatalSignal) -> SignalJson {
        let (sender, sender_pid, sender_name) = match &signal.sender {
            Sender::Thread { connection_id: Some(_), name } => ("session", None, Some(name)),
            Sender::Thread { connection_id: None, name } => ("thread", None, Some(name)),
            Sender::Kernel => ("kernel", None, None),
            Sender::Process { pid, name } => ("process", Some(*pid), Some(name)),
        };
        SignalJson {
            number: signal.number,
            name: signal.name(),
            sender,
            session: signal.connection_id(),
            sender_pid,
            sender_name: sender_name.cloned(),
        }
    }
}
