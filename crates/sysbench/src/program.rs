//! The program.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use waggle_private_server::Launcher;

use crate::SysbenchError;
use crate::running::told;

/// The interface to scripts that ours are written for is that of 1.0.
const VERSION: &str = "1.0.";

/// The program.
#[derive(Clone, Debug)]
pub struct Sysbench {
    program: PathBuf,
    version: String,
}

impl Sysbench {
    /// Looks for it and asks for its version. A name without a slash is looked for in `PATH`.
    ///
    /// # Errors
    /// It is missing, cannot be run, or has another version.
    pub fn find(program: &Path) -> Result<Sysbench, SysbenchError> {
        let program = anywhere(program)?;
        let asked = Command::new(&program).arg("--version").stdin(Stdio::null()).output();
        let asked = match asked {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SysbenchError::Missing { program });
            }
            asked => asked.map_err(SysbenchError::system(format!("run {}", program.display())))?,
        };
        let said = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
        match said.strip_prefix("sysbench ").filter(|version| version.starts_with(VERSION)) {
            Some(version) => Ok(Sysbench { version: version.to_owned(), program }),
            None => Err(SysbenchError::Version { program, said }),
        }
    }

    /// Whether it has a script and takes its arguments. Nothing is loaded.
    ///
    /// # Errors
    /// It has not, or does not.
    pub fn check(&self, script: &str, arguments: &[String]) -> Result<(), SysbenchError> {
        let mut command = Command::new(&self.program);
        command.arg(anywhere(Path::new(script))?).args(arguments).arg("help").stdin(Stdio::null());
        let asked = command.output();
        let asked =
            asked.map_err(SysbenchError::system(format!("run {}", self.program.display())))?;
        let said = [asked.stdout, asked.stderr].map(|of| String::from_utf8_lossy(&of).into_owned());
        let said = said.concat();
        // A script need not know the command.
        let is_refused = ["FATAL: ", "invalid option: "].iter().any(|word| said.contains(word));
        match is_refused && !asked.status.success() {
            true => Err(told(script, "it cannot be run; mend the suite", &said)),
            false => Ok(()),
        }
    }

    /// Its version, such as `1.0.20`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// A command that becomes sysbench with a script, at the priority and on the processors of the launcher: its threads
    /// inherit them. More arguments, which win over these, are to be appended, and then what it shall do.
    pub fn command(
        &self,
        launcher: &Launcher,
        script: &Path,
        threads: u32,
        Tables { tables, rows }: Tables,
    ) -> Command {
        let mut command = launcher.command();
        command.arg("--").arg(&self.program).arg(script).arg("--db-driver=mysql");
        command.arg(format!("--threads={threads}"));
        command.arg(format!("--tables={tables}")).arg(format!("--table-size={rows}"));
        command
    }
}

/// What a script works on.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// How many.
    pub tables: u32,
    /// Rows of each.
    pub rows: u32,
}

/// A path that holds in every working directory; a name without a slash stays a name.
///
/// # Errors
/// There is no working directory.
pub fn anywhere(path: &Path) -> Result<PathBuf, SysbenchError> {
    match path.components().count() {
        1 if path.is_relative() => Ok(path.to_owned()),
        _ => std::path::absolute(path).map_err(SysbenchError::system("find the working directory")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_or_another_is_named() {
        let missing = Sysbench::find(Path::new("/nosuch/sysbench")).unwrap_err();
        assert!(matches!(missing, SysbenchError::Missing { .. }));
        let said = missing.to_string();
        assert!(said.contains("/nosuch/sysbench") && said.contains("install"), "{said}");
        let said = Sysbench::find(Path::new("echo")).unwrap_err().to_string();
        assert!(said.contains("echo") && said.contains("1.0"), "{said}");
    }

    #[test]
    fn names_stay_names_and_paths_become_absolute() {
        assert_eq!(anywhere(Path::new("oltp_read_only")).unwrap(), Path::new("oltp_read_only"));
        assert_eq!(anywhere(Path::new("/a/b.lua")).unwrap(), Path::new("/a/b.lua"));
        let here = std::env::current_dir().unwrap();
        assert_eq!(anywhere(Path::new("./b.lua")).unwrap(), here.join("b.lua"));
    }
}
