//! What is learned of a program from its file alone, and how one process tells it another.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use waggle_model::{BuildKey, Flavour, Reading};

use super::arch::OFFSET_MAX;
use super::breakpoint::Breakpoints;
use super::digest_length;
use super::elf::{Elf, ElfError};
use super::inquiry::NOT_ASKED;
use super::layout::{CurrentThd, Field, Layout, LockTime, Place};
use super::waiting::{WaitingFunction, functions_of, trusted_functions};
use super::x_protocol::XProtocol;

/// Longest text that is taken from what another process tells, bytes.
const TEXT_MAX: usize = 500;

/// A program of a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Told", into = "Told")]
pub(super) struct Program {
    pub(super) layout: Arc<Layout>,
    /// The address at which the file wants its first byte.
    pub(super) first_address: u64,
    /// Where the file has `max_digest_length`.
    pub(super) digest_length: Reading<u64>,
    /// Where it has where the X protocol is spoken.
    pub(super) x_protocol: XProtocol,
    pub(super) breakpoints: Breakpoints,
    /// Which of its functions say what a thread waits for.
    pub(super) functions: Reading<Arc<Vec<WaitingFunction>>>,
    /// Where the file has `thread_handling`.
    pub(super) thread_handling: Option<u64>,
}

impl Program {
    /// Decodes an ELF file; `waits`: also what tells why threads wait.
    pub(super) fn read(elf: &Elf, waits: bool) -> Result<Program, ElfError> {
        Ok(Program {
            layout: Arc::new(Layout::derive(elf)?),
            first_address: elf.first_address(),
            digest_length: digest_length::address(elf),
            x_protocol: XProtocol::of_file(elf),
            breakpoints: Breakpoints::of(elf),
            functions: match waits {
                true => reading(functions_of(elf).map(Arc::new)),
                false => Reading::absent(NOT_ASKED),
            },
            thread_handling: THREAD_HANDLING
                .into_iter()
                .find_map(|name| elf.symbol(name))
                .map(|symbol| symbol.address),
        })
    }

    /// What must be known of it to find a session in a process.
    pub(super) fn entry(&self) -> Entry {
        Entry {
            first_address: self.first_address,
            current_thd: told(self.layout.current_thd.clone()),
            digest_length: told(self.digest_length.clone()),
            thread_handling: self.thread_handling,
        }
    }
}

/// The variable that says how sessions get their threads, in MariaDB and in MySQL.
const THREAD_HANDLING: [&str; 2] =
    ["thread_handling", "_ZN26Connection_handler_manager15thread_handlingE"];

/// What must be known of a program to find a session in a process that runs it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) first_address: u64,
    /// Or why it is not known.
    pub(super) current_thd: Result<CurrentThd, String>,
    /// Where the file has `max_digest_length`, or why that is not known.
    pub(super) digest_length: Result<u64, String>,
    /// Where the file has `thread_handling`.
    pub(super) thread_handling: Option<u64>,
}

/// A program as it is told. Who tells it may have been taken over by the file that it read.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Told {
    is_mariadb: bool,
    build: String,
    version: String,
    entry: Entry,
    /// In the order of [`Field::ALL`]: the offset and how it was found, or why it was not.
    fields: Vec<Result<(u32, String), String>>,
    lock_time: Result<LockTime, String>,
    x_protocol: XProtocol,
    /// In the order of [`Function::ALL`](super::breakpoint::Function::ALL).
    breakpoints: [Result<u64, String>; 3],
    instruction_text: Option<u32>,
    functions: Result<Vec<WaitingFunction>, String>,
}

impl From<Program> for Told {
    fn from(program: Program) -> Told {
        let entry = program.entry();
        let Program { layout, breakpoints, x_protocol, functions, .. } = program;
        let place = |field| match layout.fields.get(&field) {
            Some(Reading::Value(Place { offset, how })) => Ok((*offset, how.clone())),
            Some(Reading::Absent(why)) => Err(why.clone()),
            None => Err("it was not looked for".to_owned()),
        };
        Told {
            is_mariadb: layout.flavour == Flavour::Mariadb,
            build: layout.build.0.clone(),
            version: layout.version.clone(),
            entry,
            fields: Field::ALL.into_iter().map(place).collect(),
            lock_time: told(layout.lock_time.clone()),
            x_protocol,
            breakpoints: breakpoints.places.map(told),
            instruction_text: breakpoints.instruction_text,
            functions: told(functions).map(Arc::unwrap_or_clone),
        }
    }
}

impl TryFrom<Told> for Program {
    type Error = String;

    fn try_from(told: Told) -> Result<Program, String> {
        if told.fields.len() != Field::ALL.len() {
            return Err(format!("{} fields are told", told.fields.len()));
        }
        let place = |told: Result<(u32, String), String>| match told {
            Ok((offset, _)) if offset > OFFSET_MAX => Err(format!("an offset of {offset:#x}")),
            Ok((offset, how)) => Ok(Reading::Value(Place { offset, how: shown(&how) })),
            Err(why) => Ok(Reading::Absent(shown(&why))),
        };
        let places = told.fields.into_iter().map(place).collect::<Result<Vec<_>, String>>()?;
        if let Some(offset) = told.instruction_text.filter(|offset| *offset > OFFSET_MAX) {
            return Err(format!("an offset of {offset:#x}"));
        }
        let breakpoints = Breakpoints {
            places: told.breakpoints.map(reading),
            instruction_text: told.instruction_text,
        };
        let flavour = if told.is_mariadb { Flavour::Mariadb } else { Flavour::Mysql };
        let layout = Layout {
            current_thd: reading(told.entry.current_thd),
            fields: Field::ALL.into_iter().zip(places).collect(),
            lock_time: reading(told.lock_time),
            ..Layout::of(flavour, BuildKey(shown(&told.build)), shown(&told.version))
        };
        Ok(Program {
            layout: Arc::new(layout),
            first_address: told.entry.first_address,
            digest_length: reading(told.entry.digest_length),
            x_protocol: told.x_protocol,
            breakpoints,
            functions: reading(trusted_functions(told.functions)),
            thread_handling: told.entry.thread_handling,
        })
    }
}

fn told<T>(reading: Reading<T>) -> Result<T, String> {
    match reading {
        Reading::Value(value) => Ok(value),
        Reading::Absent(why) => Err(why),
    }
}

pub(super) fn reading<T>(told: Result<T, String>) -> Reading<T> {
    match told {
        Ok(value) => Reading::Value(value),
        Err(why) => Reading::Absent(shown(&why)),
    }
}

/// A text of another process as it may be shown: cut, and without control characters.
pub(super) fn shown(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c });
    clean.take(TEXT_MAX).collect()
}

#[cfg(test)]
mod tests {
    use waggle_model::TimeClass;

    use super::*;

    fn program() -> Program {
        let mut layout = Layout::of(Flavour::Mariadb, BuildKey("b".into()), "11.8.2".into());
        layout.current_thd = Reading::Value(CurrentThd::ThreadLocal { offset: -8 });
        for (number, field) in Field::ALL.into_iter().enumerate() {
            let place = Place { offset: number as u32 * 8, how: format!("decoded {number}") };
            layout.fields.insert(field, Reading::Value(place));
        }
        layout.fields.insert(Field::Host, Reading::absent("no\u{1b}[2Jne"));
        layout.lock_time = Reading::Value(LockTime::Until);
        Program {
            layout: Arc::new(layout),
            first_address: 0x40_0000,
            digest_length: Reading::absent("this build exports none"),
            x_protocol: XProtocol::default(),
            breakpoints: Breakpoints {
                places: [Reading::Value(7), Reading::absent("none"), Reading::Value(u64::MAX)],
                instruction_text: Some(8),
            },
            functions: Reading::Value(Arc::new(vec![WaitingFunction {
                begin: 16,
                end: 48,
                class: 9,
            }])),
            thread_handling: Some(0x40),
        }
    }

    #[test]
    fn what_is_told_is_what_was_read_less_what_a_terminal_would_obey() {
        let told = serde_json::to_vec(&program()).unwrap();
        let read: Program = serde_json::from_slice(&told).unwrap();
        assert_eq!(read.layout.fields[&Field::Host].why(), Some("no\u{fffd}[2Jne"));
        let mut want = Layout::clone(&program().layout);
        want.fields.insert(Field::Host, read.layout.fields[&Field::Host].clone());
        assert_eq!(format!("{:?}", read.layout), format!("{want:?}"));
        assert_eq!(read.first_address, 0x40_0000);
        assert_eq!(read.digest_length, program().digest_length);
        assert_eq!(read.breakpoints, program().breakpoints);
        assert_eq!(read.functions, program().functions);
        assert_eq!(read.thread_handling, program().thread_handling);
    }

    #[test]
    fn what_no_program_can_be_is_not_taken() {
        let told = |change: fn(&mut Told)| {
            let mut told = Told::from(program());
            change(&mut told);
            serde_json::from_value::<Program>(serde_json::to_value(told).unwrap())
        };
        assert!(told(|_| {}).is_ok());
        assert!(told(|told| told.fields[3] = Ok((OFFSET_MAX + 1, String::new()))).is_err());
        assert!(told(|told| told.fields[3] = Ok((u32::MAX, String::new()))).is_err());
        assert!(told(|told| told.instruction_text = Some(OFFSET_MAX + 1)).is_err());
        assert!(told(|told| told.fields.truncate(4)).is_err());
        let strange = told(|told| {
            told.functions = Ok(vec![WaitingFunction {
                begin: 16,
                end: 48,
                class: TimeClass::BeforeAttach as u8,
            }]);
        });
        assert!(strange.unwrap().functions.value().is_none());
        let long = told(|told| told.version = "9".repeat(1 << 20)).unwrap();
        assert_eq!(long.layout.version.len(), TEXT_MAX);
    }
}
