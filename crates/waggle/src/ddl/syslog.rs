//! Sends lines to the system's log: datagrams to its socket, as syslog(3) sends them (RFC 3164
//! without a host name). Daemons expect that format there: rsyslog's special parser for the local
//! socket, and `syslog_skip_timestamp` and `syslog_parse_identifier` of journald. RFC 5424 is for
//! the network. The format takes one line of code. Crates for it bring their own clock and logger,
//! and none reconnects when the daemon restarts.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use jiff::Zoned;

use super::json::bytes_of;
use super::line::Line;
use super::output::Destination;

/// `LOG_AUTHPRIV`: statements may hold data, and this one goes to files that few can read.
const FACILITY: u8 = 10 << 3;
/// `LOG_NOTICE`, and `LOG_WARNING` for what failed, is missing or is not shown.
const NOTICE: u8 = 5;
const WARNING: u8 = 4;
/// How long a daemon may be away for a restart, or accept nothing.
const AWAY_MAX: Duration = Duration::from_secs(10);
const TRY_EVERY: Duration = Duration::from_millis(100);
/// Texts of this length stay as they are where a line does not fit into a datagram, bytes.
const SHORT: usize = 256;

/// The system's log.
pub(crate) struct Syslog {
    path: PathBuf,
    socket: UnixDatagram,
}

impl Syslog {
    /// Connects to the daemon's socket.
    ///
    /// # Errors
    /// Nobody listens there; with the path.
    pub(crate) fn open(path: &Path) -> io::Result<Syslog> {
        let socket = connect(path).map_err(|error| at(path, &error))?;
        Ok(Syslog { path: path.to_owned(), socket })
    }

    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let begin = Instant::now();
        loop {
            let Err(error) = self.socket.send(datagram) else { return Ok(()) };
            if begin.elapsed() >= AWAY_MAX || is_too_long(&error) {
                return Err(error);
            }
            sleep(TRY_EVERY);
            if let Ok(socket) = connect(&self.path) {
                self.socket = socket;
            }
        }
    }
}

/// Whether a datagram is larger than the buffer of the socket (unix(7); `net.core.wmem_default`, 208 KiB
/// on most hosts).
fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error())
}

fn connect(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    // Nobody is kept waiting for ever by a daemon that hangs.
    socket.set_write_timeout(Some(AWAY_MAX))?;
    Ok(socket)
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("--syslog {}: {error}", path.display()))
}

/// The head of a message: priority, local time and who says it.
fn head(line: &Line, now: &Zoned) -> String {
    let severity = match line {
        Line::Statement(line) if line.error.is_none_or(|error| error == 0) => NOTICE,
        _ => WARNING,
    };
    let time = now.strftime("%b %e %H:%M:%S");
    format!("<{}>{time} waggle[{}]: ", FACILITY | severity, std::process::id())
}

/// The line with half of each text, or without the waiting sessions if the texts are already short;
/// `None` if nothing is left to remove.
fn shortened(line: &Line) -> Option<Line> {
    let Line::Statement(statement) = line else { return None };
    let mut shorter = statement.clone();
    let waiting = shorter.waiting.iter_mut().flatten();
    let texts = shorter.text.iter_mut().chain(waiting.filter_map(|one| one.text.as_mut()));
    let mut is_shorter = false;
    for text in texts.filter(|text| text.len() > SHORT) {
        text.truncate(text.floor_char_boundary(text.len() / 2));
        is_shorter = true;
    }
    if !is_shorter {
        shorter.waiting.take()?;
    }
    Some(Line::Statement(shorter))
}

impl Destination for Syslog {
    fn write(&mut self, line: &Line) -> io::Result<()> {
        let head = head(line, &Zoned::now());
        let mut shorter = None;
        loop {
            let line = shorter.as_ref().unwrap_or(line);
            let mut datagram = head.clone().into_bytes();
            datagram.extend(bytes_of(line)?.trim_ascii_end());
            let Err(error) = self.send(&datagram) else { return Ok(()) };
            match shortened(line).filter(|_| is_too_long(&error)) {
                Some(line) => shorter = Some(line),
                None => return Err(at(&self.path, &error)),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::super::line::{Gap, ServerName, Source, StatementLine, WaitingLine};
    use super::*;

    fn statement(text: String, error: u32) -> Line {
        Line::Statement(Box::new(StatementLine {
            kind: "create_table",
            error: Some(error),
            text_bytes: Some(text.len() as u64),
            text: Some(text),
            ..StatementLine::default()
        }))
    }

    /// What the socket of a daemon gets.
    fn sent(line: &Line) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let daemon = UnixDatagram::bind(&path).unwrap();
        Syslog::open(&path).unwrap().write(line).unwrap();
        let mut datagram = vec![0; 1 << 23];
        let length = daemon.recv(&mut datagram).unwrap();
        String::from_utf8(datagram[..length].to_vec()).unwrap()
    }

    #[test]
    fn the_head_is_as_syslog_3_writes_it() {
        let now: Zoned = "2026-11-02T03:04:05+01:00[+01:00]".parse().unwrap();
        let own = std::process::id();
        let head = |line: &Line| head(line, &now);
        // LOG_AUTHPRIV with LOG_NOTICE; the day has a blank for its first digit, the time is local.
        let done = format!("<85>Nov  2 03:04:05 waggle[{own}]: ");
        assert_eq!(head(&statement(String::new(), 0)), done);
        let failed = format!("<84>Nov  2 03:04:05 waggle[{own}]: ");
        assert_eq!(head(&statement(String::new(), 1050)), failed);
        let (server, source, by) = (ServerName::default(), Source::Tap, BTreeMap::new());
        let gap = Gap { time: now.timestamp(), server, source, missing: 1, by };
        assert_eq!(head(&Line::Gap(gap)), failed);
    }

    #[test]
    fn a_line_is_one_datagram_without_an_end_or_control_characters() {
        let told = sent(&statement("CREATE TABLE t (\n\ta INT)\0".to_owned(), 0));
        assert!(!told.contains(char::is_control), "{told:?}");
        let (_, json) = told.split_once("]: ").unwrap();
        let line: Value = serde_json::from_str(json).unwrap();
        assert_eq!(line["text"], "CREATE TABLE t (\n\ta INT)\0");
    }

    #[test]
    fn a_line_that_is_too_long_for_a_datagram_is_sent_with_shorter_texts() {
        let limit = std::fs::read_to_string("/proc/sys/net/core/wmem_default").unwrap();
        let limit: usize = limit.trim().parse().unwrap();
        // Of two bytes each, so that a half can lie within one.
        let told = sent(&statement(format!("x{}", "ä".repeat(limit)), 0));
        let (_, json) = told.split_once("]: ").unwrap();
        let line: Value = serde_json::from_str(json).unwrap();
        assert!((SHORT..limit).contains(&line["text"].as_str().unwrap().len()));
        assert_eq!(line["text_bytes"], 2 * limit + 1);
    }

    #[test]
    fn those_who_waited_are_left_out_last() {
        let Line::Statement(mut line) = statement("DROP TABLE t".to_owned(), 0) else {
            panic!("it is a statement")
        };
        let state = "Waiting for table metadata lock".to_owned();
        let text = Some("x".repeat(SHORT + 1));
        let one = WaitingLine { connection_id: None, user: None, host: None, state, text };
        line.waiting = Some(vec![one]);
        let waiting = |line: &Line| match line {
            Line::Statement(line) => line.waiting.clone(),
            Line::Gap(_) | Line::Limits(_) => None,
        };
        let first = shortened(&Line::Statement(line)).unwrap();
        assert_eq!(waiting(&first).unwrap()[0].text.as_ref().unwrap().len(), SHORT / 2);
        let second = shortened(&first).unwrap();
        assert_eq!(waiting(&second), None);
        assert!(shortened(&second).is_none());
    }
}
