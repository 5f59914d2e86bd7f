//! Data that is made once, for servers that each start on a copy of it.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::directory::{Directory, ROOM_MIB};
use crate::{Launcher, PrivateServer, PrivateServerError, Program, launch};

/// Writing what it holds in memory may take a server long.
const STOP_MAX: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The identity of a server, made anew where it is missing.
const IDENTITY: &str = "auto.cnf";

/// The data of a server that was stopped. Dropping it removes them.
#[derive(Debug)]
pub struct Template {
    stopped: PrivateServer,
    bytes: u64,
}

impl Template {
    /// Stops a server in good order and keeps its data.
    ///
    /// # Errors
    /// It does not stop, or its data cannot be looked at.
    pub fn of(mut server: PrivateServer) -> Result<Template, PrivateServerError> {
        stop(&mut server)?;
        let data = server.directory.data();
        let bytes = size_of(&data)?;
        Ok(Template { stopped: server, bytes })
    }

    /// What a copy takes on the disk, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Starts a server on a copy; see [`PrivateServer::start`].
    ///
    /// # Errors
    /// There is too little room, or the server does not start.
    pub fn start(
        &self,
        program: &Program,
        launcher: &Launcher,
        settings: &[&str],
    ) -> Result<PrivateServer, PrivateServerError> {
        let directory = Directory::create(program, ROOM_MIB + (self.bytes >> 20))?;
        copy(&self.stopped.directory.data(), &directory.data())?;
        PrivateServer::on(directory, program, launcher, settings)
    }
}

fn stop(server: &mut PrivateServer) -> Result<(), PrivateServerError> {
    let log = server.directory.path().join("error.log");
    let failed = || PrivateServerError::io("cannot stop the server of", &log);
    let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        kill_process(pid, Signal::TERM).map_err(|errno| failed()(errno.into()))?;
    }
    let begin = Instant::now();
    while begin.elapsed() < STOP_MAX {
        match server.child.try_wait().map_err(failed())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                let how = format!("it was told to stop and ended with {status}");
                return Err(launch::did_not_start(how, &log));
            }
            None => sleep(LOOK_EVERY),
        }
    }
    let how = format!("it did not stop in {} s", STOP_MAX.as_secs());
    Err(launch::did_not_start(how, &log))
}

fn size_of(directory: &Path) -> Result<u64, PrivateServerError> {
    let mut bytes = 0;
    visit(directory, &mut |path, is_directory| {
        if !is_directory {
            let of = fs::metadata(path).map_err(PrivateServerError::io("cannot look at", path))?;
            bytes += of.len();
        }
        Ok(())
    })?;
    Ok(bytes)
}

/// Copies a directory with its owners. Where the file system can share blocks between files,
/// `std::fs::copy` lets it (copy_file_range(2)).
fn copy(from: &Path, to: &Path) -> Result<(), PrivateServerError> {
    let copied = |path: &Path, is_directory: bool| -> std::io::Result<()> {
        let target = to.join(path.strip_prefix(from).unwrap_or(path));
        if path.file_name().is_some_and(|name| name == IDENTITY) {
            return Ok(());
        }
        match is_directory {
            true => fs::create_dir(&target)?,
            false => fs::copy(path, &target).map(drop)?,
        }
        let of = fs::metadata(path)?;
        chown(&target, Some(of.uid()), Some(of.gid()))
    };
    visit(from, &mut |path, is_directory| {
        copied(path, is_directory).map_err(PrivateServerError::io("cannot copy", path))
    })
}

/// Every file and directory, a directory before what is in it. Sockets and links are left out.
fn visit(
    path: &Path,
    each: &mut dyn FnMut(&Path, bool) -> Result<(), PrivateServerError>,
) -> Result<(), PrivateServerError> {
    each(path, true)?;
    let failed = || PrivateServerError::io("cannot read", path);
    for entry in fs::read_dir(path).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let kind = entry.file_type().map_err(failed())?;
        if kind.is_dir() {
            visit(&entry.path(), each)?;
        } else if kind.is_file() {
            each(&entry.path(), false)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_every_file_but_the_identity() {
        let place = tempfile::TempDir::new().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("mysql")).unwrap();
        fs::write(from.join("ibdata1"), "12345").unwrap();
        fs::write(from.join("mysql/user.ibd"), "678").unwrap();
        fs::write(from.join(IDENTITY), "uuid").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read(to.join("ibdata1")).unwrap(), b"12345");
        assert_eq!(fs::read(to.join("mysql/user.ibd")).unwrap(), b"678");
        assert!(!to.join(IDENTITY).exists());
        assert_eq!(size_of(&to).unwrap(), 8);
    }
}
