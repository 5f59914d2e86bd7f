//! A server of our own: the program of a server that runs, on data of its own, for as long as it is
//! needed.
//!
//! It listens on a unix socket only, runs at a low priority and as the user of the server that it is
//! taken from, and is killed by the kernel when waggle ends, however it ends. Its files are removed
//! with it; what a killed waggle left is removed by the next one.
#![forbid(unsafe_code)]

mod data;
mod directory;
mod error;
mod launch;
mod program;
mod template;

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

pub use directory::free_bytes;
pub use error::PrivateServerError;
pub use launch::{Launch, Launcher};
pub use program::Program;
pub use template::Template;

use directory::{Directory, ROOM_MIB};
use waggle_model::Flavour;

/// A private server. Dropping it kills it and removes its files.
#[derive(Debug)]
pub struct PrivateServer {
    child: Child,
    directory: Directory,
}

/// What every start is told, the one that makes the data as well. `--no-defaults` must come first.
/// `loose` options are for the versions that have them.
const SETTINGS: [&str; 5] = [
    "--innodb-buffer-pool-size=64M",
    "--innodb-flush-log-at-trx-commit=2",
    "--loose-innodb-redo-log-capacity=32M",
    "--loose-innodb-log-file-size=16M",
    "--loose-mysqlx=0",
];

impl PrivateServer {
    /// Makes data, and starts a server on it. `settings` are as on its command line, and win over
    /// ours. The account `root` has no password; whoever may use the socket may use the server.
    ///
    /// # Errors
    /// The program, a right or room on the disk is missing, or the server does not start.
    pub fn start(
        program: &Program,
        launcher: &Launcher,
        settings: &[&str],
    ) -> Result<PrivateServer, PrivateServerError> {
        let directory = Directory::create(program, ROOM_MIB)?;
        data::make(program, launcher, &directory)?;
        PrivateServer::on(directory, program, launcher, settings)
    }

    /// Starts a server on the data of a directory.
    fn on(
        directory: Directory,
        program: &Program,
        launcher: &Launcher,
        settings: &[&str],
    ) -> Result<PrivateServer, PrivateServerError> {
        let log = directory.path().join("error.log");
        let mut arguments = arguments(program, &directory);
        arguments.extend(
            [
                "--skip-networking".to_owned(),
                "--skip-log-bin".to_owned(),
                format!("--socket={}", program.inside(&directory.socket()).display()),
                format!("--pid-file={}", program.inside(&directory.path().join("pid")).display()),
            ]
            .into_iter()
            .chain(settings.iter().map(|&setting| setting.to_owned())),
        );
        let child = launcher.spawn(program, &arguments, Stdio::null(), &log)?;
        let mut server = PrivateServer { child, directory };
        launch::wait_ready(&mut server.child, &server.directory.socket(), &log)?;
        Ok(server)
    }

    /// The process id of the server itself.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The socket, as this process can reach it.
    pub fn socket(&self) -> PathBuf {
        self.directory.socket()
    }

    /// Where its files are.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        // Where that fails the kernel does it when this process ends.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What every start of a program needs.
fn arguments(program: &Program, directory: &Directory) -> Vec<String> {
    let mut arguments = vec![
        "--no-defaults".to_owned(),
        format!("--basedir={}", program.base.display()),
        format!("--lc-messages-dir={}", program.messages.display()),
        format!("--datadir={}", program.inside(&directory.data()).display()),
        // What our environment names need not be there in another root directory.
        format!("--tmpdir={}", program.inside(directory.path()).display()),
    ];
    arguments.extend(SETTINGS.map(str::to_owned));
    arguments.push(match program.flavour {
        // The directory that the package names need not be there.
        Flavour::Mysql => "--secure-file-priv=".to_owned(),
        // Since 11.4 each start makes a key for TLS, which takes one to six seconds of a processor. Nobody comes over a network.
        Flavour::Mariadb => "--skip-ssl".to_owned(),
    });
    if program.user.is_some_and(|(uid, _)| uid == 0) {
        // It refuses to run as root unless it is told to.
        arguments.push("--user=root".to_owned());
    }
    arguments
}
