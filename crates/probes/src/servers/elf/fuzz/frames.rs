//! Libraries that describe how the frames of their functions are left, and the readers of those descriptions: what tells why
//! a thread waits, and where a function without a name begins.

use std::ops::Range;

use waggle_fuzz_frame::{Counts, Random, edge};
use waggle_model::TimeClass;

use crate::servers::elf::{Elf, Functions, Unwind};
use crate::servers::layout::crafted::{self, Crafted, Part};
use crate::servers::waiting::{functions_of, library_in, trusted_functions, trusted_library};

/// A function with a frame pointer, which it leaves in the middle and at its end.
const FRAME: &[u8] =
    &[0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x4a, 0x0a, 0x0c, 7, 8, 0xc6, 0x41, 0x0b];
/// One without.
const PUSHES: &[u8] = &[0x41, 0x0e, 16, 0x83, 2, 0x44, 0x0e, 0x40, 0x02, 20, 0x0e, 8];
/// Every other instruction that is known.
const OTHERS: &[&[u8]] = &[
    &[0x03, 2, 0],
    &[0x04, 1, 0, 0, 0],
    &[0x05, 6, 3],
    &[0x06, 6],
    &[0x07, 3],
    &[0x08, 6],
    &[0x09, 3, 4],
    &[0x0f, 2, 0x77, 8],
    &[0x10, 6, 1, 0x50],
    &[0x11, 6, 0x7e],
    &[0x12, 7, 0x7f],
    &[0x13, 0x7e],
    &[0x16, 3, 1, 0x50],
    &[0x2e, 16],
];
/// How long the numbers of an instruction may get, and more.
const CONTINUED: u8 = 0xff;
/// Functions that are looked at, of the many that a file may claim.
const LOOKED_AT: usize = 16;
const FUNCTION_BYTES: u64 = 0x1000;

/// Libraries that also have functions that wait: by their names, and by what they announce.
pub(super) fn seeds() -> Vec<Crafted> {
    let others = OTHERS.concat();
    let all: [&[&[u8]]; 3] = [&[FRAME], &[PUSHES, &others], &[&others, FRAME, PUSHES]];
    all.iter().map(|described| crafted::library(&parts(), described)).collect()
}

fn parts() -> Vec<Part> {
    let names = [
        "pthread_cond_wait",
        "pthread_cond_timedwait",
        "thr_multi_lock",
        "_ZN8MDL_wait10timed_waitEP17MDL_context_ownerP8timespecb",
        "thd_wait_begin",
    ];
    let at = |place: usize| FUNCTION_BYTES * (place as u64 + 1);
    let mut parts: Vec<Part> = names
        .iter()
        .enumerate()
        .map(|(place, name)| Part::function(name, at(place), vec![0x90; 40]))
        .collect();
    // mov esi, 3; call thd_wait_begin
    let (announces, begin) = (at(names.len() - 1), at(names.len()));
    let mut code = vec![0x90; 50];
    code.extend([0xbe, 3, 0, 0, 0, 0xe8]);
    let next = begin + code.len() as u64 + 4;
    code.extend((announces.wrapping_sub(next) as u32).to_le_bytes());
    parts.push(Part::function("waits", begin, code));
    parts
}

/// Changes a byte of the descriptions.
pub(super) fn change(file: &mut [u8], frames: &Range<usize>, random: &mut Random) {
    let at = frames.start + random.below(frames.len());
    let Some(byte) = file.get_mut(at) else { return };
    match random.below(4) {
        0 => *byte = random.pick::<&[u8]>(OTHERS)[0],
        1 => *byte ^= 1 << random.below(8),
        2 => *byte = CONTINUED,
        _ => *byte = edge(random) as u8,
    }
}

/// What is asked of a file about its frames and its functions that wait.
pub(super) fn check(elf: &Elf, counts: &mut Counts) {
    if let Ok(unwind) = Unwind::of(elf) {
        for begin in unwind.begins().take(LOOKED_AT).collect::<Vec<_>>() {
            counts.add_to("described", u64::from(unwind.rows(begin).is_some()));
            let range = unwind.function(begin);
            assert!(range.is_none_or(|range| range.contains(&begin)));
        }
    }
    let functions = Functions::of(elf);
    for address in [0, FUNCTION_BYTES, elf.first_address(), u64::MAX] {
        assert!(functions.begin(address).is_none_or(|begin| begin <= address));
        elf.address_of(address);
    }
    if let Ok(functions) = functions_of(elf) {
        counts.met("waiting");
        let announced = functions.iter().any(|one| one.class == TimeClass::RowLock as u8);
        counts.add_to("announced", u64::from(announced));
        assert!(trusted_functions(Ok(functions)).is_ok());
    }
    if let Ok(library) = library_in(elf, 1 << 40) {
        counts.met("unwound");
        assert!(trusted_library(Ok(library)).is_ok());
    }
}
