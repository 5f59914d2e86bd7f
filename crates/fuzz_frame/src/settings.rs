//! Which inputs are run, as the environment says.

use waggle_stats::Random;

#[derive(Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) inputs: u64,
    pub(crate) seed: u64,
    pub(crate) threads: u64,
    pub(crate) first: u64,
}

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{name}={value}: no whole number")),
        Err(_) => default,
    }
}

impl Settings {
    pub(crate) fn read(inputs: u64) -> Settings {
        Settings {
            inputs: number("WAGGLE_FUZZ_INPUTS", inputs),
            seed: number("WAGGLE_FUZZ_SEED", 1),
            threads: number("WAGGLE_FUZZ_THREADS", 2).max(1),
            first: number("WAGGLE_FUZZ_FIRST", 0),
        }
    }

    /// The inputs of one thread.
    pub(crate) fn numbers(&self, lane: u64) -> impl Iterator<Item = u64> {
        (self.first + lane..self.first + self.inputs).step_by(self.threads as usize)
    }

    /// From which all of an input follows. Two rounds part the sequences of neighbouring numbers.
    pub(crate) fn random(&self, number: u64) -> Random {
        let mut random = Random::seeded(Random::seeded(self.seed).bits() ^ number);
        Random::seeded(random.bits())
    }

    /// Names an input, and says how to run it again.
    pub(crate) fn again(&self, subject: &str, number: u64) -> String {
        let seed = self.seed;
        format!(
            "input {number} of seed {seed} (again: cargo xtask fuzz {subject} --inputs 1 --threads 1 --seed {seed} \
             --first {number})"
        )
    }

    pub(crate) fn keep(&self, result: &serde_json::Value) {
        if let Ok(path) = std::env::var("WAGGLE_FUZZ_RESULTS") {
            let kept = std::fs::write(&path, format!("{result:#}\n"));
            kept.unwrap_or_else(|error| panic!("{path}: {error}"));
        }
    }
}
