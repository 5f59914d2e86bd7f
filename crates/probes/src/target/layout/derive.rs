//! From an ELF file to a layout.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use waggle_model::{Clock, Flavour, Reading};

use super::table::{Derivation, SET_TIME, SLOW_LOG, TABLE};
use super::{ContextStrings, CurrentThd, DiagnosticsCodes, Field, Layout, LockTime, Place};
use super::{slow_log, start};
use crate::target::arch::{self, Term, Trace};
use crate::target::elf::{Elf, ElfError, Machine, SymbolKind};

impl Layout {
    /// Finds every field of a server's build by decoding what the ELF file exports.
    ///
    /// # Errors
    ///
    /// Where the file is not a server, or exports too little to tell which family it is of.
    pub fn derive(elf: &Elf) -> Result<Self, ElfError> {
        let flavour = elf.server_flavour()?;
        let decoder = Decoder { elf, traces: RefCell::default() };
        Ok(Self {
            build: elf.build().clone(),
            flavour,
            version: elf.version().value().cloned().unwrap_or_else(|| "unknown".to_owned()),
            current_thd: decoder.current_thd(),
            fields: Field::ALL.into_iter().map(|field| (field, decoder.field(field))).collect(),
            clock: match flavour {
                Flavour::Mysql => Clock::Wall,
                Flavour::Mariadb => Clock::Monotonic,
            },
            lock_time: decoder.lock_time(),
            context_strings: match flavour {
                Flavour::Mysql => ContextStrings::PointerAndLength,
                Flavour::Mariadb => ContextStrings::ZeroEnded,
            },
            diagnostics: DiagnosticsCodes::of(flavour),
        })
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
        let variable = self.elf.symbol("current_thd").filter(|s| s.kind == SymbolKind::ThreadLocal);
        if let Some(variable) = variable {
            let offset = self.elf.tls().and_then(|tls| {
                arch::thread_local_offset(self.elf.machine(), tls, variable.address)
            });
            return offset.map_or_else(
                || Reading::absent("current_thd is thread-local, but the binary states no storage"),
                |offset| Reading::Value(CurrentThd::ThreadLocal { offset }),
            );
        }
        if let Some(key) = self.elf.symbol("THR_THD") {
            return Reading::Value(CurrentThd::PthreadKey { key_address: key.address });
        }
        let decoded = self.trace("_current_thd").and_then(|trace| {
            let (from, offset, _) = trace.returns().next()?.0.load()?;
            (*from == Term::ThreadPointer).then_some(offset)
        });
        decoded.map_or_else(
            || {
                Reading::absent(
                    "_current_thd does not read a fixed thread-local variable; please report this \
                     build (waggle doctor --json)",
                )
            },
            |offset| Reading::Value(CurrentThd::ThreadLocal { offset }),
        )
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
