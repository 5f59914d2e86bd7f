//! Lines for the system's log: datagrams on its socket, as syslog(3) sends them (RFC 3164 without a
//! host name). The format is one line of code; the crates for it bring a clock and a logger of their
//! own, and none connects again when the daemon is restarted.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use jiff::Zoned;

use super::json::bytes_of;
use super::line::Line;
use super::output::Destination;

/// `LOG_AUTHPRIV`: statements may hold data, and this one goes to files that few can read.
const FACILITY: u8 = 10 << 3;
/// `LOG_NOTICE`, and `LOG_WARNING` for what failed or is missing.
const NOTICE: u8 = 5;
const WARNING: u8 = 4;
/// So long a daemon may be away, to be started anew.
const AWAY_MAX: u32 = 100;
const TRY_EVERY: Duration = Duration::from_millis(100);

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
        let mut tries = 0;
        loop {
            let Err(error) = self.socket.send(datagram) else { return Ok(()) };
            if tries == AWAY_MAX || error.raw_os_error() == Some(TOO_LONG) {
                return Err(error);
            }
            tries += 1;
            sleep(TRY_EVERY);
            if let Ok(socket) = connect(&self.path) {
                self.socket = socket;
            }
        }
    }
}

/// `EMSGSIZE`
const TOO_LONG: i32 = rustix::io::Errno::MSGSIZE.raw_os_error();

fn connect(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
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

impl Destination for Syslog {
    fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut datagram = head(line, &Zoned::now()).into_bytes();
        datagram.extend(bytes_of(line)?.trim_ascii_end());
        self.send(&datagram).map_err(|error| at(&self.path, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
