//! Which build a file is: its key, its family, its version.

use memchr::{memchr, memchr_iter, memmem};
use object::LittleEndian;
use object::elf::{self, FileHeader64};
use object::read::elf::NoteIterator;
use waggle_model::{BuildKey, Flavour, Reading};

use super::{Elf, ProgramHeaders, Segment, of_type};
use crate::servers::arch;

/// Exported by every server of both families since 5.5, with C linkage, as a service for plugins.
const SERVER_FUNCTION: &str = "thd_get_thread_id";

pub(super) fn build_key(elf: &Elf, program: &ProgramHeaders, size: u64) -> BuildKey {
    if let Some(id) = of_type(program, elf::PT_NOTE).find_map(|header| {
        let length = header.p_filesz.get(LittleEndian).min(1 << 16) as usize;
        let bytes = elf.bytes(header.p_vaddr.get(LittleEndian), length)?;
        gnu_build_id(&bytes, header.p_align.get(LittleEndian))
    }) {
        return BuildKey(id);
    }
    let mut hash = FNV_OFFSET;
    if let Some(symbols) = elf.symbols.value() {
        symbols.for_each_piece(elf, |piece| hash = fnv1a(hash, piece));
    }
    BuildKey(format!("dynsym-{hash:016x}-{size}"))
}

fn gnu_build_id(notes: &[u8], align: u64) -> Option<String> {
    let mut notes =
        NoteIterator::<FileHeader64<LittleEndian>>::new(LittleEndian, align, notes).ok()?;
    while let Ok(Some(note)) = notes.next() {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(LittleEndian) == elf::NT_GNU_BUILD_ID {
            return Some(note.desc().iter().map(|byte| format!("{byte:02x}")).collect());
        }
    }
    None
}

/// FNV-1a, 64 bits (RFC 9923). A build that has no id needs a key that stays the same across runs.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

pub(super) fn flavour(elf: &Elf) -> Result<Flavour, String> {
    if let Some(why) = elf.symbols.why() {
        return Err(format!("{why}; {VENDOR_BINARY}"));
    }
    if elf.symbol(SERVER_FUNCTION).is_none() {
        return Err(format!(
            "the binary exports none of the functions of a MySQL or MariaDB server \
             ({SERVER_FUNCTION} is missing); if it is one, {VENDOR_BINARY}"
        ));
    }
    let exports = |name| elf.symbol(name).is_some();
    if exports("_current_thd") {
        Ok(Flavour::Mariadb)
    } else if exports("current_thd") || exports("THR_THD") {
        Ok(Flavour::Mysql)
    } else {
        Err(format!(
            "the binary looks like a server but exports no way to find a thread's session \
             (current_thd, THR_THD, _current_thd); {VENDOR_BINARY}"
        ))
    }
}

const VENDOR_BINARY: &str = "use the vendor's binary, not one whose dynamic symbols were removed \
                             (objcopy --remove-section .dynsym, a static build)";

pub(super) fn version(elf: &Elf) -> Reading<String> {
    let stated = match elf.server_flavour() {
        Err(error) => return Reading::absent(error.to_string()),
        Ok(Flavour::Mariadb) => mariadb_version(elf),
        Ok(Flavour::Mysql) => mysql_version(elf),
    };
    stated.map_or_else(
        || {
            Reading::absent(
                "the file does not state its version in one place; the running server has it in \
                 server_version",
            )
        },
        Reading::Value,
    )
}

/// `set_server_version(char *buf, size_t size)` of `sql/mysqld.cc` gives the version to `strxnmov`
/// as its third argument.
fn mariadb_version(elf: &Elf) -> Option<String> {
    let function = elf.symbol("_Z18set_server_versionPcm")?;
    let trace = arch::trace(elf, function)?;
    trace.calls().find_map(|arguments| {
        let text = elf.bytes(arguments.get(2)?.constant()?, 60)?;
        let text = text.split(|byte| *byte == 0).next()?;
        is_version(text).then(|| String::from_utf8_lossy(text).into_owned())
    })
}

/// MySQL keeps no reference that can be decoded, but its constants hold the version as a string of
/// its own: `MySQL 8.0.12` (InnoDB's redo log header, 8.0 and later), or just `5.7.22`.
fn mysql_version(elf: &Elf) -> Option<String> {
    let only = |mut versions: Vec<String>| versions.pop().filter(|_| versions.is_empty());
    let named =
        versions(elf, |piece| memmem::find_iter(piece, NAMED).map(|at| at + NAMED.len()).collect());
    only(named).or_else(|| {
        let mut bare = versions(elf, |piece| {
            memchr_iter(b'.', piece).filter_map(|dot| begin_of_number(piece, dot)).collect()
        });
        // Libraries inside the server have versions too: those below 5 are not the server's.
        bare.retain(|text| matches!(text.as_bytes().first(), Some(b'5'..=b'9')));
        only(bare)
    })
}

/// What stands before a version that is named.
const NAMED: &[u8] = b"\0MySQL ";

/// Where the number before a dot begins, if it has one or two digits and a zero byte before it.
fn begin_of_number(piece: &[u8], dot: usize) -> Option<usize> {
    let digits = piece[..dot].iter().rev().take(3).take_while(|byte| byte.is_ascii_digit());
    let begin = dot - digits.count();
    (begin < dot && piece.get(begin.checked_sub(1)?) == Some(&0)).then_some(begin)
}

/// The versions that begin at some places of the constants and end with a zero byte, each once.
fn versions(elf: &Elf, begins: impl Fn(&[u8]) -> Vec<usize>) -> Vec<String> {
    let mut versions = Vec::new();
    for_each_piece(elf, |piece| {
        for begin in begins(piece) {
            let text = &piece[begin..];
            let text = &text[..STRING_MAX.min(text.len())];
            let Some(text) = memchr(0, text).map(|end| &text[..end]) else { continue };
            let text = is_version(text).then(|| String::from_utf8_lossy(text).into_owned());
            let is_new = |text: &String| versions.len() < VERSIONS_MAX && !versions.contains(text);
            versions.extend(text.filter(is_new));
        }
    });
    versions
}

/// Versions that are kept of a file: the server's own, and those of the libraries in it.
const VERSIONS_MAX: usize = 100;

/// Whether a text is three numbers with dots, perhaps with a suffix after a hyphen.
fn is_version(text: &[u8]) -> bool {
    let numbers = text.split(|byte| *byte == b'-').next().unwrap_or_default();
    let parts: Vec<_> = numbers.split(|byte| *byte == b'.').collect();
    parts.len() == 3
        && parts
            .iter()
            .all(|part| (1..=2).contains(&part.len()) && part.iter().all(u8::is_ascii_digit))
        && text.iter().all(|byte| byte.is_ascii_graphic())
}

/// Longer strings cannot be versions.
const STRING_MAX: usize = 40;

/// The constants, in pieces that overlap, so that a string on a border is seen.
pub(super) fn for_each_piece(elf: &Elf, mut take: impl FnMut(&[u8])) {
    const PIECE: usize = 1 << 18;
    // Older linkers put constants and code into one segment; where they are apart, code is skipped.
    let constant = |segment: &&Segment| !segment.writable && !segment.executable;
    let are_apart = elf.segments.iter().any(|segment| constant(&segment));
    let wanted = |segment: &&Segment| {
        if are_apart { constant(segment) } else { !segment.writable }
    };
    for segment in elf.segments.iter().filter(wanted) {
        let mut next = Some(segment.address);
        while let Some((at, piece)) =
            next.and_then(|at| Some((at, elf.bytes(at, PIECE + STRING_MAX)?)))
        {
            take(&piece);
            // Behind the last address there is nothing.
            next = at.checked_add(PIECE as u64);
        }
    }
}
