//! Where the programs of each version are, and how a path looks to the server.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::Error;
use crate::Result;
use crate::Version;
use crate::servers_dir;

/// An unpacked server.
///
/// MySQL 9 lives in a Debian sid tree and runs by `chroot`, since it needs a newer C library: its
/// files must lie inside the tree, and its paths start at the tree's root.
#[derive(Clone, Debug)]
pub(crate) struct Installation {
    pub(crate) version: Version,
    /// The server's program, seen from outside.
    pub(crate) program: PathBuf,
    /// Where `bin` and `share` are, seen from outside.
    pub(crate) base: PathBuf,
    /// Messages, and for MariaDB the SQL of the system tables; seen from outside.
    pub(crate) share: PathBuf,
    tree: Option<PathBuf>,
}

impl Installation {
    /// Finds the programs of a version, or says what to do.
    pub(crate) fn find(version: Version) -> Result<Self> {
        let servers = servers_dir();
        let own = servers.join(version.name());
        let (program, base, share, tree) = match version {
            Version::Mysql57 | Version::Mysql80 => ("bin/mysqld", own, "share", None),
            Version::Mariadb114 => ("bin/mariadbd", own, "share", None),
            Version::Mariadb1011 => ("sbin/mariadbd", "/usr".into(), "share/mysql", None),
            Version::Mysql9 => {
                let tree = servers.join("sid");
                ("sbin/mysqld", tree.join("usr"), "share/mysql", Some(tree))
            }
        };
        let (program, share) = (base.join(program), base.join(share));
        if !program.is_file() {
            return Err(Error::NotInstalled { version, program });
        }
        Ok(Self { version, program, base, share, tree })
    }

    /// Where this server's data directories may lie.
    pub(crate) fn data_root(&self) -> PathBuf {
        self.tree.clone().unwrap_or_else(servers_dir).join("data")
    }

    /// A path as the server sees it.
    pub(crate) fn inside(&self, path: &Path) -> PathBuf {
        let tree = self.tree.as_ref();
        match tree.and_then(|tree| path.strip_prefix(tree).ok()) {
            Some(rest) => Path::new("/").join(rest),
            None => path.to_owned(),
        }
    }

    /// The server's program as a command without arguments, in its tree. The kernel kills it
    /// when the thread that spawned it ends (prctl(2), `PR_SET_PDEATHSIG`).
    ///
    /// `setpriv` and `chroot` replace themselves by the next program, so that the process id that
    /// we spawn is the server's.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(tree) = &self.tree {
            command.arg("chroot").arg(tree);
        }
        command.arg(self.inside(&self.program));
        command
    }

    /// Changes when the program does: an initialised data directory of another build is not used.
    pub(crate) fn key(&self) -> Result<String> {
        let meta = fs::metadata(&self.program).map_err(Error::io("read", &self.program))?;
        Ok(format!("{}-{:x}-{:x}", self.version, meta.size(), meta.mtime()))
    }
}

/// The servers of every version as a list for `waggle lab run --server NAME`
/// (`Program::listed` of `crates/private_server`).
pub fn list() -> Result<String> {
    let mut list = String::new();
    for version in Version::ALL {
        let found = Installation::find(version)?;
        let family = if version.is_mariadb() { "mariadb" } else { "mysql" };
        list += &format!("[{:?}]\nfamily = \"{family}\"\n", version.name());
        if let Some(tree) = &found.tree {
            list += &format!("root = {:?}\n", tree.display().to_string());
        }
        let paths =
            [("program", &found.program), ("base", &found.base), ("messages", &found.share)];
        for (key, path) in paths {
            list += &format!("{key} = {:?}\n", found.inside(path).display().to_string());
        }
        list.push('\n');
    }
    Ok(list)
}

/// The line that a version's program prints about itself; an error if it is not installed.
pub fn describe(version: Version) -> Result<String> {
    let installation = Installation::find(version)?;
    let run = installation.command().args(["--no-defaults", "--version"]).output();
    let output = run.map_err(Error::io("run", &installation.program))?;
    let line = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(line);
    }
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::DidNotStart { version, reason: output.status.to_string(), log })
}
