//! An initialised data directory per version, made once and copied for each server.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use waggle_private_server::{Directory, PrivateServer, Template};

use crate::install::Installation;
use crate::launch::launcher;
use crate::{Error, Result, tls};

/// The accounts and the database that every server has; one statement per line (`--init-file`).
/// The second password is the version's default kind: native on 5.7 and MariaDB, caching_sha2
/// since 8.0.
const ACCOUNTS: &str = "\
CREATE USER 'app'@'%';
GRANT ALL ON *.* TO 'app'@'%' WITH GRANT OPTION;
CREATE USER 'secret'@'%' IDENTIFIED BY 's3cret pass';
GRANT ALL ON *.* TO 'secret'@'%' WITH GRANT OPTION;
CREATE DATABASE test;
";
/// Another number where what is made here is another: what was made before is not used then.
const FORM: u32 = 2;

/// Copies what a new server begins with into its directory: data and certificates.
pub(crate) fn copy_to(installation: &Installation, directory: &Directory) -> Result<()> {
    let template = ready(installation)?;
    copy(&[template.join("data")], &directory.own())?;
    copy(&tls::FILES.map(|file| template.join(file)), directory.path())
}

fn copy(files: &[PathBuf], to: &Path) -> Result<()> {
    let copied = Command::new("cp")
        .args(["--archive", "--reflink=auto", "--sparse=always"])
        .args(files)
        .arg(to)
        .status()
        .map_err(Error::io("run", Path::new("cp")))?;
    if copied.success() {
        return Ok(());
    }
    let failed = std::io::Error::other(format!("cp ended with {copied}"));
    Err(Error::io("copy to", to)(failed))
}

/// The directory to copy. Made at the first call; other processes that ask meanwhile wait.
fn ready(installation: &Installation) -> Result<PathBuf> {
    let root = &installation.data_root;
    fs::create_dir_all(root).map_err(Error::io("create", root))?;
    let lock_path = root.join(format!("{}.lock", installation.version));
    let lock = File::create(&lock_path).map_err(Error::io("create", &lock_path))?;
    lock.lock().map_err(Error::io("lock", &lock_path))?;

    let done = root.join(format!("template-{}-{FORM}", installation.key()?));
    if !done.is_dir() {
        // A directory under this name is whole: it is made under another and renamed.
        let part = root.join(format!("part-{}", installation.version));
        remove(&part)?;
        fs::create_dir(&part).map_err(Error::io("create", &part))?;
        make(installation, &part)?;
        remove_old(installation, root)?;
        fs::rename(&part, &done).map_err(Error::io("rename", &part))?;
    }
    Ok(done)
}

fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", directory)(error))
        }
        _ => Ok(()),
    }
}

/// Removes what was made by another build of the program.
fn remove_old(installation: &Installation, root: &Path) -> Result<()> {
    let start = format!("template-{}-", installation.version);
    let entries = fs::read_dir(root).map_err(Error::io("read", root))?.flatten();
    let is_old = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(&start);
    entries.filter(is_old).try_for_each(|entry| remove(&entry.path()))
}

fn make(installation: &Installation, part: &Path) -> Result<()> {
    tls::write_certificate(part)?;
    let Installation { version, program, data_root } = installation;
    let directory = Directory::create_in(data_root, program, 0).map_err(Error::server(*version))?;
    let (script, log) = (directory.path().join("accounts.sql"), directory.log());
    fs::write(&script, ACCOUNTS).map_err(Error::io("write", &script))?;
    let init_file = format!("--init-file={}", program.inside(&script).display());
    let server = PrivateServer::start_in(directory, program, &launcher(), &[&init_file]);
    let server = server.map_err(Error::server(*version))?;
    let said = fs::read_to_string(log).unwrap_or_default();
    if said.contains("] [Server] Error in init") {
        return Err(Error::Accounts { version: *version, log: said });
    }
    let copied =
        Template::of(server).and_then(|template| template.copy_to(program, &part.join("data")));
    copied.map_err(Error::server(*version))
}
