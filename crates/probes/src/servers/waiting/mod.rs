//! What tells why a thread of a server waits: which functions of the server wait for what, and how the C library's frames are
//! left, so that a wait in it is known by its caller.

mod functions;
mod library;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use waggle_model::{Reading, TimeClass};

pub(super) use functions::functions_of;
pub use library::library_at;
pub(super) use library::library_of;
#[cfg(test)]
pub(super) use library::read as library_in;

/// A function of a server that says what its callers wait for, by addresses as the file has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingFunction {
    /// Its first byte.
    pub begin: u32,
    /// Behind its last one.
    pub end: u32,
    /// The number of its [`TimeClass`](waggle_model::TimeClass).
    pub class: u8,
}

/// From an address of the C library on, as its file has it: how the caller is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32)", into = "(u32, u32)")]
pub struct UnwindRow {
    /// The address.
    pub begin: u32,
    /// Bytes to the stack pointer of the caller; its return address stands right below. 0: not known.
    pub offset: u16,
    /// Words from there down to the saved frame pointer; 0: it is not touched.
    pub saved: u8,
    /// Whether the offset counts from the frame pointer.
    pub from_frame_pointer: bool,
    /// Whether the function waits for a condition.
    pub is_condition: bool,
}

/// `RULE_…` of the kernel's half: where in the second word of a row.
const SAVED_SHIFT: u32 = 16;
const FROM_FRAME_POINTER: u32 = 1 << 24;
const IS_CONDITION: u32 = 1 << 25;
const IS_KNOWN: u32 = 1 << 26;

impl UnwindRow {
    /// All but the address in one word, as it is told and as the kernel's half reads it; 0: not known.
    pub(crate) fn rule(self) -> u32 {
        let flag = |is: bool, bit| if is { bit } else { 0 };
        u32::from(self.offset)
            | u32::from(self.saved) << SAVED_SHIFT
            | flag(self.from_frame_pointer, FROM_FRAME_POINTER)
            | flag(self.is_condition, IS_CONDITION)
            | flag(self.offset > 0, IS_KNOWN)
    }
}

impl From<UnwindRow> for (u32, u32) {
    fn from(row: UnwindRow) -> (u32, u32) {
        (row.begin, row.rule())
    }
}

impl From<(u32, u32)> for UnwindRow {
    fn from((begin, rule): (u32, u32)) -> UnwindRow {
        UnwindRow {
            begin,
            offset: rule as u16,
            saved: (rule >> SAVED_SHIFT) as u8,
            from_frame_pointer: rule & FROM_FRAME_POINTER != 0,
            is_condition: rule & IS_CONDITION != 0,
        }
    }
}

/// The C library of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Library {
    /// Where its first byte is in the process.
    pub base: u64,
    /// Bytes in memory.
    pub bytes: u32,
    /// Sorted.
    #[serde(with = "shared")]
    pub rows: Arc<Vec<UnwindRow>>,
}

/// A list that several own, as it is told.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::UnwindRow;

    pub(super) fn serialize<S: Serializer>(
        rows: &Arc<Vec<UnwindRow>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        rows.as_slice().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Arc<Vec<UnwindRow>>, D::Error> {
        Vec::deserialize(from).map(Arc::new)
    }
}

/// What is known of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The functions of its program, sorted.
    pub functions: Reading<Arc<Vec<WaitingFunction>>>,
    /// Its C library.
    pub library: Reading<Library>,
    /// Whether a pool of threads serves its sessions: then a statement need not have a thread.
    pub is_pooled: bool,
}

impl Waiting {
    /// What is known where nobody looked.
    #[cfg(test)]
    pub(crate) fn none() -> Waiting {
        Waiting {
            functions: Reading::absent("no program"),
            library: Reading::absent("no process"),
            is_pooled: false,
        }
    }
}

/// Most functions that are kept of a program.
pub(super) const FUNCTIONS_MAX: usize = 8000;
/// Most rows that are kept of a library; one of glibc has 24,000.
pub(super) const ROWS_MAX: usize = 60_000;

/// Functions as another process tells them, where they can be used.
pub(super) fn trusted_functions(
    told: Result<Vec<WaitingFunction>, String>,
) -> Result<Arc<Vec<WaitingFunction>>, String> {
    let functions = told?;
    let is_fine = functions.len() <= FUNCTIONS_MAX
        && functions.is_sorted_by_key(|function| function.begin)
        && functions.iter().all(|function| function.class < TimeClass::BeforeAttach as u8);
    if is_fine { Ok(Arc::new(functions)) } else { Err("its functions overlap".to_owned()) }
}

/// The same for a library.
pub(super) fn trusted_library(told: Result<Library, String>) -> Result<Library, String> {
    let library = told?;
    let is_fine = library.rows.len() <= ROWS_MAX && library.rows.is_sorted_by_key(|row| row.begin);
    if is_fine { Ok(library) } else { Err("its rows overlap".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_told_as_it_is() {
        let row = UnwindRow {
            begin: 7,
            offset: 208,
            saved: 6,
            from_frame_pointer: true,
            is_condition: true,
        };
        assert_eq!(UnwindRow::from(<(u32, u32)>::from(row)), row);
        let unknown = UnwindRow { offset: 0, saved: 0, from_frame_pointer: false, ..row };
        assert_eq!(UnwindRow { is_condition: false, ..unknown }.rule(), 0);
    }
}
