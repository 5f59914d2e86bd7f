//! Making the data directory of a new server.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;

use waggle_model::Flavour;

use crate::copy::make_directory;
use crate::directory::Directory;
use crate::launch::{Launcher, end};
use crate::{PrivateServerError, Program};

/// Makes the system tables, with the account `root` without a password.
pub(crate) fn make(
    program: &Program,
    launcher: &Launcher,
    directory: &Directory,
) -> Result<(), PrivateServerError> {
    let log = directory.path().join("initialize.log");
    let mut arguments = directory.arguments(program);
    let input = match program.flavour {
        Flavour::Mysql => {
            arguments.push("--initialize-insecure".to_owned());
            Stdio::null()
        }
        Flavour::Mariadb => {
            let data = directory.data();
            make_directory(&data, program.user)
                .map_err(PrivateServerError::io("cannot make", &data))?;
            let own = ["--bootstrap", "--enforce-storage-engine=", "--max-allowed-packet=8M"];
            arguments.extend(own.map(str::to_owned));
            system_tables(program, launcher, directory)?.into()
        }
    };
    let mut child = launcher.spawn(program, &arguments, input, [&log, &directory.own()])?;
    let made = launcher.wait_made(&mut child, &log);
    end(&mut child);
    made
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

/// The SQL that the script mariadb-install-db feeds to the server, as with
/// `--auth-root-authentication-method=normal --skip-test-db`; the help tables are left empty.
fn system_tables(
    program: &Program,
    launcher: &Launcher,
    directory: &Directory,
) -> Result<File, PrivateServerError> {
    let read = |name: &str| program.read_message(launcher, name);
    // The files were called mysql_* until 10.11 and mariadb_* since 11.
    let has = |prefix: &&str| read(&format!("{prefix}_system_tables.sql")).is_ok();
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
        sql.extend(read(&file)?);
        sql.push(b'\n');
    }
    let path = directory.path().join("bootstrap.sql");
    write_private(&path, &sql).map_err(PrivateServerError::io("cannot write", &path))?;
    File::open(&path).map_err(PrivateServerError::io("cannot read", &path))
}
