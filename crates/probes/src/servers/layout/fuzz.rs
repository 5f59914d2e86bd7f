//! Functions of real servers with changed machine code, and random bytes as functions.

use waggle_fuzz_frame::{Counts, Fuzzer, Random, edge, mutate, run};

use super::crafted::{self, Hash, Part};
use super::*;
use crate::carrier::Plan;
use crate::servers::CurrentThdAt;
use crate::servers::digest_length;
use crate::servers::elf::Elf;

/// Functions of a usual input at most, and bytes of each.
const FUNCTIONS: usize = 3;
const USUAL: usize = 6000;
/// Bytes of the few long functions, which show what is not linear.
const LONG: usize = 64 * 1024;
/// One in this many is long.
const LONG_EVERY: usize = 2000;

/// What a mutation puts in: what the decoder follows, keeps or forgets.
const PIECES: &[&[u8]] = &[
    b"\x55",                                     // push rbp
    b"\x5d",                                     // pop rbp
    b"\xc9",                                     // leave
    b"\xc3",                                     // ret
    b"\xcc",                                     // int3
    b"\x0f\x0b",                                 // ud2
    b"\xf3\x0f\x1e\xfa",                         // endbr64
    b"\xeb\xfe",                                 // jmp to itself
    b"\xeb\x80",                                 // jmp back
    b"\x74\xf0",                                 // je back
    b"\x75\x10",                                 // jne on
    b"\x0f\x84\xff\xff\xff\x7f",                 // je far
    b"\xe9\xff\xff\xff\x7f",                     // jmp far
    b"\xe8\0\0\0\0",                             // call next
    b"\xff\xe0",                                 // jmp rax
    b"\xff\xd0",                                 // call rax
    b"\x48\x83\xe4\xf0",                         // and rsp, -16
    b"\x48\x81\xec\xff\xff\xff\x7f",             // sub rsp, 2^31 - 1
    b"\x48\x81\xc4\xff\xff\xff\x7f",             // add rsp, 2^31 - 1
    b"\x48\x89\xe7",                             // mov rdi, rsp
    b"\x48\x89\xc4",                             // mov rsp, rax
    b"\x48\x8b\x87\xff\xff\xff\x7f",             // mov rax, [rdi + 2^31 - 1]
    b"\x48\x8b\x87\0\0\0\x80",                   // mov rax, [rdi - 2^31]
    b"\x48\x8b\0",                               // mov rax, [rax]
    b"\x8b\x87\x10\0\0\0",                       // mov eax, [rdi + 16]
    b"\x48\x89\x47\xf8",                         // mov [rdi - 8], rax
    b"\x48\x89\x77\x08",                         // mov [rdi + 8], rsi
    b"\x48\x01\x77\x08",                         // add [rdi + 8], rsi
    b"\x48\x29\xf0",                             // sub rax, rsi
    b"\x48\x01\xc0",                             // add rax, rax
    b"\x48\x8d\x44\x24\xf0",                     // lea rax, [rsp - 16]
    b"\x48\x8d\x05\xff\xff\xff\x7f",             // lea rax, [rip + 2^31 - 1]
    b"\x64\x48\x8b\x04\x25\0\0\0\0",             // mov rax, fs:[0]
    b"\x48\xb8\xff\xff\xff\xff\xff\xff\xff\x7f", // mov rax, 2^63 - 1
    b"\x48\xb8\0\0\0\0\0\0\0\x80",               // mov rax, 2^63
    b"\x48\x3b\x47\x08",                         // cmp rax, [rdi + 8]
    b"\x48\x85\xc0",                             // test rax, rax
    b"\x48\x0f\x44\xc6",                         // cmove rax, rsi
    b"\x31\xc0",                                 // xor eax, eax
    b"\x67\x48\x8b\x07",                         // mov rax, [edi]
    b"\xf3\x48\xa5",                             // rep movsq
    b"\xc8\xff\xff\x1f",                         // enter 65535, 31
];

/// A program of a few functions, and what its process would hold.
struct Functions {
    file: Vec<u8>,
    /// Words that a session of the program would hold.
    words: Random,
}

impl Functions {
    /// The code of a part of a server, changed, or code of no server.
    fn code(part: &Part, random: &mut Random) -> Vec<u8> {
        let mut code = match random.below(10) {
            0 => (0..random.below(300)).map(|_| random.below(256) as u8).collect(),
            1 => (0..random.below(100)).flat_map(|_| random.pick(PIECES).to_vec()).collect(),
            _ => part.code.clone(),
        };
        for _ in 0..random.below(6) {
            mutate(&mut code, random, PIECES, &[], USUAL);
        }
        if random.below(LONG_EVERY) == 0 {
            lengthen(&mut code, random);
        }
        code
    }
}

/// Repeats one or two pieces very often.
fn lengthen(code: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(2) {
        let piece = random.pick(PIECES);
        let times = random.below(LONG.saturating_sub(code.len()) / piece.len() + 1);
        code.splice(0..0, piece.repeat(times));
    }
}

impl Fuzzer for Functions {
    const SUBJECT: &'static str = "layout";
    /// What the longest function leaves on the stack, for every path that is still to be followed.
    const MEMORY_MAX: u64 = 64 << 20;

    fn make(&mut self, _: u64, random: &mut Random) -> usize {
        let server = random.pick(crafted::servers());
        let functions: Vec<&Part> = server.iter().filter(|part| part.is_function()).collect();
        // Without these nothing tells the family.
        let mut parts: Vec<Part> =
            server.iter().filter(|part| !part.is_function()).cloned().collect();
        let named = ["thd_get_thread_id", "_current_thd"];
        parts.extend(server.iter().filter(|part| named.contains(&part.name)).cloned());
        for _ in 0..=random.below(FUNCTIONS) {
            let part = random.pick(&functions);
            let mut changed = (*part).clone();
            changed.code = Functions::code(part, random);
            parts.retain(|other| other.name != part.name);
            parts.push(changed);
        }
        self.file = crafted::program(&parts, Hash::Gnu);
        self.words = Random::seeded(random.bits());
        self.file.len()
    }

    fn check(&mut self, counts: &mut Counts) {
        let elf = Elf::from_bytes("any", self.file.clone()).unwrap();
        digest_length::addresses(&elf);
        let Ok(layout) = Layout::derive(&elf) else {
            counts.met("refused");
            return;
        };
        let found = layout.fields.values().filter(|place| place.value().is_some()).count();
        counts.add_to("fields", found as u64);
        let unclear = |why: &str| why.contains("not of a known shape");
        let unclear = layout.fields.values().filter(|place| place.why().is_some_and(unclear));
        counts.add_to("not_understood", unclear.count() as u64);
        layout.absences();
        let mut words = self.words.clone();
        let now = Now { wall_us: 1_700_000_000_000_000, monotonic_us: 7_000_000 };
        let session = edge(&mut words);
        layout.validate(session, now, |_, bytes| {
            let word = if words.coin() { edge(&mut words) } else { words.below(1 << 20) as u64 };
            let width = bytes.len();
            bytes.copy_from_slice(&word.to_le_bytes()[..width]);
            words.below(20) != 0
        });
        let offset = edge(&mut words).cast_signed();
        let planned = Plan::new(&layout, CurrentThdAt::ThreadLocal { offset }, 1024);
        counts.add_to("planned", u64::from(planned.is_ok()));
    }
}

#[test]
fn no_function_makes_anything_panic_hang_or_grow() {
    let new = || Functions { file: Vec::new(), words: Random::seeded(0) };
    let Some((inputs, counts)) = run(new) else { return };
    for (what, at_least) in [("fields", 1), ("not_understood", 2), ("planned", 100)] {
        assert!(counts.of(what) * at_least > inputs, "{what}: {counts:?}");
    }
}
