//! The program sysbench, and its tables.

use std::fs::File;
use std::io;
use std::num::NonZero;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use waggle_mysql::Connection;
use waggle_private_server::Launcher;

use super::{LoadError, Reach};
use crate::suite::Workload;

/// The interface to scripts that `lab.lua` was written for is that of 1.0.
const VERSION: &str = "1.0.";
/// Lines in a message.
const LINES: usize = 6;
/// How often it is looked whether the tables are made, or are new no longer.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);

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
    pub fn find(program: &Path) -> Result<Sysbench, LoadError> {
        let program = anywhere(program)?;
        let asked = Command::new(&program).arg("--version").stdin(Stdio::null()).output();
        let asked = match asked {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(LoadError::Missing { program });
            }
            asked => asked.map_err(LoadError::system(format!("run {}", program.display())))?,
        };
        let said = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
        match said.strip_prefix("sysbench ").filter(|version| version.starts_with(VERSION)) {
            Some(version) => Ok(Sysbench { version: version.to_owned(), program }),
            None => Err(LoadError::Version { program, said }),
        }
    }

    /// Whether it has the script of a workload and takes its arguments. Nothing is loaded.
    ///
    /// # Errors
    /// It has not, or does not.
    pub fn check(&self, workload: &Workload) -> Result<(), LoadError> {
        let script = anywhere(Path::new(&workload.script))?;
        let mut command = Command::new(&self.program);
        command.arg(script).args(&workload.arguments).arg("help").stdin(Stdio::null());
        let asked = command.output();
        let asked = asked.map_err(LoadError::system(format!("run {}", self.program.display())))?;
        let said = [asked.stdout, asked.stderr].map(|of| String::from_utf8_lossy(&of).into_owned());
        let said = said.concat();
        // A script need not know the command.
        let is_refused = ["FATAL: ", "invalid option: "].iter().any(|word| said.contains(word));
        match is_refused && !asked.status.success() {
            true => Err(told(&workload.script, "it cannot be run; mend the suite", &said)),
            false => Ok(()),
        }
    }

    /// Its version, such as `1.0.20`.
    pub fn version(&self) -> &str {
        &self.version
    }
}

/// What is to be loaded, and how.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The program.
    pub sysbench: &'a Sysbench,
    /// Starts it, at the priority of private servers. It is pinned to the processors of the launcher:
    /// its threads inherit them.
    pub launcher: &'a Launcher,
    /// The server, the account and the schema.
    pub reach: &'a Reach,
    /// The script and its arguments, which win over ours.
    pub workload: &'a Workload,
    /// Sessions.
    pub threads: u32,
    /// Tables.
    pub tables: u32,
    /// Rows of each table.
    pub rows: u32,
    /// From which the rows and the order in which they are read follow. Which session has which part of
    /// it depends on the order in which they start.
    pub seed: u64,
    /// A directory for files of ours; nothing is left there but the script.
    pub directory: &'a Path,
}

impl Request<'_> {
    /// A command that becomes sysbench with a script.
    pub(super) fn command(&self, script: &Path, threads: u32) -> Result<Command, LoadError> {
        let mut command = self.launcher.command();
        command.arg("--").arg(&self.sysbench.program).arg(script);
        command.args(["--db-driver=mysql", "--time=0", "--events=0"]);
        command.args(self.reach.arguments()?);
        command.arg(format!("--threads={threads}"));
        command.arg(format!("--tables={}", self.tables));
        command.arg(format!("--table-size={}", self.rows));
        command.arg(format!("--rand-seed={}", seed(self.seed)));
        command.args(&self.workload.arguments);
        Ok(command)
    }

    /// The script as sysbench is to find it.
    pub(super) fn script(&self) -> Result<PathBuf, LoadError> {
        anywhere(Path::new(&self.workload.script))
    }
}

/// A path that holds in every working directory; a name without a slash stays a name.
fn anywhere(path: &Path) -> Result<PathBuf, LoadError> {
    match path.components().count() {
        1 if path.is_relative() => Ok(path.to_owned()),
        _ => std::path::absolute(path).map_err(LoadError::system("find the working directory")),
    }
}

/// sysbench takes a positive `int`, and the clock in place of 0.
fn seed(seed: u64) -> u64 {
    seed % (i32::MAX as u64) + 1
}

/// Makes the tables by `sysbench … prepare`, some of them at once. `false` where somebody stopped it.
///
/// # Errors
/// The script is missing or fails, or the server refuses something.
pub fn prepare(request: &Request<'_>, stop: &AtomicBool) -> Result<bool, LoadError> {
    let mut connection = Connection::open(request.reach.options(), None)?;
    connection.rows(&format!("CREATE DATABASE IF NOT EXISTS {}", request.reach.schema()))?;
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = request.tables.min(processors as u32).max(1);
    let mut command = request.command(&request.script()?, threads)?;
    command.arg("prepare");
    let (mut child, log) = spawn(command, Stdio::null(), request.directory)?;
    loop {
        let ended = child.try_wait().map_err(LoadError::system("wait for sysbench"))?;
        match ended.map(|status| status.success()) {
            Some(true) => return Ok(true),
            Some(false) => {
                return Err(failed(&request.workload.script, "its tables cannot be made", &log));
            }
            None if stop.load(Ordering::Relaxed) => {
                let ended = child.kill().and_then(|()| child.wait());
                return ended.map(|_| false).map_err(LoadError::system("end sysbench"));
            }
            None => sleep(LOOK_EVERY),
        }
    }
}

/// Starts a command; what it says goes to a file without a name.
pub(super) fn spawn(
    mut command: Command,
    stdin: Stdio,
    dir: &Path,
) -> Result<(Child, File), LoadError> {
    let in_dir = || LoadError::system(format!("make a file in {}", dir.display()));
    let log = tempfile::tempfile_in(dir).map_err(in_dir())?;
    let out = log.try_clone().map_err(in_dir())?;
    let err = log.try_clone().map_err(in_dir())?;
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(stdin).stdout(out).stderr(err).spawn();
    Ok((child.map_err(LoadError::system(format!("start {program}")))?, log))
}

/// What is to be told where sysbench has failed.
pub(super) fn failed(script: &str, how: impl Into<String>, log: &File) -> LoadError {
    let text = log.metadata().and_then(|found| {
        let mut bytes = vec![0; usize::try_from(found.len()).unwrap_or(0)];
        log.read_exact_at(&mut bytes, 0).map(|()| String::from_utf8_lossy(&bytes).into_owned())
    });
    told(script, how, &text.unwrap_or_default())
}

/// The same of what it said.
fn told(script: &str, how: impl Into<String>, text: &str) -> LoadError {
    let script = script.to_owned();
    // As `lab.lua` and as sysbench itself say it.
    if text.contains("no such script: ") || text.contains("Cannot find benchmark ") {
        return LoadError::Script { script };
    }
    LoadError::Failed { script, how: how.into(), said: reason(text) }
}

/// The first lines that tell of an error, since each session can repeat them; where there are none the
/// last lines.
fn reason(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let errors = lines.iter().copied().filter(|line| line.starts_with("FATAL: "));
    let errors: Vec<&str> = errors.take(LINES).collect();
    match errors.is_empty() {
        true => lines[lines.len().saturating_sub(LINES)..].join("\n"),
        false => errors.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_or_another_is_named() {
        let missing = Sysbench::find(Path::new("/nosuch/sysbench")).unwrap_err();
        assert!(matches!(missing, LoadError::Missing { .. }));
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

    #[test]
    fn every_seed_is_one_for_sysbench() {
        let largest = i32::MAX as u64;
        assert_eq!([seed(0), seed(largest - 1), seed(largest)], [1, largest, 1]);
        assert!((1..=largest).contains(&seed(u64::MAX)));
    }

    #[test]
    fn the_first_error_is_told_and_without_one_the_end() {
        let many: String = (0..200).map(|n| format!("FATAL: error {n}\n")).collect();
        let said = reason(&format!("sysbench 1.0.20\n\nThreads started!\n{many}"));
        assert!(said.starts_with("FATAL: error 0\n") && said.lines().count() == LINES, "{said}");
        assert_eq!(reason("one\n\ntwo\n"), "one\ntwo");
    }
}
