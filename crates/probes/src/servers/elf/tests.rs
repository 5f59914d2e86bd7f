use std::fs;

use proptest::prelude::*;

use super::*;
use crate::servers::layout::Layout;
use crate::servers::pthread::PthreadLayout;

/// Everything that can be asked of a file.
fn ask_everything(bytes: Vec<u8>) {
    let Ok(elf) = Elf::from_bytes("any", bytes) else { return };
    elf.symbol("thd_get_thread_id");
    elf.version().value();
    elf.bytes(u64::MAX, 8);
    elf.code(elf.first_address(), 64);
    let _ = Layout::derive(&elf);
    let _ = PthreadLayout::read(&elf);
}

fn own_program() -> Vec<u8> {
    fs::read("/proc/self/exe").unwrap()
}

#[test]
fn a_file_that_is_no_program_is_refused_with_its_name() {
    let error = |bytes: &[u8]| Elf::from_bytes("a file", bytes.to_vec()).err().unwrap().to_string();
    assert!(error(b"").contains("a file: is too short"));
    assert!(error(&[0; 64]).contains("is not an ELF file"));
    let mut narrow = own_program();
    narrow[4] = 1;
    assert!(error(&narrow).contains("not a 64-bit little-endian"));
}

#[test]
fn a_file_that_does_not_exist_says_so() {
    let error = Elf::open(Path::new("/nonexistent/mysqld")).err().unwrap().to_string();
    assert!(error.contains("/nonexistent/mysqld: cannot be read"), "{error}");
}

#[test]
fn a_program_that_is_no_server_is_refused_with_a_remedy() {
    let elf = Elf::from_bytes("a program", own_program()).unwrap();
    let error = Layout::derive(&elf).err().unwrap().to_string();
    assert!(error.contains("a program: ") && error.contains("use the vendor's binary"), "{error}");
}

#[test]
fn a_program_cut_anywhere_is_refused_or_read_and_never_breaks_us() {
    let whole = own_program();
    for length in (0..4096).step_by(7).chain((0..40).map(|part| whole.len() / 40 * part)) {
        ask_everything(whole[..length.min(whole.len())].to_vec());
    }
}

#[test]
fn the_c_library_of_this_machine_describes_its_thread_keys() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let path = maps
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(5))
        .find(|path| path.ends_with("/libc.so.6"))
        .unwrap();
    let pthread = PthreadLayout::read(&Elf::open(Path::new(path)).unwrap()).unwrap();
    assert_eq!((pthread.keys_per_block, pthread.slot_size, pthread.value_offset), (32, 16, 8));
}

/// A sparse file of 16 TiB, all of it one segment of constants.
#[test]
fn a_file_that_is_larger_than_any_disk_is_read_in_part() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut whole = own_program();
    let at = u64::from_le_bytes(whole[32..40].try_into().unwrap()) as usize;
    let count = u16::from_le_bytes(whole[56..58].try_into().unwrap()) as usize;
    for header in whole[at..at + 56 * count].chunks_exact_mut(56) {
        if header[..4] == 1_u32.to_le_bytes() {
            header[32..40].copy_from_slice(&(1_u64 << 44).to_le_bytes());
        }
    }
    fs::write(file.path(), &whole).unwrap();
    file.as_file().set_len(1 << 43).unwrap();
    let elf = Elf::open(file.path()).unwrap();
    for at in (0..READ_MAX).step_by(1 << 24) {
        elf.bytes(elf.first_address() + at, 1 << 24);
    }
    assert_eq!(elf.bytes(elf.first_address(), 1 << 24), None, "no more is read of it");
}

/// Found by fuzzing: it was read byte by byte.
#[test]
fn a_segment_that_ends_with_the_last_address_is_read_once() {
    let mut file =
        crate::servers::layout::crafted::program(&[], crate::servers::layout::crafted::Hash::Gnu);
    let length = file.len();
    // The first program header: its address.
    file[64 + 16..64 + 24].copy_from_slice(&(u64::MAX - length as u64 + 2).to_le_bytes());
    let elf = Elf::from_bytes("a file", file).unwrap();
    let first = elf.segments[0].address;
    assert_eq!(elf.bytes(first, usize::MAX).unwrap().len(), length);
    identity::for_each_piece(&elf, |_| ());
    let read = READ_MAX - elf.left.load(Ordering::Relaxed);
    assert!(read < 1 << 20, "{read} bytes were read");
}

#[test]
fn many_small_reads_use_up_what_may_be_read() {
    let elf = Elf::from_bytes("a program", own_program()).unwrap();
    let reads = (0..).take_while(|_| elf.bytes(elf.first_address(), 1).is_some()).count();
    assert!((reads as u64) <= READ_MAX / READ_COST);
}

#[test]
fn a_pipe_is_refused_at_once() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("mysqld");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
    let error = Elf::open(&pipe).err().unwrap().to_string();
    assert!(error.contains("regular"), "{error}");
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        ask_everything(bytes);
    }

    #[test]
    fn any_bytes_behind_a_good_header_are_refused_or_read(
        bytes in prop::collection::vec(any::<u8>(), 64..3000),
    ) {
        let mut file = own_header();
        file.extend(bytes);
        ask_everything(file);
    }

    #[test]
    fn a_program_with_changed_bytes_is_refused_or_read(
        changes in prop::collection::vec((0usize..20_000, any::<u8>()), 1..60),
    ) {
        let mut file = own_start();
        for (at, byte) in changes {
            if let Some(place) = file.get_mut(at) {
                *place = byte;
            }
        }
        ask_everything(file);
    }
}

/// The header and the program headers of a real program.
fn own_header() -> Vec<u8> {
    own_start()[..1024].to_vec()
}

/// The first part of a real program: its headers and some of its symbols.
fn own_start() -> Vec<u8> {
    use std::io::Read;
    let mut start = vec![0; 1 << 16];
    fs::File::open("/proc/self/exe").unwrap().read_exact(&mut start).unwrap();
    start
}
