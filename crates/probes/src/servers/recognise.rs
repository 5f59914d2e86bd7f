//! Turns processes into servers that can be watched. Any number of them can be asked for at once; none holds up
//! the others.

use std::collections::HashMap;
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use waggle_model::Server;

use super::Instance;
use super::child::{self, Child, Silent, has_ended};
use super::digest_length::DigestLength;
use super::discover::{Found, name_of, without_deleted};
use super::file_id::FileId;
use super::inquiry::{Answer, Question, Told};
use super::layout::Layout;
use super::loader::is_loader;
use super::owner::{Owner, Owners};
use super::program::Program;
use super::reader;
use super::turns::{Asked, Turns};
use super::x_protocol::XProtocol;

pub use super::refusal::RecogniseError;

/// A server with all that is needed to watch it.
#[derive(Clone, Debug)]
pub struct Recognised {
    /// Who it is.
    pub server: Server,
    /// Its build.
    pub layout: Arc<Layout>,
    /// Its process.
    pub instance: Instance,
    /// Where it keeps how long its digests are.
    pub digest_length: DigestLength,
    /// Where it keeps where it speaks the X protocol.
    pub x_protocol: XProtocol,
}

/// What came of asking for a process.
#[derive(Debug)]
pub struct Answered {
    /// The process.
    pub found: Found,
    /// Who runs it.
    pub owner: Owner,
    /// The server, or why it is none.
    pub outcome: Result<Recognised, RecogniseError>,
}

/// Files that are kept. A server that is restarted mostly runs one of them.
const FILES_MAX: usize = 1024;
/// How long a wait for one answer pauses.
const PAUSE: Duration = Duration::from_millis(2);

/// What was learned of files. It serves the user alone through whose process it was learned: a process can run another
/// file for a moment.
type Kept = HashMap<(Owner, FileId), Result<Program, RecogniseError>>;

/// The files of servers that were met, each read once, and the processes that are asked for.
pub struct Builds {
    owners: Owners,
    kept: Kept,
    turns: Turns,
    running: Vec<Running>,
    /// Children that do not end, though they were killed.
    left: Vec<(Owner, process::Child)>,
    answered: Vec<Answered>,
    /// Whether it is asked what tells why threads wait: that is most of an answer.
    waits: bool,
}

/// A process that a child looks into.
struct Running {
    asked: Asked,
    child: Child,
}

impl Default for Builds {
    fn default() -> Self {
        Builds {
            owners: Owners::of_host(),
            kept: HashMap::new(),
            turns: Turns::new(),
            running: Vec::new(),
            left: Vec::new(),
            answered: Vec::new(),
            waits: false,
        }
    }
}

impl Builds {
    /// Asks each server what tells why its threads wait, too.
    pub fn with_waits(self) -> Builds {
        Builds { waits: true, ..self }
    }

    /// Asks for a process. [`Builds::next_answer`] has what comes of it.
    pub fn ask(&mut self, found: Found) {
        let owner = self.owners.owner(found.pid);
        let file = file_of(&found);
        self.turns.add(Asked { found, owner, file });
    }

    /// Asks no more for a process.
    pub fn forget(&mut self, pid: u32) {
        self.turns.take(|asked| asked.found.pid == pid);
        let gone = self.running.extract_if(.., |running| running.asked.found.pid == pid);
        for running in gone.collect::<Vec<_>>() {
            self.end(running);
        }
        self.answered.retain(|answered| answered.found.pid != pid);
    }

    /// Whether answers are to come.
    pub fn is_asking(&self) -> bool {
        self.asking().next().is_some()
    }

    /// Whether an answer is there, as far as the last call of [`Builds::next_answer`] has seen.
    pub fn has_answer(&self) -> bool {
        !self.answered.is_empty()
    }

    /// Whether answers are to come of servers whose users come first.
    pub fn is_asking_for_trusted(&self) -> bool {
        self.asking().any(|(_, owner)| owner.is_trusted())
    }

    /// Whether it is worth to go on waiting: for a server whose users come first and that has been waited for less than
    /// `trusted`, without the time in which nobody got to read it; or for any other, as long as `others` is said.
    pub fn may_answer(&self, trusted: Duration, others: bool) -> bool {
        let of_trusted = |running: &&Running| running.asked.owner.is_trusted();
        let mut running = self.running.iter().filter(of_trusted).peekable();
        let may_trusted = match running.peek() {
            // Who waits is next after one of these.
            Some(_) => running.any(|running| running.child.waited() < trusted),
            None => self.is_asking_for_trusted(),
        };
        may_trusted || others && self.asking().any(|(_, owner)| !owner.is_trusted())
    }

    /// The processes that have the name of a server, and of which an answer is to come, with their owners.
    pub fn awaited(&self) -> impl Iterator<Item = (u32, Owner)> {
        let named = self.asking().filter(|(found, _)| found.is_named);
        named.map(|(found, owner)| (found.pid, owner))
    }

    /// The processes whose answers were not taken yet.
    fn asking(&self) -> impl Iterator<Item = (&Found, Owner)> {
        let asked = self.turns.waiting().chain(self.running.iter().map(|running| &running.asked));
        let answered = self.answered.iter().map(|answered| (&answered.found, answered.owner));
        asked.map(|asked| (&asked.found, asked.owner)).chain(answered)
    }

    /// Asks no more. A process without an answer that has the name of a server gets that as its answer.
    pub fn give_up(&mut self) -> Vec<Answered> {
        let mut all = Vec::new();
        for asked in self.turns.take(|_| true) {
            let pid = asked.found.pid;
            let why = match asked.owner.is_trusted() {
                true => Silent::Withheld.of(pid),
                false => RecogniseError::not_asked(pid),
            };
            all.push((asked, why));
        }
        for running in std::mem::take(&mut self.running) {
            let why = running.child.why_silent().of(running.asked.found.pid);
            all.push((running.asked.clone(), why));
            self.end(running);
        }
        let all = all.into_iter().filter(|(asked, _)| asked.found.is_named);
        all.map(|(Asked { found, owner, .. }, why)| Answered { found, owner, outcome: Err(why) })
            .collect()
    }

    /// An answer that is there, first of those whose users come first, and lets the next processes be looked into. It
    /// does not wait.
    pub fn next_answer(&mut self) -> Option<Answered> {
        self.left.retain_mut(|(_, process)| !has_ended(process));
        self.collect();
        self.answer_known();
        while let Some(asked) = self.next() {
            self.look_into(asked);
            self.answer_known();
        }
        let answered = self.answered.iter().enumerate();
        let (at, _) = answered.min_by_key(|(_, answered)| answered.owner)?;
        Some(self.answered.remove(at))
    }

    /// Recognises one process: reads its build, if it is new, and resolves it in this process. Waits for the answer.
    ///
    /// # Errors
    ///
    /// If the executable or the process cannot be read, with the remedy.
    pub fn recognise(&mut self, found: &Found) -> Result<Recognised, RecogniseError> {
        let (owner, file) = (self.owners.owner(found.pid), file_of(found));
        // Who waits for it has nothing else to do.
        self.look_into(Asked { found: found.clone(), owner, file });
        loop {
            self.collect();
            let is_it = |answered: &Answered| answered.found == *found;
            if let Some(at) = self.answered.iter().position(is_it) {
                return self.answered.remove(at).outcome;
            }
            thread::sleep(PAUSE);
        }
    }

    fn next(&mut self) -> Option<Asked> {
        let running: Vec<&Asked> = self.running.iter().map(|running| &running.asked).collect();
        let is_held_up = |owner: Owner| self.left.iter().any(|(other, _)| *other == owner);
        self.turns.next(Instant::now(), &running, is_held_up)
    }

    /// Answers for those whose file is known to be none that can be watched.
    fn answer_known(&mut self) {
        let kept = &self.kept;
        let refused = |asked: &Asked| of_asked(kept, asked)?.as_ref().err().cloned();
        for asked in self.turns.take(|asked| refused(asked).is_some()) {
            let Some(error) = refused(&asked) else { continue };
            self.answered.push(Answered {
                found: asked.found,
                owner: asked.owner,
                outcome: Err(error),
            });
        }
    }

    fn look_into(&mut self, asked: Asked) {
        let known = of_asked(&self.kept, &asked).and_then(|kept| kept.as_ref().ok());
        let question =
            Question { pid: asked.found.pid, known: known.map(Program::entry), waits: self.waits };
        if !child::are_used() {
            let answer = question.answer(|| Ok(()));
            self.take(asked, answer);
            return;
        }
        reader::prepare();
        match Child::start(&question) {
            Ok(child) => self.running.push(Running { asked, child }),
            Err(error) => {
                let outcome = Err(RecogniseError::no_child(&error));
                self.answered.push(Answered { found: asked.found, owner: asked.owner, outcome });
            }
        }
    }

    /// Takes what the children have said.
    fn collect(&mut self) {
        for mut running in std::mem::take(&mut self.running) {
            match running.child.poll(running.asked.owner) {
                None => self.running.push(running),
                Some(said) => {
                    let asked = running.asked.clone();
                    self.end(running);
                    match said {
                        Ok(answer) => self.take(asked, answer),
                        Err(silent) => self.take_silence(asked, silent),
                    }
                }
            }
        }
    }

    fn end(&mut self, Running { asked, child }: Running) {
        let (spent, left) = child.end();
        self.turns.spend(asked.owner, spent);
        self.left.extend(left.map(|process| (asked.owner, process)));
    }

    fn take_silence(&mut self, asked: Asked, silent: Silent) {
        let error = silent.of(asked.found.pid);
        // A trusted program is tried again: the system may have lacked memory.
        if error.is_of_file() && !asked.owner.is_trusted() {
            self.keep(&asked, Err(error.clone()));
        }
        self.answered.push(Answered {
            found: asked.found,
            owner: asked.owner,
            outcome: Err(error),
        });
    }

    fn take(&mut self, asked: Asked, mut answer: Answer) {
        let program = match answer.program.take() {
            None => of_asked(&self.kept, &asked).and_then(|kept| kept.clone().ok()),
            Some(Ok(program)) => {
                self.keep(&asked, Ok(program.clone()));
                Some(program)
            }
            Some(Err(error)) => {
                if error.is_of_file() {
                    self.keep(&asked, Err(error.cleaned()));
                }
                None
            }
        };
        let outcome = recognised(&asked.found, program, answer).map_err(RecogniseError::cleaned);
        self.answered.push(Answered { found: asked.found, owner: asked.owner, outcome });
    }

    /// Keeps what was learned of a file, unless it was changed or replaced meanwhile. What other users made takes no room
    /// from what trusted ones did.
    fn keep(&mut self, asked: &Asked, learned: Result<Program, RecogniseError>) {
        let Some(file) = asked.file.filter(|file| file_of(&asked.found) == Some(*file)) else {
            return;
        };
        if self.kept.len() >= FILES_MAX {
            self.kept.retain(|(owner, _), _| owner.is_trusted());
        }
        if self.kept.len() >= FILES_MAX {
            self.kept.clear();
        }
        self.kept.insert((asked.owner, file), learned);
    }
}

/// What was learned of the file of a process.
fn of_asked<'a>(kept: &'a Kept, asked: &Asked) -> Option<&'a Result<Program, RecogniseError>> {
    kept.get(&(asked.owner, asked.file?))
}

/// The program of a process; `None` where a loader started it: then that has mapped the program.
fn file_of(found: &Found) -> Option<FileId> {
    let executable = found.executable.value()?;
    let is_behind_loader = is_loader(&name_of(executable));
    let link = format!("/proc/{}/exe", found.pid);
    (!is_behind_loader).then(|| FileId::at(Path::new(&link)))?
}

fn recognised(
    found: &Found,
    program: Option<Program>,
    answer: Answer,
) -> Result<Recognised, RecogniseError> {
    let Told { instance, mapped, digest_length: length } =
        answer.told(found.pid, found.start_ticks, program.as_ref())?;
    let Some(Program { layout, digest_length, x_protocol, .. }) = program else {
        return Err(RecogniseError::unanswered(found.pid));
    };
    let server = Server {
        pid: found.pid,
        start_ticks: found.start_ticks,
        flavour: layout.flavour,
        version: layout.version.clone(),
        build: layout.build.clone(),
        executable: without_deleted(mapped).0,
        max_digest_length: length,
    };
    let digest_length = DigestLength::of(&digest_length, &instance);
    let x_protocol = x_protocol.in_process(&instance);
    Ok(Recognised { server, layout, instance, digest_length, x_protocol })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use waggle_model::Reading;

    use super::*;

    fn answered(pid: u32, owner: Owner) -> Answered {
        let [executable, root] = [(); 2].map(|()| Reading::Value(PathBuf::from("/")));
        let (start_ticks, is_named, deleted) = (1, true, false);
        let found = Found { pid, start_ticks, executable, is_named, deleted, root };
        Answered { found, owner, outcome: Err(RecogniseError::unanswered(pid)) }
    }

    #[test]
    fn answers_are_given_one_by_one_and_awaited_until_they_are() {
        let other = Owner::Other(65534);
        let mut builds = Builds::default();
        for (pid, owner) in [(1, other), (2, Owner::Trusted), (3, other), (4, Owner::Trusted)] {
            builds.answered.push(answered(pid, owner));
        }
        // It has ended.
        builds.forget(4);
        let mut given = Vec::new();
        while builds.has_answer() {
            let awaited: Vec<u32> = builds.awaited().map(|(pid, _)| pid).collect();
            assert_eq!((builds.is_asking(), awaited.len()), (true, 3 - given.len()));
            given.extend(builds.next_answer().map(|answered| answered.found.pid));
        }
        assert_eq!(given, [2, 1, 3], "first of those whose users come first");
        assert!(!builds.is_asking() && builds.next_answer().is_none());
    }
}
