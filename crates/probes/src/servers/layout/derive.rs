//! Derives a layout from an ELF file.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use waggle_model::Reading;

use super::table::{Derivation, SET_TIME, SLOW_LOG, TABLE};
use super::{CurrentThd, Field, Layout, LockTime, Place, slow_log, start};
use crate::servers::arch::{self, Term, Trace};
use crate::servers::elf::{Elf, ElfError, Machine, SymbolKind};

impl Layout {
    /// Finds every field of a server's build by decoding what the ELF file exports.
    ///
    /// # Errors
    ///
    /// If the file is not a server, or exports too little to tell which family it is of.
    pub fn derive(elf: &Elf) -> Result<Self, ElfError> {
        let flavour = elf.server_flavour()?;
        let version = elf.version().value().cloned().unwrap_or_else(|| "unknown".to_owned());
        let decoder = Decoder { elf, traces: RefCell::default() };
        Ok(Self {
            current_thd: decoder.current_thd(),
            fields: Field::ALL.into_iter().map(|field| (field, decoder.field(field))).collect(),
            lock_time: decoder.lock_time(),
            ..Self::of(flavour, elf.build().clone(), version)
        })
    }
}

/// One way to find a field of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The field.
    pub field: Field,
    /// The exported function.
    pub symbol: &'static str,
    /// The pattern that is looked for in it.
    pub shape: &'static str,
    /// What it shows; `None` where the function has no such pattern.
    pub offset: Option<u32>,
}

impl Source {
    /// Every way to a field that begins at a function which this build exports.
    pub fn all(elf: &Elf) -> Vec<Source> {
        let decoder = Decoder { elf, traces: RefCell::default() };
        let of = |derivation: &Derivation| {
            let offset = match decoder.attempt(derivation) {
                Attempt::Found(offset) => Some(offset),
                Attempt::NotUnderstood => None,
                Attempt::NotExported => return None,
            };
            let Derivation { field, symbol, shape, .. } = *derivation;
            Some(Source { field, symbol, shape, offset })
        };
        TABLE.iter().filter_map(of).collect()
    }

    /// Whether another way shares neither function nor pattern with this one.
    pub fn is_independent_of(&self, other: &Source) -> bool {
        self.symbol != other.symbol && self.shape != other.shape
    }
}

/// The traces of the functions that were decoded, each once.
struct Decoder<'a> {
    elf: &'a Elf,
    traces: RefCell<HashMap<&'static str, Option<Rc<Trace>>>>,
}

/// What one derivation gave.
enum Attempt {
    Found(u32),
    NotExported,
    NotUnderstood,
}

impl Decoder<'_> {
    fn trace(&self, symbol: &'static str) -> Option<Rc<Trace>> {
        if let Some(known) = self.traces.borrow().get(symbol) {
            return known.clone();
        }
        let function = self.elf.symbol(symbol).filter(|found| found.kind == SymbolKind::Function);
        let trace = function.and_then(|found| arch::trace(self.elf, found)).map(Rc::new);
        self.traces.borrow_mut().insert(symbol, trace.clone());
        trace
    }

    fn attempt(&self, derivation: &Derivation) -> Attempt {
        let Some(trace) = self.trace(derivation.symbol) else {
            let is_exported = self.elf.symbol(derivation.symbol).is_some();
            return if is_exported { Attempt::NotUnderstood } else { Attempt::NotExported };
        };
        let offsets = (derivation.find)(&trace);
        match offsets.first() {
            Some(offset) if offsets.len() == 1 => Attempt::Found(*offset),
            _ => Attempt::NotUnderstood,
        }
    }

    fn field(&self, field: Field) -> Reading<Place> {
        if let Machine::Other(number) = self.elf.machine() {
            return Reading::absent(format!(
                "waggle decodes x86-64 code only, and this program is for machine {number} (e_machine)"
            ));
        }
        let attempts: Vec<_> = TABLE
            .iter()
            .filter(|derivation| derivation.field == field)
            .map(|derivation| (derivation.symbol, self.attempt(derivation)))
            .collect();
        agree(&attempts)
    }

    fn current_thd(&self) -> Reading<CurrentThd> {
        let found: Vec<_> = self.thread_locals().into_iter().flatten().collect();
        if let Some((first, others)) = found.split_first() {
            if let Some(other) = others.iter().find(|other| other.1 != first.1) {
                return Reading::absent(format!(
                    "{} shows the session at {:#x} from the thread pointer, but {} at {:#x}; please \
                     report this build (waggle doctor --json)",
                    first.0, first.1, other.0, other.1
                ));
            }
            return Reading::Value(CurrentThd::ThreadLocal { offset: first.1 });
        }
        if let Some(key) = self.elf.symbol("THR_THD") {
            return Reading::Value(CurrentThd::PthreadKey { key_address: key.address });
        }
        Reading::absent(
            "neither current_thd nor _current_thd nor set_current_thd shows a fixed thread-local \
             variable; please report this build (waggle doctor --json)",
        )
    }

    /// What shows the thread-local variable of the session, and its distance from the thread pointer.
    fn thread_locals(&self) -> [Option<(&'static str, i64)>; 3] {
        const SETTER: &str = "_Z15set_current_thdP3THD";
        let variable = self.elf.symbol("current_thd").filter(|s| s.kind == SymbolKind::ThreadLocal);
        let stated = variable.and_then(|variable| {
            let tls = self.elf.tls()?;
            let offset = arch::thread_local_offset(self.elf.machine(), tls, variable.address)?;
            Some(("current_thd", offset))
        });
        let returned = self.trace("_current_thd").and_then(|trace| {
            let (from, offset, _) = trace.returns().next()?.0.load()?;
            (*from == Term::ThreadPointer).then_some(("_current_thd", offset))
        });
        let set = self.trace(SETTER).and_then(|trace| {
            let mut stores = trace.stores().filter(|(to, _, width, value)| {
                **to == Term::ThreadPointer && *width == 8 && **value == Term::Argument(0)
            });
            Some((SETTER, stores.next()?.1))
        });
        [stated, returned, set]
    }

    /// What the lock field holds, by what the server does with it: the slow log subtracts the
    /// start from a time, and a new statement sets a duration to zero but a time to its start.
    fn lock_time(&self) -> Reading<LockTime> {
        let shows = |symbols: &[&'static str], find: fn(&Trace) -> super::shape::Offsets| {
            symbols.iter().any(|symbol| self.trace(symbol).is_some_and(|t| !find(&t).is_empty()))
        };
        let until = shows(&SLOW_LOG, slow_log::lock) || shows(&SET_TIME, start::start_set_twice);
        let duration = shows(&SET_TIME, start::start_set_beside_zero);
        match (until, duration) {
            (true, false) => Reading::Value(LockTime::Until),
            (false, true) => Reading::Value(LockTime::Duration),
            (true, true) => Reading::absent("the slow log and THD::set_time disagree about it"),
            (false, false) => Reading::absent(
                "neither the slow log nor THD::set_time shows whether it is a time or a duration",
            ),
        }
    }
}

/// One place from all attempts: the first that was found, if no other contradicts it.
fn agree(attempts: &[(&'static str, Attempt)]) -> Reading<Place> {
    let mut found = attempts.iter().filter_map(|(symbol, attempt)| match attempt {
        Attempt::Found(offset) => Some((*symbol, *offset)),
        _ => None,
    });
    let Some((symbol, offset)) = found.next() else { return Reading::Absent(missing(attempts)) };
    let mut how = format!("decoded {symbol}");
    for (other, theirs) in found {
        if theirs != offset {
            return Reading::absent(format!(
                "{symbol} shows it at {offset:#x}, but {other} at {theirs:#x}; please report this \
                 build (waggle doctor --json)"
            ));
        }
        how.push_str(", ");
        how.push_str(other);
    }
    Reading::Value(Place { offset, how })
}

fn missing(attempts: &[(&'static str, Attempt)]) -> String {
    let named = |wanted: fn(&Attempt) -> bool| {
        let names = attempts.iter().filter(|(_, attempt)| wanted(attempt)).map(|(name, _)| *name);
        names.collect::<Vec<_>>().join(", ")
    };
    let unclear = named(|attempt| matches!(attempt, Attempt::NotUnderstood));
    if unclear.is_empty() {
        let absent = named(|attempt| matches!(attempt, Attempt::NotExported));
        format!(
            "the binary exports none of {absent}; use the vendor's binary, not one whose dynamic \
             symbols were removed"
        )
    } else {
        format!(
            "{unclear} is exported, but its code is not of a known shape; please report this build \
             (waggle doctor --json)"
        )
    }
}
