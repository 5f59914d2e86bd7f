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
        let stat = format!("{pid} ({comm}) S {zeros}{start} 0\n");
        fs::write(first_thread.join("stat"), stat).unwrap();
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
    fake.process(24, 1, "mysqldump", "/usr/bin/mysqldump");
    fake.process(21, 1, "mysqld_exporter", "/usr/bin/mysqld_exporter");
    fake.process(23, 1, "mysql", "/usr/bin/mysql");
    fs::create_dir(fake.root().join("99")).unwrap();
    assert_eq!(fake.pids(), [10, 11, 12]);
    let found = &servers(fake.root())[1];
    assert_eq!(found.executable.value(), Some(&PathBuf::from("/usr/sbin/mariadbd")));
    assert!(found.deleted);
}

#[test]
fn an_executable_with_another_name_may_be_a_server() {
    let fake = Fake::new();
    fake.process(10, 1, "mysqld", "/usr/sbin/mysqld");
    fake.process(11, 1, "mysqld", "/nowhere/percona-server");
    fake.process(12, 1, "mysqld-8.0", "/opt/mysqld-8.0");
    fake.process(13, 1, "ld-linux-x86-64", "/usr/lib/ld-linux-x86-64.so.2");
    fake.process(14, 1, "garbage", "/etc/passwd");
    let found = servers(fake.root());
    let named: Vec<_> = found.iter().map(|found| (found.pid, found.is_named)).collect();
    assert_eq!(named, [(10, true), (11, false), (12, false), (13, false)]);
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
fn a_program_that_may_be_a_server_and_becomes_one_by_exec_is_seen() {
    let fake = Fake::new();
    fake.process(1, 5, "mysqld-start", "/opt/mysqld-start");
    let mut watcher = Watcher::new(fake.root());
    assert!(matches!(&watcher.changes()[..], [Change::Started(perhaps)] if !perhaps.is_named));
    fake.process(1, 5, "mysqld", "/usr/sbin/mysqld");
    let changes = watcher.changes();
    assert!(matches!(&changes[..], [Change::Restarted { now, .. }] if now.is_named), "{changes:?}");
    fake.process(1, 5, "mysqld", "/usr/sbin/mysqld (deleted)");
    assert_eq!(watcher.changes(), []);
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
fn a_command_line_that_gives_a_server_to_a_loader_is_known() {
    let fake = Fake::new();
    let folder = fake.process(10, 1, "ld-linux-x86-64", "/usr/lib/ld-linux-x86-64.so.2");
    let loader = "/lib64/ld-linux-x86-64.so.2\0--library-path\0/opt/lib\0";
    for (line, is_server) in [
        (format!("{loader}/opt/bin/mysqld\0--port=3306\0"), true),
        (format!("{loader}/opt/bin/mysqld_exporter\0"), false),
        ("cat\0/usr/sbin/mysqld\0".to_owned(), false),
    ] {
        fs::write(folder.join("cmdline"), &line).unwrap();
        assert_eq!(is_given_to_loader(&folder), is_server, "{line}");
    }
}

#[test]
fn processes_without_a_readable_name_are_hidden() {
    let fake = Fake::new();
    fake.process(1, 1, "init", "/sbin/init");
    assert_eq!(hidden(fake.root()), Hidden::default());
    fake.end(1);
    assert_eq!(hidden(fake.root()), Hidden { listed: 0, others: true });
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
