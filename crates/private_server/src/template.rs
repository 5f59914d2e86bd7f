//! Data that is made once, for servers that each start on a copy of it.

use std::fs;
use std::path::Path;

use crate::copy::copy;
use crate::directory::{Directory, ROOM_MIB};
use crate::{Launcher, PrivateServer, PrivateServerError, Program, stop};

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
        stop(&mut server.child, &server.directory)?;
        let data = server.directory.data();
        let bytes = size_of(&data)?;
        Ok(Template { stopped: server, bytes })
    }

    /// What a copy takes on the disk, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes a directory with a copy, as the user of the program.
    ///
    /// # Errors
    /// It is there already, or cannot be written.
    pub fn copy_to(&self, program: &Program, data: &Path) -> Result<(), PrivateServerError> {
        let from = self.stopped.directory.data();
        copy(&from, data, program.user).map_err(PrivateServerError::io("cannot copy", &from))
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
        self.copy_to(program, &directory.data())?;
        PrivateServer::on(directory, program, launcher, settings)
    }
}

fn size_of(directory: &Path) -> Result<u64, PrivateServerError> {
    let mut bytes = 0;
    visit(directory, &mut |path, is_directory| {
        if !is_directory {
            let of = fs::symlink_metadata(path)
                .map_err(PrivateServerError::io("cannot look at", path))?;
            bytes += of.len();
        }
        Ok(())
    })?;
    Ok(bytes)
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
    fn the_size_is_that_of_all_files() {
        let place = tempfile::TempDir::new().unwrap();
        fs::create_dir(place.path().join("mysql")).unwrap();
        fs::write(place.path().join("ibdata1"), "12345").unwrap();
        fs::write(place.path().join("mysql/user.ibd"), "678").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", place.path().join("link")).unwrap();
        assert_eq!(size_of(place.path()).unwrap(), 8);
    }
}
