//! Making the data directory of a new server.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use waggle_model::Flavour;

use crate::directory::Directory;
use crate::launch::{Launcher, did_not_start};
use crate::{PrivateServerError, Program, arguments};

/// Makes the system tables, with the account `root` without a password.
pub(crate) fn make(
    program: &Program,
    launcher: &Launcher,
    directory: &Directory,
) -> Result<(), PrivateServerError> {
    let log = directory.path().join("initialize.log");
    let mut arguments = arguments(program, directory);
    let input = match program.flavour {
        Flavour::Mysql => {
            arguments.push("--initialize-insecure".to_owned());
            Stdio::null()
        }
        Flavour::Mariadb => {
            make_directory(program, &directory.data())?;
            let own = ["--bootstrap", "--enforce-storage-engine=", "--max-allowed-packet=8M"];
            arguments.extend(own.map(str::to_owned));
            system_tables(program, directory)?.into()
        }
    };
    let mut child = launcher.spawn(program, &arguments, input, &log)?;
    let status = child.wait().map_err(PrivateServerError::io("cannot wait for", &log))?;
    match status.success() {
        true => Ok(()),
        false => Err(did_not_start(format!("making its data ended with {status}"), &log)),
    }
}

fn make_directory(program: &Program, path: &Path) -> Result<(), PrivateServerError> {
    fs::create_dir(path).map_err(PrivateServerError::io("cannot make", path))?;
    if let Some((uid, gid)) = program.user {
        let given = std::os::unix::fs::chown(path, Some(uid), Some(gid));
        given.map_err(PrivateServerError::io("cannot give away", path))?;
    }
    Ok(())
}

/// The SQL that the script mariadb-install-db feeds to the server, as with
/// `--auth-root-authentication-method=normal --skip-test-db`; the help tables are left empty.
fn system_tables(program: &Program, directory: &Directory) -> Result<File, PrivateServerError> {
    let share = program.outside(&program.messages);
    // The files were called mysql_* until 10.11 and mariadb_* since 11.
    let has = |prefix: &&str| share.join(format!("{prefix}_system_tables.sql")).is_file();
    let Some(prefix) = ["mariadb", "mysql"].into_iter().find(has) else {
        let what = "mariadb_system_tables.sql";
        return Err(PrivateServerError::Incomplete { program: program.executable.clone(), what });
    };
    let names = ["system_tables", "performance_tables", "system_tables_data"];
    let mut files = names.map(|name| format!("{prefix}_{name}.sql")).to_vec();
    files.push("maria_add_gis_sp_bootstrap.sql".to_owned());
    files.push(format!("{prefix}_sys_schema.sql"));
    let mut sql =
        b"CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n".to_vec();
    for file in files {
        let path = share.join(file);
        sql.extend(fs::read(&path).map_err(PrivateServerError::io("cannot read", &path))?);
        sql.push(b'\n');
    }
    let path = directory.path().join("bootstrap.sql");
    fs::write(&path, sql).map_err(PrivateServerError::io("cannot write", &path))?;
    File::open(&path).map_err(PrivateServerError::io("cannot read", &path))
}
