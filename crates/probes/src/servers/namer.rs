//! Asks children for the names of functions, without waiting for them.

use std::process;
use std::sync::Arc;
use std::time::Duration;

use super::child::{self, Child, Silent, has_ended};
use super::names::{ADDRESSES_MAX, Answer, Question};
use super::program::shown;

/// How long an answer may take. It takes a tenth of a second where the processors are not busy.
const DEADLINE: Duration = Duration::from_secs(20);

/// Where an address is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The file that is mapped there, without its folders.
    pub file: Arc<str>,
    /// The name of the function, or its file and begin (`mysqld+0x1234`).
    pub function: Arc<str>,
    /// Whether the file has a name of the function.
    pub is_named: bool,
}

/// The addresses of a process with what they are; `None` where no file is mapped.
pub type Names = Vec<(u64, Option<Named>)>;

/// What came of a question about a process: its names, or why there are none.
pub struct Told {
    /// The process.
    pub pid: u32,
    /// What was asked for.
    pub names: Result<Names, String>,
}

/// Asks one question after the other.
#[derive(Default)]
pub struct Namer {
    asking: Option<Asking>,
    /// What was answered without a child.
    told: Option<Told>,
    /// Children that have not ended yet, though they have answered or were killed.
    left: Vec<process::Child>,
}

struct Asking {
    question: Question,
    child: Child,
}

impl Namer {
    /// Whether a question waits for its answer.
    pub fn is_asking(&self) -> bool {
        self.asking.is_some() || self.told.is_some()
    }

    /// Asks for the names of functions of a process, [`ADDRESSES_MAX`] at most; what is asked meanwhile is forgotten.
    pub fn ask(&mut self, pid: u32, mut addresses: Vec<u64>) {
        addresses.truncate(ADDRESSES_MAX);
        let question = Question { names_of: pid, addresses };
        if !child::are_used() {
            let names = question.answer(|_| Ok(())).and_then(|answer| names(&question, answer));
            self.told = Some(Told { pid, names });
            return;
        }
        match Child::start(&question) {
            Ok(child) => self.asking = Some(Asking { question, child }),
            Err(error) => self.told = Some(Told { pid, names: Err(error.to_string()) }),
        }
    }

    /// The answer, once it is there.
    pub fn poll(&mut self) -> Option<Told> {
        self.left.retain_mut(|process| !has_ended(process));
        if let Some(told) = self.told.take() {
            return Some(told);
        }
        let asking = self.asking.as_mut()?;
        let said = asking.child.poll_within::<Result<Answer, String>>(DEADLINE)?;
        let Asking { question, child } = self.asking.take()?;
        self.left.extend(child.end().1);
        let pid = question.names_of;
        let names = match said {
            Ok(answer) => answer.and_then(|answer| names(&question, answer)),
            Err(Silent::Late | Silent::Withheld) => {
                Err("its files are not read in time".to_owned())
            }
            Err(Silent::Ended) => Err("to read its files takes too much, or crashes".to_owned()),
            Err(Silent::Nonsense) => Err("its files took over who read them".to_owned()),
        };
        Some(Told { pid, names: names.map_err(|why| shown(&why)) })
    }
}

impl Drop for Namer {
    fn drop(&mut self) {
        if let Some(Asking { child, .. }) = self.asking.take() {
            child.end();
        }
    }
}

/// What an answer says, where it fits its question.
fn names(question: &Question, answer: Answer) -> Result<Names, String> {
    let Answer { files, functions, places } = answer;
    if places.len() != question.addresses.len() {
        return Err(format!("{} of {} are told", places.len(), question.addresses.len()));
    }
    let clean = |names: Vec<String>| -> Vec<Arc<str>> {
        names.iter().map(|name| shown(name).into()).collect()
    };
    let (files, functions) = (clean(files), clean(functions));
    let missing = || "it names what it does not tell".to_owned();
    let named = |(address, place): (&u64, &Option<super::names::Place>)| {
        let Some(place) = place else { return Ok((*address, None)) };
        let file = files.get(place.file).ok_or_else(missing)?.clone();
        let function = match place.function {
            Some(function) => functions.get(function).ok_or_else(missing)?.clone(),
            None => format!("{file}+{:#x}", place.offset).into(),
        };
        Ok((*address, Some(Named { file, function, is_named: place.function.is_some() })))
    };
    question.addresses.iter().zip(&places).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::super::names::Place;
    use super::*;

    fn question() -> Question {
        Question { names_of: 7, addresses: vec![16, 32, 48] }
    }

    fn answer() -> Answer {
        Answer {
            files: vec!["mysq\u{1b}[ld".into()],
            functions: vec!["main".into()],
            places: vec![
                Some(Place { file: 0, offset: 16, function: Some(0) }),
                None,
                Some(Place { file: 0, offset: 0x30, function: None }),
            ],
        }
    }

    #[test]
    fn what_has_no_name_is_its_file_and_begin() {
        let names = names(&question(), answer()).unwrap();
        let of = |at: usize| names[at].1.as_ref().map(|one| (&*one.function, one.is_named));
        assert_eq!(of(0), Some(("main", true)));
        assert_eq!(of(1), None);
        assert_eq!(of(2), Some(("mysq\u{fffd}[ld+0x30", false)));
    }

    #[test]
    fn an_answer_that_does_not_fit_its_question_is_refused() {
        let refused = |change: fn(&mut Answer)| {
            let mut answer = answer();
            change(&mut answer);
            names(&question(), answer).is_err()
        };
        assert!(!refused(|_| {}));
        assert!(refused(|answer| answer.places.truncate(2)));
        assert!(refused(|answer| answer.files.clear()));
        assert!(refused(|answer| answer.functions.clear()));
        assert!(refused(|answer| {
            answer.places[2] = Some(Place { file: usize::MAX, offset: 0, function: None });
        }));
    }

    #[test]
    fn our_own_functions_are_named_without_a_child() {
        let mut namer = Namer::default();
        assert!(namer.poll().is_none());
        let here = question as fn() -> Question as usize as u64;
        namer.ask(process::id(), vec![here, 1]);
        assert!(namer.is_asking());
        let told = namer.poll().unwrap();
        let names = told.names.unwrap();
        assert!(names[0].1.as_ref().unwrap().function.contains("question"), "{names:?}");
        assert_eq!(names[1], (1, None));
        namer.ask(1 << 30, vec![1]);
        assert!(namer.poll().unwrap().names.is_err());
    }
}
