//! What clients waited for at the end of an interval before any statement of theirs began, as JSON.

use serde::Serialize;
use waggle_model::{Age, Logins, Record, Unread};

/// The part of a line.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct BeforeJson {
    /// Clients that have connected and are not in yet.
    logins: Option<LoginsJson>,
    /// Why they are not known.
    logins_absent: Option<String>,
    /// What lies in the sockets of the server and nobody there has taken.
    unread: Option<UnreadJson>,
    /// Why that is not known.
    unread_absent: Option<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LoginsJson {
    under_way: usize,
    oldest_s: Option<f64>,
    /// Whether it may be older: the server does not show when one of them began.
    oldest_is_at_least: Option<bool>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct UnreadJson {
    /// Connections whose client has sent something that waits.
    requests: usize,
    /// It waits as long at least.
    oldest_s: Option<f64>,
    /// Connections that are made and not accepted.
    to_accept: usize,
}

impl BeforeJson {
    /// That of an interval.
    pub(super) fn of(record: &Record) -> BeforeJson {
        BeforeJson {
            logins: record.logins.value().map(LoginsJson::of),
            logins_absent: record.logins.why().map(str::to_owned),
            unread: record.unread.value().map(UnreadJson::of),
            unread_absent: record.unread.why().map(str::to_owned),
        }
    }
}

impl LoginsJson {
    fn of(logins: &Logins) -> LoginsJson {
        LoginsJson {
            under_way: logins.under_way,
            oldest_s: logins.oldest.as_ref().map(Age::seconds),
            oldest_is_at_least: logins.oldest.map(|age| age.is_at_least),
        }
    }
}

impl UnreadJson {
    fn of(unread: &Unread) -> UnreadJson {
        UnreadJson {
            requests: unread.requests,
            oldest_s: unread.oldest.as_ref().map(Age::seconds),
            to_accept: unread.to_accept,
        }
    }
}
