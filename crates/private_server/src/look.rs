//! Looks at files of somebody else, by a process of ours that has no more rights than they have, and can be killed: a file
//! system that they serve themselves may never answer.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::str::FromStr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::geteuid;

use crate::inside::has_our_root;
use crate::launch::{LOOK_EVERY, Launcher, end};
use crate::program::{MESSAGES_BYTES_MAX, Messages, user_of};
use crate::{PrivateServerError, free_bytes};

/// A look takes a tenth of a second.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A file in a directory of messages.
    Message,
    /// What is free on the disk of a directory, bytes.
    Room,
}

impl Look {
    fn name(self) -> &'static str {
        match self {
            Look::Message => "message",
            Look::Room => "room",
        }
    }

    /// Looks, as who has nothing to lose, and writes what it sees for the waggle that asked.
    pub(crate) fn tell(self, words: &[String]) -> io::Result<()> {
        let told = match (self, words) {
            (Look::Room, [place]) => {
                free_bytes(Path::new(place)).map_err(io::Error::other)?.to_string().into_bytes()
            }
            (Look::Message, [place, name]) => {
                Messages::open(Path::new("/"), Path::new(place))?.read(name)?
            }
            _ => return Err(io::Error::other("the words of the look are missing")),
        };
        let mut out = io::stdout();
        out.write_all(&told)?;
        out.flush()
    }
}

impl FromStr for Look {
    type Err = String;

    fn from_str(name: &str) -> Result<Look, String> {
        let found = [Look::Message, Look::Room].into_iter().find(|look| look.name() == name);
        found.ok_or_else(|| format!("`{name}` is nothing to look at"))
    }
}

impl Launcher {
    /// What is free on the disk of a directory that a process names, bytes.
    ///
    /// # Errors
    /// There is no such directory, its user may not look at it, or its file system does not answer.
    pub fn free_bytes(&self, process: u32, place: &Path) -> Result<u64, PrivateServerError> {
        let said = self.look(process, Look::Room, &[place])?;
        let bytes = String::from_utf8_lossy(&said).trim().parse();
        bytes.map_err(|_| foreign(process, place, "no number was told".to_owned()))
    }

    /// Looks with the rights of a process, and in its root directory where we are root. `words`: the path, and what
    /// else the look needs.
    pub(crate) fn look(
        &self,
        process: u32,
        look: Look,
        words: &[&Path],
    ) -> Result<Vec<u8>, PrivateServerError> {
        let path: PathBuf = words.iter().collect();
        let failed = |error: io::Error| foreign(process, &path, error.to_string());
        let mut command = match geteuid().is_root() || !has_our_root(process).map_err(failed)? {
            true => {
                let (uid, gid) = user_of(process).map_err(failed)?;
                let mut command = self.command_inside(process);
                command.arg(format!("--user={uid}:{gid}"));
                command
            }
            false => self.command(),
        };
        command.arg(format!("--look={}", look.name())).arg("--").args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            command.spawn().map_err(PrivateServerError::io("cannot start", &self.program))?;
        let said = answer(&mut child, Instant::now() + ANSWER_MAX);
        end(&mut child);
        said.map_err(failed)
    }
}

/// What a child says until it ends well.
fn answer(child: &mut Child, until: Instant) -> io::Result<Vec<u8>> {
    let said = all(child.stdout.take(), until)?;
    let complaint = all(child.stderr.take(), until)?;
    while Instant::now() < until {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(said),
            Some(_) => {
                let complaint = String::from_utf8_lossy(&complaint);
                return Err(io::Error::other(complaint.trim().trim_start_matches("waggle: ")));
            }
            None => sleep(LOOK_EVERY),
        }
    }
    Err(silent())
}

/// Reads a pipe to its end.
fn all(pipe: Option<impl Read + std::os::fd::AsFd>, until: Instant) -> io::Result<Vec<u8>> {
    let mut pipe = pipe.ok_or_else(|| io::Error::other("its pipe is missing"))?;
    fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
    let (mut said, mut piece) = (Vec::new(), [0; 16 << 10]);
    while Instant::now() < until && said.len() as u64 <= MESSAGES_BYTES_MAX {
        match pipe.read(&mut piece) {
            Ok(0) => return Ok(said),
            Ok(length) => said.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(LOOK_EVERY),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Err(silent())
}

fn silent() -> io::Error {
    io::Error::other(format!(
        "it was not read in {} s: its file system does not answer",
        ANSWER_MAX.as_secs()
    ))
}

fn foreign(process: u32, path: &Path, reason: String) -> PrivateServerError {
    PrivateServerError::Foreign { process, path: path.to_owned(), reason }
}
