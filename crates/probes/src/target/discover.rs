//! Finds every MySQL and MariaDB server of the host by its executable.
//!
//! A server is known by the file name that `/proc/PID/exe` points to, so one inside a container, a
//! chroot or another pid namespace is found like any other, and a script that starts one is not
//! taken for it. Processes come and go while they are looked at: whatever cannot be read is left
//! out or carries its reason, nothing here fails.

mod describe;
mod sockets;
mod status;

pub use describe::{Confinement, Description, User, describe};
pub use sockets::Endpoint;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use waggle_model::Reading;

use super::elf::Elf;

/// A process that is a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Process id as this `/proc` shows it.
    pub pid: u32,
    /// Start in clock ticks since boot (field 22 of proc_pid_stat(5)). Together with the pid it
    /// names one life of one server.
    pub start_ticks: u64,
    /// The executable as the kernel names it to us. It may have been deleted or replaced since:
    /// read it as [`Found::executable_file`]. Absent without the right to look.
    pub executable: Reading<PathBuf>,
    /// The file was deleted or replaced while the server runs (an upgrade).
    pub deleted: bool,
    /// The root directory of the server; `/` unless it lives in a chroot.
    pub root: Reading<PathBuf>,
}

impl Found {
    /// The path under which the very file that this process runs can be opened, also from outside
    /// its container and after it was deleted.
    pub fn executable_file(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/exe", self.pid))
    }
}

/// Every server below this `/proc`, by pid.
pub fn servers(proc_root: &Path) -> Vec<Found> {
    Watcher::new(proc_root).look().to_vec()
}

/// What became of a server between two looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was not there before.
    Started(Found),
    /// It ended.
    Gone(Found),
    /// Another life under the same pid.
    Restarted {
        /// The life that ended.
        before: Found,
        /// The one that began.
        now: Found,
    },
}

/// Looks that a process is young for: who becomes a server by `exec` mostly does so at once.
const YOUNG: u32 = 60;

/// A process that is not young and no server is looked at once in so many looks.
const OLD_EVERY: u32 = 16;

/// Looks for servers again and again and tells what changed; made for one look a second.
///
/// A look costs a directory listing, a link for each young process, and a link and a file for each
/// server; where one process alone is asked for, that link and that file. A shell
/// that becomes a server by `exec` keeps its pid and its start, so a process is judged again
/// whenever that link has changed; old ones that are no servers are asked more rarely.
#[derive(Debug)]
pub struct Watcher {
    proc_root: PathBuf,
    only: Option<u32>,
    judged: HashMap<u32, Judged>,
    servers: Vec<Found>,
    looks: u32,
}

#[derive(Debug)]
struct Judged {
    link: Link,
    is_server: bool,
    since: u32,
}

/// What `/proc/PID/exe` said.
#[derive(Debug, PartialEq, Eq)]
enum Link {
    To(PathBuf),
    Denied,
    /// A thread of the kernel, a zombie, or gone.
    Nowhere,
}

impl Watcher {
    /// A watcher that has not looked yet.
    pub fn new(proc_root: &Path) -> Self {
        Self {
            proc_root: proc_root.to_path_buf(),
            only: None,
            judged: HashMap::new(),
            servers: Vec::new(),
            looks: 0,
        }
    }

    /// Looks at one process from now on; every other one counts as gone.
    pub fn watch_only(&mut self, pid: u32) {
        self.only = Some(pid);
    }

    /// Looks again; gives what changed since the last look. At the first one every server started.
    pub fn changes(&mut self) -> Vec<Change> {
        let before = std::mem::take(&mut self.servers);
        self.look();
        differences(&before, &self.servers)
    }

    fn pids(&self) -> Vec<u32> {
        let own = std::process::id();
        match self.only {
            Some(pid) => vec![pid],
            None => status::pids(&self.proc_root).filter(|pid| *pid != own).collect(),
        }
    }

    fn look(&mut self) -> &[Found] {
        self.looks = self.looks.wrapping_add(1);
        let mut known = std::mem::take(&mut self.judged);
        self.servers.clear();
        for pid in self.pids() {
            let judged = match known.remove(&pid) {
                Some(judged) if !self.is_due(pid, &judged) => judged,
                before => self.judge_again(pid, before),
            };
            if judged.is_server {
                self.servers.extend(found(&self.proc_root, pid));
            }
            self.judged.insert(pid, judged);
        }
        self.servers.sort_by_key(|server| server.pid);
        &self.servers
    }

    fn is_due(&self, pid: u32, judged: &Judged) -> bool {
        judged.is_server
            || self.looks.wrapping_sub(judged.since) < YOUNG
            || self.looks.wrapping_add(pid).is_multiple_of(OLD_EVERY)
    }

    fn judge_again(&self, pid: u32, before: Option<Judged>) -> Judged {
        let link = match fs::read_link(self.proc_root.join(format!("{pid}/exe"))) {
            Ok(path) => Link::To(path),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Link::Denied,
            Err(_) => Link::Nowhere,
        };
        match before {
            Some(before) if before.link == link => before,
            _ => {
                let is_server = judge(&self.proc_root, pid, &link);
                Judged { link, is_server, since: self.looks }
            }
        }
    }
}

/// Both lists are sorted by pid.
fn differences(before: &[Found], now: &[Found]) -> Vec<Change> {
    let in_list = |list: &[Found], pid: u32| {
        list.binary_search_by_key(&pid, |server| server.pid).ok().map(|at| list[at].clone())
    };
    let ended = before
        .iter()
        .filter(|server| in_list(now, server.pid).is_none())
        .map(|server| Change::Gone(server.clone()));
    let began = now.iter().filter_map(|server| match in_list(before, server.pid) {
        None => Some(Change::Started(server.clone())),
        Some(before) if before.start_ticks != server.start_ticks => {
            Some(Change::Restarted { before, now: server.clone() })
        }
        Some(_) => None,
    });
    ended.chain(began).collect()
}

fn found(proc_root: &Path, pid: u32) -> Option<Found> {
    let folder = proc_root.join(pid.to_string());
    let start_ticks = status::started(&folder, pid)?;
    let (executable, deleted) = match fs::read_link(folder.join("exe")) {
        Ok(path) => {
            let (path, deleted) = without_deleted(path);
            (Reading::Value(path), deleted)
        }
        Err(error) => (Reading::absent(status::no_right(&folder.join("exe"), &error)), false),
    };
    let root = status::link(&folder.join("root"));
    Some(Found { pid, start_ticks, executable, deleted, root })
}

/// The kernel marks the link of a file that has no name any more.
fn without_deleted(path: PathBuf) -> (PathBuf, bool) {
    const MARK: &[u8] = b" (deleted)";
    match path.as_os_str().as_bytes().strip_suffix(MARK) {
        Some(before) => (PathBuf::from(OsStr::from_bytes(before)), true),
        None => (path, false),
    }
}

fn judge(proc_root: &Path, pid: u32, link: &Link) -> bool {
    let folder = proc_root.join(pid.to_string());
    let command = || {
        let comm = fs::read(folder.join("comm")).unwrap_or_default();
        SERVER_NAMES.contains(&comm.trim_ascii_end())
    };
    match link {
        // Without the right to look at the file the name has to do; who attaches is told why not.
        Link::Denied => command(),
        Link::Nowhere => false,
        Link::To(path) => {
            let (path, _) = without_deleted(path.clone());
            let name = path.file_name().unwrap_or_default().to_os_string().into_vec();
            match look_of(&name) {
                Look::Server => true,
                Look::Script => false,
                Look::Perhaps => has_server_symbols(&folder.join("exe")),
                Look::Other => command() && has_server_symbols(&folder.join("exe")),
            }
        }
    }
}

/// Only the symbol table of the file is read.
fn has_server_symbols(file: &Path) -> bool {
    Elf::open(file).is_ok_and(|elf| elf.server_flavour().is_ok())
}

/// Names under which the distributions and the projects install the server itself.
const SERVER_NAMES: [&[u8]; 3] = [b"mysqld", b"mariadbd", b"mysqld-debug"];

/// Programs beside the server whose names begin like it.
const COMPANIONS: [&[u8]; 5] =
    [b"mysqld_safe", b"mysqld_multi", b"mysqld_exporter", b"mariadbd-safe", b"mariadbd-multi"];

#[derive(Debug, PartialEq, Eq)]
enum Look {
    Server,
    Script,
    Perhaps,
    Other,
}

fn look_of(name: &[u8]) -> Look {
    let has = |part: &[u8]| name.windows(part.len()).any(|window| window == part);
    if SERVER_NAMES.contains(&name) {
        Look::Server
    } else if COMPANIONS.contains(&name) {
        Look::Script
    } else if has(b"mysqld") || has(b"mariadbd") {
        Look::Perhaps
    } else {
        Look::Other
    }
}

#[cfg(test)]
mod tests;
