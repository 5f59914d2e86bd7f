//! One process, as everybody who may can see it (proc_pid(5)). What cannot be read carries its reason.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use std::{fs, io};

use rustix::fs::OFlags;
use rustix::param::{clock_ticks_per_second, page_size};
use waggle_model::Reading;

use crate::rights::Need;
use crate::{bytes, value};

/// Every process id below this `/proc`. Threads are not listed there.
pub fn pids(proc_root: &Path) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(proc_root).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A process, by its folder in `/proc`.
#[derive(Clone, Debug)]
pub struct Process {
    pub(crate) pid: u32,
    pub(crate) folder: PathBuf,
}

/// The user of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The effective user id.
    pub uid: u32,
    /// The name by the `/etc/passwd` that the process sees, where it has one.
    pub name: Option<String>,
}

/// What separates a process from waggle. `None` if it could not be looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Its root directory, where it is not ours.
    pub chroot: Option<PathBuf>,
    /// It has a mount namespace of its own, as in a container or under some systemd settings.
    pub other_mounts: Option<bool>,
    /// It has a pid namespace of its own, as in a container.
    pub other_pids: Option<bool>,
    /// Its pid as it sees it itself, where that differs.
    pub pid_inside: Option<u32>,
}

/// Bytes that a process moved from and to storage (proc_pid_io(5)), without the page cache. A write counts when a page
/// becomes dirty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl Process {
    /// The process with this id. It need not be there.
    pub fn of(pid: u32) -> Process {
        Process::below(Path::new("/proc"), pid)
    }

    /// The same, with another root of `/proc`.
    pub fn below(proc_root: &Path, pid: u32) -> Process {
        Process { pid, folder: proc_root.join(pid.to_string()) }
    }

    /// The process that asks, also where `/proc` counts processes in another way.
    pub fn own() -> Process {
        Process { pid: std::process::id(), folder: PathBuf::from("/proc/self") }
    }

    /// Its start in clock ticks since boot. It is read from the `stat` of the first thread, which has the same start: for
    /// that of the process the kernel adds up the processor time of every thread (`do_task_stat`), a thousand of them at
    /// a busy server.
    pub fn start_ticks(&self) -> Reading<u64> {
        let of_first = format!("task/{}/stat", self.pid);
        self.read(&of_first, |stat| start_ticks(stat.as_bytes()))
    }

    /// What it does, as proc_pid_stat(5) names it: `R` runs or waits for a processor, `S` and `D` wait for something,
    /// `T` and `t` are stopped. That of the first thread, as with [`Process::start_ticks`].
    pub fn state(&self) -> Reading<char> {
        let of_first = format!("task/{}/stat", self.pid);
        self.read(&of_first, |stat| fields_from_3(stat.as_bytes())?.next()?.chars().next())
    }

    /// For how long it runs.
    pub fn uptime(&self) -> Reading<Duration> {
        let of_host = fs::read_to_string(self.folder.with_file_name("uptime"));
        let since_boot_s = of_host.ok().and_then(|uptime| uptime.split(' ').next()?.parse().ok());
        self.start_ticks().and_then(|ticks| {
            let since_boot_s: f64 = since_boot_s.ok_or("the start of the system cannot be read")?;
            // Clock ticks are a unit of the interface, not of the kernel: sysconf(_SC_CLK_TCK).
            let started_s = ticks as f64 / clock_ticks_per_second() as f64;
            Duration::try_from_secs_f64((since_boot_s - started_s).max(0.0))
                .map_err(|error| error.to_string())
        })
    }

    /// Its program, as the kernel names it to us: with a mark behind the path where the file is deleted.
    pub fn executable(&self) -> Reading<PathBuf> {
        self.link("exe")
    }

    /// Its root directory.
    pub fn root(&self) -> Reading<PathBuf> {
        self.link("root")
    }

    /// Its working directory. A server changes into its data directory at the start and stays there.
    pub fn working_directory(&self) -> Reading<PathBuf> {
        self.link("cwd")
    }

    /// Names it by its working directory on this host, for longer than it lives: by the machine (machine-id(5)), the file
    /// system and the inode. Where that cannot be read, its command line takes the place. `None` where it has ended.
    pub fn durable_name(&self) -> Option<Vec<u8>> {
        let machine = fs::read("/etc/machine-id").unwrap_or_default();
        let directory = self.folder.join("cwd");
        let place = fs::metadata(&directory).ok().and_then(|there| {
            let system = durable_file_system(&directory, there.dev())?;
            Some(format!("{system} {}", there.ino()).into_bytes())
        });
        let command = || fs::read(self.folder.join("cmdline")).ok().filter(|it| !it.is_empty());
        place.or_else(command).map(|place| [machine, place].concat())
    }

    /// The user that it runs as. The name is the one below the root directory of the process.
    pub fn user(&self) -> Reading<User> {
        let passwd = || passwd_below(&self.folder.join("root"));
        self.user_ids().map(|[_, uid, _]| User { uid, name: name_of(uid, &passwd()) })
    }

    /// Its user ids: real, effective, saved.
    pub fn user_ids(&self) -> Reading<[u32; 3]> {
        self.read("status", |status| {
            // Uid: real effective saved filesystem.
            let mut ids =
                value(status, "Uid")?.split_ascii_whitespace().map_while(|id| id.parse().ok());
            Some([ids.next()?, ids.next()?, ids.next()?])
        })
    }

    /// What separates it from us.
    pub fn confinement(&self) -> Confinement {
        let ours = self.folder.with_file_name("self");
        let differs = |name: &str| {
            let theirs = fs::read_link(self.folder.join(name)).ok()?;
            Some(theirs != fs::read_link(ours.join(name)).ok()?)
        };
        let our_root = fs::read_link(ours.join("root")).unwrap_or_else(|_| PathBuf::from("/"));
        let root = self.root().value().cloned();
        let inside = self.read("status", id_inside).value().copied();
        Confinement {
            chroot: root.filter(|root| *root != our_root),
            other_mounts: differs("ns/mnt"),
            other_pids: differs("ns/pid"),
            pid_inside: inside.filter(|inside| *inside != self.pid),
        }
    }

    /// The number of its pid namespace, where that is not ours and somebody with all rights on this host made it: a
    /// container of root's. Who has no rights needs a user namespace of its own to make one.
    pub fn container(&self) -> Option<u64> {
        let ours = self.folder.with_file_name("self");
        let of = |folder: &Path, name: &str| fs::read_link(folder.join("ns").join(name)).ok();
        let [users, our_users] = [of(&self.folder, "user")?, of(&ours, "user")?];
        let [pids, our_pids] = [of(&self.folder, "pid")?, of(&ours, "pid")?];
        // `pid:[4026531836]` (namespaces(7)).
        let number = pids.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok();
        number.filter(|_| users == our_users && pids != our_pids)
    }

    /// Whether it is there no more, not even to be waited for.
    pub fn is_gone(&self) -> bool {
        let found = fs::symlink_metadata(&self.folder);
        found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Whether it has a thread of this number, as its own namespace of processes counts them.
    pub fn has_thread(&self, number: u64) -> bool {
        let tasks = fs::read_dir(self.folder.join("task")).into_iter().flatten().flatten();
        let mut status = tasks.flat_map(|task| fs::read_to_string(task.path().join("status")));
        status.any(|status| id_inside(&status) == Some(number))
    }

    /// How many threads it has; a dead one that nobody has waited for counts as one.
    pub fn thread_count(&self) -> usize {
        fs::read_dir(self.folder.join("task")).into_iter().flatten().flatten().count()
    }

    /// The processes that it started, as far as they run; none where the kernel does not list them.
    pub fn children(&self) -> Vec<u32> {
        let tasks = fs::read_dir(self.folder.join("task")).into_iter().flatten().flatten();
        let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let lists: String = lists.collect();
        lists.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Memory in use (RSS), bytes.
    pub fn rss_bytes(&self) -> Reading<u64> {
        self.read("statm", |statm| {
            // Sizes in pages (proc_pid_statm(5)), the second is that in use.
            let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
            Some(pages * page_size() as u64)
        })
    }

    /// The most memory that was ever in use, bytes.
    pub fn rss_peak_bytes(&self) -> Reading<u64> {
        self.read("status", |status| bytes(status, "VmHWM"))
    }

    /// What it moved from and to storage; only its user and root may know.
    pub fn storage(&self) -> Reading<Storage> {
        self.read("io", storage)
    }

    fn link(&self, name: &str) -> Reading<PathBuf> {
        let path = self.folder.join(name);
        match fs::read_link(&path) {
            Ok(target) => Reading::Value(target),
            Err(error) => Reading::absent(why_not(&path, &error)),
        }
    }

    pub(crate) fn read<T>(&self, name: &str, parse: impl FnOnce(&str) -> Option<T>) -> Reading<T> {
        let path = self.folder.join(name);
        match fs::read(&path) {
            Err(error) => Reading::absent(why_not(&path, &error)),
            Ok(text) => match parse(&String::from_utf8_lossy(&text)) {
                Some(value) => Reading::Value(value),
                None => Reading::absent(format!("{} is not as in proc(5)", path.display())),
            },
        }
    }
}

impl Storage {
    /// What was moved in this time and in another one.
    #[must_use]
    pub fn plus(self, other: Storage) -> Storage {
        Storage {
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
        }
    }

    /// What was moved since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Storage) -> Storage {
        Storage {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
        }
    }
}

/// The fields of `stat` from the third on. The name in field 2 may itself hold spaces and brackets, so they are counted
/// from the last `)`.
pub(crate) fn fields_from_3(stat: &[u8]) -> Option<impl Iterator<Item = &str>> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    Some(fields.split_ascii_whitespace())
}

/// Field 22 of `stat`.
fn start_ticks(stat: &[u8]) -> Option<u64> {
    let mut fields = fields_from_3(stat)?.skip(19);
    let field = fields.next()?;
    // The last field of a cut line may be cut itself.
    fields.next()?;
    field.parse().ok()
}

/// The id of a process or a thread as it sees it itself, by its `status`.
fn id_inside<T: FromStr>(status: &str) -> Option<T> {
    value(status, "NSpid")?.split_ascii_whitespace().last()?.parse().ok()
}

/// Longest `/etc/passwd` that is read, bytes.
const PASSWD_MAX: u64 = 1 << 20;

/// The users of the system below this root. It may belong to anybody, who can put a pipe there: then there are none.
fn passwd_below(root: &Path) -> String {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let read = || {
        let file = options.open(root.join("etc/passwd")).ok()?;
        let is_file = file.metadata().ok()?.is_file();
        let mut passwd = Vec::new();
        is_file.then(|| file.take(PASSWD_MAX).read_to_end(&mut passwd))?.ok()?;
        Some(String::from_utf8_lossy(&passwd).into_owned())
    };
    read().unwrap_or_default()
}

/// The user id of this name on this host.
pub fn user_id(name: &str) -> Option<u32> {
    passwd_below(Path::new("/")).lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
    })
}

/// The name of this user on this host.
pub fn user_name(uid: u32) -> Option<String> {
    name_of(uid, &passwd_below(Path::new("/")))
}

/// `name:password:uid:gid:…` (passwd(5)).
fn name_of(uid: u32, passwd: &str) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

fn storage(io: &str) -> Option<Storage> {
    let number = |name: &str| value(io, name)?.parse().ok();
    Some(Storage { read_bytes: number("read_bytes")?, written_bytes: number("write_bytes")? })
}

/// What is wrong and what helps.
pub(crate) fn why_not(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            // These two are for the user of the process alone, by their modes.
            let is_private = ["fd", "io"].iter().any(|name| path.ends_with(name));
            let need = if is_private { Need::Open } else { Need::Look };
            format!("{} may not be read; {}", path.display(), need.remedy())
        }
        io::ErrorKind::NotFound => format!("{}: the process has ended", path.display()),
        _ => format!("{}: {error}", path.display()),
    }
}

/// Names the file system of a directory, which is on this device, for longer than it is mounted: by the UUID that udev
/// tells of the device, or by `f_fsid` of statfs(2). ext4 and Btrfs take that from their UUID; XFS takes it from the
/// number of the device, which can change at a boot.
fn durable_file_system(directory: &Path, device: u64) -> Option<String> {
    let links = fs::read_dir("/dev/disk/by-uuid").into_iter().flatten().flatten();
    let is_it = |link: &fs::DirEntry| fs::metadata(link.path()).is_ok_and(|it| it.rdev() == device);
    let uuid = links.filter(is_it).find_map(|link| link.file_name().into_string().ok());
    uuid.or_else(|| Some(rustix::fs::statvfs(directory).ok()?.f_fsid.to_string()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;
    use crate::Endpoint;

    const STAT: &str = "77 (my) sq (l)d) S 1 77 77 0 -1 4194560 20 0 0 0 5 6 0 0 20 0 38 0 4711 \
                        1855229952 99240 18446744073709551615";

    #[test]
    fn the_start_is_field_22_whatever_the_name_holds_and_never_a_part_of_it() {
        assert_eq!(start_ticks(STAT.as_bytes()), Some(4711));
        assert_eq!(start_ticks(b"1 (\xff\xfe) S"), None);
        for end in 0..STAT.len() {
            let got = start_ticks(&STAT.as_bytes()[..end]);
            assert!(got.is_none() || got == Some(4711), "{got:?} from {end} bytes");
        }
    }

    #[test]
    fn it_is_named_by_its_directory_and_else_by_its_command_line() {
        let [root, directory] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let of_pid = |pid: u32, command: &str| {
            let folder = root.path().join(pid.to_string());
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("cmdline"), command).unwrap();
            (Process::below(root.path(), pid), folder.join("cwd"))
        };
        let [(one, _), (other, _)] = [of_pid(10, "mysqld --a"), of_pid(11, "mysqld --b")];
        assert_ne!(one.durable_name(), other.durable_name());
        let [(one, one_cwd), (other, other_cwd)] = [of_pid(12, "mysqld"), of_pid(13, "other")];
        symlink(directory.path(), one_cwd).unwrap();
        symlink(directory.path(), other_cwd).unwrap();
        assert!(one.durable_name().is_some() && one.durable_name() == other.durable_name());
    }

    #[test]
    fn each_thing_that_cannot_be_read_has_its_reason() {
        let root = tempfile::tempdir().unwrap();
        let gone = Process::below(root.path(), 10);
        assert!(gone.working_directory().why().is_some_and(|why| why.contains("has ended")));
        assert!(gone.listens().why().is_some() && gone.uptime().why().is_some());
        assert!(gone.user().why().is_some() && gone.storage().why().is_some());
        assert_eq!(gone.confinement(), Confinement::default());
        assert_eq!(gone.durable_name(), None);
        fs::create_dir(root.path().join("10")).unwrap();
        fs::write(root.path().join("10/statm"), "").unwrap();
        assert!(gone.rss_bytes().why().is_some_and(|why| why.contains("proc(5)")));
    }

    #[test]
    fn a_server_in_a_container_is_described_from_its_files() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join("10").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let link = |target: &str, name: &str| {
            let path = root.path().join("10").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, path).unwrap();
        };
        fs::create_dir(root.path().join("10")).unwrap();
        for (process, namespace) in [(".", "7"), ("../self", "4")] {
            link(&format!("mnt:[{namespace}]"), &format!("{process}/ns/mnt"));
            link(&format!("pid:[{namespace}]"), &format!("{process}/ns/pid"));
            link("user:[1]", &format!("{process}/ns/user"));
        }
        let status = "Name:\tmysqld\nUid:\t0\t999\t0\t0\nNSpid:\t10\t1\n";
        write("status", status);
        write("task/11/status", &status.replace("10\t1", "11\t7"));
        write("root/etc/passwd", "root:x:0:0\nbroken\nmysql:x:999:999::/:");
        write("task/10/stat", STAT);
        write("task/10/children", "12 13 ");
        write("task/11/children", "14 ");
        write("io", "rchar: 1948\nwchar: 0\nread_bytes: 4096\nwrite_bytes: 12288\n");
        write("statm", "3151 1126 994 6 0 204 0\n");
        write("../uptime", "62.50 100.00\n");
        link("/var/lib/mysql", "cwd");
        link("socket:[5]", "fd/3");
        link("/dev/null", "fd/4");
        let sockets = "Num\n0: 2 0 00010000 0001 01 5 /run/mysqld.sock\n\
                       0: 2 0 00010000 0001 01 6 /not/ours\n";
        write("net/unix", sockets);

        let process = Process::below(root.path(), 10);
        let data = PathBuf::from("/var/lib/mysql");
        assert_eq!(process.working_directory(), Reading::Value(data));
        let socket = Endpoint::Unix(PathBuf::from("/run/mysqld.sock"));
        assert_eq!(process.listens(), Reading::Value(vec![socket]));
        let user = User { uid: 999, name: Some("mysql".into()) };
        assert_eq!(process.user(), Reading::Value(user));
        assert_eq!(process.user_ids(), Reading::Value([0, 999, 0]));
        // Who may write there can put a pipe in its place, which nobody writes to.
        let passwd = root.path().join("10/root/etc/passwd");
        fs::remove_file(&passwd).unwrap();
        mknodat(CWD, &passwd, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(process.user(), Reading::Value(User { uid: 999, name: None }));
        assert_eq!(process.state(), Reading::Value('S'));
        let uptime_s = process.uptime().value().unwrap().as_secs_f64();
        let expected_s = 62.5 - 4711.0 / clock_ticks_per_second() as f64;
        assert!((uptime_s - expected_s).abs() < 1e-6, "{uptime_s}");
        let confinement = process.confinement();
        assert_eq!((confinement.other_mounts, confinement.other_pids), (Some(true), Some(true)));
        assert_eq!(confinement.pid_inside, Some(1));
        assert_eq!(process.container(), Some(7));
        let mut children = process.children();
        children.sort_unstable();
        assert_eq!(children, [12, 13, 14]);
        // Everybody can make one with a user namespace.
        fs::remove_file(root.path().join("10/ns/user")).unwrap();
        link("user:[2]", "ns/user");
        assert_eq!(process.container(), None);
        assert!(process.has_thread(7) && !process.has_thread(11));
        assert!(process.has_open(Path::new("/dev/null")) && !process.has_open(root.path()));
        let moved = Storage { read_bytes: 4096, written_bytes: 12_288 };
        assert_eq!(process.storage(), Reading::Value(moved));
        assert_eq!(process.rss_bytes(), Reading::Value(1126 * page_size() as u64));
    }
}
