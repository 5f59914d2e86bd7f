//! Finding real servers, and processes in other pid namespaces.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use waggle_host::{Endpoint, Process};
use waggle_probes::servers::discover::{Change, Found, Watcher, servers};
use waggle_testkit::{Killed, Server, Version, wait_for};

fn found(pid: u32) -> Option<Found> {
    servers(Path::new("/proc")).into_iter().find(|server| server.pid == pid)
}

#[test]
fn every_version_is_found_and_described() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        let found = found(server.pid()).unwrap_or_else(|| panic!("{version} is not found"));
        assert!(found.start_ticks > 0 && !found.deleted, "{version}: {found:?}");
        let program = fs::metadata(server.program()).unwrap();
        let running = fs::metadata(format!("/proc/{}/exe", server.pid())).unwrap();
        assert_eq!(program.len(), running.len(), "{version}: another file");

        let process = Process::of(server.pid());
        let datadir = fs::canonicalize(server.datadir()).unwrap();
        let data = process.working_directory();
        let seen = data.value().unwrap();
        assert!(seen.ends_with(datadir.file_name().unwrap()), "{version}: {seen:?}");
        let uptime = process.uptime();
        let is_short = |uptime: &Duration| *uptime < Duration::from_secs(3600);
        assert!(uptime.value().is_some_and(is_short), "{version}: {uptime:?}");
        assert!(process.user().value().is_some(), "{version}");

        let listens = process.listens();
        let listens = listens.value().unwrap();
        let has_port = |endpoint: &Endpoint| {
            matches!(endpoint, Endpoint::Tcp(SocketAddr::V4(at))
                if at.port() == server.port() && *at.ip() == Ipv4Addr::LOCALHOST)
        };
        let socket = server.socket();
        let has_socket = |endpoint: &Endpoint| matches!(endpoint, Endpoint::Unix(path) if path.file_name() == socket.file_name());
        assert!(listens.iter().any(has_port), "{version}: {listens:?}");
        assert!(listens.iter().any(has_socket), "{version}: {listens:?}");
        // MySQL 9 lives in the tree of another distribution.
        let confinement = process.confinement();
        let in_chroot = confinement.chroot.is_some();
        assert_eq!(in_chroot, version == Version::Mysql9, "{version}: {confinement:?}");
    }
}

#[test]
fn a_restart_is_told_by_the_watcher() {
    let mut watcher = Watcher::new(Path::new("/proc"));
    watcher.changes();
    let mut server = Server::start(Version::Mariadb1011).unwrap();
    let first = server.pid();
    let started = |changes: &[Change], pid: u32| {
        changes.iter().any(|change| matches!(change, Change::Started(now) if now.pid == pid))
    };
    assert!(started(&watcher.changes(), first));
    server.restart().unwrap();
    let changes = watcher.changes();
    let gone = |change: &Change| matches!(change, Change::Gone(was) if was.pid == first);
    assert!(changes.iter().any(gone), "{changes:?}");
    assert!(started(&changes, server.pid()), "{changes:?}");
}

#[test]
fn a_server_in_another_pid_namespace_is_found_with_its_pid_there() {
    // What counts is the name of the executable, so a program that only waits will do.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("mysqld");
    let waits = ["/bin/sleep", "/usr/bin/sleep"].into_iter().find(|path| Path::new(path).exists());
    // By another process: what another test starts meanwhile would inherit the file that is written, and the kernel
    // runs none that somebody may write (ETXTBSY, execve(2)).
    let copied = Command::new("cp").arg(waits.unwrap()).arg(&program).status().unwrap();
    assert!(copied.success());
    let unshare = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "--kill-child"])
        .arg(&program)
        .arg("600")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let _unshare = Killed(unshare);
    let ours = |server: &Found| server.executable.value() == Some(&program);
    let server = wait_for("unshare: it needs root and a kernel with pid namespaces", || {
        servers(Path::new("/proc")).into_iter().find(ours)
    });
    let confinement = Process::of(server.pid).confinement();
    assert_eq!(confinement.other_pids, Some(true));
    assert_eq!(confinement.pid_inside, Some(1));
    assert_eq!(confinement.chroot, None);

    fs::remove_file(&program).unwrap();
    assert!(found(server.pid).unwrap().deleted);
}
