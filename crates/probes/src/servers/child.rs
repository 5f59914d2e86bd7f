//! A process of waggle's own that answers one question about another process, without rights. What it looks
//! into may hold it up, crash it or take it over: that costs the answer and nothing else.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use waggle_host::{Limits, Meter, Waited, start_child};

use super::inquiry::{Answer, Question};
use super::names;
use super::owner::Owner;
use super::reader;
use super::refusal::RecogniseError;

/// How long an answer may take, without the time in which the child does not get to run, which may be as long. It takes a
/// tenth of a second; what trusted users run is waited for.
const DEADLINE: Duration = Duration::from_secs(10);
const TRUSTED_DEADLINE: Duration = Duration::from_secs(60);
/// Who has waited for something for so long is held up, rather than at work.
const HELD_UP_MIN: Duration = Duration::from_secs(1);
/// Processor time of a child, s; the largest server takes a tenth of the first.
const CPU_MAX_S: u64 = 5;
/// Its memory beside the files that it maps, bytes.
const MEMORY_MAX: u64 = 512 << 20;
/// Longest answer, bytes. A server's has 2 MiB, nearly all of it for the frames of its C library; one with names has
/// some hundred bytes for each.
const ANSWER_MAX: usize = 8 << 20;
/// What a pipe takes at once unless it is made larger.
const PIPE_BYTES: usize = 64 << 10;

/// How a child is started.
#[derive(Debug)]
struct Starter {
    program: PathBuf,
    /// For one that answers one question.
    question: &'static str,
    /// For one that reads ([`super::reader`]).
    reader: &'static str,
}

static STARTER: OnceLock<Starter> = OnceLock::new();

/// From now on every process is looked into by children: `program`, which calls [`answer`] when it is started with
/// the argument `question` alone, and [`serve`] with `reader` alone. Without it, this process looks itself.
pub fn use_children(program: PathBuf, question: &'static str, reader: &'static str) {
    // The first one holds.
    let _ = STARTER.set(Starter { program, question, reader });
}

/// Whether children look.
pub(super) fn are_used() -> bool {
    STARTER.get().is_some()
}

/// What can be asked of a child.
#[derive(Deserialize)]
#[serde(untagged)]
enum Asked {
    Names(names::Question),
    Process(Question),
}

/// Gives up all rights, with memory for `mapped` bytes of files.
fn confine(mapped: u64) -> io::Result<()> {
    Limits { memory: MEMORY_MAX.saturating_add(mapped), cpu_s: Some(CPU_MAX_S) }.confine()
}

/// Answers the question that stands at the standard input, and writes to the standard output.
///
/// # Errors
///
/// If there is no question, or nobody takes the answer.
pub fn answer() -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut asked = Vec::new();
    io::stdin().take(ANSWER_MAX as u64).read_to_end(&mut asked)?;
    let answer = match serde_json::from_slice(&asked)? {
        Asked::Process(question) => serde_json::to_vec(&question.answer(|| confine(0))),
        Asked::Names(question) => serde_json::to_vec(&question.answer(confine)),
    };
    let mut out = io::stdout().lock();
    out.write_all(&answer?)?;
    out.flush()
}

/// Reads what is asked for at the standard input, until nobody asks any more, and writes to the standard output.
///
/// # Errors
///
/// If nobody takes an answer.
pub fn serve() -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    reader::serve(&mut io::stdin().lock(), &mut BufWriter::new(io::stdout().lock()))
}

/// A process of ours, and what it reads and writes. Neither waits.
pub(super) struct Started {
    pub(super) process: process::Child,
    pub(super) asks: File,
    pub(super) answers: File,
}

impl Started {
    /// One that reads.
    pub(super) fn reader() -> io::Result<Started> {
        let starter = STARTER.get().ok_or_else(|| io::Error::other("no program is set"))?;
        Started::by(&starter.program, starter.reader)
    }

    fn by(program: &Path, argument: &str) -> io::Result<Started> {
        let mut command = Command::new(program);
        command.arg(argument).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = start_child(command)?;
        let asks = process.stdin.take().map(OwnedFd::from).map(File::from);
        let answers = process.stdout.take().map(OwnedFd::from).map(File::from);
        let (Some(asks), Some(answers)) = (asks, answers) else {
            return Err(io::Error::other("its pipes are missing"));
        };
        for pipe in [&asks, &answers] {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(Started { process, asks, answers })
    }
}

/// A child at work.
pub(super) struct Child {
    process: process::Child,
    out: File,
    said: Vec<u8>,
    waited: Waited,
}

/// Why a child gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silent {
    /// It took too long.
    Late,
    /// It did not get to run for so long, or not long enough yet.
    Withheld,
    /// It ended: it took too much of the processor or of memory, or it crashed.
    Ended,
    /// It said what is no answer.
    Nonsense,
}

impl Child {
    /// Asks a new one.
    pub(super) fn start(question: &impl Serialize) -> io::Result<Child> {
        let starter = STARTER.get().ok_or_else(|| io::Error::other("no program is set"))?;
        Child::start_by(&starter.program, starter.question, question)
    }

    fn start_by(program: &Path, argument: &str, question: &impl Serialize) -> io::Result<Child> {
        let question = serde_json::to_vec(question)?;
        let Started { process, mut asks, answers: out } = Started::by(program, argument)?;
        let room = match question.len() > PIPE_BYTES {
            true => fcntl_setpipe_size(&asks, question.len()).map(drop),
            false => Ok(()),
        };
        // The pipe takes all of it at once.
        let asked = room.map_err(io::Error::from).and_then(|()| asks.write_all(&question));
        drop(asks);
        let waited = Waited::begin_for(process.id());
        let child = Child { process, out, said: Vec::new(), waited };
        match asked {
            Ok(()) => Ok(child),
            // It has ended already.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(child),
            Err(error) => {
                child.end();
                Err(error)
            }
        }
    }

    /// What it has said; `None` while that is not all.
    pub(super) fn poll(&mut self, owner: Owner) -> Option<Result<Answer, Silent>> {
        self.poll_within(if owner.is_trusted() { TRUSTED_DEADLINE } else { DEADLINE })
    }

    /// The same of any answer.
    pub(super) fn poll_within<A: DeserializeOwned>(
        &mut self,
        deadline: Duration,
    ) -> Option<Result<A, Silent>> {
        // It is read once more after this: what was said meanwhile counts, however late it is.
        self.waited.look();
        let is_late = self.waited.counted() > deadline;
        let is_over = is_late || self.waited.withheld() > deadline;
        let mut piece = [0; 16 << 10];
        loop {
            match self.out.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => self.said.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let silent = if is_late { Silent::Late } else { Silent::Withheld };
                    return is_over.then_some(Err(silent));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
            if self.said.len() > ANSWER_MAX {
                return Some(Err(Silent::Nonsense));
            }
        }
        if self.said.is_empty() {
            return Some(Err(Silent::Ended));
        }
        Some(serde_json::from_slice(&self.said).map_err(|_| Silent::Nonsense))
    }

    /// How long it has been waited for, without the time in which it did not get to run.
    pub(super) fn waited(&self) -> Duration {
        self.waited.counted()
    }

    /// Why it has said nothing yet.
    pub(super) fn why_silent(&self) -> Silent {
        if self.waited.blocked() >= HELD_UP_MIN { Silent::Late } else { Silent::Withheld }
    }

    /// Ends it, and gives the processor time that it took. It may wait for a file system that does not answer, and
    /// cannot end before: then it is given back, and is to be asked again whether it has ended.
    pub(super) fn end(mut self) -> (Duration, Option<process::Child>) {
        let _ = self.process.kill();
        let cpu = Meter::of(self.process.id()).and_then(|meter| meter.cpu_ns());
        let spent = cpu.map_or_else(|_| self.waited(), Duration::from_nanos);
        let is_left = !has_ended(&mut self.process);
        (spent, is_left.then_some(self.process))
    }
}

/// Whether a process is no more.
pub(super) fn has_ended(process: &mut process::Child) -> bool {
    !matches!(process.try_wait(), Ok(None))
}

impl Silent {
    /// In words.
    pub(super) fn of(self, pid: u32) -> RecogniseError {
        let why = match self {
            Silent::Late => {
                "its program and its memory are not read in time: a file system does not answer, \
                             or they are made to hold up who reads them"
                    .to_owned()
            }
            Silent::Withheld => {
                "its program is not read yet: the process of waggle that reads it did not get to run for long enough, \
                 as the host is busy or it was stopped; try again"
                    .to_owned()
            }
            Silent::Ended => format!(
                "to read its program takes more than {CPU_MAX_S} s or {} MiB, or crashes who reads it: \
                 it is no server's",
                MEMORY_MAX >> 20
            ),
            Silent::Nonsense => "its program took over who read it, or is no server's".to_owned(),
        };
        RecogniseError::too_much(
            format!("process {pid}: {why}"),
            !matches!(self, Silent::Late | Silent::Withheld),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use rustix::process::{Pid, kill_process};
    use waggle_host::Process;

    use super::*;

    /// A child that is another program than ours: as good as one that was taken over.
    fn child(program: &str, argument: &str) -> Child {
        let question = Question { pid: std::process::id(), known: None, waits: false };
        Child::start_by(program.as_ref(), argument, &question).unwrap()
    }

    fn silence(mut child: Child, deadline: Duration) -> Silent {
        let said = loop {
            match child.poll_within::<Answer>(deadline) {
                Some(said) => break said,
                None => thread::sleep(Duration::from_millis(1)),
            }
        };
        let (_, left) = child.end();
        if let Some(mut process) = left {
            process.wait().unwrap();
        }
        said.err().unwrap()
    }

    #[test]
    fn a_child_that_gives_no_answer_costs_the_answer() {
        let long = Duration::from_secs(600);
        assert_eq!(silence(child("false", "-"), long), Silent::Ended);
        assert_eq!(silence(child("echo", "{\"program\":1}"), long), Silent::Nonsense);
        assert_eq!(silence(child("yes", "{"), long), Silent::Nonsense, "it never ends");
        assert_eq!(silence(child("sleep", "600"), Duration::from_secs(1)), Silent::Late);
    }

    #[test]
    fn what_a_child_says_while_nobody_looks_is_taken_however_late_it_is() {
        let mut child = child("echo", "{}");
        let pid = child.process.id();
        wait_for_end(pid);
        // All of its time is over when it is looked at.
        thread::sleep(Duration::from_millis(20));
        let said = child.poll_within::<Answer>(Duration::ZERO);
        assert_eq!(said.unwrap().err(), Some(Silent::Nonsense), "it was read");
        child.end();
    }

    #[test]
    fn a_child_that_is_stopped_has_time_left_when_it_goes_on() {
        let mut child = child("sleep", "600");
        let pid = Pid::from_child(&child.process);
        kill_process(pid, Signal::STOP).unwrap();
        let most = Duration::from_millis(300);
        let begun = Instant::now();
        while child.waited.withheld() < most / 2 {
            assert!(child.poll_within::<Answer>(most).is_none(), "{:?}", child.waited);
            assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", child.waited);
            thread::sleep(Duration::from_millis(10));
        }
        assert!(child.waited() < most / 2, "{:?}", child.waited);
        assert_eq!(child.why_silent(), Silent::Withheld);
        child.end();
    }

    /// Until it is a zombie.
    fn wait_for_end(pid: u32) {
        let begun = Instant::now();
        while Process::of(pid).state().value() != Some(&'Z') {
            assert!(begun.elapsed() < Duration::from_secs(120), "it has not ended");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn each_silence_has_its_reason_and_only_what_the_file_does_is_kept_for_it() {
        for silent in [Silent::Late, Silent::Withheld, Silent::Ended, Silent::Nonsense] {
            let error = silent.of(7);
            assert!(error.to_string().contains("process 7: "), "{error}");
            let is_of_time = matches!(silent, Silent::Late | Silent::Withheld);
            assert_eq!(error.is_of_file(), !is_of_time);
        }
    }
}
