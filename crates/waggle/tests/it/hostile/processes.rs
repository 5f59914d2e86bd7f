//! Processes of three users that look like servers, and are made to hold up, blind or crash who looks at them, beside a
//! real server under load. The long form is `cargo xtask soak hostile`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use memchr::memmem;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use tempfile::TempDir;
use waggle_probes::servers::elf::Elf;
use waggle_probes::servers::layout::{Field, Layout};
use waggle_testkit::sysbench::Sysbench;
use waggle_testkit::{Killed, Server, Version};

use super::forged::Forged;
use crate::exactness::with_digests;

use crate::size;
use crate::verified::Verified;
use crate::watching::Waggle;

/// `nobody`, and two that have no account.
const USERS: [u32; 3] = [65534, 60_001, 60_002];
/// What a soak asserts, which has the machine for itself.
const WATCHED_WITHIN: Duration = Duration::from_secs(2);
const MEMORY_MAX: u64 = 64 << 20;
/// Of one processor.
const MORE_CPU_MAX: f64 = 0.05;

/// Processes that end with the test, and their programs.
struct Hostile {
    processes: Vec<Killed>,
    _programs: TempDir,
}

impl Hostile {
    /// Starts as many as are asked for, of all kinds and users in turn.
    fn start(server: &Server, count: usize) -> Hostile {
        // Where everybody may go.
        let programs = tempfile::tempdir().unwrap();
        fs::set_permissions(programs.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let at = |name: &str| {
            let folder = programs.path().join(name);
            fs::create_dir(&folder).unwrap();
            folder.join("mysqld")
        };
        let forged: Vec<PathBuf> =
            Forged::ALL.iter().map(|forged| forged.write(&at(forged.name))).collect();
        let blind = blinded(server, &at("blind"));
        let pipe = programs.path().join("options");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
        let rooted = with_pipe_for_passwd(&forged[0], &programs.path().join("rooted"));

        let kinds = forged.len() + 2;
        let start = |number: usize| {
            let user = USERS[number % USERS.len()];
            let kind = number / USERS.len() % kinds;
            let mut command = match forged.get(kind) {
                Some(program) => Command::new(program),
                // It waits for somebody who writes its options.
                None if kind == forged.len() => {
                    let mut command = Command::new(&blind);
                    command.arg(format!("--defaults-file={}", pipe.display()));
                    command
                }
                None => {
                    let mut command = Command::new("chroot");
                    // By their numbers: else it reads the names in the new root, which never come.
                    command
                        .arg(format!("--userspec=+{user}:+{user}"))
                        .arg(format!("--groups=+{user}"));
                    command.arg(&rooted).arg("/mysqld");
                    return Killed(quiet(&mut command).spawn().unwrap());
                }
            };
            Killed(quiet(command.uid(user).gid(user)).spawn().unwrap())
        };
        let processes = (0..count).map(start).collect();
        let hostile = Hostile { processes, _programs: programs };
        thread::sleep(Duration::from_millis(200));
        hostile
    }

    fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(|process| process.id()).collect()
    }

    /// That every one still runs: else it tries nothing.
    fn assert_alive(&mut self) {
        for process in &mut self.processes {
            assert_eq!(process.try_wait().unwrap(), None, "a hostile process has ended");
        }
    }
}

fn quiet(command: &mut Command) -> &mut Command {
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

/// A copy of the server's program in which one accessor shows another place for the connection's id.
fn blinded(server: &Server, copy: &Path) -> PathBuf {
    let program = Elf::open(server.program()).unwrap();
    let id = Layout::derive(&program).unwrap().offset(Field::ConnectionId).unwrap().to_le_bytes();
    let accessor = program.symbol("thd_get_thread_id").unwrap();
    let code = program.code(accessor.address, 24).unwrap();
    let mut bytes = fs::read(server.program()).unwrap();
    let at = memmem::find(&bytes, &code).unwrap();
    let inside = code.windows(id.len()).position(|window| window == id).unwrap();
    bytes[at + inside] ^= 8;
    Forged::write_bytes(copy, &bytes);
    copy.to_owned()
}

/// A root directory with a program, and a pipe that nobody writes to where the users of the system stand.
fn with_pipe_for_passwd(program: &Path, root: &Path) -> PathBuf {
    fs::create_dir_all(root.join("etc")).unwrap();
    assert!(Command::new("cp").arg(program).arg(root.join("mysqld")).status().unwrap().success());
    let passwd = root.join("etc/passwd");
    mknodat(CWD, passwd, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    root.to_owned()
}

#[test]
fn hostile_processes_of_three_users_cost_themselves() {
    let server = with_digests(Version::Mariadb114);
    let mut sysbench = Sysbench::endless("oltp_read_write");
    (sysbench.tables, sysbench.threads) = (1, 1);
    sysbench.prepare(&server).unwrap();
    let _running = sysbench.start(&server).unwrap();
    let alone = Watched::of(&server);
    let mut hostile = Hostile::start(&server, size::choose(30, 300));
    let beside = Watched::of(&server);
    is_listed(&server, &hostile);
    hostile.assert_alive();
    size::keep(&json!({
        "test": "hostile",
        "processes": hostile.processes.len(),
        "alone": alone.row(),
        "beside": beside.row(),
    }));
    let lines = beside.err.lines().filter(|line| line.contains("not watched")).count();
    assert!(lines < 3 * (3 + 10), "many processes of one user take few lines: {}", beside.err);
    if size::is_soak() {
        assert!(beside.until_watched < WATCHED_WITHIN, "{:?}", beside.until_watched);
        assert!(beside.peak_bytes <= MEMORY_MAX, "{} bytes", beside.peak_bytes);
        let more = beside.cpu - alone.cpu;
        assert!(more <= MORE_CPU_MAX, "{more} of a processor more");
    }
    let length = size::choose(Duration::from_secs(1), Duration::from_secs(20));
    let verified = Verified::during(&server, &[], length);
    assert_eq!(verified.code, Some(0), "{:#} {}", verified.report, verified.err);
}

/// What a watch over all servers of the host was like.
struct Watched {
    until_watched: Duration,
    peak_bytes: u64,
    /// Processors that it took with its children, when it had settled.
    cpu: f64,
    err: String,
}

impl Watched {
    fn of(server: &Server) -> Watched {
        let begun = Instant::now();
        let mut waggle = Waggle::start(&["watch", "--json", "--interval", "250ms"]);
        let sees = |waggle: &Waggle| {
            waggle.lines().iter().any(|line| {
                line["server"]["pid"] == server.pid() && line["statements"].as_u64() > Some(0)
            })
        };
        waggle.wait_for("statements of the real server", sees);
        let until_watched = begun.elapsed();
        thread::sleep(size::choose(Duration::ZERO, Duration::from_secs(60)));
        let (before, since) = (cpu_of(waggle.pid()), Instant::now());
        thread::sleep(size::choose(Duration::from_millis(500), Duration::from_secs(20)));
        let cpu = (cpu_of(waggle.pid()) - before) / since.elapsed().as_secs_f64();
        let peak = waggle_host::Process::of(waggle.pid()).rss_peak_bytes();
        let peak_bytes = *peak.value().unwrap();
        let err = waggle.interrupt().err;
        Watched { until_watched, peak_bytes, cpu, err }
    }

    fn row(&self) -> Value {
        json!({
            "until_watched_s": self.until_watched.as_secs_f64(),
            "peak_bytes": self.peak_bytes,
            "cpu": self.cpu,
        })
    }
}

/// Seconds of processor time of a process and of its children.
fn cpu_of(pid: u32) -> f64 {
    let running = waggle_host::Process::of(pid).children();
    // utime, stime, cutime, cstime are the fields 14 to 17 (proc_pid_stat(5)); the last two are of children that ended.
    let ticks_of = |pid: u32, fields: usize| {
        // A child may end meanwhile.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let all = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().skip(11);
        all.take(fields).map(|field| field.parse::<f64>().unwrap()).sum::<f64>()
    };
    let of_running: f64 = running.into_iter().map(|child| ticks_of(child, 2)).sum();
    (ticks_of(pid, 4) + of_running) / waggle_host::HostTime::TICKS_PER_S
}

/// The real server is attachable, the others are listed or counted, each with its reason.
fn is_listed(server: &Server, hostile: &Hostile) {
    let rows = Waggle::start(&["servers", "--json"]).end().lines();
    let real = rows.iter().find(|row| row["pid"] == server.pid());
    assert_eq!(real.unwrap_or_else(|| panic!("{rows:?}"))["attachable"], true);
    let pids = hostile.pids();
    let ours: Vec<&Value> =
        rows.iter().filter(|row| pids.iter().any(|pid| row["pid"] == *pid)).collect();
    let refused = ours.iter().filter(|row| row["attachable"] == false);
    assert!(refused.clone().count() <= 3 * USERS.len(), "{ours:?}");
    for row in refused {
        assert!(row["why_not"].as_str().is_some_and(|why| !why.is_empty()), "{row:#}");
    }
    let more: u64 = ours.iter().map(|row| row["more_of_user"].as_u64().unwrap()).sum();
    // Other tests have processes of these users, too.
    assert!(ours.len() as u64 + more >= pids.len() as u64, "{ours:?}");
}
