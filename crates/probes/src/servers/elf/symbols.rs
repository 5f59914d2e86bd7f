//! The dynamic symbol table, read entry by entry through its hash table.
//!
//! Formats: `elf(5)`, System V ABI chapter 5 (`DT_HASH`), and for `DT_GNU_HASH` the description in
//! the GNU binutils sources (`bfd/elflink.c`).

use std::ffi::CStr;

use object::elf::{self, Dyn64, Sym64};
use object::{LittleEndian, pod};
use waggle_model::Reading;

use super::{Elf, ProgramHeaders, of_type};

/// What a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// A function.
    Function,
    /// A variable.
    Object,
    /// A thread-local variable; its address is an offset into the thread-local template.
    ThreadLocal,
    /// Anything else.
    Other,
}

/// An exported symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Address as the file states it, without load bias.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// What it names.
    pub kind: SymbolKind,
}

/// Where the dynamic section says that the symbols are.
#[derive(Clone, Copy, Debug)]
pub(super) struct SymbolTable {
    symbols: u64,
    strings: u64,
    hash: Hash,
}

#[derive(Clone, Copy, Debug)]
enum Hash {
    Gnu { buckets: u64, bucket_count: u32, first: u32 },
    SystemV { buckets: u64, bucket_count: u32, symbol_count: u32 },
}

const SYMBOL_SIZE: u64 = size_of::<Sym64<LittleEndian>>() as u64;
/// No chain of a real hash table is nearly as long; a longer one is damage.
const CHAIN_MAX: u32 = 10_000;
/// The largest server has 81,000 dynamic symbols.
const SYMBOLS_MAX: u32 = 4_000_000;
/// Bytes that are read at once.
const PIECE: u64 = 2048 * SYMBOL_SIZE;
/// Bytes of all names that are read, and of the last of them; the largest server has 6 MiB.
const NAMES_MAX: u32 = 64 << 20;
const NAME_MAX: usize = 4096;

impl SymbolTable {
    pub(super) fn find(elf: &Elf, program: &ProgramHeaders) -> Reading<Self> {
        let Some(dynamic) = of_type(program, elf::PT_DYNAMIC).next() else {
            return Reading::absent("the binary is statically linked and exports no symbols");
        };
        let size = dynamic.p_filesz.get(LittleEndian).min(1 << 16) as usize;
        let bytes = elf.bytes(dynamic.p_vaddr.get(LittleEndian), size).unwrap_or_default();
        let count = bytes.len() / size_of::<Dyn64<LittleEndian>>();
        let entries = pod::slice_from_bytes::<Dyn64<LittleEndian>>(&bytes, count)
            .map_or(&[][..], |(entries, _)| entries);
        let value = |tag| {
            let entry = entries.iter().find(|entry| entry.d_tag.get(LittleEndian) == tag)?;
            Some(entry.d_val.get(LittleEndian))
        };
        let found = || {
            let symbols = value(elf::DT_SYMTAB)?;
            let strings = value(elf::DT_STRTAB)?;
            let hash = value(elf::DT_GNU_HASH)
                .and_then(|at| Hash::gnu(elf, at))
                .or_else(|| value(elf::DT_HASH).and_then(|at| Hash::system_v(elf, at)))?;
            Some(Self { symbols, strings, hash })
        };
        found().map_or_else(
            || Reading::absent("the binary has no table of dynamic symbols"),
            Reading::Value,
        )
    }

    pub(super) fn lookup(&self, elf: &Elf, name: &str) -> Option<Symbol> {
        let index = match self.hash {
            Hash::Gnu { buckets, bucket_count, first } => {
                let hash = gnu_hash(name);
                let mut index = elf.u32_at(entry(buckets, hash % bucket_count)?)?;
                let chains = entry(buckets, bucket_count)?;
                (0..CHAIN_MAX).find_map(|_| {
                    let link =
                        index.checked_sub(first).and_then(|at| elf.u32_at(entry(chains, at)?));
                    let Some(link) = link else { return Some(None) };
                    if link | 1 == hash | 1 && self.is_named(elf, index, name) {
                        return Some(Some(index));
                    }
                    index = index.saturating_add(1);
                    (link & 1 == 1).then_some(None)
                })?
            }
            Hash::SystemV { buckets, bucket_count, .. } => {
                let mut index = elf.u32_at(entry(buckets, system_v_hash(name) % bucket_count)?)?;
                let chains = entry(buckets, bucket_count)?;
                (0..CHAIN_MAX).find_map(|_| {
                    if index == 0 || self.is_named(elf, index, name) {
                        return Some((index != 0).then_some(index));
                    }
                    index = entry(chains, index).and_then(|at| elf.u32_at(at)).unwrap_or(0);
                    None
                })?
            }
        }?;
        self.symbol(elf, index)
    }

    fn raw(&self, elf: &Elf, index: u32) -> Option<[u8; SYMBOL_SIZE as usize]> {
        elf.array(self.symbols.checked_add(u64::from(index) * SYMBOL_SIZE)?)
    }

    /// Hands out the name of every symbol that the file defines.
    pub(super) fn for_each_symbol(&self, elf: &Elf, mut take: impl FnMut(&[u8], Symbol)) {
        let Some(names) = self.names(elf) else { return };
        self.for_each_piece(elf, |piece| {
            for raw in piece.chunks_exact(SYMBOL_SIZE as usize) {
                let Ok((symbol, _)) = pod::from_bytes::<Sym64<LittleEndian>>(raw) else { return };
                let name = names.get(symbol.st_name.get(LittleEndian) as usize..);
                let name = name.and_then(|name| CStr::from_bytes_until_nul(name).ok());
                if let (Some(name), Some(symbol)) = (name, defined(symbol)) {
                    take(name.to_bytes(), symbol);
                }
            }
        });
    }

    /// The texts of all names.
    fn names(&self, elf: &Elf) -> Option<Vec<u8>> {
        let mut end = 0;
        self.for_each_piece(elf, |piece| {
            for raw in piece.chunks_exact(SYMBOL_SIZE as usize) {
                if let Ok((symbol, _)) = pod::from_bytes::<Sym64<LittleEndian>>(raw) {
                    end = end.max(symbol.st_name.get(LittleEndian));
                }
            }
        });
        elf.bytes(self.strings, (end.min(NAMES_MAX) as usize).checked_add(NAME_MAX)?)
    }

    fn is_named(&self, elf: &Elf, index: u32, name: &str) -> bool {
        let matches = || {
            let raw = self.raw(elf, index)?;
            let (symbol, _) = pod::from_bytes::<Sym64<LittleEndian>>(&raw).ok()?;
            let at = self.strings.checked_add(u64::from(symbol.st_name.get(LittleEndian)))?;
            let text = elf.bytes(at, name.len() + 1)?;
            Some(text.strip_suffix(&[0])? == name.as_bytes())
        };
        matches().unwrap_or(false)
    }

    fn symbol(&self, elf: &Elf, index: u32) -> Option<Symbol> {
        let raw = self.raw(elf, index)?;
        defined(pod::from_bytes::<Sym64<LittleEndian>>(&raw).ok()?.0)
    }

    /// The bytes of the whole table, piece by piece: each has whole symbols.
    pub(super) fn for_each_piece(&self, elf: &Elf, mut take: impl FnMut(&[u8])) {
        let mut at = self.symbols;
        let mut left = u64::from(self.hash.symbol_count(elf).unwrap_or(0)) * SYMBOL_SIZE;
        while left > 0 {
            let piece = elf.bytes(at, left.min(PIECE) as usize).unwrap_or_default();
            if piece.is_empty() {
                return;
            }
            take(&piece);
            // Behind the last address there is nothing.
            let Some(next) = at.checked_add(piece.len() as u64) else { return };
            at = next;
            left = left.saturating_sub(piece.len() as u64);
        }
    }
}

/// A symbol that the file defines.
fn defined(symbol: &Sym64<LittleEndian>) -> Option<Symbol> {
    if symbol.st_shndx.get(LittleEndian) == elf::SHN_UNDEF {
        return None;
    }
    Some(Symbol {
        address: symbol.st_value.get(LittleEndian),
        size: symbol.st_size.get(LittleEndian),
        kind: match symbol.st_info.st_type() {
            elf::STT_FUNC => SymbolKind::Function,
            elf::STT_OBJECT => SymbolKind::Object,
            elf::STT_TLS => SymbolKind::ThreadLocal,
            _ => SymbolKind::Other,
        },
    })
}

impl Hash {
    fn gnu(elf: &Elf, at: u64) -> Option<Self> {
        let bucket_count = elf.u32_at(at)?;
        let first = elf.u32_at(at.checked_add(4)?)?;
        let bloom_words = elf.u32_at(at.checked_add(8)?)?;
        let buckets = at.checked_add(16 + u64::from(bloom_words) * 8)?;
        (bucket_count > 0).then_some(Hash::Gnu { buckets, bucket_count, first })
    }

    fn system_v(elf: &Elf, at: u64) -> Option<Self> {
        let bucket_count = elf.u32_at(at)?;
        let symbol_count = elf.u32_at(at.checked_add(4)?)?;
        let buckets = at.checked_add(8)?;
        (bucket_count > 0).then_some(Hash::SystemV { buckets, bucket_count, symbol_count })
    }

    fn symbol_count(&self, elf: &Elf) -> Option<u32> {
        let count = match *self {
            Hash::SystemV { symbol_count, .. } => symbol_count,
            Hash::Gnu { buckets, bucket_count, first } => {
                let all = elf.bytes(buckets, (bucket_count.min(SYMBOLS_MAX) as usize) * 4)?;
                let starts =
                    all.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                let mut last = starts.max()?;
                let chains = entry(buckets, bucket_count)?;
                // The last chain ends where a link has its lowest bit set.
                for _ in 0..CHAIN_MAX {
                    if elf.u32_at(entry(chains, last.checked_sub(first)?)?)? & 1 == 1 {
                        break;
                    }
                    last = last.checked_add(1)?;
                }
                last.checked_add(1)?
            }
        };
        Some(count.min(SYMBOLS_MAX))
    }
}

fn entry(table: u64, index: u32) -> Option<u64> {
    table.checked_add(u64::from(index) * 4)
}

fn gnu_hash(name: &str) -> u32 {
    name.bytes().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)))
}

fn system_v_hash(name: &str) -> u32 {
    name.bytes().fold(0, |hash: u32, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(byte));
        (hash ^ ((hash >> 24) & 0xf0)) & 0x0fff_ffff
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hashes_are_those_of_the_abi() {
        // "printf" in both hash functions, from the ABI's and glibc's own examples.
        assert_eq!(gnu_hash("printf"), 0x156b_2bb8);
        assert_eq!(gnu_hash(""), 5381);
        assert_eq!(system_v_hash("printf"), 0x0779_05a6);
    }
}
