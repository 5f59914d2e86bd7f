//! Private servers beside users who put traps where root works.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use tempfile::TempDir;
use waggle_testkit::{Server, Version};

use super::silent_files::SilentFiles;
use super::{NOBODY, assert_told, open_to, option_file};
use crate::bad_days::disguise::Disguised;
use crate::watching::Waggle;

/// What only root may read.
const SECRET: &str = "tOpSeCrEt42";
const CALIBRATE: [&str; 7] =
    ["pfs", "cost", "--interval", "10ms", "--calibrate", "--rounds", "10000"];

/// A directory that everybody may read.
fn place() -> TempDir {
    let place = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    open_to(place.path(), 0o755);
    place
}

/// Begins a calibration whose servers are below a directory.
fn calibrate(option_file: &Path, places: &Path) -> Waggle {
    let places = format!("TMPDIR={}", places.display());
    let account = ["--defaults-file", option_file.to_str().unwrap()];
    Waggle::through(&["env", &places], &[&CALIBRATE[..], &account].concat())
}

/// A file that only root may read and write.
fn secret_file(dir: &Path) -> PathBuf {
    let path = dir.join("secret");
    fs::write(&path, SECRET).unwrap();
    open_to(&path, 0o600);
    path
}

#[test]
fn what_a_server_names_as_its_messages_is_read_without_links_and_without_waiting() {
    const NAMES: [&str; 2] = ["mysql_system_tables.sql", "mysql_performance_tables.sql"];
    let (messages, places) = (place(), place());
    let secret = secret_file(places.path());
    symlink("/usr/share/mysql/english", messages.path().join("english")).unwrap();
    let server = Server::builder(Version::Mariadb1011)
        .arg("--performance-schema=ON")
        .arg(format!("--lc-messages-dir={}", messages.path().display()))
        .start()
        .unwrap();
    let [first, second] = NAMES.map(|name| messages.path().join(name));
    let refused = |about: &str, word: &str| {
        let ended = calibrate(&server.defaults_file(), places.path()).end();
        assert_told(&ended, about, 4, &[word]);
        assert!(!ended.err.contains(SECRET), "{about}: {}", ended.err);
        assert_eq!(fs::read_dir(places.path()).unwrap().count(), 1, "{about}: nothing is left");
    };
    symlink(&secret, &first).unwrap();
    refused("a link", "mariadb_system_tables.sql");
    fs::remove_file(&first).unwrap();
    fs::write(&first, "SELECT 1;").unwrap();
    symlink(&secret, &second).unwrap();
    refused("a link further on", NAMES[1]);
    fs::remove_file(&second).unwrap();
    mknodat(CWD, &second, FileType::Fifo, Mode::RUSR, 0).unwrap();
    refused("a FIFO", "no regular file");
    fs::remove_file(&second).unwrap();
    File::create(&second).unwrap().set_len(1 << 40).unwrap();
    refused("a file without end", "longer than that of any server");
}

/// Somebody who plants links to a file as soon as a private server of theirs has a directory, and holds a lock on the
/// directory above. They reach it through the process of that server, which is theirs.
struct Planter {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<usize>,
}

impl Planter {
    /// What waggle itself writes.
    const NAMES: [&str; 4] = ["error.log", "initialize.log", "bootstrap.sql", "owner"];

    fn start(places: PathBuf, victim: PathBuf) -> Planter {
        let stop = Arc::<AtomicBool>::default();
        let is_over = stop.clone();
        let thread = thread::spawn(move || {
            become_nobody();
            let lock = File::open(&places).unwrap();
            flock(&lock, FlockOperation::LockExclusive).unwrap();
            let mut planted = 0;
            while !is_over.load(Ordering::Relaxed) {
                // At the end of the test it is gone.
                let entries = fs::read_dir(&places).into_iter().flatten().flatten();
                let by_path = entries.flat_map(|it| [it.path(), it.path().join("own")]);
                for dir in by_path.chain(own_seen_by_servers()) {
                    let planting = Self::NAMES.iter().map(|name| symlink(&victim, dir.join(name)));
                    planted += planting.filter(Result::is_ok).count();
                }
                thread::sleep(Duration::from_millis(1));
            }
            planted
        });
        Planter { stop, thread }
    }

    /// How many were planted.
    fn end(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// What is the own of private servers, as they see it in the place of these directories.
fn own_seen_by_servers() -> impl Iterator<Item = PathBuf> {
    let roots = waggle_host::pids(Path::new("/proc")).map(|pid| format!("/proc/{pid}/root"));
    let seen = roots.flat_map(|root| ["tmp", "mnt"].map(|it| Path::new(&root).join(it)));
    seen.filter(|seen| seen.join("data").is_dir())
}

/// Makes this thread one of nobody's; the others stay who they are (credentials(7)).
fn become_nobody() {
    let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    set_thread_groups(&[]).unwrap();
    set_thread_res_gid(group, group, group).unwrap();
    set_thread_res_uid(user, user, user).unwrap();
}

#[test]
fn traps_in_the_directory_of_a_private_server_catch_no_file_of_root() {
    let server = Disguised::of_nobody(Version::Mysql80);
    let (places, ours) = (place(), place());
    // There is no password to lose.
    let account = format!("user=root\nsocket={}", server.socket().display());
    let account = option_file(ours.path(), "c.cnf", &account);
    let victim = secret_file(ours.path());
    let before = fs::metadata(&victim).unwrap();
    let planter = Planter::start(places.path().to_owned(), victim.clone());
    let mut waggle = calibrate(&account, places.path());
    waggle.wait_for("its start in spite of all", |waggle| waggle.err().contains("round 1"));
    let ended = waggle.interrupt();
    assert_told(&ended, "interrupted", 4, &[]);
    assert!(planter.end() > 0, "nothing was planted");
    assert!(!ended.err.contains(SECRET), "{}", ended.err);
    let after = fs::metadata(&victim).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), SECRET);
    let rights = |found: &fs::Metadata| (found.uid(), found.gid(), found.mode(), found.nlink());
    assert_eq!(rights(&after), rights(&before));
    assert_eq!(fs::read_dir(places.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn a_place_of_somebody_else_for_private_servers_is_refused_by_name() {
    let server = Server::start(Version::Mysql80).unwrap();
    let places = place();
    let name = places.path().display().to_string();
    let words = [&name[..], "belongs to others", "TMPDIR"];
    chown(places.path(), Some(NOBODY), None).unwrap();
    assert_told(&calibrate(&server.defaults_file(), places.path()).end(), "nobody's", 4, &words);
    chown(places.path(), Some(0), None).unwrap();
    open_to(places.path(), 0o777);
    assert_told(&calibrate(&server.defaults_file(), places.path()).end(), "everybody's", 4, &words);
    assert_eq!(fs::read_dir(places.path()).unwrap().count(), 0);
}

/// Calibrates on a server with mounts of its own, and waits until its private server is there.
fn calibrate_in_a_container(server: &Disguised, places: &Path) -> Waggle {
    let set = [format!("TMPDIR={}", places.display()), format!("ONLY_FOR_ROOT={SECRET}")];
    let account = ["--defaults-file", server.defaults_file().to_str().unwrap()].map(str::to_owned);
    let account = account.each_ref().map(String::as_str);
    Waggle::through(&["env", &set[0], &set[1]], &[&CALIBRATE[..], &account].concat())
}

/// The private servers that it has started.
fn private_servers_of(waggle: &Waggle) -> Vec<u32> {
    let mut children = waggle_host::Process::of(waggle.pid()).children();
    children.retain(|pid| {
        let program = waggle_host::Process::of(*pid).executable();
        program.value().is_some_and(|program| program.ends_with("mysqld"))
    });
    children
}

#[test]
fn the_private_server_of_a_container_has_no_rights_on_the_host() {
    let server = Disguised::with_own_mounts(Version::Mysql80);
    let places = place();
    let mut waggle = calibrate_in_a_container(&server, places.path());
    waggle.wait_for("its first round", |waggle| waggle.err().contains("round 1"));
    let [private] = private_servers_of(&waggle)[..] else { panic!("{}", waggle.err()) };
    let read = |name: &str| fs::read_to_string(format!("/proc/{private}/{name}")).unwrap();
    let status = read("status");
    let numbers = |name: &str| -> Vec<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let radix = if name.starts_with("Cap") { 16 } else { 10 };
        let words = line[1..].split_ascii_whitespace();
        words.map(|word| u64::from_str_radix(word, radix).unwrap()).collect()
    };
    for name in ["Uid", "Gid"] {
        let ids = numbers(name);
        assert!(
            ids.iter().all(|id| *id > 4_200_000_000),
            "{name}: {ids:?} is somebody of the host"
        );
    }
    for name in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(numbers(name), [0], "{name}");
    }
    assert_eq!(numbers("NoNewPrivs"), [1]);
    assert_eq!(numbers("Groups"), [0; 0]);
    assert!(!read("environ").contains(SECRET), "it has the environment of root");
    let stat = read("stat");
    let session = stat.rsplit(") ").next().unwrap().split(' ').nth(3).unwrap();
    assert_eq!(session, private.to_string(), "it shares a terminal with root");
    let space = |pid: &str, name: &str| fs::read_link(format!("/proc/{pid}/ns/{name}")).unwrap();
    for name in ["mnt", "net", "ipc"] {
        assert_ne!(space(&private.to_string(), name), space("self", name), "{name}");
        assert_ne!(space(&private.to_string(), name), space(&server.pid().to_string(), name));
    }
    // Its root cannot rename what root works with.
    let [ours] = &fs::read_dir(places.path()).unwrap().collect::<Vec<_>>()[..] else { panic!() };
    let mode = ours.as_ref().unwrap().metadata().unwrap().mode();
    assert_eq!(mode & 0o7777, 0o700, "somebody else can go there");
    let mounts = fs::read_to_string(format!("/proc/{}/mountinfo", server.pid())).unwrap();
    assert!(!mounts.contains("waggle-server-"), "{mounts}");
    assert_told(&waggle.interrupt(), "interrupted", 4, &["stopped"]);
    assert_eq!(fs::read_dir(places.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn a_pipe_in_the_place_of_the_c_library_of_a_server_holds_up_nobody() {
    let server = Disguised::with_own_mounts(Version::Mysql80);
    let (places, ours) = (place(), place());
    let pipe = ours.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    let maps = fs::read_to_string(format!("/proc/{}/maps", server.pid())).unwrap();
    let library = maps.lines().find_map(|line| {
        let path = line.split_ascii_whitespace().nth(5)?;
        path.ends_with("/libc.so.6").then_some(path)
    });
    let pid = server.pid().to_string();
    let within = ["--target", &pid, "--mount", "mount", "--bind", pipe.to_str().unwrap()];
    let bound = Command::new("nsenter").args(within).arg(library.unwrap()).status().unwrap();
    assert!(bound.success());

    let listed = Waggle::start(&["servers", "--json"]).end();
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    assert!(listed.lines().iter().any(|row| row["pid"] == server.pid()), "{}", listed.out);

    let mut waggle = calibrate_in_a_container(&server, places.path());
    // Its program never begins: who loads it waits for who writes to the pipe.
    waggle.wait_for("a private server that waits for its library", |waggle| {
        private_servers_of(waggle).into_iter().any(|pid| {
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            let waits = waggle_host::Process::of(pid).state().value() == Some(&'S');
            maps.contains("/mysqld") && !maps.contains("/libc.so.6") && waits
        })
    });
    assert_told(&waggle.interrupt(), "interrupted", 4, &["stopped"]);
    assert_eq!(fs::read_dir(places.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn a_disk_that_never_answers_does_not_hold_up_the_lab() {
    let server = Disguised::with_own_mounts(Version::Mysql80);
    let account = server.defaults_file();
    let _silent = SilentFiles::mount(server.pid(), &server.data());
    let words = ["lab", "run", "rds", "--dsn", "--scale", "tiny", "--only", "read-only"];
    let account = ["--defaults-file", account.to_str().unwrap()];
    let ended = Waggle::start(&[&words[..], &account].concat()).end();
    let name = server.data().display().to_string();
    // It needs --yes to go on.
    let wanted = [&name[..], "does not answer", "is not known", "nothing was changed"];
    assert_told(&ended, "a disk in user space", 2, &wanted);
}
