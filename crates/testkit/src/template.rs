//! An initialised data directory per version, made once and copied for each server.

use std::fs;
use std::fs::File;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use crate::Error;
use crate::Result;
use crate::install::Installation;
use crate::launch;
use crate::settings;
use crate::tls;

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

/// The directory to copy: `data` and the certificate. Made at the first call; other processes
/// that ask meanwhile wait.
pub(crate) fn ready(installation: &Installation) -> Result<PathBuf> {
    let root = installation.data_root();
    fs::create_dir_all(&root).map_err(Error::io("create", &root))?;
    let lock_path = root.join(format!("{}.lock", installation.version));
    let lock = File::create(&lock_path).map_err(Error::io("create", &lock_path))?;
    lock.lock().map_err(Error::io("lock", &lock_path))?;

    let done = root.join(format!("template-{}", installation.key()?));
    if !done.is_dir() {
        // A directory under this name is whole: it is made under another and renamed.
        let part = root.join(format!("part-{}", installation.version));
        if part.exists() {
            fs::remove_dir_all(&part).map_err(Error::io("remove", &part))?;
        }
        fs::create_dir(&part).map_err(Error::io("create", &part))?;
        make(installation, &part)?;
        remove_old(installation, &root)?;
        fs::rename(&part, &done).map_err(Error::io("rename", &part))?;
    }
    Ok(done)
}

/// Removes what was made by another build of the program.
fn remove_old(installation: &Installation, root: &Path) -> Result<()> {
    let start = format!("template-{}-", installation.version);
    for entry in fs::read_dir(root).map_err(Error::io("read", root))?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&start) {
            fs::remove_dir_all(entry.path()).map_err(Error::io("remove", &entry.path()))?;
        }
    }
    Ok(())
}

fn make(installation: &Installation, dir: &Path) -> Result<()> {
    tls::write_certificate(dir)?;
    let data = dir.join("data");
    if installation.version.is_mariadb() {
        bootstrap_mariadb(installation, dir, &data)?;
    } else {
        let mut command = installation.command();
        command.args(settings::basic(installation, &data)).arg("--initialize-insecure");
        run(installation, command, Stdio::null(), &dir.join("initialize.log"))?;
    }
    create_accounts(installation, dir, &data)?;
    // The server makes a new one at its start: copies must not share their server_uuid.
    match fs::remove_file(data.join("auto.cnf")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", &data)(error))
        }
        _ => Ok(()),
    }
}

/// Feeds the SQL of the system tables to the server, as the script mariadb-install-db does with
/// `--auth-root-authentication-method=normal --skip-test-db`; the help tables are left empty.
fn bootstrap_mariadb(installation: &Installation, dir: &Path, data: &Path) -> Result<()> {
    fs::create_dir(data).map_err(Error::io("create", data))?;
    let mut sql =
        b"CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n".to_vec();
    // The files were called mysql_* until 10.11 and mariadb_* since 11.
    let prefix = if installation.share.join("mysql_system_tables.sql").exists() {
        "mysql"
    } else {
        "mariadb"
    };
    let names = ["_system_tables", "_performance_tables", "_system_tables_data"];
    let mut files: Vec<String> = names.map(|name| format!("{prefix}{name}.sql")).to_vec();
    files.push("maria_add_gis_sp_bootstrap.sql".to_owned());
    files.push(format!("{prefix}_sys_schema.sql"));
    for file in files {
        let path = installation.share.join(file);
        sql.extend(fs::read(&path).map_err(Error::io("read", &path))?);
        sql.push(b'\n');
    }
    let script = dir.join("bootstrap.sql");
    fs::write(&script, sql).map_err(Error::io("write", &script))?;
    let input = File::open(&script).map_err(Error::io("read", &script))?;
    let mut command = installation.command();
    command.args(settings::basic(installation, data));
    command.args(["--bootstrap", "--enforce-storage-engine=", "--max-allowed-packet=8M"]);
    run(installation, command, input.into(), &dir.join("initialize.log"))
}

/// Starts the server once, without network, to run [`ACCOUNTS`].
fn create_accounts(installation: &Installation, dir: &Path, data: &Path) -> Result<()> {
    let (script, socket) = (dir.join("accounts.sql"), dir.join("socket"));
    let log = dir.join("accounts.log");
    fs::write(&script, ACCOUNTS).map_err(Error::io("write", &script))?;
    let mut command = installation.command();
    command.args(settings::basic(installation, data)).args(["--skip-networking", "--skip-log-bin"]);
    command.arg(format!("--socket={}", installation.inside(&socket).display()));
    command.arg(format!("--init-file={}", installation.inside(&script).display()));
    let mut child = launch::spawn(command, Stdio::null(), &log)?;
    let started = launch::wait_ready(&mut child, &socket);
    launch::terminate(&mut child, installation.version)?;
    let refused = fs::read_to_string(&log).unwrap_or_default().contains("] [Server] Error in init");
    match started {
        Ok(_) if !refused => Ok(()),
        Ok(_) => Err(failed(installation, "it refused the accounts".to_owned(), &log)),
        Err(reason) => Err(failed(installation, reason, &log)),
    }
}

fn run(installation: &Installation, command: Command, stdin: Stdio, log: &Path) -> Result<()> {
    let mut child = launch::spawn(command, stdin, log)?;
    let status = child.wait().map_err(Error::io("wait for", &installation.program))?;
    if status.success() {
        return Ok(());
    }
    Err(failed(installation, format!("making its data directory ended with {status}"), log))
}

fn failed(installation: &Installation, reason: String, log: &Path) -> Error {
    Error::DidNotStart { version: installation.version, reason, log: launch::tail(log) }
}
