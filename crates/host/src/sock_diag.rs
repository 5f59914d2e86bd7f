//! Asks the kernel for the sockets of a network (sock_diag(7)), with what waits in their queues.
//!
//! The messages are few and their shape is fixed, so they are read here: the crates that know them do not show all
//! that tells whose a unix socket is.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::{io, thread};

use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// `NLMSG_ERROR` and `NLMSG_DONE` of `include/uapi/linux/netlink.h`, and what a request is.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
/// `SOCK_DIAG_BY_FAMILY` of `include/uapi/linux/sock_diag.h`.
const BY_FAMILY: u16 = 20;
/// Bytes of `struct nlmsghdr`, `struct inet_diag_msg` and `struct unix_diag_msg`.
const HEADER: usize = 16;
const TCP_MESSAGE: usize = 72;
const UNIX_MESSAGE: usize = 16;
/// `TCP_ESTABLISHED` and `TCP_LISTEN` of `include/net/tcp_states.h`; unix sockets have them, too.
const ESTABLISHED: u8 = 1;
const LISTEN: u8 = 10;
const STATES: u32 = 1 << ESTABLISHED | 1 << LISTEN;
/// `INET_DIAG_INFO`, and where `struct tcp_info` has the time since the last data.
const TCP_INFO: u16 = 2;
const LAST_DATA_RECEIVED: usize = 52;
/// `UNIX_DIAG_NAME`, `_VFS`, `_RQLEN` of `include/uapi/linux/unix_diag.h`, and how they are asked for.
const NAME: u16 = 0;
const FILE: u16 = 1;
const QUEUE: u16 = 4;
/// `UNIX_DIAG_SHUTDOWN`, which is always told, and its bit for a client that has gone (`RCV_SHUTDOWN`).
const SHUTDOWN: u16 = 6;
const GONE: u8 = 1;
const SHOW: u32 = 1 << NAME | 1 << FILE | 1 << QUEUE;
/// More than the kernel puts into one answer.
const ANSWER: usize = 64 << 10;

/// A TCP socket of the server's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpSocket {
    pub(crate) listens: bool,
    pub(crate) local: SocketAddr,
    /// Bytes that wait to be read; of one that listens, connections that wait to be accepted.
    pub(crate) queue: u32,
    /// 0 where nobody has accepted it.
    pub(crate) inode: u64,
    /// Milliseconds since the last data came; it says nothing of one that listens.
    pub(crate) since_data_ms: Option<u32>,
}

/// A unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnixSocket {
    pub(crate) listens: bool,
    pub(crate) queue: u32,
    pub(crate) inode: u64,
    /// Nothing comes any more.
    pub(crate) is_left: bool,
    /// Where it is bound: what was accepted is bound where its listener is.
    pub(crate) bound: Bound,
}

/// The name of a unix socket, with the inode and the device of its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) name: Vec<u8>,
    pub(crate) file: Option<[u8; 8]>,
}

/// Asks one network.
pub(crate) struct Asker {
    kernel: OwnedFd,
    answer: Vec<u8>,
}

impl Asker {
    /// Asks the network of this thread.
    pub(crate) fn of_ours() -> io::Result<Asker> {
        let flags = SocketFlags::CLOEXEC;
        let protocol = Some(netlink::SOCK_DIAG);
        let kernel = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        Ok(Asker { kernel, answer: vec![0; ANSWER] })
    }

    /// Asks the network with this link (`/proc/PID/ns/net`): a socket belongs to the network in which it was made, and a
    /// thread of its own makes it there.
    pub(crate) fn of(link: &Path) -> io::Result<Asker> {
        let network = File::open(link)?;
        let make = move || {
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
            Asker::of_ours()
        };
        let made = thread::Builder::new().name("network".to_owned()).spawn(make)?.join();
        made.unwrap_or_else(|_| Err(io::Error::other("the thread that asks ended early")))
    }

    /// Hands over each socket that listens at a TCP port or was accepted there, until `consume` wants no more.
    pub(crate) fn tcp(
        &mut self,
        of: SocketAddr,
        consume: &mut dyn FnMut(TcpSocket) -> io::Result<()>,
    ) -> io::Result<()> {
        self.ask(&tcp_request(of), &mut |body| tcp_socket(body).map_or(Ok(()), &mut *consume))
    }

    /// Hands over every unix socket that listens or is connected.
    pub(crate) fn unix(
        &mut self,
        consume: &mut dyn FnMut(UnixSocket) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut request = Vec::with_capacity(24);
        request.extend([AddressFamily::UNIX.as_raw() as u8, 0, 0, 0]);
        request.extend([STATES, 0, SHOW, 0, 0].map(u32::to_ne_bytes).concat());
        self.ask(&request, &mut |body| unix_socket(body).map_or(Ok(()), &mut *consume))
    }

    fn ask(
        &mut self,
        request: &[u8],
        consume: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let length = (HEADER + request.len()) as u32;
        let mut message = Vec::with_capacity(HEADER + request.len());
        message.extend(length.to_ne_bytes());
        message.extend([BY_FAMILY, REQUEST | DUMP].map(u16::to_ne_bytes).concat());
        message.extend([0; 8]);
        message.extend(request);
        send(&self.kernel, &message, SendFlags::empty())?;
        loop {
            // The kernel answers while it is asked: it is never waited for.
            let (_, length) = recv(&self.kernel, &mut self.answer[..], RecvFlags::DONTWAIT)?;
            if messages(self.answer.get(..length).unwrap_or_default(), consume)? {
                return Ok(());
            }
        }
    }
}

fn tcp_request(of: SocketAddr) -> Vec<u8> {
    const TCP: u8 = 6;
    let family = if of.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let mut request = vec![family.as_raw() as u8, TCP, 1 << (TCP_INFO - 1), 0];
    request.extend(STATES.to_ne_bytes());
    request.extend(of.port().to_be_bytes());
    // The rest of `struct inet_diag_sockid`: any address.
    request.extend([0; 46]);
    request
}

/// Hands over the bodies of the messages in an answer. Returns whether it was the last; a cut message ends it, too.
fn messages(
    mut answer: &[u8],
    consume: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    let cut = || io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is cut");
    while !answer.is_empty() {
        let length = u32_at(answer, 0).ok_or_else(cut)? as usize;
        let kind = u16_at(answer, 4).ok_or_else(cut)?;
        let body = answer.get(HEADER..length).ok_or_else(cut)?;
        let number = || u32_at(body, 0).map(u32::cast_signed).ok_or_else(cut);
        let refused = |number: i32| Err(io::Error::from_raw_os_error(number.saturating_neg()));
        match kind {
            // A dump that fails on its way ends like any other, and tells it here.
            DONE => match number()? {
                number if number < 0 => return refused(number),
                _ => return Ok(true),
            },
            ERROR => return refused(number()?),
            BY_FAMILY => consume(body)?,
            _ => {}
        }
        answer = answer.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

fn tcp_socket(body: &[u8]) -> Option<TcpSocket> {
    let id = body.get(4..52)?;
    let port = u16::from_be_bytes(id.get(..2)?.try_into().ok()?);
    let family = u16::from(*body.first()?);
    let address = if family == AddressFamily::INET.as_raw() {
        IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(id.get(4..8)?).ok()?))
    } else if family == AddressFamily::INET6.as_raw() {
        IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(id.get(4..20)?).ok()?))
    } else {
        return None;
    };
    let since_data = |info: &[u8]| u32_at(info, LAST_DATA_RECEIVED);
    Some(TcpSocket {
        listens: listens(*body.get(1)?)?,
        local: SocketAddr::new(address, port),
        queue: u32_at(body, 56)?,
        inode: u32_at(body, 68)?.into(),
        since_data_ms: attribute(body.get(TCP_MESSAGE..)?, TCP_INFO).and_then(since_data),
    })
}

fn unix_socket(body: &[u8]) -> Option<UnixSocket> {
    let attributes = body.get(UNIX_MESSAGE..)?;
    let name = attribute(attributes, NAME)?;
    let file = attribute(attributes, FILE).map(<[u8; 8]>::try_from).transpose().ok()?;
    Some(UnixSocket {
        listens: listens(*body.get(2)?)?,
        queue: u32_at(attribute(attributes, QUEUE)?, 0)?,
        inode: u32_at(body, 4)?.into(),
        is_left: attribute(attributes, SHUTDOWN)?.first()? & GONE != 0,
        bound: Bound { name: name.to_vec(), file },
    })
}

fn listens(state: u8) -> Option<bool> {
    match state {
        LISTEN => Some(true),
        ESTABLISHED => Some(false),
        _ => None,
    }
}

/// The value of an attribute (`struct nlattr`).
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(attributes, 0)?);
        let value = attributes.get(4..length)?;
        if u16_at(attributes, 2)? == wanted {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
        bytes[at..at + what.len()].copy_from_slice(what);
    }

    fn with_attribute(mut body: Vec<u8>, kind: u16, value: &[u8]) -> Vec<u8> {
        body.extend((4 + value.len() as u16).to_ne_bytes());
        body.extend(kind.to_ne_bytes());
        body.extend(value);
        body.resize(body.len().next_multiple_of(4), 0);
        body
    }

    /// 127.0.0.1:3306 with 33 unread bytes for 700 ms.
    fn tcp() -> Vec<u8> {
        let mut body = vec![0; TCP_MESSAGE];
        put(&mut body, 0, &[2, ESTABLISHED]);
        put(&mut body, 4, &3306_u16.to_be_bytes());
        put(&mut body, 8, &[127, 0, 0, 1]);
        put(&mut body, 56, &33_u32.to_ne_bytes());
        put(&mut body, 68, &4711_u32.to_ne_bytes());
        let mut info = vec![0; 100];
        put(&mut info, LAST_DATA_RECEIVED, &700_u32.to_ne_bytes());
        with_attribute(with_attribute(body, 8, &[0]), TCP_INFO, &info)
    }

    fn unix() -> Vec<u8> {
        let mut body = vec![0; UNIX_MESSAGE];
        put(&mut body, 2, &[LISTEN]);
        put(&mut body, 4, &4712_u32.to_ne_bytes());
        let body = with_attribute(body, NAME, b"/run/my sql\0");
        let body = with_attribute(body, FILE, &[7; 8]);
        let body = with_attribute(body, QUEUE, &[5, 0, 0, 0, 151, 0, 0, 0]);
        with_attribute(body, SHUTDOWN, &[0])
    }

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut message = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.resize(HEADER, 0);
        message.extend(body);
        message
    }

    #[test]
    fn a_socket_is_read_with_its_queue() {
        let socket = tcp_socket(&tcp()).unwrap();
        assert_eq!((socket.local, socket.listens), ("127.0.0.1:3306".parse().unwrap(), false));
        assert_eq!((socket.queue, socket.inode, socket.since_data_ms), (33, 4711, Some(700)));
        let socket = unix_socket(&unix()).unwrap();
        assert_eq!((socket.queue, socket.inode, socket.listens), (5, 4712, true));
        let bound = Bound { name: b"/run/my sql\0".to_vec(), file: Some([7; 8]) };
        assert_eq!(socket.bound, bound);
    }

    #[test]
    fn cut_and_mangled_messages_give_nothing_and_never_another_socket() {
        for end in 0..tcp().len() {
            let cut = tcp_socket(&tcp()[..end]);
            assert!(cut.is_none_or(|socket| (socket.queue, socket.inode) == (33, 4711)));
        }
        for end in 0..unix().len() {
            let cut = unix_socket(&unix()[..end]);
            assert!(cut.is_none_or(|socket| (socket.queue, socket.inode) == (5, 4712)));
        }
        let answer = [message(BY_FAMILY, &tcp()), message(DONE, &[0; 4])].concat();
        for end in 0..answer.len() {
            let _ = messages(&answer[..end], &mut |_| Ok(()));
        }
        for at in 0..answer.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut mangled = answer.clone();
                mangled[at] = value;
                let _ = messages(&mangled, &mut |body| {
                    tcp_socket(body);
                    unix_socket(body);
                    Ok(())
                });
            }
        }
        let mut unknown = tcp();
        unknown[0] = 99;
        assert_eq!(tcp_socket(&unknown), None);
    }

    #[test]
    fn an_answer_ends_with_its_last_message_and_an_error_is_told() {
        let mut seen = 0;
        let mut see = |_: &[u8]| {
            seen += 1;
            Ok(())
        };
        let two = message(BY_FAMILY, &tcp()).repeat(2);
        assert!(!messages(&two, &mut see).unwrap());
        assert!(messages(&[two, message(DONE, &[0; 4])].concat(), &mut see).unwrap());
        assert_eq!(seen, 4);
        for kind in [ERROR, DONE] {
            let refused = message(kind, &(-2_i32).to_ne_bytes());
            let told = messages(&refused, &mut |_| Ok(())).unwrap_err();
            assert_eq!(told.raw_os_error(), Some(2), "{kind}");
        }
        assert!(messages(&message(DONE, &[0; 3]), &mut |_| Ok(())).is_err(), "it is cut");
    }
}
