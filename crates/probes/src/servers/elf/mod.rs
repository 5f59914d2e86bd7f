//! The parts of a server's ELF file, or its C library's, that waggle needs.
//!
//! waggle maps nothing and keeps nothing large. It reads the headers once, finds symbols through
//! the hash table of the dynamic section, and reads code only to decode it. So a file with hundreds
//! of megabytes of debug information costs a few kilobytes. It never uses section headers, because
//! a stripped file need not have them. It trusts no number in the file.

mod functions;
#[cfg(test)]
mod fuzz;
mod identity;
mod symbols;
mod unwind;

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use object::elf::{self, FileHeader64, ProgramHeader64};
use object::{LittleEndian, pod};
use rustix::fs::OFlags;
use waggle_host::Need;
use waggle_model::{BuildKey, Flavour, Reading};

pub(crate) use functions::Functions;
use symbols::SymbolTable;
pub use symbols::{Symbol, SymbolKind};
pub(super) use unwind::{Frame, Unwind};

/// Why an ELF file cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElfError {
    /// The file could not be opened or read.
    #[error("{name}: cannot be read: {why}")]
    Read {
        /// The file.
        name: String,
        /// What the system said, with the remedy where one is known.
        why: String,
    },
    /// The file is no ELF file, or one of a kind that no server of ours has.
    #[error("{name}: {why}; waggle reads 64-bit little-endian ELF programs")]
    Unsupported {
        /// The file.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The headers of the file contradict themselves.
    #[error("{name}: damaged ELF file: {what}; install the server again")]
    Damaged {
        /// The file.
        name: String,
        /// The part that cannot be right.
        what: &'static str,
    },
    /// The file is not a server that waggle knows, or exports too little to tell.
    #[error("{name}: {why}")]
    NotAServer {
        /// The file.
        name: String,
        /// What is missing and what to do.
        why: String,
    },
}

impl ElfError {
    /// The remedy is that of now: who reads it may give up its rights.
    pub(super) fn read(name: String, error: &io::Error) -> Self {
        ElfError::Read { name, why: Need::Open.told(error) }
    }
}

/// The bytes of a file, read at a place.
trait Source: Send + Sync {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

impl Source for Arc<File> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(into, offset)
    }
}

impl Source for Vec<u8> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let from =
            usize::try_from(offset).ok().and_then(|start| self.get(start..)?.get(..into.len()));
        into.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// The processor that the program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// AMD64.
    X86_64,
    /// Any other, by its number in the ELF header.
    Other(u16),
}

/// The template of the program's thread-local storage (`PT_TLS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Size in memory, bytes.
    pub size: u64,
    /// Alignment, bytes; at least 1.
    pub align: u64,
}

/// One loaded part of the file (`PT_LOAD`).
#[derive(Clone, Copy, Debug)]
struct Segment {
    address: u64,
    offset: u64,
    size_in_file: u64,
    executable: bool,
    writable: bool,
}

/// Opens a regular file. A pipe would wait for somebody who writes to it.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }
}

/// An open ELF file.
pub struct Elf {
    name: String,
    source: Box<dyn Source>,
    machine: Machine,
    segments: Vec<Segment>,
    tls: Option<Tls>,
    /// Where it says how callers are found (`PT_GNU_EH_FRAME`).
    frames: Option<u64>,
    symbols: Reading<SymbolTable>,
    build: BuildKey,
    /// Bytes of the file.
    size: u64,
    /// Bytes that may still be read.
    left: AtomicU64,
}

/// Bytes that are read of one file, some of them twice: the largest server takes a tenth. A file can be larger than
/// any disk.
const READ_MAX: u64 = 1 << 30;
/// What a read costs beside its bytes: a file can make us read it byte by byte.
const READ_COST: u64 = 256;

/// A program has about a dozen program headers; a file that states more than this is damaged.
const PROGRAM_HEADERS_MAX: u16 = 256;

impl Elf {
    /// Opens an ELF file. For a running process open `/proc/PID/exe`: that works when the file was
    /// replaced or lies in another mount namespace.
    pub fn open(path: &Path) -> Result<Self, ElfError> {
        let name = path.display().to_string();
        match open_file(path) {
            Ok(file) => Self::opened(name, Arc::new(file)),
            Err(error) => Err(ElfError::read(name, &error)),
        }
    }

    /// The same for a file that is open already; `name` is for messages.
    pub fn opened(name: String, file: Arc<File>) -> Result<Self, ElfError> {
        match file.metadata() {
            Ok(metadata) => Self::read(name, Box::new(file), metadata.len()),
            Err(error) => Err(ElfError::read(name, &error)),
        }
    }

    /// Reads an ELF file from memory; `name` is for messages.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, ElfError> {
        let size = bytes.len() as u64;
        Self::read(name.to_owned(), Box::new(bytes), size)
    }

    fn read(name: String, source: Box<dyn Source>, size: u64) -> Result<Self, ElfError> {
        let mut buffer = [0; size_of::<FileHeader64<LittleEndian>>()];
        match source.read_at(0, &mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(ElfError::Unsupported { name, why: "is too short for an ELF file" });
            }
            Err(error) => return Err(ElfError::read(name, &error)),
            Ok(()) => {}
        }
        let damaged = |what| ElfError::Damaged { name: name.clone(), what };
        let (header, _) = pod::from_bytes::<FileHeader64<LittleEndian>>(&buffer)
            .map_err(|()| damaged("the file header"))?;
        if let Some(why) = unsupported(header) {
            return Err(ElfError::Unsupported { name, why });
        }
        let program = read_program_headers(source.as_ref(), header)
            .ok_or_else(|| damaged("the program headers lie outside the file"))?;
        let machine = match header.e_machine.get(LittleEndian) {
            elf::EM_X86_64 => Machine::X86_64,
            other => Machine::Other(other.0),
        };
        let mut this = Self {
            name,
            source,
            machine,
            segments: loaded(&program),
            tls: tls(&program),
            frames: of_type(&program, elf::PT_GNU_EH_FRAME)
                .next()
                .map(|header| header.p_vaddr.get(LittleEndian)),
            symbols: Reading::absent("not read"),
            build: BuildKey(String::new()),
            size,
            left: AtomicU64::new(READ_MAX),
        };
        this.symbols = SymbolTable::find(&this, &program);
        this.build = identity::build_key(&this, &program, size);
        Ok(this)
    }

    /// The name that was given, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What tells this build from every other.
    pub fn build(&self) -> &BuildKey {
        &self.build
    }

    /// The processor that the program is for.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// The template of thread-local storage, where the program has one.
    pub fn tls(&self) -> Option<Tls> {
        self.tls
    }

    /// The address at which the file wants its first byte: 0 for a position-independent program.
    /// The start of the file's first mapping less this is the load bias of a process.
    pub fn first_address(&self) -> u64 {
        let lowest = self.segments.iter().min_by_key(|segment| segment.address);
        lowest.map_or(0, |segment| segment.address.saturating_sub(segment.offset))
    }

    /// An exported symbol that the file defines.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        self.symbols.value()?.lookup(self, name)
    }

    /// Hands out the name of every exported symbol that the file defines.
    pub(super) fn for_each_symbol(&self, take: impl FnMut(&[u8], Symbol)) {
        if let Some(symbols) = self.symbols.value() {
            symbols.for_each_symbol(self, take);
        }
    }

    /// The addresses of its machine code.
    pub(super) fn code_ranges(&self) -> impl Iterator<Item = Range<u64>> {
        let code = self.segments.iter().filter(|segment| segment.executable);
        code.map(|segment| segment.address..segment.address.saturating_add(segment.size_in_file))
    }

    /// The file's bytes at an address: at most `length`, fewer where the segment ends, none where
    /// nothing of the file is loaded.
    pub fn bytes(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        self.read_loaded(address, length, |_| true)
    }

    /// The same for machine code: only from executable segments.
    pub fn code(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        self.read_loaded(address, length, |segment| segment.executable)
    }

    fn read_loaded(
        &self,
        address: u64,
        length: usize,
        wanted: impl Fn(&Segment) -> bool,
    ) -> Option<Vec<u8>> {
        let holds = |segment: &&Segment| {
            wanted(segment)
                && address >= segment.address
                && address - segment.address < segment.size_in_file
        };
        let segment = self.segments.iter().find(holds)?;
        let skip = address - segment.address;
        let length = length.min(usize::try_from(segment.size_in_file - skip).ok()?);
        let offset = segment.offset.checked_add(skip)?;
        // A segment may claim what the file does not have: no memory is taken for that.
        offset.checked_add(length as u64).filter(|end| *end <= self.size)?;
        let take = |left: u64| left.checked_sub(length as u64 + READ_COST);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        let mut bytes = vec![0; length];
        self.source.read_at(offset, &mut bytes).ok()?;
        Some(bytes)
    }

    /// Where the file has the machine code of an address.
    pub fn code_offset(&self, address: u64) -> Option<u64> {
        let inside = |segment: &&Segment| {
            segment.executable
                && address >= segment.address
                && address - segment.address < segment.size_in_file
        };
        let segment = self.segments.iter().find(inside)?;
        segment.offset.checked_add(address - segment.address)
    }

    fn array<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        self.bytes(address, N)?.try_into().ok()
    }

    /// A number of four bytes at an address.
    pub fn u32_at(&self, address: u64) -> Option<u32> {
        self.array(address).map(u32::from_le_bytes)
    }

    /// The family of the server, by what it exports.
    ///
    /// Fails where the file is no server or does not say so: the error names what is missing and
    /// what to do.
    pub fn server_flavour(&self) -> Result<Flavour, ElfError> {
        identity::flavour(self).map_err(|why| ElfError::NotAServer { name: self.name.clone(), why })
    }

    /// The version that the binary states. A build may keep it in code only; then the running
    /// server has it at [`Elf::version_address`].
    pub fn version(&self) -> Reading<String> {
        identity::version(self)
    }
}

fn unsupported(header: &FileHeader64<LittleEndian>) -> Option<&'static str> {
    if header.e_ident.magic != elf::ELFMAG {
        return Some("is not an ELF file");
    }
    if header.e_ident.class != elf::ELFCLASS64 || header.e_ident.data != elf::ELFDATA2LSB {
        return Some("is not a 64-bit little-endian ELF file");
    }
    let kind = header.e_type.get(LittleEndian);
    (kind != elf::ET_EXEC && kind != elf::ET_DYN).then_some("is neither a program nor a library")
}

type ProgramHeaders = Vec<ProgramHeader64<LittleEndian>>;

fn read_program_headers(
    source: &dyn Source,
    header: &FileHeader64<LittleEndian>,
) -> Option<ProgramHeaders> {
    let count = header.e_phnum.get(LittleEndian);
    let size = size_of::<ProgramHeader64<LittleEndian>>();
    if count > PROGRAM_HEADERS_MAX || usize::from(header.e_phentsize.get(LittleEndian)) != size {
        return None;
    }
    let mut bytes = vec![0; size * usize::from(count)];
    source.read_at(header.e_phoff.get(LittleEndian), &mut bytes).ok()?;
    let (headers, _) = pod::slice_from_bytes(&bytes, usize::from(count)).ok()?;
    Some(headers.to_vec())
}

fn of_type(
    program: &ProgramHeaders,
    kind: elf::ProgramType,
) -> impl Iterator<Item = &ProgramHeader64<LittleEndian>> {
    program.iter().filter(move |header| header.p_type.get(LittleEndian) == kind)
}

fn loaded(program: &ProgramHeaders) -> Vec<Segment> {
    let has = |header: &ProgramHeader64<LittleEndian>, flag: elf::ProgramFlags| {
        header.p_flags.get(LittleEndian).0 & flag.0 != 0
    };
    of_type(program, elf::PT_LOAD)
        .map(|header| Segment {
            address: header.p_vaddr.get(LittleEndian),
            offset: header.p_offset.get(LittleEndian),
            size_in_file: header.p_filesz.get(LittleEndian),
            executable: has(header, elf::PF_X),
            writable: has(header, elf::PF_W),
        })
        .collect()
}

fn tls(program: &ProgramHeaders) -> Option<Tls> {
    of_type(program, elf::PT_TLS).next().map(|header| Tls {
        size: header.p_memsz.get(LittleEndian),
        align: header.p_align.get(LittleEndian).max(1),
    })
}

#[cfg(test)]
mod tests;
