//! The functions of a server on which a breakpoint may stand, and where its file has them.

use waggle_model::Reading;

use super::arch::{self, Term};
use super::elf::Elf;

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Runs a statement of a stored program.
    Routine,
    /// Runs a statement that a replica applies.
    Applied,
    /// Decides at the end of a statement whether it was slow.
    SlowLog,
}

impl Function {
    /// All of them.
    pub const ALL: [Function; 3] = [Function::Routine, Function::Applied, Function::SlowLog];

    /// The exported names, of all families and versions.
    fn symbols(self) -> &'static [&'static str] {
        match self {
            // sp_instr_stmt::exec_core(THD *, uint *)
            Function::Routine => &["_ZN13sp_instr_stmt9exec_coreEP3THDPj"],
            // Query_log_event::do_apply_event(info, const char *query, length)
            Function::Applied => &[
                "_ZN15Query_log_event14do_apply_eventEPK14Relay_log_infoPKcm",
                "_ZN15Query_log_event14do_apply_eventEP14rpl_group_infoPKcj",
            ],
            // log_slow_statement(THD *)
            Function::SlowLog => &["_Z18log_slow_statementP3THD"],
        }
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Function::Routine => "sp_instr_stmt::exec_core",
            Function::Applied => "Query_log_event::do_apply_event",
            Function::SlowLog => "log_slow_statement",
        }
    }
}

/// What of a file must be known to set breakpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breakpoints {
    /// Where in the file, in the order of [`Function::ALL`].
    pub(super) places: [Reading<u64>; 3],
    /// Where an instruction of a stored program (`sp_instr_stmt`) keeps the text of its statement: a pointer, and the
    /// length in the eight bytes after it. Where that is not seen, the session's text is taken.
    pub instruction_text: Option<u32>,
}

impl Breakpoints {
    /// Those of a program.
    pub(super) fn of(elf: &Elf) -> Breakpoints {
        let places = Function::ALL.map(|function| place(elf, function));
        Breakpoints { places, instruction_text: instruction_text(elf) }
    }

    /// Those of no program.
    #[cfg(test)]
    pub(crate) fn none() -> Breakpoints {
        let places = Function::ALL.map(|_| Reading::absent("no program"));
        Breakpoints { places, instruction_text: None }
    }

    /// Where in the file a breakpoint on a function stands.
    pub fn at(&self, function: Function) -> &Reading<u64> {
        &self.places[function as usize]
    }
}

/// `endbr64` (Intel SDM, volume 2), with which the functions of a CET build begin.
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

fn place(elf: &Elf, function: Function) -> Reading<u64> {
    let found = function.symbols().iter().find_map(|name| elf.symbol(name));
    let place = found.and_then(|symbol| {
        // The kernel carries out the usual first instruction, `push`, by itself, but `endbr64` by
        // single steps, which cost three times as much. One instruction later the arguments and the
        // stack are as they were.
        let begin = elf.code(symbol.address, ENDBR64.len())?;
        let skip = if begin == ENDBR64 { ENDBR64.len() as u64 } else { 0 };
        elf.code_offset(symbol.address)?.checked_add(skip)
    });
    place.map_or_else(
        || {
            Reading::absent(format!(
                "{} does not export {}; use a build whose symbols for plugins are not stripped",
                elf.name(),
                function.name()
            ))
        },
        Reading::Value,
    )
}

/// `sp_instr_stmt::execute` passes the text, its length and the session to `alloc_query`.
fn instruction_text(elf: &Elf) -> Option<u32> {
    let execute = elf.symbol("_ZN13sp_instr_stmt7executeEP3THDPj")?;
    let trace = arch::trace(elf, execute)?;
    let [instruction, session] = [Term::Argument(0), Term::Argument(1)];
    let mut offsets =
        trace.calls().filter(|arguments| arguments[0] == session).filter_map(|call| {
            let text = call[1].field_of(&instruction, 8)?;
            let length = call[2].field_of(&instruction, 8)?;
            (length == text + 8).then_some(text)
        });
    let first = offsets.next()?;
    offsets.all(|other| other == first).then_some(first)
}
