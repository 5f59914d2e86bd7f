//! Servers start, end and leave nothing.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{fs, thread};

use waggle_testkit::{
    Account, Client, Error, PerformanceSchema, Server, Transport, Version, target_dir,
};

fn value(server: &Server, sql: &str) -> String {
    let mut client = server.root().unwrap();
    let value = client.run(sql).unwrap()[0].text(0, 0).unwrap();
    client.quit().unwrap();
    value
}

fn process_exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn each_server_starts_as_the_version_asked_for_in_a_process_of_that_id() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        let (kind, release) = version.name().split_once('-').unwrap();
        assert!(server.version_string().starts_with(&format!("{release}.")), "{server:?}");
        assert_eq!(server.version_string().contains("MariaDB"), kind == "mariadb", "{server:?}");
        assert_eq!(value(&server, "SELECT VERSION()"), server.version_string(), "{version}");

        let executable = fs::read_link(format!("/proc/{}/exe", server.pid())).unwrap();
        assert_eq!(executable, fs::canonicalize(server.program()).unwrap(), "{version}");
        let pid = fs::read_to_string(server.datadir().parent().unwrap().join("pid")).unwrap();
        assert_eq!(pid.trim(), server.pid().to_string(), "{version}");
        assert_eq!(value(&server, "SELECT @@port"), server.port().to_string(), "{version}");
        server.stop().unwrap();
    }
}

#[test]
fn stop_leaves_no_process_and_no_file() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        let (pid, data, socket) = (server.pid(), server.datadir(), server.socket());
        assert!(data.starts_with(target_dir()) && socket.starts_with(target_dir()));
        for place in [&data, &socket] {
            assert!(place.exists(), "{version}: {}", place.display());
        }
        assert!(process_exists(pid), "{version}");
        server.stop().unwrap();
        assert!(!process_exists(pid), "{version}");
        assert!(!data.parent().unwrap().exists(), "{version}: {}", data.display());
    }
}

#[test]
fn a_running_server_has_no_file_open_for_writing_outside_the_build_directory() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        for entry in fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap() {
            let Ok(target) = fs::read_link(entry.unwrap().path()) else { continue };
            let name = target.display().to_string();
            let in_kernel = ["/dev/", "/proc/", "/sys/", "/memfd:", "/[aio]"];
            let elsewhere = target.is_absolute()
                && !in_kernel.iter().any(|start| name.starts_with(start))
                && !target.starts_with(fs::canonicalize(target_dir()).unwrap())
                && !target.starts_with(target_dir());
            assert!(!elsewhere || name.ends_with(" (deleted)"), "{version}: {name}");
        }
    }
}

#[test]
fn a_dropped_server_is_gone() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let (pid, data) = (server.pid(), server.datadir());
    drop(server);
    assert!(!process_exists(pid));
    assert!(!data.exists());
}

#[test]
fn after_kill_9_the_server_comes_back_with_its_data_port_and_socket() {
    for version in Version::ALL {
        let mut server = Server::start(version).unwrap();
        let (pid, port, socket) = (server.pid(), server.port(), server.socket());
        let mut client = Client::connect(&server, Transport::Tcp, Account::APP).unwrap();
        client.run("CREATE TABLE test.kept (n INT); INSERT INTO test.kept VALUES (42)").unwrap();
        server.kill9().unwrap();
        assert!(!process_exists(pid), "{version}");
        assert_eq!(server.pid(), 0, "{version}");
        assert!(matches!(server.kill9(), Err(Error::NotRunning { .. })), "{version}");
        assert!(matches!(client.query("SELECT 1"), Err(Error::Connection(_))), "{version}");

        server.restart().unwrap();
        assert_ne!(server.pid(), pid, "{version}");
        assert_eq!((server.port(), server.socket()), (port, socket), "{version}");
        assert_eq!(value(&server, "SELECT n FROM test.kept"), "42", "{version}");
    }
}

#[test]
fn servers_of_one_version_live_side_by_side() {
    let servers = thread::scope(|scope| {
        let starts: Vec<_> =
            (0..3).map(|_| scope.spawn(|| Server::start(Version::Mariadb114).unwrap())).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect::<Vec<_>>()
    });
    // They were started by threads that have ended, and must not have ended with them.
    let mut ports: Vec<u16> = servers.iter().map(Server::port).collect();
    for server in &servers {
        assert_eq!(value(server, "SELECT @@port"), server.port().to_string());
    }
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 3);
}

#[test]
fn a_server_ends_when_the_program_that_started_it_is_killed() {
    for version in [Version::Mysql57, Version::Mysql9] {
        let mut starter = Command::new(env!("CARGO_BIN_EXE_serve"))
            .arg(version.name())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(starter.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let place: serde_json::Value = serde_json::from_str(&line).unwrap();
        let pid = u32::try_from(place["pid"].as_u64().unwrap()).unwrap();
        let data = place["datadir"].as_str().unwrap().to_owned();
        assert!(process_exists(pid), "{version}");
        starter.kill().unwrap();
        starter.wait().unwrap();
        // Its new parent, the reaper of orphans, may be slow to take note of its end.
        while fs::read_to_string(format!("/proc/{pid}/status"))
            .is_ok_and(|status| !status.contains("State:\tZ"))
        {
            thread::yield_now();
        }
        // The next start sweeps what the killed one left, if that of another test has not.
        drop(Server::start(version).unwrap());
        assert!(!Path::new(&data).exists(), "{version}");
    }
}

#[test]
fn settings_reach_the_server() {
    for version in Version::ALL {
        let server = Server::builder(version)
            .arg("--general-log=1")
            .max_connections(17)
            .binlog(true)
            .performance_schema(PerformanceSchema::Off)
            .start()
            .unwrap();
        let all = "SELECT CONCAT_WS(',', @@general_log + 0, @@max_connections, \
                   @@log_bin + 0, @@performance_schema + 0, @@local_infile + 0)";
        assert_eq!(value(&server, all), "1,17,1,0,1", "{version}");
    }
}

#[test]
fn performance_schema_counts_statements_when_asked_to() {
    for version in Version::ALL {
        for records in [PerformanceSchema::Statements, PerformanceSchema::Everything] {
            let server = Server::builder(version).performance_schema(records).start().unwrap();
            value(&server, "SELECT 'one'");
            let seen = "SELECT COUNT_STAR FROM performance_schema.\
                        events_statements_summary_by_digest WHERE DIGEST_TEXT = 'SELECT ?'";
            assert_eq!(value(&server, seen).trim(), "1", "{version} {records:?}");
        }
    }
}

#[test]
fn mariadb_runs_with_its_thread_pool() {
    for version in [Version::Mariadb1011, Version::Mariadb114] {
        let pool = "--thread-handling=pool-of-threads";
        let server = Server::builder(version).arg(pool).start().unwrap();
        assert_eq!(value(&server, "SELECT @@thread_handling"), "pool-of-threads");
    }
}

#[test]
fn a_failed_start_says_what_the_server_said() {
    for version in Version::ALL {
        let error = Server::builder(version).arg("--no-such-setting").start().unwrap_err();
        let text = error.to_string();
        assert!(text.contains(version.name()), "{text}");
        assert!(text.contains("no-such-setting"), "{text}");
    }
}

#[test]
fn option_files_work_with_the_command_line_client_and_are_private() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        for account in [Account::ROOT, Account::APP, Account::SECRET] {
            let file = server.option_file(account).unwrap();
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
            let output = Command::new("mariadb")
                .arg(format!("--defaults-file={}", file.display()))
                .args(["--batch", "--skip-column-names", "--execute=SELECT USER()"])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(said.trim(), format!("{}@localhost", account.user), "{version} {output:?}");
        }
    }
}
