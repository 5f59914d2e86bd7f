//! `max_digest_length` of a running server: a variable of the process that no session changes.
//!
//! All known builds export the variable itself, and MySQL a function that returns it, in 8.0 and later
//! without a detour. The two are found without each other; where both are there, they must agree.

use waggle_model::Reading;

use super::arch::{self, Term};
use super::elf::{Elf, SymbolKind};
use super::{Instance, MemoryError, Place, ProcessMemory};

/// `ulong max_digest_length`, in every family.
const VARIABLE: &str = "max_digest_length";
/// `ulong get_max_digest_length()` (`sql/sql_digest.cc` of MySQL).
const FUNCTION: &str = "_Z21get_max_digest_lengthv";
/// No server takes more (`sql/sys_vars.cc`).
pub(super) const LONGEST: u64 = 1 << 20;

/// Where one process keeps its `max_digest_length`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestLength {
    /// In the memory of the process.
    place: Reading<Place>,
}

impl DigestLength {
    /// The variable of a process, by its address in the program.
    pub(super) fn of(address: &Reading<u64>, instance: &Instance) -> Self {
        Self { place: address.as_ref().map(|address| place(*address, instance.load_bias)) }
    }

    /// The value now: a server that starts has not read its options yet.
    pub fn read(&self, pid: u32) -> Reading<u64> {
        self.place.as_ref().and_then(|place| value(ProcessMemory::of(pid).read_one(*place)))
    }
}

/// Where a process has the variable, by its address in the program.
pub(super) fn place(address: u64, load_bias: u64) -> Place {
    Place::new(load_bias.wrapping_add(address), 8)
}

/// The value that was read, or why it is none.
pub(super) fn value(read: Result<Option<Vec<u8>>, MemoryError>) -> Result<u64, String> {
    let bytes = read.map_err(|error| error.to_string())?;
    let value = bytes
        .and_then(|bytes| bytes.try_into().ok())
        .map(u64::from_ne_bytes)
        .ok_or_else(|| format!("{VARIABLE} is not mapped"))?;
    let is_one = value <= LONGEST;
    is_one
        .then_some(value)
        .ok_or_else(|| format!("{VARIABLE} holds {value}, which is more than any server takes"))
}

/// The address of the variable as the file states it: as it is exported, and as the function reads it.
pub fn addresses(elf: &Elf) -> [Option<u64>; 2] {
    let variable = elf.symbol(VARIABLE).filter(|found| found.kind == SymbolKind::Object);
    [variable.map(|found| found.address), returned(elf)]
}

/// The one address in the file, or why there is none.
pub(super) fn address(elf: &Elf) -> Reading<u64> {
    match addresses(elf) {
        [Some(exported), Some(returned)] if exported != returned => {
            Reading::absent(format!("{VARIABLE} is not what {FUNCTION} returns"))
        }
        [Some(address), _] | [None, Some(address)] => Reading::Value(address),
        [None, None] => Reading::absent(format!("this build exports no {VARIABLE}")),
    }
}

/// The address of what the function returns.
fn returned(elf: &Elf) -> Option<u64> {
    let function = elf.symbol(FUNCTION).filter(|found| found.kind == SymbolKind::Function)?;
    let trace = arch::trace(elf, function)?;
    let mut returns = trace.returns().map(|(first, _)| first.load());
    let (from, distance, width) = returns.next()??;
    let is_only = returns.next().is_none() && width == 8;
    let address = match from {
        Term::Constant(base) => base.wrapping_add_signed(distance),
        _ => return None,
    };
    is_only.then_some(address)
}
