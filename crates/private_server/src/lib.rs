//! A server of our own: the program of a server that runs, on data of its own, for as long as it is
//! needed.
//!
//! It listens on a unix socket only, runs at a low priority and as the user of the server that it is
//! taken from, and is killed by the kernel when waggle ends, however it ends. Its files are removed
//! with it; what a killed waggle left is removed by the next one.
#![forbid(unsafe_code)]

mod copy;
mod data;
mod directory;
mod error;
mod inside;
mod launch;
mod look;
mod program;
mod template;

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

pub use directory::{Directory, free_bytes};
pub use error::PrivateServerError;
pub use inside::Inside;
pub use launch::{Launch, Launcher, stop};
pub use look::Look;
pub use program::Program;
pub use template::Template;

use directory::ROOM_MIB;

/// A private server. Dropping it kills it and removes its files.
#[derive(Debug)]
pub struct PrivateServer {
    child: Child,
    directory: Directory,
}

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
        PrivateServer::start_in(Directory::create(program, ROOM_MIB)?, program, launcher, settings)
    }

    /// The same in a directory that has no data yet.
    ///
    /// # Errors
    /// As [`PrivateServer::start`].
    pub fn start_in(
        directory: Directory,
        program: &Program,
        launcher: &Launcher,
        settings: &[&str],
    ) -> Result<PrivateServer, PrivateServerError> {
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
        let child = spawn(&directory, program, launcher, settings)?;
        let mut server = PrivateServer { child, directory };
        launcher.wait_ready(&mut server.child, &server.directory)?;
        Ok(server)
    }

    /// Stops it in good order, and starts it again on its data; see [`PrivateServer::start`].
    ///
    /// # Errors
    /// It does not stop, or does not start.
    pub fn restart(
        mut self,
        program: &Program,
        launcher: &Launcher,
        settings: &[&str],
    ) -> Result<PrivateServer, PrivateServerError> {
        stop(&mut self.child, &self.directory)?;
        self.child = spawn(&self.directory, program, launcher, settings)?;
        launcher.wait_ready(&mut self.child, &self.directory)?;
        Ok(self)
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

fn spawn(
    directory: &Directory,
    program: &Program,
    launcher: &Launcher,
    settings: &[&str],
) -> Result<Child, PrivateServerError> {
    let mut arguments = directory.listening(program);
    arguments.extend(["--skip-networking", "--skip-log-bin"].map(str::to_owned));
    arguments.extend(settings.iter().map(|&setting| setting.to_owned()));
    launcher.spawn(program, &arguments, Stdio::null(), [&directory.log(), &directory.own()])
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        launch::end(&mut self.child);
    }
}
