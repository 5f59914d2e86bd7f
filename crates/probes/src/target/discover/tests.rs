use std::os::unix::fs::symlink;

use super::*;

/// A `/proc` made of files.
struct Fake(tempfile::TempDir);

impl Fake {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn process(&self, pid: u32, start: u64, comm: &str, exe: &str) -> PathBuf {
        let folder = self.root().join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        for (link, target) in [("exe", exe), ("root", "/"), ("cwd", "/var/lib/mysql")] {
            let _ = fs::remove_file(folder.join(link));
            symlink(target, folder.join(link)).unwrap();
        }
        fs::write(folder.join("comm"), format!("{comm}\n")).unwrap();
        let zeros = "0 ".repeat(18);
        let first_thread = folder.join(format!("task/{pid}"));
        fs::create_dir_all(&first_thread).unwrap();
        for stat in [folder.join("stat"), first_thread.join("stat")] {
            fs::write(stat, format!("{pid} ({comm}) S {zeros}{start} 0\n")).unwrap();
        }
        folder
    }

    fn end(&self, pid: u32) {
        fs::remove_dir_all(self.root().join(pid.to_string())).unwrap();
    }

    fn pids(&self) -> Vec<u32> {
        servers(self.root()).iter().map(|server| server.pid).collect()
    }
}

#[test]
fn servers_are_known_by_their_executable_and_their_companions_are_not() {
    let fake = Fake::new();
    fake.process(10, 1, "mysqld", "/usr/sbin/mysqld");
    fake.process(11, 1, "mariadbd", "/usr/sbin/mariadbd (deleted)");
    fake.process(12, 1, "connection", "/opt/mysql/bin/mysqld-debug");
    fake.process(20, 1, "mysqld_safe", "/usr/bin/dash");
    fake.process(21, 1, "mysqld_exporter", "/usr/bin/mysqld_exporter");
    fake.process(22, 1, "mysqld", "/usr/bin/bash");
    fake.process(23, 1, "mysql", "/usr/bin/mysql");
    fs::write(fake.root().join("uptime"), "1 1").unwrap();
    fs::create_dir(fake.root().join("99")).unwrap();
    assert_eq!(fake.pids(), [10, 11, 12]);
    let found = &servers(fake.root())[1];
    assert_eq!(found.executable.value(), Some(&PathBuf::from("/usr/sbin/mariadbd")));
    assert!(found.deleted);
}

#[test]
fn an_executable_with_another_name_is_asked_for_its_symbols() {
    let fake = Fake::new();
    // Every other name is settled without opening the file: this one does not exist.
    fake.process(10, 1, "mysqld", "/nowhere/percona-server");
    fake.process(11, 1, "mysqld-8.0", "/bin/sh");
    fake.process(12, 1, "garbage", "/etc/passwd");
    assert_eq!(fake.pids(), [0u32; 0]);
    assert_eq!(look_of(b"mysqld-8.0"), Look::Perhaps);
    assert_eq!(look_of(b"percona-server"), Look::Other);
}

#[test]
fn the_watcher_tells_started_gone_and_restarted() {
    let fake = Fake::new();
    fake.process(10, 1, "mysqld", "/usr/sbin/mysqld");
    fake.process(11, 2, "mysqld", "/usr/sbin/mysqld");
    let mut watcher = Watcher::new(fake.root());
    let started = |change: &Change| matches!(change, Change::Started(_));
    let first = watcher.changes();
    assert!(first.len() == 2 && first.iter().all(started), "{first:?}");
    assert_eq!(watcher.changes(), []);

    fake.end(10);
    fake.process(11, 7, "mysqld", "/usr/sbin/mysqld");
    fake.process(12, 8, "mariadbd", "/usr/sbin/mariadbd");
    let changes = watcher.changes();
    assert!(
        matches!(&changes[..], [
            Change::Gone(gone),
            Change::Restarted { before, now },
            Change::Started(started),
        ] if gone.pid == 10 && before.start_ticks == 2 && now.start_ticks == 7 && started.pid == 12),
        "{changes:?}"
    );
}

#[test]
fn a_watcher_of_one_process_sees_it_and_no_other() {
    let fake = Fake::new();
    fake.process(10, 1, "mysqld", "/usr/sbin/mysqld");
    fake.process(11, 2, "mysqld", "/usr/sbin/mysqld");
    let mut watcher = Watcher::new(fake.root());
    assert_eq!(watcher.changes().len(), 2);
    watcher.watch_only(11);
    assert!(matches!(&watcher.changes()[..], [Change::Gone(gone)] if gone.pid == 10));
    fake.process(11, 7, "mysqld", "/usr/sbin/mysqld");
    fake.process(12, 8, "mysqld", "/usr/sbin/mysqld");
    let changes = watcher.changes();
    assert!(
        matches!(&changes[..], [Change::Restarted { now, .. }] if now.pid == 11),
        "{changes:?}"
    );
    fake.end(11);
    assert!(matches!(&watcher.changes()[..], [Change::Gone(gone)] if gone.start_ticks == 7));
}

#[test]
fn a_shell_that_becomes_a_server_by_exec_is_seen() {
    let fake = Fake::new();
    fake.process(1, 5, "entrypoint.sh", "/bin/bash");
    let mut watcher = Watcher::new(fake.root());
    assert_eq!(watcher.changes(), []);
    fake.process(1, 5, "mysqld", "/usr/sbin/mysqld");
    assert!(matches!(&watcher.changes()[..], [Change::Started(server)] if server.pid == 1));
}

#[test]
fn an_old_shell_that_becomes_a_server_is_seen_a_little_later() {
    let fake = Fake::new();
    fake.process(1, 5, "entrypoint.sh", "/bin/bash");
    let mut watcher = Watcher::new(fake.root());
    (0..2 * YOUNG).for_each(|_| assert_eq!(watcher.changes(), []));
    fake.process(1, 5, "mysqld", "/usr/sbin/mysqld");
    let changes: Vec<Change> = (0..OLD_EVERY).flat_map(|_| watcher.changes()).collect();
    assert!(matches!(&changes[..], [Change::Started(server)] if server.pid == 1), "{changes:?}");
}

#[test]
fn what_was_found_out_about_a_process_is_forgotten_with_it() {
    let fake = Fake::new();
    fake.process(10, 1, "cat", "/bin/cat");
    let mut watcher = Watcher::new(fake.root());
    watcher.changes();
    assert_eq!(watcher.judged.len(), 1);
    fake.end(10);
    watcher.changes();
    assert_eq!(watcher.judged.len(), 0);
}

#[test]
fn a_description_gives_a_reason_for_each_thing_it_lacks() {
    let fake = Fake::new();
    let described = describe(fake.root(), 10);
    assert!(described.data_directory.why().is_some_and(|why| why.contains("has ended")));
    assert!(described.listens.why().is_some());
    assert!(described.uptime.why().is_some());
    assert!(described.user.why().is_some());
    assert_eq!(described.confinement, Confinement::default());
}

#[test]
fn a_server_in_a_container_is_described_from_its_files() {
    let fake = Fake::new();
    let folder = fake.process(10, 200, "mysqld", "/usr/sbin/mysqld");
    let own = fake.process(9, 1, "waggle", "/usr/bin/waggle");
    symlink(&own, fake.root().join("self")).unwrap();
    for (folder, namespace) in [(&folder, "7"), (&own, "4")] {
        fs::create_dir(folder.join("ns")).unwrap();
        symlink(format!("mnt:[{namespace}]"), folder.join("ns/mnt")).unwrap();
        symlink(format!("pid:[{namespace}]"), folder.join("ns/pid")).unwrap();
    }
    fs::write(folder.join("status"), "Name:\tmysqld\nUid:\t0\t999\t0\t0\nNSpid:\t10\t1\n").unwrap();
    fs::remove_file(folder.join("root")).unwrap();
    fs::create_dir_all(folder.join("root/etc")).unwrap();
    fs::write(folder.join("root/etc/passwd"), "root:x:0:0\nbroken\nmysql:x:999:999::/:").unwrap();
    fs::create_dir(folder.join("fd")).unwrap();
    symlink("socket:[5]", folder.join("fd/3")).unwrap();
    symlink("/dev/null", folder.join("fd/4")).unwrap();
    fs::create_dir(folder.join("net")).unwrap();
    fs::write(
        folder.join("net/unix"),
        "Num\n0: 2 0 00010000 0001 01 5 /run/mysqld.sock\n0: 2 0 00010000 0001 01 6 /not/ours\n",
    )
    .unwrap();
    fs::write(fake.root().join("uptime"), "62.50 100.00\n").unwrap();

    let described = describe(fake.root(), 10);
    assert_eq!(described.data_directory.value(), Some(&PathBuf::from("/var/lib/mysql")));
    let socket = Endpoint::Unix(PathBuf::from("/run/mysqld.sock"));
    assert_eq!(described.listens.value(), Some(&vec![socket]));
    assert_eq!(described.user.value(), Some(&User { uid: 999, name: Some("mysql".into()) }));
    let hz = rustix::param::clock_ticks_per_second() as f64;
    let uptime = described.uptime.value().unwrap().as_secs_f64();
    assert!((uptime - (62.5 - 200.0 / hz)).abs() < 1e-6, "{uptime}");
    let confinement = described.confinement;
    assert_eq!((confinement.other_mounts, confinement.other_pids), (Some(true), Some(true)));
    assert_eq!(confinement.pid_inside, Some(1));
}
