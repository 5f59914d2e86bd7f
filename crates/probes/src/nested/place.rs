//! The functions of the server on which the probe stands.

use waggle_model::Reading;

use crate::target::arch::{self, Term};
use crate::target::elf::Elf;

/// Which statements a function runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Those of stored programs.
    Routine,
    /// Those that a replica applies.
    Applied,
}

impl Kind {
    pub(super) const ALL: [Kind; 2] = [Kind::Routine, Kind::Applied];

    /// The exported names, of all families and versions.
    fn symbols(self) -> &'static [&'static str] {
        match self {
            // sp_instr_stmt::exec_core(THD *, uint *)
            Kind::Routine => &["_ZN13sp_instr_stmt9exec_coreEP3THDPj"],
            // Query_log_event::do_apply_event(info, const char *query, length)
            Kind::Applied => &[
                "_ZN15Query_log_event14do_apply_eventEPK14Relay_log_infoPKcm",
                "_ZN15Query_log_event14do_apply_eventEP14rpl_group_infoPKcj",
            ],
        }
    }

    /// The name of the function, for people.
    pub(super) fn function(self) -> &'static str {
        match self {
            Kind::Routine => "sp_instr_stmt::exec_core",
            Kind::Applied => "Query_log_event::do_apply_event",
        }
    }

    /// The programs of `mod.bpf.c` at its begin and at its end.
    pub(super) fn programs(self) -> [&'static str; 2] {
        match self {
            Kind::Routine => ["on_routine", "on_routine_end"],
            Kind::Applied => ["on_apply", "on_apply_end"],
        }
    }
}

/// Where a breakpoint is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) symbol: &'static str,
    /// Bytes behind the symbol.
    pub(super) skip: usize,
}

/// `endbr64` (Intel SDM, volume 2), with which the functions of a CET build begin.
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// Where to stand in a build.
pub(super) fn find(elf: &Elf, kind: Kind) -> Reading<Place> {
    let found = kind.symbols().iter().find_map(|name| Some((*name, elf.symbol(name)?)));
    let Some((symbol, at)) = found else {
        return Reading::absent(format!(
            "{} does not export {}; use a build whose symbols for plugins are not stripped",
            elf.name(),
            kind.function()
        ));
    };
    // The kernel carries out the usual first instruction, `push`, by itself, but `endbr64` by
    // single steps, which cost three times as much. One instruction later the arguments and the
    // stack are as they were.
    let begin = elf.code(at.address, ENDBR64.len());
    let skip = if begin.as_deref() == Some(&ENDBR64[..]) { ENDBR64.len() } else { 0 };
    Reading::Value(Place { symbol, skip })
}

/// Where an instruction of a stored program (`sp_instr_stmt`) keeps the text of its statement: a
/// pointer, and the length in the eight bytes behind it. `execute` passes both, with the session,
/// to `alloc_query`. `None` where that is not seen: then the session's text is taken.
pub(super) fn instruction_text(elf: &Elf) -> Option<u32> {
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
