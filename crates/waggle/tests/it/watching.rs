//! The binary under test as a process.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use waggle_host::Process;
use waggle_testkit::{Killed, Server, wait_showing};

/// The program.
pub(crate) const WAGGLE: &str = env!("CARGO_BIN_EXE_waggle");

/// A waggle at work. It ends with the thread that started it, and when it is dropped.
pub(crate) struct Waggle {
    child: Killed,
    /// Its home, its directory for temporary files, and what it prints.
    dir: TempDir,
}

/// A waggle that has ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    /// Holds whatever it wrote to files.
    pub(crate) dir: TempDir,
}

impl Waggle {
    /// Starts it with arguments.
    pub(crate) fn start(arguments: &[&str]) -> Waggle {
        Waggle::through(&[], arguments)
    }

    /// Starts it by another program, such as `unshare`, that becomes it.
    pub(crate) fn through(by: &[&str], arguments: &[&str]) -> Waggle {
        Waggle::spawn(&[by, &[WAGGLE], arguments].concat())
    }

    fn spawn(program: &[&str]) -> Waggle {
        let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let home = dir.path().join("home");
        fs::create_dir(&home).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).args(program);
        for variable in ["HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "WAGGLE_STATE_DIR"]
        {
            command.env(variable, &home);
        }
        command.current_dir(&home).stdin(Stdio::null());
        command.stdout(File::create(dir.path().join("out")).unwrap());
        command.stderr(File::create(dir.path().join("err")).unwrap());
        Waggle { child: Killed(command.spawn().unwrap()), dir }
    }

    /// Starts `waggle watch --json` on one server, and returns when its first interval is out.
    pub(crate) fn watch(server: &Server, arguments: &[&str]) -> Waggle {
        Waggle::watch_pid(server.pid(), arguments)
    }

    /// As [`Waggle::watch`].
    pub(crate) fn watch_pid(pid: u32, arguments: &[&str]) -> Waggle {
        let pid = pid.to_string();
        let mut waggle = Waggle::start(&[&["watch", "--json", "--pid", &pid], arguments].concat());
        waggle.wait_for("its first interval", |waggle| !waggle.lines().is_empty());
        waggle
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its children that run this command.
    pub(crate) fn children(&self, command: &str) -> Vec<u32> {
        let mut children = Process::of(self.pid()).children();
        children.retain(|child| {
            let words = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains(command)
        });
        children
    }

    /// The JSON that it has printed so far.
    pub(crate) fn lines(&self) -> Vec<Value> {
        lines(&self.printed())
    }

    /// What it has printed so far.
    pub(crate) fn printed(&self) -> String {
        read(&self.dir.path().join("out"))
    }

    /// What it has said beside that.
    pub(crate) fn err(&self) -> String {
        read(&self.dir.path().join("err"))
    }

    /// Waits until `is_so`; fails where waggle ends before, or where it takes too long.
    pub(crate) fn wait_for(&mut self, what: &str, mut is_so: impl FnMut(&Waggle) -> bool) {
        wait_showing(what, || {
            if is_so(self) {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("waggle ended with {status} before {what}: {}", self.err());
            }
            Err(self.err())
        });
    }

    /// Waits for `more` intervals beyond those that are out.
    pub(crate) fn wait_for_lines(&mut self, more: usize) {
        let wanted = self.lines().len() + more;
        self.wait_for("more intervals", |waggle| waggle.lines().len() >= wanted);
    }

    /// The ids that the kernel has given to its programs and their links (proc_pid_fdinfo(5)).
    pub(crate) fn kernel_ids(&self) -> KernelIds {
        KernelIds::of(self.pid())
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Stops it as Ctrl-C does.
    pub(crate) fn interrupt(self) -> Ended {
        self.signal(Signal::INT);
        self.end()
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end. Gives its code.
    pub(crate) fn wait_for_end(&mut self) -> Option<i32> {
        self.wait_for_status().code()
    }

    /// Waits for its end. Gives how it ended.
    pub(crate) fn wait_for_status(&mut self) -> ExitStatus {
        wait_showing("the end of waggle", || {
            self.child.try_wait().unwrap().ok_or_else(|| self.err())
        })
    }

    /// Waits for its end. Gives what it printed.
    pub(crate) fn end(mut self) -> Ended {
        let (code, dir) = (self.wait_for_end(), self.dir);
        let (out, err) = (read(&dir.path().join("out")), read(&dir.path().join("err")));
        Ended { code, out, err, dir }
    }
}

impl Ended {
    /// The JSON that it printed.
    pub(crate) fn lines(&self) -> Vec<Value> {
        lines(&self.out)
    }

    /// That it refused with a message that holds all of `words`.
    pub(crate) fn assert_refused(&self, words: &[&str]) {
        assert_eq!(self.code, Some(4), "{}", self.err);
        let last = self.err.lines().last().unwrap_or_default();
        for word in words {
            assert!(last.contains(word), "{word:?} is not in {last:?}");
        }
        assert!(!self.err.contains("libbpf:"), "a library talks: {}", self.err);
    }
}

/// What a process has in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KernelIds {
    pub(crate) programs: Vec<u32>,
    pub(crate) links: Vec<u32>,
}

impl KernelIds {
    /// Of a process.
    pub(crate) fn of(pid: u32) -> KernelIds {
        let mut ids = KernelIds::default();
        for entry in fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap() {
            // A descriptor may be closed meanwhile.
            let text = fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
            let number = |key: &str| {
                let value = text.lines().find_map(|line| line.strip_prefix(key));
                value.and_then(|value| value.trim().parse().ok())
            };
            // A link names its program, too.
            match number("link_id:") {
                Some(link) => ids.links.push(link),
                None => ids.programs.extend(number("prog_id:")),
            }
        }
        ids.programs.sort_unstable();
        ids.programs.dedup();
        ids.links.sort_unstable();
        ids
    }

    /// Those that the kernel still has, by bpftool(8).
    pub(crate) fn left(&self) -> KernelIds {
        let has = |kind: &str, id: &u32| {
            let mut bpftool = Command::new("bpftool");
            bpftool.args([kind, "show", "id", &id.to_string()]);
            bpftool.output().unwrap().status.success()
        };
        KernelIds {
            programs: self.programs.iter().filter(|id| has("prog", id)).copied().collect(),
            links: self.links.iter().filter(|id| has("link", id)).copied().collect(),
        }
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}

/// The complete lines, of which the last may still be under way.
pub(crate) fn lines(out: &str) -> Vec<Value> {
    let complete = out.rfind('\n').map_or("", |end| &out[..end]);
    complete.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
