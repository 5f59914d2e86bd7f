//! Where the programs of each version are.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use waggle_private_server::Program;

use crate::{Error, Result, Version, launch, servers_dir};

/// Where MariaDB lies in the tree of Debian sid. Its package conflicts with that of MySQL, so it is
/// unpacked in a folder of its own.
pub const MARIADB_IN_SID: &str = "opt/mariadb-11.8";

/// An unpacked server.
#[derive(Clone, Debug)]
pub(crate) struct Installation {
    pub(crate) version: Version,
    pub(crate) program: Program,
    /// Where the data of its servers may lie.
    pub(crate) data_root: PathBuf,
}

/// MySQL 9 and MariaDB 11.8 live in a Debian sid tree and run by `chroot`, since they need a newer C
/// library: their files must lie inside the tree.
fn tree(version: Version) -> Option<PathBuf> {
    matches!(version, Version::Mysql9 | Version::Mariadb118).then(|| servers_dir().join("sid"))
}

/// Its program, where `bin` and `share` are, and its messages; as it sees them itself.
fn paths(version: Version) -> [PathBuf; 3] {
    let own = servers_dir().join(version.name());
    let (base, program, messages) = match version {
        Version::Mysql57 | Version::Mysql80 => (own, "bin/mysqld", "share"),
        Version::Mariadb114 => (own, "bin/mariadbd", "share"),
        Version::Mariadb1011 => ("/usr".into(), "sbin/mariadbd", "share/mysql"),
        Version::Mysql9 => ("/usr".into(), "sbin/mysqld", "share/mysql"),
        Version::Mariadb118 => {
            (Path::new("/").join(MARIADB_IN_SID).join("usr"), "sbin/mariadbd", "share/mariadb")
        }
    };
    [base.join(program), base.clone(), base.join(messages)]
}

impl Installation {
    /// Finds the programs of a version, or says what to do.
    pub(crate) fn find(version: Version) -> Result<Self> {
        let (tree, paths) = (tree(version), paths(version));
        let data_root = tree.clone().unwrap_or_else(servers_dir).join("data");
        let program = paths[0].strip_prefix("/").unwrap_or(&paths[0]);
        let program = tree.as_deref().unwrap_or(Path::new("/")).join(program);
        if !program.is_file() {
            return Err(Error::NotInstalled { version, program });
        }
        let program =
            Program::of(version.flavour(), tree, paths).map_err(Error::server(version))?;
        Ok(Self { version, program, data_root })
    }

    /// The server's program, seen from outside.
    pub(crate) fn executable(&self) -> PathBuf {
        self.program.outside(self.program.path())
    }

    /// Changes when the program does: an initialised data directory of another build is not used.
    pub(crate) fn key(&self) -> Result<String> {
        let program = self.executable();
        let meta = fs::metadata(&program).map_err(Error::io("read", &program))?;
        Ok(format!("{}-{:x}-{:x}", self.version, meta.size(), meta.mtime()))
    }
}

/// The servers of every version as a list for `waggle lab run --server NAME`
/// (`Program::listed` of `crates/private_server`).
pub fn list() -> Result<String> {
    let mut list = String::new();
    for version in Version::BUILDS {
        Installation::find(version)?;
        let family = if version.is_mariadb() { "mariadb" } else { "mysql" };
        list += &format!("[{:?}]\nfamily = \"{family}\"\n", version.name());
        if let Some(tree) = tree(version) {
            list += &format!("root = {:?}\n", tree.display().to_string());
        }
        for (key, path) in ["program", "base", "messages"].iter().zip(paths(version)) {
            list += &format!("{key} = {:?}\n", path.display().to_string());
        }
        list.push('\n');
    }
    Ok(list)
}

/// Where the program of a version lies, seen from outside; an error if it is not installed.
pub fn program(version: Version) -> Result<PathBuf> {
    Installation::find(version).map(|installation| installation.executable())
}

/// The line that a version's program prints about itself; an error if it is not installed.
pub fn describe(version: Version) -> Result<String> {
    let installation = Installation::find(version)?;
    let mut command = launch::launcher().command();
    if let Some(tree) = tree(version) {
        command.arg("--root").arg(tree);
    }
    command.arg("--").arg(installation.program.path()).args(["--no-defaults", "--version"]);
    let run = command.stdin(Stdio::null()).output();
    let output = run.map_err(Error::io("run", installation.program.path()))?;
    let line = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(line);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let failed = std::io::Error::other(format!("{}, {said}", output.status));
    Err(Error::io("run", installation.program.path())(failed))
}
