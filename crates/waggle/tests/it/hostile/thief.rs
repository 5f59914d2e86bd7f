//! A program of nobody's that looks like a server and wants the password.
//!
//! It is this program, started again by the name `mysqld`: then its only test serves instead.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, thread};

use tempfile::TempDir;
use waggle_testkit::fake::{CACHING_SHA2, Key, Peer, greeting};
use waggle_testkit::{Killed, wait_for};

use super::{LOGIN_BYTES_MIN, NOBODY, PASSWORD, open_to, option_file, run};

/// Where it keeps what it gets; it is set where this is the thief.
const PLACE: &str = "WAGGLE_TEST_THIEF";
/// The socket that it takes.
const SOCKET: &str = "WAGGLE_TEST_THIEF_SOCKET";
/// In its place: a byte for each client, what all of them sent, and the port.
const MET: &str = "met";
const LOOT: &str = "loot";
const PORT: &str = "port";

/// A thief at work.
pub(super) struct Thief {
    child: Killed,
    place: TempDir,
}

impl Thief {
    /// Takes the place of a socket, in a directory that nobody may write, and a port of this host.
    pub(super) fn at(socket: &Path) -> Thief {
        let place = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        open_to(place.path(), 0o755);
        let own = place.path().join("own");
        fs::create_dir(&own).unwrap();
        chown(&own, Some(NOBODY), Some(NOBODY)).unwrap();
        // Another name of this file: to copy it would take long.
        let program = place.path().join("mysqld");
        fs::hard_link(env::current_exe().unwrap(), &program).unwrap();
        let nobody = NOBODY.to_string();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups"]);
        command.args(["--pdeathsig", "KILL"]).arg(&program);
        command.args(["--exact", "hostile::thief::a_trusting_client_is_robbed"]);
        command.env(PLACE, &own).env(SOCKET, socket).stdin(Stdio::null()).stdout(Stdio::null());
        let child = Killed(command.spawn().unwrap());
        let thief = Thief { child, place };
        wait_for("the thief", || fs::read_to_string(thief.path(PORT)).ok());
        thief
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The TCP port that it listens on.
    pub(super) fn port(&self) -> u16 {
        fs::read_to_string(self.path(PORT)).unwrap().parse().unwrap()
    }

    /// How many clients came.
    pub(super) fn met(&self) -> usize {
        fs::read(self.path(MET)).map_or(0, |met| met.len())
    }

    /// Whether it has the password.
    pub(super) fn has_password(&self) -> bool {
        let loot = fs::read(self.path(LOOT)).unwrap_or_default();
        loot.windows(PASSWORD.len()).any(|bytes| bytes == PASSWORD.as_bytes())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join("own").join(name)
    }
}

/// Without it a test that finds no password would say nothing.
#[test]
fn a_trusting_client_is_robbed() {
    if let Some(place) = env::var_os(PLACE) {
        serve(Path::new(&place), Path::new(&env::var_os(SOCKET).unwrap()));
    }
    let dir = TempDir::new().unwrap();
    open_to(dir.path(), 0o777);
    let thief = Thief::at(&dir.path().join("s"));
    let account = format!("user=root\npassword={PASSWORD}\nserver-user={NOBODY}");
    let of = |name: &str, more: &str| option_file(dir.path(), name, &format!("{account}\n{more}"));
    let socket = of("socket.cnf", &format!("socket={}", dir.path().join("s").display()));
    run(&["locks"], &socket);
    assert!(thief.has_password(), "over its socket");
    fs::write(thief.path(LOOT), "").unwrap();
    let port = thief.port();
    let tcp = of(
        "tcp.cnf",
        &format!("host=127.0.0.1\nport={port}\nget-server-public-key\nssl-mode=DISABLED"),
    );
    run(&["locks"], &tcp);
    assert!(thief.has_password(), "by its own key");
}

/// Serves until it is killed.
fn serve(place: &Path, socket: &Path) -> ! {
    // It may be that of somebody else.
    let _ = fs::remove_file(socket);
    let (local, remote) =
        (UnixListener::bind(socket).unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = remote.local_addr().unwrap().port();
    let place = place.to_owned();
    let of_sockets = place.clone();
    thread::spawn(move || {
        let mut logins = 0;
        for client in local.incoming().flatten() {
            rob(client, &mut logins, &of_sockets);
        }
    });
    fs::write(place.join("part"), port.to_string()).unwrap();
    fs::rename(place.join("part"), place.join(PORT)).unwrap();
    let mut logins = 0;
    for client in remote.incoming().flatten() {
        rob(client, &mut logins, &place);
    }
    unreachable!("a listener listens for ever");
}

/// Asks one client for its password, in one of two ways, and writes down all that it says.
fn rob(client: impl Read + Write, logins: &mut u32, place: &Path) {
    let append = |name: &str, bytes: &[u8]| {
        let file = File::options().create(true).append(true).open(place.join(name));
        file.unwrap().write_all(bytes).unwrap();
    };
    append(MET, b".");
    // A client that is not robbed goes.
    let _ = talk(Peer::new(client), logins, &|said| append(LOOT, said));
}

fn talk(
    mut peer: Peer<impl Read + Write>,
    logins: &mut u32,
    keep: &dyn Fn(&[u8]),
) -> io::Result<()> {
    let greeting = greeting(CACHING_SHA2);
    peer.send(&greeting)?;
    let login = peer.receive()?;
    if login.len() < LOGIN_BYTES_MIN {
        return Ok(());
    }
    keep(&login);
    *logins += 1;
    if logins.is_multiple_of(2) {
        peer.send(b"\xfemysql_clear_password\0")?;
        keep(&peer.receive()?);
        return peer.send_ok();
    }
    // It wants the whole password.
    peer.send(&[1, 4])?;
    let said = peer.receive()?;
    keep(&said);
    if said == [2] {
        let key = Key::new().unwrap();
        peer.send(&key.offer().unwrap())?;
        let sealed = peer.receive()?;
        keep(&key.open(&sealed, b"01234567890123456789").unwrap_or_default());
    }
    peer.send_ok()
}
