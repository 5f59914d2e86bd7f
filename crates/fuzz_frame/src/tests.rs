use std::panic::catch_unwind;

use super::*;

/// Takes as much memory as its input says, and has no input that is larger than a limit.
struct Holds {
    bytes: usize,
    limit: usize,
}

impl Fuzzer for Holds {
    const SUBJECT: &'static str = "none";
    const INPUTS: u64 = 1000;
    const MEMORY_MAX: u64 = 5000;

    fn make(&mut self, number: u64, random: &mut Random) -> usize {
        self.bytes = (number as usize + random.below(2)).min(self.limit);
        self.bytes
    }

    fn check(&mut self, counts: &mut Counts) {
        let held = std::hint::black_box(vec![1_u8; self.bytes]);
        assert_ne!(held.len(), 700, "a length that is wrong");
        counts.met("checked");
    }
}

#[test]
fn every_input_is_counted_once() {
    let (inputs, counts) = run(|| Holds { bytes: 0, limit: 600 }).unwrap();
    assert_eq!((inputs, counts.of("checked"), counts.of("another")), (1000, 1000, 0));
}

#[test]
fn an_input_that_fails_is_named_with_how_to_run_it_again() {
    let failed = catch_unwind(|| run(|| Holds { bytes: 0, limit: 700 })).unwrap_err();
    let said = failed.downcast_ref::<String>().unwrap();
    assert!(
        said.contains("cargo xtask fuzz none --inputs 1 --threads 1 --seed 1 --first "),
        "{said}"
    );
}

/// More than its limit.
struct Grows;

impl Fuzzer for Grows {
    const SUBJECT: &'static str = "none";
    const MEMORY_MAX: u64 = 5000;

    fn make(&mut self, _: u64, _: &mut Random) -> usize {
        0
    }

    fn check(&mut self, _: &mut Counts) {
        std::hint::black_box(Vec::<u8>::with_capacity(5001));
    }
}

#[test]
fn an_input_that_takes_too_much_memory_fails() {
    assert!(catch_unwind(|| run(|| Grows)).is_err());
}

#[test]
fn an_input_is_always_the_same() {
    let settings = Settings { inputs: 1, seed: 7, threads: 1, first: 0 };
    let bits = |number| settings.random(number).bits();
    assert_eq!(bits(3), bits(3));
    assert_ne!(bits(3), bits(4));
}

#[test]
fn a_mutation_stays_within_its_length() {
    let mut random = Random::seeded(1);
    let mut bytes = b"abc".to_vec();
    for _ in 0..10_000 {
        mutate(&mut bytes, &mut random, &[b"piece"], &[b"another"], 100);
        assert!(bytes.len() <= 100);
    }
    let mut bytes = vec![0; 3];
    put(&mut bytes, 1, 8, 0x0102_0304);
    assert_eq!(bytes, [0, 4, 3]);
}
