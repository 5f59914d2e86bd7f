//! A copy of a server's program with one offset changed, which anybody can make and run.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use waggle_probes::servers::discover::{Found, servers};
use waggle_probes::servers::elf::Elf;
use waggle_probes::servers::layout::{Field, Layout};
use waggle_probes::servers::recognise::Builds;
use waggle_testkit::client::{Client, Transport};
use waggle_testkit::{Account, Killed, Server, Version, wait_for};

use crate::capture::Capture;

/// Which gives the connection id, by one instruction of a few bytes.
const GETTER: &str = "thd_get_thread_id";
const GETTER_BYTES: usize = 16;
const NOBODY: &str = "65534";
const STATEMENTS: usize = 20;

/// Where an address of a program lies in its file, by the program headers (elf(5)).
fn place_in_file(program: &Path, address: u64) -> u64 {
    let mut head = [0; 4096];
    File::open(program).unwrap().read_exact(&mut head).unwrap();
    let number = |at: usize, bytes: usize| {
        let mut wide = [0; 8];
        wide[..bytes].copy_from_slice(&head[at..at + bytes]);
        u64::from_le_bytes(wide)
    };
    let (first, size, count) = (number(0x20, 8), number(0x36, 2), number(0x38, 2));
    let mut headers = (0..count).map(|n| (first + n * size) as usize);
    let place = headers.find_map(|at| {
        let [offset, start, length] = [8, 16, 32].map(|field| number(at + field, 8));
        let is_loaded = number(at, 4) == 1;
        let inside = address.checked_sub(start).filter(|inside| *inside < length)?;
        is_loaded.then_some(offset + inside)
    });
    place.unwrap()
}

/// Copies a program, and moves the connection id in its getter by eight bytes.
fn forge(program: &Path, folder: &TempDir) -> std::path::PathBuf {
    let elf = Elf::open(program).unwrap();
    let getter = elf.symbol(GETTER).unwrap().address;
    let layout = Layout::derive(&elf).unwrap();
    let offset = layout.offset(Field::ConnectionId).unwrap();
    let code = elf.code(getter, GETTER_BYTES).unwrap();
    let bytes = offset.to_le_bytes();
    let inside = code.windows(bytes.len()).position(|four| four == bytes).unwrap();
    let place = place_in_file(program, getter + inside as u64);

    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let forged = folder.path().join(program.file_name().unwrap());
    // By other processes: what another test starts meanwhile would inherit the file that is written, and
    // the kernel runs none that somebody may write (ETXTBSY, execve(2)).
    assert!(Command::new("cp").arg(program).arg(&forged).status().unwrap().success());
    let of = format!("of={}", forged.display());
    let seek = format!("seek={place}");
    let mut dd = Command::new("dd")
        .args([of.as_str(), seek.as_str(), "bs=1", "conv=notrunc", "status=none"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    dd.stdin.take().unwrap().write_all(&(offset + 8).to_le_bytes()).unwrap();
    assert!(dd.wait().unwrap().success());
    forged
}

/// Runs a program as somebody without rights. It has more to print than a pipe takes, and nobody reads it.
fn run_as_nobody(program: &Path) -> (Killed, Found) {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--pdeathsig", "KILL"]);
    command.arg(program).args(["--no-defaults", "--verbose", "--help"]);
    let process = Killed(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let found = wait_for("the forged program", || {
        servers(Path::new("/proc")).into_iter().find(|found| found.pid == process.id())
    });
    (process, found)
}

#[test]
fn a_forged_copy_that_was_met_first_changes_nothing_of_the_server_that_it_copies() {
    for version in [Version::Mariadb1011, Version::Mariadb114] {
        let server = Server::start(version).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let forged = forge(server.program(), &folder);
        let (_process, found) = run_as_nobody(&forged);
        let mut capture = Capture::of(&server);
        let right = capture.recognised.layout.clone();

        let mut builds = Builds::default();
        let wrong = builds.recognise(&found).unwrap().layout;
        assert_eq!(wrong.build, right.build, "{version}: it states another build");
        assert_eq!(wrong.offset(Field::ConnectionId), None, "{version}: two functions disagree");
        let real = servers(Path::new("/proc")).into_iter().find(|one| one.pid == server.pid());
        capture.recognised = builds.recognise(&real.unwrap()).unwrap();
        assert_eq!(capture.recognised.layout.fields, right.fields, "{version}");

        capture.show(Layout::clone(&capture.recognised.layout));
        capture.attach();
        let mut client = Client::connect(&server, Transport::Unix, Account::APP).unwrap();
        (0..STATEMENTS).for_each(|number| drop(client.query(format!("SELECT {number}")).unwrap()));
        let id = u64::from(client.connection_id());
        let seen = capture.at_rest();
        let ours = seen.iter().filter(|one| one.connection == id && one.command.is_statement());
        assert_eq!(ours.count(), STATEMENTS, "{version}: {:?}", capture.losses());
    }
}
