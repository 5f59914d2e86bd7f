//! What waits in the sockets of a process: what its clients have sent, and connections that it has not accepted.

use std::collections::HashSet;
use std::time::Duration;
use std::{fmt, io};

use crate::process::Process;
use crate::rights::Need;
use crate::sock_diag::{Asker, Bound, UnixSocket};
use crate::sockets::{Endpoint, Listener};

/// Sockets that one look may meet.
const SOCKETS_MAX: usize = 20_000;

/// What waits in the sockets of a process at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Connections with bytes that the process has not read.
    pub unread: Vec<UnreadSocket>,
    /// Connections that are made and not accepted.
    pub to_accept: usize,
}

/// A connection with bytes that the process has not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadSocket {
    /// The inode of the socket.
    pub inode: u64,
    /// How many bytes.
    pub bytes: u32,
    /// Since when nothing more has come, so that all of it waits as long; `None` where the kernel does not say: of unix
    /// sockets.
    pub quiet_for: Option<Duration>,
}

/// Why the queues are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoQueues {
    /// Not all that it listens at was found: it may listen elsewhere now.
    NotFound,
    /// The kernel does not tell them, for this reason.
    Refused(String),
}

impl fmt::Display for NoQueues {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoQueues::NotFound => out.write_str("not all that the server listens at was found"),
            NoQueues::Refused(why) => out.write_str(why),
        }
    }
}

impl Process {
    /// Counts the requests that it has not read from its connections, and the connections that it has not accepted.
    pub fn queues(&self, listeners: &[Listener]) -> Result<Queues, NoQueues> {
        let asker = match self.shares_network() {
            true => Asker::of_ours(),
            false => Asker::of(&self.folder.join("ns/net")),
        };
        let mut asker = asker.map_err(|error| {
            let why = Need::Network.told(&error);
            NoQueues::Refused(format!("the network of the server cannot be asked: {why}"))
        })?;
        let mut look = Look::default();
        look.at_all(&mut asker, listeners).map_err(|error| {
            NoQueues::Refused(match error.kind() {
                io::ErrorKind::NotFound => {
                    "the kernel lists no sockets (sock_diag); load its modules: \
                                            modprobe -a tcp_diag unix_diag"
                        .to_owned()
                }
                _ => format!("the sockets of the server cannot be listed: {error}"),
            })
        })?;
        look.queues(listeners)
    }
}

/// What was found so far.
#[derive(Default)]
struct Look {
    met: usize,
    unread: Vec<UnreadSocket>,
    to_accept: usize,
    /// The inodes of what listens.
    found: HashSet<u64>,
}

impl Look {
    fn at_all(&mut self, asker: &mut Asker, listeners: &[Listener]) -> io::Result<()> {
        for listener in listeners {
            if let Endpoint::Tcp(_) = listener.endpoint {
                self.at_tcp(asker, listener)?;
            }
        }
        match listeners.iter().any(|one| matches!(one.endpoint, Endpoint::Unix(_))) {
            true => self.at_unix(asker, listeners),
            false => Ok(()),
        }
    }

    fn at_tcp(&mut self, asker: &mut Asker, listener: &Listener) -> io::Result<()> {
        let Endpoint::Tcp(address) = listener.endpoint else { return Ok(()) };
        asker.tcp(address, &mut |socket| {
            self.meet()?;
            let is_here = address.ip().is_unspecified() || socket.local.ip() == address.ip();
            if socket.listens && socket.inode == listener.inode {
                self.found.insert(socket.inode);
                self.to_accept += socket.queue as usize;
            } else if !socket.listens && is_here && socket.inode != 0 && socket.queue > 0 {
                self.unread.push(UnreadSocket {
                    inode: socket.inode,
                    bytes: socket.queue,
                    quiet_for: socket.since_data_ms.map(|ms| Duration::from_millis(ms.into())),
                });
            }
            Ok(())
        })
    }

    /// What was accepted is bound where its listener is, and the kernel lists both in any order.
    fn at_unix(&mut self, asker: &mut Asker, listeners: &[Listener]) -> io::Result<()> {
        let own: HashSet<u64> = listeners.iter().map(|listener| listener.inode).collect();
        let mut bound: Vec<Bound> = Vec::new();
        let mut waiting: Vec<UnixSocket> = Vec::new();
        asker.unix(&mut |socket| {
            self.meet()?;
            if socket.listens && own.contains(&socket.inode) {
                self.found.insert(socket.inode);
                self.to_accept += socket.queue as usize;
                bound.push(socket.bound);
            } else if !socket.listens && socket.inode != 0 && socket.queue > 0 && !socket.is_left {
                waiting.push(socket);
            }
            Ok(())
        })?;
        waiting.retain(|socket| bound.contains(&socket.bound));
        self.unread.extend(waiting.iter().map(|socket| UnreadSocket {
            inode: socket.inode,
            bytes: socket.queue,
            quiet_for: None,
        }));
        Ok(())
    }

    fn meet(&mut self) -> io::Result<()> {
        self.met += 1;
        match self.met > SOCKETS_MAX {
            true => Err(io::Error::other(format!("there are more than {SOCKETS_MAX}"))),
            false => Ok(()),
        }
    }

    /// What was found, where all that listens was.
    fn queues(self, listeners: &[Listener]) -> Result<Queues, NoQueues> {
        match listeners.iter().all(|listener| self.found.contains(&listener.inode)) {
            true => Ok(Queues { unread: self.unread, to_accept: self.to_accept }),
            false => Err(NoQueues::NotFound),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::time::Instant;

    use super::*;

    /// What waits in our own sockets at these, as soon as `is_so`.
    fn own_queues(at: &[Endpoint], is_so: impl Fn(&Queues) -> bool) -> Queues {
        let process = Process::own();
        let mut listeners = process.listeners().into_value().unwrap();
        listeners.retain(|listener| at.contains(&listener.endpoint));
        let begun = Instant::now();
        loop {
            let queues = process.queues(&listeners).unwrap();
            if is_so(&queues) {
                return queues;
            }
            assert!(begun.elapsed().as_secs() < 120, "{queues:?}");
        }
    }

    #[test]
    fn what_is_not_read_and_not_accepted_is_told_by_tcp_and_by_unix_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let (unix, tcp) =
            (UnixListener::bind(&path).unwrap(), TcpListener::bind("[::1]:0").unwrap());
        let address = tcp.local_addr().unwrap();
        let at = [Endpoint::Unix(path.clone()), Endpoint::Tcp(address)];
        let counts = |queues: &Queues| (queues.unread.len(), queues.to_accept);
        own_queues(&at, |queues| counts(queues) == (0, 0));
        let mut by_unix = UnixStream::connect(&path).unwrap();
        let mut by_tcp = TcpStream::connect(address).unwrap();
        by_unix.write_all(b"abc").unwrap();
        by_tcp.write_all(b"abcde").unwrap();
        own_queues(&at, |queues| counts(queues) == (0, 2));
        let (mut unix_end, _) = unix.accept().unwrap();
        let (mut tcp_end, _) = tcp.accept().unwrap();
        let queues = own_queues(&at, |queues| counts(queues) == (2, 0));
        let of = |bytes| queues.unread.iter().find(|socket| socket.bytes == bytes).unwrap();
        assert_eq!((of(3).quiet_for.is_some(), of(5).quiet_for.is_some()), (false, true));
        drop(by_unix);
        own_queues(&at, |queues| counts(queues) == (1, 0));
        unix_end.read_exact(&mut [0; 3]).unwrap();
        tcp_end.read_exact(&mut [0; 5]).unwrap();
        own_queues(&at, |queues| counts(queues) == (0, 0));
        let process = Process::own();
        let mut listeners = process.listeners().into_value().unwrap();
        listeners.retain(|listener| at.contains(&listener.endpoint));
        drop((unix, tcp));
        assert_eq!(process.queues(&listeners), Err(NoQueues::NotFound));
    }

    #[test]
    fn more_sockets_than_a_look_may_meet_are_an_error() {
        let mut look = Look { met: SOCKETS_MAX - 1, ..Look::default() };
        assert!(look.meet().is_ok() && look.meet().is_err());
    }
}
