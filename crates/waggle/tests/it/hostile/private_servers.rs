//! Private servers beside users who put traps where root works.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use tempfile::TempDir;
use waggle_testkit::{Server, Version};

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

/// Somebody who plants links to a file as soon as a private server has a directory, and holds a lock on the
/// directory above.
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
                for entry in fs::read_dir(&places).into_iter().flatten().flatten() {
                    for dir in [entry.path(), entry.path().join("own")] {
                        let planting =
                            Self::NAMES.iter().map(|name| symlink(&victim, dir.join(name)));
                        planted += planting.filter(Result::is_ok).count();
                    }
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
