//! Servers whose program hides some of its symbols.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use memchr::memmem;
use tempfile::TempDir;
use waggle_testkit::{Killed, Server, Version, wait_showing};

/// The loader of programs of x86-64 (ld.so(8)).
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// A server that runs from a copy of its program, in which the exported names that hold one of
/// some words were made unknown.
pub(crate) struct Disguised {
    child: Killed,
    /// The same server before: it owns the data, the socket and the way to speak to it.
    server: Server,
    _dir: TempDir,
}

impl Disguised {
    /// Starts a server as the kit does, then again from the copy.
    pub(super) fn start(version: Version, hide: &[&str]) -> Disguised {
        Disguised::by(version, hide, &[])
    }

    /// The same with nothing hidden, through the loader of programs.
    pub(super) fn through_loader(version: Version) -> Disguised {
        Disguised::by(version, &[], &[LOADER])
    }

    /// The same with mounts of its own, as in a container.
    pub(crate) fn with_own_mounts(version: Version) -> Disguised {
        let mut server = Server::start(version).unwrap();
        let arguments = arguments_of(&server);
        server.kill9().unwrap();
        let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private"]);
        command.arg(server.program()).args(arguments);
        Disguised::run(command, server, dir)
    }

    /// The same server, started again by nobody, who owns its data.
    pub(crate) fn of_nobody(version: Version) -> Disguised {
        const NOBODY: u32 = 65_534;
        let mut server = Server::start(version).unwrap();
        let mut arguments = arguments_of(&server);
        arguments.retain(|argument| argument != "--user=root");
        server.kill9().unwrap();
        give_away(server.socket().parent().unwrap(), NOBODY);
        let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut command = Command::new("setpriv");
        let nobody = NOBODY.to_string();
        command.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups"]);
        command.args(["--pdeathsig", "KILL"]).arg(server.program()).args(arguments);
        Disguised::run(command, server, dir)
    }

    /// An option file with an account that has all rights.
    pub(crate) fn defaults_file(&self) -> PathBuf {
        self.server.defaults_file()
    }

    /// Its data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.server.datadir()
    }

    /// Its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.server.socket()
    }

    fn by(version: Version, hide: &[&str], through: &[&str]) -> Disguised {
        let mut server = Server::start(version).unwrap();
        let arguments = arguments_of(&server);
        let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let copy = dir.path().join(server.program().file_name().unwrap());
        fs::write(&copy, without_names(&fs::read(server.program()).unwrap(), hide)).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        server.kill9().unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).args(through).arg(&copy).args(arguments);
        // MySQL finds its libraries beside its own program.
        command.env("LD_LIBRARY_PATH", server.program().parent().unwrap());
        Disguised::run(command, server, dir)
    }

    /// Starts it, and waits until it answers.
    fn run(mut command: Command, server: Server, dir: TempDir) -> Disguised {
        let log = fs::File::create(dir.path().join("log")).unwrap();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let disguised = Disguised { child: Killed(child), server, _dir: dir };
        disguised.wait_ready(&disguised._dir.path().join("log"));
        disguised
    }

    fn wait_ready(&self, log: &Path) {
        let said = || String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned();
        wait_showing("its start", || self.server.root().map_err(|_| said()));
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it answers a `SELECT`.
    pub(super) fn answers(&self) -> bool {
        self.server.root().is_ok_and(|mut client| client.run("SELECT 1").is_ok())
    }
}

/// What a server was told on its command line.
fn arguments_of(server: &Server) -> Vec<String> {
    let line = fs::read(format!("/proc/{}/cmdline", server.pid())).unwrap();
    let arguments = line.split(|byte| *byte == 0).skip(1).filter(|argument| !argument.is_empty());
    arguments.map(|argument| String::from_utf8(argument.to_vec()).unwrap()).collect()
}

/// Gives a directory and all that is in it to somebody.
fn give_away(path: &Path, uid: u32) {
    std::os::unix::fs::lchown(path, Some(uid), Some(uid)).unwrap();
    if fs::symlink_metadata(path).unwrap().is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give_away(&entry.unwrap().path(), uid));
    }
}

/// The program with other names of the same length: every name of its tables of strings (a name
/// stands between two zero bytes) that holds one of the words gets another first letter.
fn without_names(program: &[u8], hide: &[&str]) -> Vec<u8> {
    let mut copy = program.to_vec();
    for word in hide {
        let mut from = 0;
        while let Some(found) = memmem::find(&copy[from..], word.as_bytes()) {
            let at = from + found;
            from = at + word.len();
            let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            let start = copy[..at].iter().rposition(|byte| !is_name(byte)).map_or(0, |end| end + 1);
            let end = at + copy[at..].iter().position(|byte| !is_name(byte)).unwrap();
            let is_whole = start > 0 && copy[start - 1] == 0 && copy[end] == 0;
            // A message of the server holds blanks; a name does not.
            if is_whole && end - start >= word.len() {
                copy[at] = b'q';
            }
        }
    }
    copy
}
