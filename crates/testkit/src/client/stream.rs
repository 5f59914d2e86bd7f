//! The byte stream below the packets: TCP, unix socket or TLS.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use openssl::ssl::SslStream;
use rustix::net::sockopt::set_socket_linger;

#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<SslStream<TcpStream>>),
}

impl Stream {
    /// Closes one or both directions of the socket.
    pub(super) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Unix(stream) => stream.shutdown(how),
            Self::Tls(stream) => stream.get_ref().shutdown(how),
        }
    }

    /// Makes the close of the socket a reset.
    pub(super) fn reset_at_close(&self) -> io::Result<()> {
        Ok(set_socket_linger(self.fd(), Some(std::time::Duration::ZERO))?)
    }

    /// Whether a password may be sent in clear over it, as the server sees it.
    pub(super) fn is_secure(&self) -> bool {
        !matches!(self, Self::Tcp(_))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            Self::Tls(stream) => stream.get_ref().as_fd(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.flush(),
            Self::Unix(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
