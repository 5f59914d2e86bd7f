//! The server of a run.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, anyhow};
use waggle_model::Flavour;
use waggle_private_server::Program;

use super::super::Failure;

/// Where a list of servers is looked for, where none is named. The first is what `cargo xtask setup`
/// writes.
const LISTS: [&str; 2] = ["target/servers/servers.toml", "/etc/waggle/servers.toml"];

/// The program that `--server` names: a path, or a name in a list of servers.
pub(super) fn program(server: &str, list: Option<&Path>) -> Result<Program, Failure> {
    let found = match server.contains('/') {
        true => Program::at(Path::new(server), flavour(Path::new(server))?),
        false => Program::listed(&list_of(list, server)?, server),
    };
    found.map_err(|error| Failure::Config(error.into()))
}

fn list_of(named: Option<&Path>, server: &str) -> Result<PathBuf, Failure> {
    let known = LISTS.iter().map(PathBuf::from).find(|path| path.is_file());
    named.map(Path::to_owned).or(known).ok_or_else(|| {
        let places = LISTS.join(" or ");
        Failure::Config(anyhow!(
            "there is no list of servers in which to find {server}: name a list with --servers, write one to \
             {places} (in the sources of waggle `cargo xtask setup` does), or give the path of a mysqld or mariadbd"
        ))
    })
}

/// The family of a program, as it says itself.
fn flavour(program: &Path) -> Result<Flavour, Failure> {
    let said = Command::new(program).args(["--no-defaults", "--version"]).output();
    let said = said.with_context(|| {
        format!("{} cannot be run: name a mysqld or mariadbd with --server", program.display())
    });
    let said = said.map_err(Failure::Config)?.stdout;
    match String::from_utf8_lossy(&said).contains("MariaDB") {
        true => Ok(Flavour::Mariadb),
        false => Ok(Flavour::Mysql),
    }
}
