//! Where a process listens (proc_pid_net(5)).

use std::collections::HashSet;
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use waggle_model::Reading;

use crate::process::{Process, why_not};

/// A place at which a process takes connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Endpoint {
    /// A TCP port, in the network namespace of the process.
    Tcp(SocketAddr),
    /// A unix socket, as the process named it: it may be relative to its root or, rarely, to its
    /// working directory. An abstract one begins with `@`.
    Unix(PathBuf),
}

/// A socket at which a process takes connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Listener {
    /// Where.
    pub endpoint: Endpoint,
    /// The inode of the socket.
    pub inode: u64,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(address) => address.fmt(out),
            Endpoint::Unix(path) => path.display().fmt(out),
        }
    }
}

impl Process {
    /// Everything that it listens on, in the order of the addresses.
    pub fn listens(&self) -> Reading<Vec<Endpoint>> {
        self.listeners().map(|listeners| {
            let mut all: Vec<Endpoint> = listeners.into_iter().map(|one| one.endpoint).collect();
            all.dedup();
            all
        })
    }

    /// The sockets that it listens at, in the order of the addresses.
    pub fn listeners(&self) -> Reading<Vec<Listener>> {
        listening(&self.folder).map_or_else(Reading::Absent, Reading::Value)
    }

    /// Whether its network is ours (network_namespaces(7)); `false` where we may not look.
    pub fn shares_network(&self) -> bool {
        let network = |folder: &Path| fs::read_link(folder.join("ns/net")).ok();
        let its = network(&self.folder);
        its.is_some() && its == network(&self.folder.with_file_name("self"))
    }
}

fn listening(folder: &Path) -> Result<Vec<Listener>, String> {
    let files = folder.join("fd");
    let own = socket_inodes(&files).map_err(|error| why_not(&files, &error))?;
    let read = |name: &str| {
        let path = folder.join("net").join(name);
        match fs::read(&path) {
            // A kernel without IPv6 has no list of it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            list => list.map_err(|error| why_not(&path, &error)),
        }
    };
    let mut listeners: Vec<Listener> = Vec::new();
    for name in ["tcp", "tcp6"] {
        for line in read(name)?.split(|byte| *byte == b'\n') {
            listeners.extend(tcp_line(line).filter(|(inode, _)| own.contains(inode)).map(of));
        }
    }
    for line in read("unix")?.split(|byte| *byte == b'\n') {
        listeners.extend(unix_line(line).filter(|(inode, _)| own.contains(inode)).map(of));
    }
    listeners.sort();
    listeners.dedup();
    Ok(listeners)
}

fn of((inode, endpoint): (u64, Endpoint)) -> Listener {
    Listener { endpoint, inode }
}

fn socket_inodes(folder: &Path) -> io::Result<HashSet<u64>> {
    let inode = |link: PathBuf| {
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok()
    };
    Ok(fs::read_dir(folder)?
        .flatten()
        .filter_map(|entry| inode(fs::read_link(entry.path()).ok()?))
        .collect())
}

/// `TCP_LISTEN` of `include/net/tcp_states.h`.
const LISTEN: &str = "0A";

/// `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …`
fn tcp_line(line: &[u8]) -> Option<(u64, Endpoint)> {
    let mut fields = std::str::from_utf8(line).ok()?.split_ascii_whitespace().skip(1);
    let (address, port) = fields.next()?.split_once(':')?;
    if fields.nth(1)? != LISTEN {
        return None;
    }
    let inode = fields.nth(5)?.parse().ok()?;
    // A cut number would name another socket, so something has to follow it.
    fields.next()?;
    let address = SocketAddr::new(address_of(address)?, u16::from_str_radix(port, 16).ok()?);
    Some((inode, Endpoint::Tcp(address)))
}

/// The kernel prints the address as 32-bit words in the byte order of the machine.
fn address_of(hex: &str) -> Option<IpAddr> {
    let word =
        |at: usize| Some(u32::from_str_radix(hex.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    match hex.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let mut bytes = [0; 16];
            for at in 0..4 {
                bytes[at * 4..at * 4 + 4].copy_from_slice(&word(at)?);
            }
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

/// `__SO_ACCEPTCON` of `include/uapi/linux/net.h`: the socket listens.
const ACCEPTS: u32 = 1 << 16;

/// `Num: RefCount Protocol Flags Type St Inode Path`; the path may hold spaces.
fn unix_line(line: &[u8]) -> Option<(u64, Endpoint)> {
    let mut rest = line;
    let mut fields = [&[][..]; 7];
    for field in &mut fields {
        let line = rest.trim_ascii_start();
        (*field, rest) = line.split_at(line.iter().position(|byte| *byte == b' ')?);
    }
    let [_, _, _, flags, _, _, inode] = fields;
    let flags = u32::from_str_radix(std::str::from_utf8(flags).ok()?, 16).ok()?;
    let inode = std::str::from_utf8(inode).ok()?.parse().ok()?;
    let path = rest.strip_prefix(b" ")?;
    let listens = flags & ACCEPTS != 0 && !path.is_empty();
    listens.then(|| (inode, Endpoint::Unix(PathBuf::from(OsStr::from_bytes(path)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_port_is_read_in_both_families() {
        let four = b"   0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000   999        0 22233 1 0000000000000000 100 0 0 10 0";
        let six = b"   1: 00000000000000000000000001000000:0CEB 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000   999        0 22234 1 0000000000000000 100 0 0 10 0";
        assert_eq!(tcp_line(four), Some((22233, Endpoint::Tcp("127.0.0.1:3306".parse().unwrap()))));
        assert_eq!(tcp_line(six), Some((22234, Endpoint::Tcp("[::1]:3307".parse().unwrap()))));
    }

    #[test]
    fn a_network_is_ours_by_its_namespace_and_not_where_it_cannot_be_read() {
        assert!(Process::own().shares_network());
        let root = tempfile::tempdir().unwrap();
        let network = |pid: &str, number: &str| {
            let folder = root.path().join(pid).join("ns");
            fs::create_dir_all(&folder).unwrap();
            std::os::unix::fs::symlink(format!("net:[{number}]"), folder.join("net")).unwrap();
        };
        network("self", "1");
        network("10", "1");
        network("11", "2");
        let shares = |pid: u32| Process::below(root.path(), pid).shares_network();
        assert_eq!([10, 11, 12].map(shares), [true, false, false]);
    }

    #[test]
    fn a_list_that_is_not_there_is_empty_and_one_that_cannot_be_read_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let process = Process::below(root.path(), 10);
        fs::create_dir_all(root.path().join("10/fd")).unwrap();
        assert_eq!(process.listeners(), Reading::Value(Vec::new()));
        // Nobody can read a folder as a file.
        fs::create_dir_all(root.path().join("10/net/tcp6")).unwrap();
        assert!(process.listeners().why().unwrap().contains("10/net/tcp6"));
    }

    #[test]
    fn a_connection_is_no_endpoint() {
        let connected = b"   0: 0100007F:0CEA 0100007F:D431 01 00000000:00000000 00:00000000 00000000   999        0 22233 1 0000000000000000 100 0 0 10 0";
        assert_eq!(tcp_line(connected), None);
        assert_eq!(unix_line(b"0000000000000000: 00000003 00000000 00000000 0001 03 15 /a"), None);
    }

    #[test]
    fn a_unix_socket_may_have_spaces_in_its_name_or_be_abstract() {
        let line =
            b"0000000000000000: 00000002 00000000 00010000 0001 01 8117 /run/my sql/a b.sock";
        let path = |path: &str| Endpoint::Unix(PathBuf::from(path));
        assert_eq!(unix_line(line), Some((8117, path("/run/my sql/a b.sock"))));
        let line = b"0000000000000000: 00000002 00000000 00010000 0001 01     9 @mysql";
        assert_eq!(unix_line(line), Some((9, path("@mysql"))));
    }

    #[test]
    fn cut_and_mangled_lines_give_nothing_or_a_whole_inode() {
        let tcp = b"   0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000   999        0 22233 1 ";
        let unix = b"0000000000000000: 00000002 00000000 00010000 0001 01 8117 /run/a.sock";
        for end in 0..tcp.len() {
            assert!(tcp_line(&tcp[..end]).is_none_or(|(inode, _)| inode == 22233));
        }
        for end in 0..unix.len() {
            assert!(unix_line(&unix[..end]).is_none_or(|(inode, _)| inode == 8117));
        }
        assert_eq!(tcp_line(b"\xff: \xff"), None);
        assert_eq!(tcp_line("0: é00007F:0CEA 0:0 0A a b c d e 1 1".as_bytes()), None);
    }
}
