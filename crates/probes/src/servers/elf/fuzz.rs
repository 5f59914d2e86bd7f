//! Small programs whose headers, tables and strings are changed.

mod frames;
mod names;

use std::ops::Range;

use waggle_fuzz_frame::{Counts, Fuzzer, Random, edge, mutate, put, run};

use super::*;
use crate::servers::digest_length;
use crate::servers::layout::Layout;
use crate::servers::layout::crafted::{self, Crafted, Hash, Part};
use crate::servers::pthread::PthreadLayout;
use crate::servers::x_protocol::XProtocol;

/// Longer functions cost time that is better spent on more files.
const CODE_MAX: usize = 64;
const FILE_MAX: usize = 32 * 1024;
/// One in this many is decoded, and another one is asked for names.
const DECODED_EVERY: u64 = 4;
/// What a segment may claim to be, and where: near the ends of numbers, and near what is there.
const NUMBERS: [u64; 8] =
    [0, 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, u64::MAX, 0x7000_0000_0000];

struct Files {
    seeds: Vec<Crafted>,
    file: Vec<u8>,
    /// Where its frames were described before it was changed.
    frames: Range<usize>,
    /// Whether its layout is derived: that takes most of the time, and has a test of its own.
    is_decoded: bool,
    is_named: bool,
}

impl Files {
    fn new() -> Files {
        let is_small = |part: &&Part| part.code.len() <= CODE_MAX;
        let of = |parts: &Vec<Part>| {
            let parts: Vec<Part> = parts.iter().filter(is_small).cloned().collect();
            [Hash::Gnu, Hash::SystemV].map(|hash| crafted::program(&parts, hash))
        };
        let seeds = crafted::servers().iter().flat_map(of);
        let seeds = seeds.chain([library()]).map(|bytes| Crafted { bytes, frames: 0..0 });
        let seeds = seeds.chain(frames::seeds()).collect();
        Files { seeds, file: Vec::new(), frames: 0..0, is_decoded: false, is_named: false }
    }

    /// A number of the file: of its headers, its tables, or anywhere.
    fn change_number(&mut self, random: &mut Random) {
        let headers = 64 + 56 * usize::from(self.file.get(56).copied().unwrap_or(0));
        let end = if random.coin() { headers.min(self.file.len()) } else { self.file.len() };
        let width = *random.pick(&[2, 4, 8, 8]);
        let at = random.below(end + 1) / width * width;
        let number = match random.below(4) {
            0 => *random.pick(&NUMBERS),
            1 => random.below(self.file.len() + 1) as u64,
            // What stands elsewhere in it.
            2 => {
                let from = random.below(self.file.len() + 1) / 8 * 8;
                let word = self.file.get(from..from + 8).and_then(|word| word.try_into().ok());
                u64::from_le_bytes(word.unwrap_or_default()).wrapping_add(edge(random) % 64)
            }
            _ => edge(random),
        };
        put(&mut self.file, at, width, number);
    }
}

/// A library that describes its thread keys, as the C library does.
fn library() -> Vec<u8> {
    let numbers = [[64, 32, 784], [64, 1, 8], [128, 32, 0], [16, 0, 0]];
    let names = [
        "_thread_db_pthread_specific",
        "_thread_db_pthread_key_data_data",
        "_thread_db_pthread_key_data_level2_data",
        "_thread_db_sizeof_pthread_key_data",
    ];
    let code = |numbers: [u32; 3]| numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
    let parts = names.iter().zip(numbers).enumerate();
    let parts = parts
        .map(|(at, (name, numbers))| Part::function(name, 0x1000 * (at as u64 + 1), code(numbers)));
    crafted::program(&parts.collect::<Vec<_>>(), Hash::Gnu)
}

impl Fuzzer for Files {
    const SUBJECT: &'static str = "elf";
    /// The table of buckets is read at once.
    const MEMORY_MAX: u64 = 20 << 20;

    fn make(&mut self, number: u64, random: &mut Random) -> usize {
        self.is_decoded = number.is_multiple_of(DECODED_EVERY);
        self.is_named = number % DECODED_EVERY == 1;
        let Crafted { bytes, frames } = random.pick(&self.seeds);
        self.file.clone_from(bytes);
        self.frames.clone_from(frames);
        for _ in 0..random.below(6) {
            match random.below(4) {
                0 => mutate(&mut self.file, random, &[], &[], FILE_MAX),
                1 | 2 if !self.frames.is_empty() => {
                    frames::change(&mut self.file, &self.frames, random);
                }
                _ => self.change_number(random),
            }
        }
        self.file.len()
    }

    fn check(&mut self, counts: &mut Counts) {
        let Ok(elf) = Elf::from_bytes("any", self.file.clone()) else {
            counts.met("refused");
            return;
        };
        elf.bytes(u64::MAX, 8);
        elf.bytes(elf.first_address(), 1 << 16);
        elf.code(elf.first_address(), 64);
        digest_length::addresses(&elf);
        XProtocol::of_file(&elf);
        if PthreadLayout::read(&elf).is_ok() {
            counts.met("libraries");
        }
        if elf.version().value().is_some() {
            counts.met("versions");
        }
        counts.add_to("servers", u64::from(elf.server_flavour().is_ok()));
        frames::check(&elf, counts);
        if self.is_named {
            names::check(&self.file, counts);
        }
        if self.is_decoded
            && let Ok(layout) = Layout::derive(&elf)
        {
            let found = layout.fields.values().filter(|place| place.value().is_some()).count();
            counts.add_to("fields", found as u64);
        }
    }
}

#[test]
fn no_file_makes_anything_panic_hang_or_grow() {
    names::expect_panics();
    let Some((inputs, counts)) = run(Files::new) else { return };
    for (what, at_least) in
        [("refused", 40), ("libraries", 60), ("versions", 10), ("servers", 4), ("fields", 1)]
    {
        assert!(counts.of(what) * at_least > inputs, "{what}: {counts:?}");
    }
    assert!(counts.of("servers") * 10 < inputs * 9, "{counts:?}");
}
