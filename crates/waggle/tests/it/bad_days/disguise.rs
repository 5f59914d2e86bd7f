//! Servers whose program hides some of its symbols.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use waggle_testkit::Account;
use waggle_testkit::Client;
use waggle_testkit::Server;
use waggle_testkit::Transport;
use waggle_testkit::Version;

/// A server that runs from a copy of its program, in which the exported names that hold one of
/// some words were made unknown.
pub(super) struct Disguised {
    child: Child,
    /// The same server before: it owns the data, the socket and the way to speak to it.
    server: Server,
    _dir: TempDir,
}

impl Disguised {
    /// Starts a server as the kit does, then again from the copy.
    pub(super) fn start(version: Version, hide: &[&str]) -> Disguised {
        let mut server = Server::start(version).unwrap();
        let line = fs::read(format!("/proc/{}/cmdline", server.pid())).unwrap();
        let arguments: Vec<String> = line
            .split(|byte| *byte == 0)
            .skip(1)
            .filter(|argument| !argument.is_empty())
            .map(|argument| String::from_utf8(argument.to_vec()).unwrap())
            .collect();
        let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let copy = dir.path().join(server.program().file_name().unwrap());
        fs::write(&copy, without_names(&fs::read(server.program()).unwrap(), hide)).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        server.kill9().unwrap();
        let log = fs::File::create(dir.path().join("log")).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(&copy).args(arguments);
        // MySQL finds its libraries beside its own program.
        command.env("LD_LIBRARY_PATH", server.program().parent().unwrap());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let disguised = Disguised { child, server, _dir: dir };
        disguised.wait_ready(&disguised._dir.path().join("log"));
        disguised
    }

    fn wait_ready(&self, log: &Path) {
        for _ in 0..1500 {
            if Client::connect(&self.server, Transport::Unix, Account::ROOT).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not start: {}", String::from_utf8_lossy(&fs::read(log).unwrap()));
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it answers a `SELECT`.
    pub(super) fn answers(&self) -> bool {
        let client = Client::connect(&self.server, Transport::Unix, Account::ROOT);
        client.is_ok_and(|mut client| client.run("SELECT 1").is_ok())
    }
}

impl Drop for Disguised {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program with other names of the same length: every name of its tables of strings (a name
/// stands between two zero bytes) that holds one of the words gets another first letter.
fn without_names(program: &[u8], hide: &[&str]) -> Vec<u8> {
    let mut copy = program.to_vec();
    for word in hide {
        let mut from = 0;
        while let Some(found) = find(&copy[from..], word.as_bytes()) {
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

fn find(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).position(|window| window == word)
}
