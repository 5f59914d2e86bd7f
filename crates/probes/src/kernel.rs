//! What this kernel and our rights allow. `waggle doctor` shows these facts.
//!
//! Looking changes nothing. waggle reads files, and creates one object to try the `bpf` system
//! call. It closes that object before it answers.

use std::path::Path;
use std::{fs, io};

use libbpf_rs::MapType;
use waggle_host::{Need, Right, Rights, release_numbers};

/// Whether the kernel, or our rights, give a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is there.
    Yes,
    /// It is not.
    No,
    /// That could not be found out.
    Unknown,
}

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Its name in tables and JSON.
    pub name: &'static str,
    /// The answer.
    pub state: State,
    /// What was seen.
    pub why: String,
    /// What to do where the answer keeps waggle from working; `None` if nothing is missing.
    pub remedy: Option<String>,
}

impl Fact {
    fn new(name: &'static str, state: State, why: impl Into<String>) -> Self {
        Self { name, state, why: why.into(), remedy: None }
    }

    /// What to do if the answer is not yes.
    fn or(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = (self.state != State::Yes).then(|| remedy.into());
        self
    }
}

/// A fact that is the presence of something.
fn present(name: &'static str, is_there: io::Result<bool>, what: &str) -> Fact {
    match is_there {
        Ok(true) => Fact::new(name, State::Yes, format!("{what} is there")),
        Ok(false) => Fact::new(name, State::No, format!("{what} is missing")),
        Err(error) => Fact::new(name, State::Unknown, format!("{what}: {error}")),
    }
}

/// Every fact of this host, in the order in which they are shown.
pub fn facts() -> Vec<Fact> {
    let mut facts = from_files(Path::new("/proc"), Path::new("/sys"));
    facts.push(bpf_system_call());
    facts.push(task_storage());
    facts
}

/// The facts that files tell, with the roots of `/proc` and `/sys` as arguments.
pub fn from_files(proc_root: &Path, sys_root: &Path) -> Vec<Fact> {
    let mut facts = vec![kernel_version(proc_root)];
    facts.extend(types(sys_root));
    facts.extend(capabilities(proc_root));
    facts.push(first_user_namespace(proc_root));
    facts.push(first_pid_namespace(proc_root));
    facts.push(unprivileged_bpf(proc_root));
    facts.push(lockdown(sys_root));
    facts.push(ptrace_scope(proc_root));
    facts.push(tracefs(proc_root));
    facts.push(uprobe_unit(sys_root));
    facts
}

fn read_text(path: &Path) -> io::Result<String> {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// The storage of tasks for programs that trace (a10787e6d58c) came with 5.13, the atomic instructions
/// that the rings need with 5.12.
const OLDEST: [u32; 2] = [5, 13];

fn kernel_version(proc_root: &Path) -> Fact {
    const NAME: &str = "kernel_version";
    let release = match read_text(&proc_root.join("sys/kernel/osrelease")) {
        Ok(release) => release,
        Err(error) => return Fact::new(NAME, State::Unknown, error.to_string()),
    };
    let state = match release_numbers(&release) {
        Some(version) if version >= OLDEST => State::Yes,
        Some(_) => State::No,
        None => State::Unknown,
    };
    Fact::new(NAME, state, format!("Linux {release}")).or("use a kernel of 5.13 or later")
}

/// The type information of the kernel, and what it says of the tracepoint of the tap.
fn types(sys_root: &Path) -> [Fact; 2] {
    const REMEDY: &str = "use a kernel built with CONFIG_DEBUG_INFO_BTF";
    let file = fs::read(sys_root.join("kernel/btf/vmlinux"));
    let has_types = match &file {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(io::Error::from(error.kind())),
    };
    let types = present("btf", has_types, "/sys/kernel/btf/vmlinux").or(REMEDY);
    // A tracepoint shows in the types as a typedef of this name; names end with a zero byte.
    let name = b"\0btf_trace_sock_send_length\0";
    let tracepoint = file.map(|file| file.windows(name.len()).any(|window| window == name));
    let what = "the tracepoint sock_send_length";
    let tracepoint = present("sock_send_length", tracepoint, what)
        .or("none needed: a rung below is used; Linux 6.3 has the tracepoint");
    [types, tracepoint]
}

/// Each right, and what it is for.
const CAPABILITIES: [(&str, Right, &str); 6] = [
    ("cap_bpf", Right::Bpf, "run as root or give CAP_BPF: programs cannot be loaded"),
    ("cap_perfmon", Right::Perfmon, "run as root or give CAP_PERFMON: programs cannot trace"),
    (
        "cap_sys_ptrace",
        Right::SysPtrace,
        "run as root or give CAP_SYS_PTRACE: servers of other users cannot be read",
    ),
    (
        "cap_dac_read_search",
        Right::DacReadSearch,
        "only for servers of other users whose program others may not read (mode 0750), and for MySQL 5.7: run as root or \
         give CAP_DAC_READ_SEARCH",
    ),
    (
        "cap_sys_nice",
        Right::SysNice,
        "give CAP_SYS_NICE, or statements are lost where all CPUs are busy",
    ),
    (
        "cap_sys_admin",
        Right::SysAdmin,
        "only for --nested and --hook uprobe, on kernels since the middle of 2025, and for the run time of the programs: run as \
         root or give CAP_SYS_ADMIN",
    ),
];

fn capabilities(proc_root: &Path) -> Vec<Fact> {
    let rights = Rights::below(proc_root);
    let of = |(name, right, remedy): (&'static str, Right, &'static str)| {
        let (state, why) = match rights.map(|rights| rights.by(right)) {
            Some(Some(by)) => (State::Yes, format!("{} is held", by.name())),
            Some(None) => (State::No, format!("{} is not held", right.name())),
            None => (State::Unknown, "/proc/self/status has no CapEff line".to_owned()),
        };
        Fact::new(name, state, why).or(remedy)
    };
    CAPABILITIES.into_iter().map(of).collect()
}

/// In a user namespace of its own, a full set of capabilities is worth nothing to the kernel.
fn first_user_namespace(proc_root: &Path) -> Fact {
    const NAME: &str = "init_user_namespace";
    match read_text(&proc_root.join("self/uid_map")) {
        Ok(map) if map.split_ascii_whitespace().eq(["0", "0", "4294967295"]) => {
            Fact::new(NAME, State::Yes, "user ids are the host's")
        }
        Ok(_) => Fact::new(NAME, State::No, "user ids are mapped: this is a user namespace")
            .or("run waggle outside rootless containers: capabilities do not count here"),
        Err(error) => Fact::new(NAME, State::Unknown, format!("/proc/self/uid_map: {error}")),
    }
}

/// `PROC_PID_INIT_INO` of `include/linux/proc_ns.h`.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

fn first_pid_namespace(proc_root: &Path) -> Fact {
    const NAME: &str = "init_pid_namespace";
    match fs::read_link(proc_root.join("self/ns/pid")) {
        Ok(link) if link.as_os_str() == FIRST_PID_NAMESPACE => {
            Fact::new(NAME, State::Yes, "process ids are the host's")
        }
        Ok(link) => {
            Fact::new(NAME, State::No, format!("process ids are those of {}", link.display()))
                .or("run the container with the host's pid namespace: other servers are not seen")
        }
        Err(error) => Fact::new(NAME, State::Unknown, format!("/proc/self/ns/pid: {error}")),
    }
}

/// `kernel.unprivileged_bpf_disabled` (Documentation/admin-guide/sysctl/kernel.rst). What we need
/// is never open to the unprivileged, so this needs no remedy.
fn unprivileged_bpf(proc_root: &Path) -> Fact {
    const NAME: &str = "unprivileged_bpf";
    match read_text(&proc_root.join("sys/kernel/unprivileged_bpf_disabled")).as_deref() {
        Ok("0") => Fact::new(NAME, State::Yes, "kernel.unprivileged_bpf_disabled is 0"),
        Ok(value) => {
            let why = format!(
                "no fault: only users with rights may use BPF (kernel.unprivileged_bpf_disabled is {value})"
            );
            Fact::new(NAME, State::No, why)
        }
        Err(error) => {
            let why = format!("kernel.unprivileged_bpf_disabled: {error}");
            Fact::new(NAME, State::Unknown, why)
        }
    }
}

/// The chosen mode stands in brackets. `confidentiality` forbids programs to read memory.
fn lockdown(sys_root: &Path) -> Fact {
    const NAME: &str = "not_locked_down";
    match read_text(&sys_root.join("kernel/security/lockdown")) {
        Ok(modes) => {
            let mode = modes.split(['[', ']']).nth(1).unwrap_or("unknown");
            let state = match mode {
                "none" | "integrity" => State::Yes,
                "confidentiality" => State::No,
                _ => State::Unknown,
            };
            Fact::new(NAME, state, format!("kernel lockdown: {mode}"))
                .or("boot without lockdown=confidentiality: programs may not read memory")
        }
        // Without securityfs or the module there is no lockdown to see.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Fact::new(NAME, State::Yes, "this kernel shows no lockdown")
        }
        Err(error) => Fact::new(NAME, State::Unknown, format!("lockdown: {error}")),
    }
}

/// `Documentation/admin-guide/LSM/Yama.rst`: up to 2 a holder of `CAP_SYS_PTRACE` may read others.
fn ptrace_scope(proc_root: &Path) -> Fact {
    const NAME: &str = "ptrace";
    match read_text(&proc_root.join("sys/kernel/yama/ptrace_scope")).as_deref() {
        Ok("3") => Fact::new(NAME, State::No, "kernel.yama.ptrace_scope is 3")
            .or("boot with kernel.yama.ptrace_scope at most 2: it cannot be lowered at run time"),
        Ok(scope) => Fact::new(NAME, State::Yes, format!("kernel.yama.ptrace_scope is {scope}")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Fact::new(NAME, State::Yes, "this kernel has no Yama")
        }
        Err(error) => Fact::new(NAME, State::Unknown, format!("ptrace_scope: {error}")),
    }
}

/// Needed by the rung of the system calls and by nothing else.
fn tracefs(proc_root: &Path) -> Fact {
    let mounted = read_text(&proc_root.join("self/mounts")).map(|mounts| {
        mounts.lines().any(|line| line.split_ascii_whitespace().nth(2) == Some("tracefs"))
    });
    present("tracefs", mounted, "a mount of tracefs")
        .or("only --hook syscall needs it: mount -t tracefs nodev /sys/kernel/tracing")
}

/// Uprobes are made through this unit of perf since 4.17.
fn uprobe_unit(sys_root: &Path) -> Fact {
    let unit = sys_root.join("bus/event_source/devices/uprobe/type").try_exists();
    present("uprobe", unit, "the perf unit for uprobes")
        .or("only --nested and --hook uprobe need it: use a kernel with CONFIG_UPROBE_EVENTS")
}

/// Tries the system call itself: seccomp filters of containers forbid it whatever rights we have.
fn bpf_system_call() -> Fact {
    const NAME: &str = "bpf_system_call";
    let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    };
    let made = libbpf_rs::MapHandle::create(MapType::Array, None::<&str>, 4, 4, 1, &options);
    match made {
        Ok(_) => Fact::new(NAME, State::Yes, "a map could be made"),
        Err(error) => Fact::new(NAME, State::No, format!("a map cannot be made: {error}"))
            .or(format!("{}; in a container allow bpf in seccomp", Need::Map.remedy())),
    }
}

/// What a session is known by in the kernel; programs that trace may use it since 5.13.
fn task_storage() -> Fact {
    const NAME: &str = "task_storage";
    match MapType::TaskStorage.is_supported() {
        Ok(supported) => present(NAME, Ok(supported), "the storage of tasks for BPF")
            .or("use a kernel of 5.13 or later, with the right to use BPF"),
        Err(error) => Fact::new(NAME, State::Unknown, format!("cannot be tried: {error}"))
            .or(Need::Map.remedy()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A host made of files below `proc` and `sys`.
    fn host(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    fn state(root: &tempfile::TempDir, name: &str) -> State {
        let facts = from_files(&root.path().join("proc"), &root.path().join("sys"));
        facts.iter().find(|fact| fact.name == name).unwrap().state
    }

    #[test]
    fn a_recent_host_with_every_right_has_nothing_to_remedy() {
        let root = host(&[
            ("proc/sys/kernel/osrelease", "6.3.0-19-generic\n"),
            ("proc/sys/kernel/yama/ptrace_scope", "1\n"),
            ("proc/sys/kernel/unprivileged_bpf_disabled", "2\n"),
            ("proc/self/status", "Name:\twaggle\nCapEff:\t000001ffffffffff\n"),
            ("proc/self/uid_map", "         0          0 4294967295\n"),
            ("proc/self/mounts", "nodev /sys/kernel/tracing tracefs rw 0 0\n"),
            ("sys/kernel/btf/vmlinux", "x\0btf_trace_sock_send_length\0y"),
            ("sys/kernel/security/lockdown", "none [integrity] confidentiality\n"),
            ("sys/bus/event_source/devices/uprobe/type", "9\n"),
        ]);
        fs::create_dir_all(root.path().join("proc/self/ns")).unwrap();
        symlink(FIRST_PID_NAMESPACE, root.path().join("proc/self/ns/pid")).unwrap();
        for fact in from_files(&root.path().join("proc"), &root.path().join("sys")) {
            assert_eq!(fact.remedy, None, "{fact:?}");
        }
    }

    #[test]
    fn what_an_old_or_closed_host_lacks_is_said_with_a_remedy() {
        let root = host(&[
            ("proc/sys/kernel/osrelease", "4.18.0-553.el8.x86_64\n"),
            ("proc/sys/kernel/yama/ptrace_scope", "3\n"),
            ("proc/self/status", "CapEff:\t0000000000000000\n"),
            ("proc/self/uid_map", "0 1000 1\n"),
            ("sys/kernel/btf/vmlinux", "\0btf_trace_sock_send_length_of_another\0"),
            ("sys/kernel/security/lockdown", "none integrity [confidentiality]\n"),
        ]);
        for name in [
            "kernel_version",
            "sock_send_length",
            "cap_bpf",
            "cap_perfmon",
            "cap_sys_ptrace",
            "cap_dac_read_search",
            "cap_sys_admin",
            "init_user_namespace",
            "not_locked_down",
            "ptrace",
            "uprobe",
        ] {
            assert_eq!(state(&root, name), State::No, "{name}");
        }
        let facts = from_files(&root.path().join("proc"), &root.path().join("sys"));
        let missing = facts.iter().filter(|fact| fact.state == State::No);
        assert!(missing.clone().all(|fact| fact.remedy.is_some()), "{missing:?}");
    }

    #[test]
    fn the_administrator_may_use_bpf_but_needs_ptrace_to_read_others() {
        let root = host(&[("proc/self/status", "CapEff:\t0000000000200000\n")]);
        assert_eq!(state(&root, "cap_bpf"), State::Yes);
        assert_eq!(state(&root, "cap_perfmon"), State::Yes);
        assert_eq!(state(&root, "cap_sys_ptrace"), State::No);
    }

    #[test]
    fn an_empty_host_is_unknown_not_missing() {
        let root = host(&[]);
        for name in ["kernel_version", "cap_bpf", "init_pid_namespace", "unprivileged_bpf"] {
            assert_eq!(state(&root, name), State::Unknown, "{name}");
        }
    }
}
