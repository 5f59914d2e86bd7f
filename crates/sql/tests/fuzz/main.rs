//! Everything of this crate on mutated statements and random bytes: no panic, no hang, texts and memory that are
//! bounded.
#![cfg(test)]

mod check;
mod input;

use waggle_fuzz_frame::{Counts, Fuzzer, Random, run};

use check::Checker;
use input::Inputs;

struct Sql {
    inputs: Inputs,
    checker: Checker,
    number: u64,
}

impl Fuzzer for Sql {
    const SUBJECT: &'static str = "sql";
    const INPUTS: u64 = 100_000;
    /// A token on a line of its own, for each byte of the longest input, and what is kept of a statement.
    const MEMORY_MAX: u64 = 32 << 20;

    fn make(&mut self, number: u64, random: &mut Random) -> usize {
        self.number = number;
        self.inputs.make(random)
    }

    fn check(&mut self, counts: &mut Counts) {
        let (complete, tables) = self.checker.check(self.inputs.sql(), self.number);
        counts.add_to("complete_digests", complete);
        counts.add_to("tables", tables);
    }
}

#[test]
fn no_input_makes_anything_panic_hang_or_grow() {
    let new = || Sql { inputs: Inputs::new(), checker: Checker::new(), number: 0 };
    let Some((inputs, counts)) = run(new) else { return };
    // The inputs are of both kinds: whole statements and what none of the parts understands.
    let complete = counts.of("complete_digests");
    assert!(complete * 10 > inputs && complete < 4 * inputs, "{counts:?}");
    assert!(counts.of("tables") * 20 > inputs, "{counts:?}");
}
