//! The directory of one server.

use std::fs;
use std::fs::File;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

use crate::Error;
use crate::Result;
use crate::install::Installation;

/// unix(7): `sun_path` has 108 bytes, the last of them the NUL.
const SOCKET_PATH_LIMIT: usize = 107;

/// Data, socket, logs, certificate and option files of one server; removed when dropped.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) dir: PathBuf,
    /// Held locked as long as the directory is in use: an unlocked one is the rest of a process
    /// that was killed.
    _owner: File,
}

impl Home {
    /// Makes the directory, after removing those of killed processes.
    pub(crate) fn create(installation: &Installation) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let root = installation.data_root();
        // Nobody may sweep between our making the directory and locking it.
        let path = root.join("homes.lock");
        let gate = File::create(&path).map_err(Error::io("create", &path))?;
        gate.lock().map_err(Error::io("lock", &path))?;
        sweep(&root);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("run-{}-{}-{number}", installation.version, std::process::id());
        let dir = root.join(name);
        let socket = dir.join("socket");
        if socket.as_os_str().len() > SOCKET_PATH_LIMIT {
            return Err(Error::SocketPathTooLong { path: socket });
        }
        fs::create_dir(&dir).map_err(Error::io("create", &dir))?;
        let path = dir.join("owner");
        let owner = File::create(&path).map_err(Error::io("create", &path))?;
        owner.lock().map_err(Error::io("lock", &path))?;
        Ok(Self { dir, _owner: owner })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What stays is swept by the next start.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Removes what killed processes left. Nothing here may fail a start.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let is_home = entry.file_name().to_string_lossy().starts_with("run-");
        // One without the file was being removed when its process ended.
        let left = match File::open(entry.path().join("owner")) {
            Ok(owner) => owner.try_lock().is_ok(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if is_home && left {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
