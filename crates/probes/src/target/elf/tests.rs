use std::fs;

use proptest::prelude::*;

use super::*;
use crate::target::layout::Layout;
use crate::target::pthread::PthreadLayout;

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
