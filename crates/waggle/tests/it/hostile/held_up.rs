//! Processes whose memory and directory lie in a file system that does not answer: who looks at them waits for ever.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;
use waggle_testkit::client::{Client, Transport};
use waggle_testkit::{Account, Killed, Server, Version, wait_showing};

use super::NOBODY;
use super::silent_files::{NAME, SilentFiles};
use crate::watching::Waggle;

/// What a hostile process does before its own program begins; `FILE` is the file that never gives a byte.
/// One kind has a thread whose thread pointer lies in that file, which is where waggle looks for the thread's session.
/// The other lays the file over the variable that waggle reads when it meets the process.
const PROGRAM: &str = r#"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
extern unsigned long max_digest_length;
__attribute__((constructor)) static void begin(void) {
    int file = open(FILE, O_RDONLY);
#ifdef VARIABLE
    void *page = (void *)((unsigned long)&max_digest_length & ~4095UL);
    mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0);
#else
    char *pages = mmap(0, 65536, PROT_READ, MAP_PRIVATE, file, 0);
    register long thread_pointer asm("r8") = (long)(pages + 32768);
    register long none asm("r10") = 0;
    long result;
    /* clone(CLONE_VM | FS | FILES | SIGHAND | THREAD | SYSVSEM | SETTLS), and then pause() */
    asm volatile("syscall; test %%rax, %%rax; jnz 2f; 1: mov $34, %%eax; syscall; jmp 1b; 2:"
                 : "=a"(result)
                 : "a"(56L), "D"(0xd0f00L), "S"(pages), "d"(0L), "r"(none), "r"(thread_pointer)
                 : "rcx", "r11", "memory");
#endif
    close(file);
}
"#;

/// A server's program run by nobody, which waits for its options for ever.
struct Hostile {
    /// Dropped first: the process itself may wait for its files.
    _files: SilentFiles,
    process: Killed,
    _dir: TempDir,
}

impl Hostile {
    /// Starts one; `kind` is what the compiler is told.
    fn start(server: &Server, kind: &[&str]) -> Hostile {
        // Where everybody may go.
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = path("mysqld");
        let copied = Command::new("cp").arg(server.program()).arg(&program).status().unwrap();
        assert!(copied.success());
        let library = compile(dir.path(), kind);
        mknodat(CWD, path("options"), FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
        fs::create_dir(path("files")).unwrap();
        let (files, mut command) = SilentFiles::serve(&path("files"));
        let nobody = NOBODY.to_string();
        command.args(["setpriv", "--reuid", &nobody, "--regid", &nobody, "--clear-groups"]);
        command.args(["--pdeathsig", "KILL", "env"]);
        command.arg(format!("LD_PRELOAD={}", library.display()));
        command.arg(&program).arg(format!("--defaults-file={}", path("options").display()));
        let process = Killed(command.stdout(Stdio::null()).spawn().unwrap());
        let hostile = Hostile { _files: files, process, _dir: dir };
        let maps = || fs::read_to_string(format!("/proc/{}/maps", hostile.pid())).unwrap();
        wait_showing("its file in its memory", || {
            let maps = maps();
            if maps.contains(NAME) && !is_open(hostile.pid()) { Ok(()) } else { Err(maps) }
        });
        hostile
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }
}

/// Whether a process has the file open; its memory keeps it when it is closed.
fn is_open(pid: u32) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
    links.any(|link| link.ends_with(NAME))
}

fn compile(dir: &Path, kind: &[&str]) -> PathBuf {
    let [source, library] = ["hostile.c", "hostile.so"].map(|name| dir.join(name));
    fs::write(&source, PROGRAM).unwrap();
    let file = format!("-DFILE=\"{}\"", NAME);
    let mut compiler = Command::new("clang");
    compiler.args(["-shared", "-fPIC", "-O1", &file]).args(kind);
    assert!(compiler.arg(&source).arg("-o").arg(&library).status().unwrap().success());
    library
}

#[test]
fn memory_that_never_answers_costs_its_process() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let mut client = Client::connect(&server, Transport::Unix, Account::ROOT).unwrap();
    let mut ask = || client.query("SELECT 7").map(drop).unwrap();
    let of_thread = Hostile::start(&server, &[]);
    let of_variable = Hostile::start(&server, &["-DVARIABLE"]);

    let mut waggle = Waggle::start(&["watch", "--json", "--interval", "250ms"]);
    let lines_of = |waggle: &Waggle, pid: u32| {
        let mut lines = waggle.lines();
        lines.retain(|line| line["server"]["pid"] == pid);
        lines
    };
    // It is watched, but its sessions cannot be looked at.
    waggle.wait_for("intervals of the hostile one", |waggle| {
        ask();
        let lines = lines_of(waggle, of_thread.pid());
        lines.len() >= 3 && lines.iter().all(|line| line["running"].is_null())
    });
    let before = lines_of(&waggle, server.pid()).len();
    waggle.wait_for("statements of the real one", |waggle| {
        ask();
        let lines = lines_of(waggle, server.pid());
        let after = lines.get(before..).unwrap_or_default();
        let has_all = |line: &&serde_json::Value| {
            line["statements"].as_u64() > Some(0) && line["running"].is_number()
        };
        after.iter().filter(has_all).count() >= 3
    });
    assert!(lines_of(&waggle, of_variable.pid()).is_empty());
    assert_eq!(waggle.interrupt().code, Some(0));

    let ended = Waggle::start(&["servers", "--json"]).end();
    let rows = ended.lines();
    let row =
        |pid: u32| rows.iter().find(|row| row["pid"] == pid).unwrap_or_else(|| panic!("{rows:?}"));
    assert_eq!(row(server.pid())["attachable"], true);
    let why = row(of_variable.pid())["why_not"].as_str().unwrap();
    assert!(why.contains("not read in time: a file system does not answer"), "{why}");
}

/// The first user id of children (`confined.rs` of waggle).
const FIRST_UID: u32 = 4_200_000_000;

#[test]
fn a_child_that_reads_processes_keeps_no_rights() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let _holds_it_up = Hostile::start(&server, &["-DVARIABLE"]);
    let mut waggle = Waggle::start(&["servers", "--json"]);
    let mut seen = Vec::new();
    waggle.wait_for("a child without any right", |waggle| {
        let children = waggle_host::Process::of(waggle.pid()).children();
        children.into_iter().any(|pid| {
            let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}"));
            // It may end meanwhile.
            let (Ok(status), Ok(limits)) = (read("status"), read("limits")) else { return false };
            let left = rights_left(&status, &limits);
            if !left.is_empty() && !seen.contains(&left) {
                println!("process {pid} has {left:?}");
                seen.push(left.clone());
            }
            left.is_empty()
        })
    });
    assert_eq!(waggle.end().code, Some(0));
}

/// What a process may still do, line by line of its `status` and its `limits` in `/proc`.
fn rights_left(status: &str, limits: &str) -> Vec<String> {
    let is_own = |line: &str| {
        line.split_ascii_whitespace().skip(1).all(|id| id.parse::<u32>().unwrap() >= FIRST_UID)
    };
    let is_none = |line: &str| line.ends_with("\t0000000000000000");
    let of_status = status.lines().filter(|line| match line.split(':').next().unwrap() {
        "Uid" | "Gid" => !is_own(line),
        "Groups" => line.split_ascii_whitespace().count() > 1,
        "CapInh" | "CapPrm" | "CapEff" | "CapAmb" => !is_none(line),
        "NoNewPrivs" => !line.ends_with("\t1"),
        _ => false,
    });
    let is_limited = |name: &str, most: u64| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        let mut limits = line[name.len()..].split_ascii_whitespace();
        let [soft, hard] =
            [limits.next(), limits.next()].map(|limit| limit.unwrap().parse::<u64>());
        soft.is_ok_and(|limit| limit <= most) && hard.is_ok_and(|limit| limit <= most)
    };
    let wanted = [
        ("Max core file size", 0),
        ("Max file size", 0),
        ("Max open files", 0),
        ("Max processes", 0),
        ("Max cpu time", 5),
        ("Max address space", 512 << 20),
    ];
    let of_limits = wanted.into_iter().filter(|(name, most)| !is_limited(name, *most));
    of_status.map(str::to_owned).chain(of_limits.map(|(name, _)| name.to_owned())).collect()
}
