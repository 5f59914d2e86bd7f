//! How the C library of a process keeps the values of its thread keys.

use super::elf::Elf;

/// The numbers behind `pthread_getspecific`, from glibc's own `_thread_db_*` objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PthreadLayout {
    /// Bytes from the thread pointer to the array of pointers to blocks of keys
    /// (`specific` of `struct pthread`).
    pub blocks_offset: u64,
    /// Keys per block.
    pub keys_per_block: u32,
    /// Bytes from one key's slot to the next (`sizeof (struct pthread_key_data)`).
    pub slot_size: u64,
    /// Bytes from the start of a slot to the value.
    pub value_offset: u64,
}

/// The file names of the libraries that may hold the numbers: since glibc 2.34 the C library
/// itself, before that its thread library.
pub const LIBRARIES: [&str; 2] = ["libc.so.6", "libpthread.so.0"];

/// A place in a structure, as glibc describes it to debuggers (`nptl_db/db_info.c`): the width in
/// bits, the number of elements, the offset in bytes.
struct Described {
    bits: u32,
    elements: u32,
    offset: u32,
}

impl PthreadLayout {
    /// Reads the numbers from the C library that a process maps (one of [`LIBRARIES`]).
    ///
    /// # Errors
    ///
    /// In words, if the library does not describe itself or describes something else.
    pub fn read(library: &Elf) -> Result<Self, String> {
        let address = |name: &str| {
            library.symbol(name).map(|symbol| symbol.address).ok_or_else(|| {
                format!(
                    "{} does not export {name}; waggle needs glibc's own C library here (musl keeps \
                     no such description)",
                    library.name()
                )
            })
        };
        let number =
            |at: u64| library.u32_at(at).ok_or_else(|| format!("{} is cut short", library.name()));
        let described = |name: &str| {
            let at = address(name)?;
            Ok::<_, String>(Described {
                bits: number(at)?,
                elements: number(at.saturating_add(4))?,
                offset: number(at.saturating_add(8))?,
            })
        };
        let blocks = described("_thread_db_pthread_specific")?;
        let value = described("_thread_db_pthread_key_data_data")?;
        let slots = described("_thread_db_pthread_key_data_level2_data")?;
        let slot_size = number(address("_thread_db_sizeof_pthread_key_data")?)?;
        let is_plausible = value.bits == 64
            && (8..=4096).contains(&slot_size)
            && value.offset <= slot_size - 8
            && blocks.bits >= 64
            && (1..=4096).contains(&slots.elements);
        if !is_plausible {
            return Err(format!("{} describes its thread keys in an unknown way", library.name()));
        }
        Ok(Self {
            blocks_offset: u64::from(blocks.offset),
            keys_per_block: slots.elements,
            slot_size: u64::from(slot_size),
            value_offset: u64::from(value.offset),
        })
    }
}
