//! What must be captured, from what the client sent and what the server answered, and the
//! comparison with what was.

use waggle_host::monotonic_ns;
use waggle_model::{Command, Origin};
use waggle_probes::capture::TEXT_LIMIT;
use waggle_testkit::client::ResultSet;

use crate::capture::Seen;

/// The start is noted in whole microseconds, and the distance of the wall clock from the monotonic
/// one is known within a fraction of a millisecond.
const CLOCK_SLACK_NS: u64 = 1_000_000;
/// In transaction, autocommit, more results, no good index, no index.
const STATUS_BITS: u32 = 0x3b;

/// Who sends, as the server knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) user: String,
    pub(crate) host: String,
    pub(crate) database: Option<String>,
}

/// One statement, or another command with a reply, that must be captured.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) command: Command,
    pub(crate) text: Option<Vec<u8>>,
    pub(crate) who: Who,
    /// `None`: the server itself has no such number.
    pub(crate) rows_sent: Option<u64>,
    /// `None`: not known to the client.
    pub(crate) rows_examined: Option<u64>,
    pub(crate) rows_affected: Option<u64>,
    /// `None`: the client was gone before it could be told.
    pub(crate) error: Option<u32>,
    /// The status bits of the reply; an error carries none.
    pub(crate) status: Option<u32>,
    pub(crate) client_gone: bool,
    /// Whether the query cache answers: then the server counts no rows, and sets no status.
    pub(crate) from_cache: bool,
    /// Least bytes of the reply.
    pub(crate) bytes: u64,
    /// When the client began to send it.
    pub(crate) sent_ns: u64,
}

impl Expected {
    /// A command whose reply was only OK.
    pub(crate) fn ok(command: Command, text: Option<&[u8]>, who: &Who) -> Self {
        Self {
            command,
            text: text.map(<[u8]>::to_vec),
            who: who.clone(),
            rows_sent: None,
            rows_examined: None,
            rows_affected: Some(0),
            error: Some(0),
            status: None,
            client_gone: false,
            from_cache: false,
            bytes: 1,
            sent_ns: monotonic_ns(),
        }
    }

    /// Takes over what the server answered.
    pub(crate) fn answered(mut self, result: &ResultSet) -> Self {
        // For the others the counter is left over from the statement before.
        let counts_rows = self.command.is_statement() || self.command == Command::FETCH;
        self.rows_sent = counts_rows.then_some(result.rows.len() as u64);
        self.rows_affected = Some(result.affected);
        let error = result.error.as_ref().map_or(0, |(number, _)| u32::from(*number));
        self.error = Some(error);
        self.status = (error == 0).then_some(u32::from(result.status));
        let values = result.rows.iter().flatten().flatten();
        self.bytes = values.map(|value| value.len() as u64).sum::<u64>().max(1);
        self
    }

    /// What differs in a captured statement.
    pub(crate) fn differences(&self, seen: &Seen) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, is_same: bool, expected: String, got: String| {
            if !is_same {
                found.push(format!("{what}: expected {expected}, captured {got}"));
            }
        };
        macro_rules! same {
            ($what:literal, $expected:expr, $got:expr) => {{
                let (expected, got) = ($expected, $got);
                compare($what, expected == got, format!("{expected:?}"), format!("{got:?}"));
            }};
        }
        same!("command", self.command, seen.command);
        same!("origin", Origin::Client, seen.origin);
        same!("text", self.text.as_deref().map(shown), seen.text.as_deref().map(shown));
        same!("length", self.text.as_ref().map_or(0, |text| text.len() as u64), seen.length);
        same!("user", Some(self.who.user.clone()), string(&seen.identity.user));
        same!("host", Some(self.who.host.clone()), string(&seen.identity.host));
        same!("database", self.who.database.clone(), string(&seen.identity.database));
        if self.error.is_some() {
            same!("error", self.error, seen.error);
        }
        same!("client gone", self.client_gone, seen.client_gone);
        if self.from_cache {
            same!("rows sent", None::<u64>, seen.rows_sent);
            same!("rows examined", None::<u64>, seen.rows_examined);
            same!("status", None::<u32>, seen.status);
            same!("bytes", None::<u64>, seen.bytes_sent);
        }
        if self.rows_sent.is_some() {
            same!("rows sent", self.rows_sent, seen.rows_sent);
        }
        if self.rows_examined.is_some() {
            same!("rows examined", self.rows_examined, seen.rows_examined);
        }
        if self.rows_affected.is_some() {
            same!("rows affected", self.rows_affected, seen.rows_affected);
        }
        if let Some(status) = self.status {
            let bits = |status: u32| format!("{:#x}", status & STATUS_BITS);
            same!("status", Some(bits(status)), seen.status.map(bits));
        }
        let is_small = seen.bytes_sent.is_none_or(|bytes| bytes < self.bytes) && !self.from_cache;
        if !self.client_gone && is_small {
            compare("bytes", false, format!("at least {}", self.bytes), show(seen.bytes_sent));
        }
        found.extend(self.wrong_times(seen));
        found
    }

    /// A statement begins after it was sent and its reply ends before it is seen: bounds that hold
    /// however slow the machine is.
    fn wrong_times(&self, seen: &Seen) -> Vec<String> {
        let mut found = Vec::new();
        let (Some(start), Some(first)) = (seen.start_ns, seen.first_byte_ns) else {
            return vec!["times: the start is not known".to_owned()];
        };
        let is_login = self.command == Command::CONNECT;
        if start + CLOCK_SLACK_NS < self.sent_ns && !is_login {
            found.push(format!("start: {} ns before it was sent", self.sent_ns - start));
        }
        if start > seen.end_ns || seen.end_ns > monotonic_ns() {
            found.push(format!(
                "times: start {start}, end {}, now {}",
                seen.end_ns,
                monotonic_ns()
            ));
        }
        if Some(first) > seen.latency_ns {
            found.push(format!("first byte after {first} ns, latency {:?}", seen.latency_ns));
        }
        found
    }

    /// In short, for a failure.
    pub(crate) fn brief(&self) -> String {
        format!("{} {:?}", self.command, self.text.as_deref().map(shown))
    }
}

impl Seen {
    /// In short, for a failure.
    pub(crate) fn brief(&self) -> String {
        let text = self.text.as_deref().map(shown);
        let error = self.error.unwrap_or(0);
        format!("{} {text:?} error {error} of connection {}", self.command, self.connection)
    }
}

fn show(number: Option<u64>) -> String {
    number.map_or("none".to_owned(), |number| number.to_string())
}

fn string(bytes: &Option<Vec<u8>>) -> Option<String> {
    bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// A text as far as it is captured, readable; a long one by its ends.
fn shown(text: &[u8]) -> String {
    let text = &text[..text.len().min(TEXT_LIMIT as usize)];
    let readable = text.escape_ascii().to_string();
    if readable.len() <= 160 {
        return readable;
    }
    let sum =
        text.iter().fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)));
    format!(
        "{}…{} ({} bytes, sum {sum:x})",
        &readable[..80],
        &readable[readable.len() - 40..],
        text.len()
    )
}

/// Compares what one connection must show with what was captured of it, one by one and in order.
pub(crate) fn compare(expected: &[Expected], seen: &[&Seen]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, pair) in expected.iter().zip(seen).enumerate() {
        let different = pair.0.differences(pair.1);
        if !different.is_empty() {
            found.push(format!("{}. {}: {}", index + 1, pair.0.brief(), different.join("; ")));
        }
    }
    found.extend(expected.iter().skip(seen.len()).map(|one| format!("missing: {}", one.brief())));
    found.extend(seen.iter().skip(expected.len()).map(|one| format!("extra: {}", one.brief())));
    found
}
