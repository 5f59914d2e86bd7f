//! Small programs that hold parts of real servers, for the fuzzing tests: what a layout is derived from, and no more.

mod frames;
mod sections;

use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use waggle_testkit::Version;

use super::Layout;
use super::table::TABLE;
use crate::servers::elf::{Elf, SymbolKind};

/// What is read of a server beside the functions of the table.
const OTHERS: [&str; 8] = [
    "thd_get_thread_id",
    "_current_thd",
    "current_thd",
    "THR_THD",
    "_Z15set_current_thdP3THD",
    "max_digest_length",
    "_Z21get_max_digest_lengthv",
    "_Z18set_server_versionPcm",
];
/// Bytes of a function that are taken where the server states no length.
const UNSIZED: u64 = 256;
/// Where the headers and tables of a program are loaded: no server has code there.
const TABLES_AT: u64 = 0x7000_0000_0000;

/// Where those of a library are loaded: near its code, so that distances to it have four bytes, and so do addresses.
const LIBRARY_TABLES_AT: u64 = 0x10_0000;

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const BUCKETS: usize = 8;
const STT_OBJECT: u8 = 1;
const STT_FUNC: u8 = 2;
const STT_TLS: u8 = 6;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_NOTE: u32 = 4;
const PT_TLS: u32 = 7;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;

/// A symbol and the code that it names.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    kind: u8,
    address: u64,
    /// Empty where it is a variable.
    pub(crate) code: Vec<u8>,
}

impl Part {
    pub(crate) fn function(name: &'static str, address: u64, code: Vec<u8>) -> Part {
        Part { name, kind: STT_FUNC, address, code }
    }

    pub(crate) fn is_function(&self) -> bool {
        self.kind == STT_FUNC
    }
}

/// Which hash table finds the symbols.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hash {
    Gnu,
    SystemV,
}

/// The parts of each real server.
pub(crate) fn servers() -> &'static [Vec<Part>] {
    static SERVERS: OnceLock<Vec<Vec<Part>>> = OnceLock::new();
    SERVERS.get_or_init(|| {
        let of = |version| parts(&waggle_testkit::program(version).unwrap());
        Version::BUILDS.into_iter().map(of).collect()
    })
}

/// The layout of each real server, derived from its parts.
pub(crate) fn layouts() -> &'static [Layout] {
    static LAYOUTS: OnceLock<Vec<Layout>> = OnceLock::new();
    LAYOUTS.get_or_init(|| {
        let derive = |parts: &Vec<Part>| {
            let program = program(parts, Hash::Gnu);
            Layout::derive(&Elf::from_bytes("parts of a server", program).unwrap()).unwrap()
        };
        servers().iter().map(derive).collect()
    })
}

fn parts(server: &Path) -> Vec<Part> {
    let elf = Elf::open(server).unwrap();
    let mut names: Vec<&'static str> = TABLE.iter().map(|derivation| derivation.symbol).collect();
    names.extend(OTHERS);
    names.sort_unstable();
    names.dedup();
    let part = |name: &'static str| {
        let symbol = elf.symbol(name)?;
        let size = if symbol.size == 0 { UNSIZED } else { symbol.size };
        let code = |is: bool| if is { elf.code(symbol.address, size as usize) } else { None };
        let (kind, is_function) = match symbol.kind {
            SymbolKind::Function => (STT_FUNC, true),
            SymbolKind::ThreadLocal => (STT_TLS, false),
            SymbolKind::Object | SymbolKind::Other => (STT_OBJECT, false),
        };
        let code = code(is_function).unwrap_or_default();
        Some(Part { name, kind, address: symbol.address, code })
    };
    names.into_iter().filter_map(part).collect()
}

/// A program of these parts: each function is a segment of its own, at the address that it has in the server.
pub(crate) fn program(parts: &[Part], hash: Hash) -> Vec<u8> {
    file(parts, hash, TABLES_AT, &[]).bytes
}

/// A library of these parts, which lie below 1 MiB. `described` says of its functions in turn how their frames are left:
/// instructions of DWARF.
pub(crate) fn library(parts: &[Part], described: &[&[u8]]) -> Crafted {
    file(parts, Hash::Gnu, LIBRARY_TABLES_AT, described)
}

/// A file, and where its frames are described.
#[derive(Clone, Debug)]
pub(crate) struct Crafted {
    pub(crate) bytes: Vec<u8>,
    pub(crate) frames: Range<usize>,
}

fn file(parts: &[Part], hash: Hash, tables_at: u64, described: &[&[u8]]) -> Crafted {
    let mut parts: Vec<&Part> = parts.iter().collect();
    // Symbols of one bucket stand one after the other.
    parts.sort_by_key(|part| gnu_hash(part.name) as usize % BUCKETS);
    let functions: Vec<&Part> = parts.iter().copied().filter(|part| part.is_function()).collect();
    let headers = functions.len() + 5;
    let mut tables = Tables { bytes: vec![0; HEADER + PROGRAM_HEADER * headers], at: tables_at };

    let (symbols, strings) = names(&parts);
    let symbols_at = tables.add(&symbols);
    let strings_at = tables.add(&strings);
    let (tag, table) = match hash {
        Hash::Gnu => (0x6fff_fef5, gnu_table(&parts)),
        Hash::SystemV => (4, system_v_table(&parts)),
    };
    let hash_at = tables.add(&words(&table));
    let note_at = tables.add(b"\x04\0\0\0\x08\0\0\0\x03\0\0\0GNU\0buildid!");
    let entries = [(6, symbols_at), (5, strings_at), (tag, hash_at), (0, 0)];
    let dynamic: Vec<u8> =
        entries.iter().flat_map(|(tag, at)| [*tag, *at]).flat_map(u64::to_le_bytes).collect();
    let dynamic_at = tables.add(&dynamic);
    let frames_from = tables.bytes.len();
    let frames_at = frames::add(&mut tables, &functions, described);
    let frames = frames_from..tables.bytes.len();

    let at = |address: u64| address.saturating_sub(tables_at);
    let symbols = (at(symbols_at), symbols.len() as u64);
    let sections =
        sections::add(&mut tables.bytes, symbols, (at(strings_at), strings.len() as u64));
    let mut file = tables.bytes;
    let size = file.len() as u64;
    let mut program_headers = vec![
        (PT_LOAD, 4, 0, tables_at, size, size),
        (PT_DYNAMIC, 6, at(dynamic_at), dynamic_at, dynamic.len() as u64, 0),
        (PT_NOTE, 4, at(note_at), note_at, 24, 4),
        (PT_TLS, 4, 0, 0, 0, 0x220),
        // One of no type where nothing is described.
        (frames_at.map_or(0, |_| PT_GNU_EH_FRAME), 4, 0, frames_at.unwrap_or(0), 0, 0),
    ];
    for function in functions {
        let (at, length) = (file.len() as u64, function.code.len() as u64);
        program_headers.push((PT_LOAD, 5, at, function.address, length, length));
        file.extend(&function.code);
    }
    let magic = *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0";
    file[..magic.len()].copy_from_slice(&magic);
    file[32] = HEADER as u8;
    file[52..58].copy_from_slice(&[64, 0, PROGRAM_HEADER as u8, 0, headers as u8, 0]);
    sections.write(&mut file);
    let places = file[HEADER..].chunks_exact_mut(PROGRAM_HEADER);
    for (place, (kind, flags, offset, address, in_file, in_memory)) in places.zip(program_headers) {
        let numbers = [offset, address, address, in_file, in_memory, 16];
        let bytes = words(&[kind, flags]).into_iter();
        let bytes: Vec<u8> = bytes.chain(numbers.into_iter().flat_map(u64::to_le_bytes)).collect();
        place.copy_from_slice(&bytes);
    }
    Crafted { bytes: file, frames }
}

/// The symbols of parts, and the texts of their names.
fn names(parts: &[&Part]) -> (Vec<u8>, Vec<u8>) {
    let (mut symbols, mut strings) = (vec![0; 24], vec![0]);
    for part in parts {
        symbols.extend((strings.len() as u32).to_le_bytes());
        symbols.extend([0x10 | part.kind, 0, 1, 0]);
        symbols.extend(part.address.to_le_bytes());
        symbols.extend((part.code.len() as u64).to_le_bytes());
        strings.extend(part.name.as_bytes());
        strings.push(0);
    }
    strings.extend(b"MySQL 8.0.12\0");
    (symbols, strings)
}

/// The part of a program that is loaded at one address: its headers and tables.
struct Tables {
    bytes: Vec<u8>,
    at: u64,
}

impl Tables {
    /// The address of the next table.
    fn next(&self) -> u64 {
        self.at + self.bytes.len().next_multiple_of(8) as u64
    }

    /// Adds a table, and returns its address.
    fn add(&mut self, table: &[u8]) -> u64 {
        let at = self.next();
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.bytes.extend(table);
        at
    }
}

/// `DT_GNU_HASH` of parts that stand in the order of their buckets, behind one symbol without a name.
fn gnu_table(parts: &[&Part]) -> Vec<u32> {
    let hashes: Vec<u32> = parts.iter().map(|part| gnu_hash(part.name)).collect();
    let mut table = vec![BUCKETS as u32, 1, 1, 0, u32::MAX, u32::MAX];
    let bucket = |hash: &u32| *hash as usize % BUCKETS;
    table.extend((0..BUCKETS).map(|wanted| {
        hashes.iter().position(|hash| bucket(hash) == wanted).map_or(0, |at| at as u32 + 1)
    }));
    for (at, hash) in hashes.iter().enumerate() {
        let is_last = hashes.get(at + 1).is_none_or(|next| bucket(next) != bucket(hash));
        table.push(hash & !1 | u32::from(is_last));
    }
    table
}

/// `DT_HASH` of the same, in one bucket.
fn system_v_table(parts: &[&Part]) -> Vec<u32> {
    let count = parts.len() as u32;
    let chain = (2..=count).chain([0]);
    [1, count + 1, 1, 0].into_iter().chain(chain).collect()
}

fn gnu_hash(name: &str) -> u32 {
    name.bytes().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(byte.into()))
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn a_program_of_parts_shows_nearly_every_field_of_its_server() {
    for layout in layouts() {
        let found = layout.fields.values().filter(|place| place.value().is_some()).count();
        assert!(found + 3 >= layout.fields.len(), "{layout:?}");
        assert!(layout.current_thd.value().is_some(), "{layout:?}");
    }
    let first = &servers()[0];
    let elf = Elf::from_bytes("parts", program(first, Hash::SystemV)).unwrap();
    let is_there =
        |part: &Part| elf.symbol(part.name).map(|symbol| symbol.address) == Some(part.address);
    assert!(first.iter().all(is_there));
}
