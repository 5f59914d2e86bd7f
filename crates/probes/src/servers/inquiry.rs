//! One question about a process, and its answer. A child answers it, or this process itself.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use waggle_host::Process;
use waggle_model::Reading;

use super::opened::Opened;
use super::program::{Entry, Program, reading, shown};
use super::refusal::RecogniseError;
use super::waiting::{Library, Waiting, library_of, trusted_library};
use super::{CurrentThdAt, Instance, Place, digest_length};

/// `SCHEDULER_TYPES` of `sql/scheduler.h`; MySQL's `Connection_handler_manager::scheduler_types` has the same.
const POOL_OF_THREADS: u64 = 2;

/// Why nothing is known of the waits of a server.
pub(super) const NOT_ASKED: &str = "waits were not asked for";

/// What is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Question {
    pub(super) pid: u32,
    /// What is known of its program; without it the program is read.
    pub(super) known: Option<Entry>,
    /// Whether it is asked what tells why threads wait.
    pub(super) waits: bool,
}

/// What is said.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    /// The program, where that was asked for.
    pub(super) program: Option<Result<Program, RecogniseError>>,
    place: Result<InProcess, RecogniseError>,
}

/// Where a process has what waggle reads.
#[derive(Debug, Serialize, Deserialize)]
struct InProcess {
    load_bias: u64,
    current_thd: CurrentThdAt,
    /// What it holds now, or why that is not known.
    digest_length: Result<u64, String>,
    library: Result<Library, String>,
    /// What `thread_handling` holds, where the program has it.
    thread_handling: Option<u64>,
    mapped: OsString,
    program_path: OsString,
}

impl Question {
    /// Opens what there is of the process, gives up all rights by `confine`, and looks into it.
    pub(super) fn answer(&self, confine: impl FnOnce() -> io::Result<()>) -> Answer {
        match self.look(confine) {
            Ok(answer) => answer,
            Err(error) => Answer { program: None, place: Err(error) },
        }
    }

    fn look(&self, confine: impl FnOnce() -> io::Result<()>) -> Result<Answer, RecogniseError> {
        let mut opened = Opened::of(self.pid)?;
        confine().map_err(|error| RecogniseError::no_child(&error))?;
        let (program, entry) = match &self.known {
            Some(entry) => (None, entry.clone()),
            None => match opened.program().and_then(|elf| Program::read(&elf, self.waits)) {
                Ok(program) => {
                    let entry = program.entry();
                    (Some(Ok(program)), entry)
                }
                Err(error) => {
                    let error = RecogniseError::from(error);
                    return Ok(Answer { program: Some(Err(error.clone())), place: Err(error) });
                }
            },
        };
        let place = Instance::resolve(&mut opened, &entry).map(|(load_bias, current_thd)| {
            let digest_length = entry.digest_length.clone().and_then(|address| {
                let memory = opened.memory().map_err(|error| error.to_string())?;
                let place = digest_length::place(address, load_bias);
                digest_length::value(memory.read_one_here(place))
            });
            let thread_handling = entry.thread_handling.and_then(|address| {
                let place = Place::new(load_bias.wrapping_add(address), 8);
                let bytes = opened.memory().ok()?.read_one_here(place).ok()??;
                bytes.try_into().ok().map(u64::from_ne_bytes)
            });
            InProcess {
                load_bias,
                current_thd,
                digest_length,
                library: match self.waits {
                    true => library_of(&opened.libraries),
                    false => Err(NOT_ASKED.to_owned()),
                },
                thread_handling,
                mapped: opened.mapped.into_os_string(),
                program_path: opened.program_path.into_os_string(),
            }
        });
        Ok(Answer { program, place: place.map_err(RecogniseError::from) })
    }
}

/// What is known of a process.
pub(super) struct Told {
    pub(super) instance: Instance,
    /// Its program as its map names it.
    pub(super) mapped: PathBuf,
    pub(super) digest_length: Reading<u64>,
}

impl Answer {
    /// What is said of a process that runs this program. Who said it may have been taken over by what it read.
    pub(super) fn told(
        self,
        pid: u32,
        start_ticks: u64,
        program: Option<&Program>,
    ) -> Result<Told, RecogniseError> {
        let InProcess {
            load_bias,
            current_thd,
            digest_length,
            library,
            thread_handling,
            mapped,
            program_path,
        } = self.place?;
        let path = PathBuf::from(program_path);
        let Some(program) = program.filter(|_| is_of(pid, &path)) else {
            return Err(RecogniseError::unanswered(pid));
        };
        let breakpoints = program.breakpoints.clone();
        let waiting = Waiting {
            functions: program.functions.clone(),
            library: reading(trusted_library(library)),
            is_pooled: thread_handling.is_some_and(|handling| handling == POOL_OF_THREADS),
        };
        let instance = Instance {
            pid,
            start_ticks,
            program: path,
            load_bias,
            current_thd,
            breakpoints,
            waiting,
            monotonic_ahead_ns: Process::of(pid).monotonic_ahead_ns(),
        };
        let digest_length = match digest_length {
            Ok(length) if length <= digest_length::LONGEST => Reading::Value(length),
            Ok(_) => return Err(RecogniseError::unanswered(pid)),
            Err(why) => Reading::Absent(shown(&why)),
        };
        Ok(Told { instance, mapped: PathBuf::from(mapped), digest_length })
    }
}

/// Whether a path leads through the folder of this process to a file of its own.
fn is_of(pid: u32, path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(format!("/proc/{pid}")) else { return false };
    let begins = ["exe", "map_files", "root"].iter().any(|name| inside.starts_with(name));
    begins && inside.components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_of_the_process_itself_is_its_program() {
        for path in ["exe", "map_files/1-2", "root/opt/my sql/bin/mysqld"] {
            assert!(is_of(10, &Path::new("/proc/10").join(path)), "{path}");
        }
        for path in ["/proc/11/exe", "/proc/10/root/../../etc/shadow", "/proc/10/mem", "/bin/sh"] {
            assert!(!is_of(10, Path::new(path)), "{path}");
        }
    }
}
