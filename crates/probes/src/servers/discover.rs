//! Finds every MySQL and MariaDB server of the host by its executable.
//!
//! waggle looks at the file name behind `/proc/PID/exe`. So it finds a server in a container, a
//! chroot or another pid namespace like any other, and does not mistake a start script for a
//! server. Where only another name suggests a server, or a loader of programs stands there (ld.so(8)),
//! the program tells, which is not opened here: it may belong to anybody. Processes come and go
//! meanwhile: what cannot be read is left out or carries its reason. Nothing here fails.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use waggle_host::{Process, pids};
use waggle_model::Reading;

use super::loader::is_loader;

/// A process that is a server, or may be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Process id as this `/proc` shows it.
    pub pid: u32,
    /// Start in clock ticks since boot (field 22 of proc_pid_stat(5)). Together with the pid it
    /// names one life of one server.
    pub start_ticks: u64,
    /// Its program as the kernel names it to us; a loader of programs where that started the server. It may have been
    /// deleted or replaced since. Absent without the right to look.
    pub executable: Reading<PathBuf>,
    /// Its program has the name of a server. Else only what the program exports can tell.
    pub is_named: bool,
    /// The file was deleted or replaced while the server runs (an upgrade).
    pub deleted: bool,
    /// The root directory of the server; `/` unless it lives in a chroot.
    pub root: Reading<PathBuf>,
}

impl Found {
    /// Whether it has ended meanwhile, with all its threads: then nothing that was not found of it says anything.
    pub fn has_ended(&self) -> bool {
        let process = Process::of(self.pid);
        match (process.start_ticks(), process.state()) {
            (Reading::Value(start), Reading::Value(state)) => {
                let is_dead = matches!(state, 'Z' | 'X') && process.thread_count() <= 1;
                start != self.start_ticks || is_dead
            }
            // Also waggle may have come to a limit.
            _ => process.is_gone(),
        }
    }

    /// Whether the same process still runs the same program: it can become another one by `exec`.
    fn is_same_life(&self, now: &Found) -> bool {
        let programs = (self.executable.value(), now.executable.value());
        let has_changed = matches!(programs, (Some(before), Some(now)) if before != now);
        self.start_ticks == now.start_ticks && !has_changed
    }
}

/// Every process below this `/proc` that is a server or may be one, by pid.
pub fn servers(proc_root: &Path) -> Vec<Found> {
    Watcher::new(proc_root).look().to_vec()
}

/// Processes about which not even their names may be read: servers may be among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    /// Those that this `/proc` lists.
    pub listed: usize,
    /// It does not list those of other users (`hidepid`, proc(5)).
    pub others: bool,
}

/// What of the processes of this host is hidden from us.
pub fn hidden(proc_root: &Path) -> Hidden {
    let is_denied = |pid: &u32| {
        let comm = fs::read(proc_root.join(format!("{pid}/comm")));
        comm.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    Hidden {
        listed: pids(proc_root).filter(is_denied).count(),
        // The first process is always there.
        others: !proc_root.join("1").exists(),
    }
}

/// What became of a server between two looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was not there before.
    Started(Found),
    /// It ended.
    Gone(Found),
    /// Another life under the same pid, or another program in the same one.
    Restarted {
        /// The life that ended.
        before: Found,
        /// The one that began.
        now: Found,
    },
}

/// Looks that a process is young for: who becomes a server by `exec` mostly does so at once.
const YOUNG: u32 = 60;

/// The number of looks between two looks at an old process that is no server.
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
    /// `None`: it is no server.
    is_named: Option<bool>,
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
            None => pids(&self.proc_root).filter(|pid| *pid != own).collect(),
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
            if let Some(is_named) = judged.is_named {
                self.servers.extend(found(&self.proc_root, pid, is_named));
            }
            self.judged.insert(pid, judged);
        }
        self.servers.sort_by_key(|server| server.pid);
        &self.servers
    }

    fn is_due(&self, pid: u32, judged: &Judged) -> bool {
        judged.is_named.is_some()
            || self.looks.wrapping_sub(judged.since) < YOUNG
            || self.looks.wrapping_add(pid).is_multiple_of(OLD_EVERY)
    }

    fn judge_again(&self, pid: u32, before: Option<Judged>) -> Judged {
        let link = match fs::read_link(self.proc_root.join(format!("{pid}/exe"))) {
            Ok(path) => Link::To(path),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Link::Denied,
            Err(_) => Link::Nowhere,
        };
        // Where the first thread has ended before the others, there is no link any more.
        let goes_on = || Process::below(&self.proc_root, pid).thread_count() > 1;
        match before {
            Some(before) if before.link == link => before,
            Some(before) if link == Link::Nowhere && goes_on() => before,
            _ => Judged { is_named: judge(&self.proc_root, pid, &link), link, since: self.looks },
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
        Some(before) if !before.is_same_life(server) => {
            Some(Change::Restarted { before, now: server.clone() })
        }
        Some(_) => None,
    });
    ended.chain(began).collect()
}

fn found(proc_root: &Path, pid: u32, is_named: bool) -> Option<Found> {
    let process = Process::below(proc_root, pid);
    let start_ticks = process.start_ticks().value().copied()?;
    let executable = process.executable().map(without_deleted);
    let deleted = executable.value().is_some_and(|(_, deleted)| *deleted);
    let executable = executable.map(|(path, _)| path);
    Some(Found { pid, start_ticks, executable, is_named, deleted, root: process.root() })
}

/// The kernel marks the link of a file that has no name any more.
pub(super) fn without_deleted(path: PathBuf) -> (PathBuf, bool) {
    const MARK: &[u8] = b" (deleted)";
    match path.as_os_str().as_bytes().strip_suffix(MARK) {
        Some(before) => (PathBuf::from(OsStr::from_bytes(before)), true),
        None => (path, false),
    }
}

pub(super) fn name_of(path: &Path) -> Vec<u8> {
    let (path, _) = without_deleted(path.to_path_buf());
    path.file_name().unwrap_or_default().to_os_string().into_vec()
}

/// Whether a process is named like a server, or only may be one; `None`: it is none.
fn judge(proc_root: &Path, pid: u32, link: &Link) -> Option<bool> {
    let folder = proc_root.join(pid.to_string());
    match link {
        // Without the right to look at the file the name has to do; attaching reports why not.
        Link::Denied => (has_name(&folder) || is_given_to_loader(&folder)).then_some(true),
        Link::Nowhere => None,
        Link::To(path) => match look_of(&name_of(path)) {
            Look::Server => Some(true),
            Look::Script => None,
            Look::Perhaps | Look::Loader => Some(false),
            Look::Other => has_name(&folder).then_some(false),
        },
    }
}

/// Whether the process calls itself like a server.
fn has_name(folder: &Path) -> bool {
    let comm = fs::read(folder.join("comm")).unwrap_or_default();
    SERVER_NAMES.contains(&comm.trim_ascii_end())
}

/// Whether a loader was told to start a server. Everybody may read command lines.
fn is_given_to_loader(folder: &Path) -> bool {
    let line = fs::read(folder.join("cmdline")).unwrap_or_default();
    let name = |argument: &[u8]| argument.rsplit(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
    let mut names = line.split(|byte| *byte == 0).filter_map(name);
    names.next().is_some_and(|first| is_loader(&first))
        && names.take(LOADER_ARGUMENTS).any(|name| look_of(&name) == Look::Server)
}

/// Whether a file has the name of a server, or only may be one; `None`: it is none.
pub(super) fn by_name(name: &[u8]) -> Option<bool> {
    match look_of(name) {
        Look::Server => Some(true),
        Look::Perhaps => Some(false),
        Look::Script | Look::Loader | Look::Other => None,
    }
}

/// Names under which the distributions and the projects install the server itself.
const SERVER_NAMES: [&[u8]; 3] = [b"mysqld", b"mariadbd", b"mysqld-debug"];

/// Where among the arguments of a loader its program is looked for: behind options of its own.
const LOADER_ARGUMENTS: usize = 12;

/// Programs beside the server whose names begin like it.
const COMPANIONS: [&[u8]; 6] = [
    b"mysqld_safe",
    b"mysqld_multi",
    b"mysqld_exporter",
    b"mysqldump",
    b"mariadbd-safe",
    b"mariadbd-multi",
];

#[derive(Debug, PartialEq, Eq)]
enum Look {
    Server,
    Script,
    Perhaps,
    Loader,
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
    } else if is_loader(name) {
        Look::Loader
    } else {
        Look::Other
    }
}

#[cfg(test)]
mod tests;
