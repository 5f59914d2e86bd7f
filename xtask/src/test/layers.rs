//! The layers of the tests, in their order.

use std::time::Duration;

use super::built::Built;
use super::step::{Found, Step};
use super::tier::Tier;

/// A part of the tests that needs the same things.
pub(crate) struct Layer {
    pub(crate) name: &'static str,
    /// How many tests of its programs run at a time: two where they work, more where they mostly wait. The long tier
    /// runs one at a time.
    at_once: usize,
    /// Whether a test that failed is run again, alone: only with servers, whose time nobody has in his hand.
    pub(crate) looks_again: bool,
    steps: &'static [Step],
}

impl Layer {
    /// Whether a tier has something of it.
    pub(crate) fn is_of(&self, tier: Tier) -> bool {
        self.steps.iter().any(|step| step.is_of(tier))
    }

    /// Runs what a tier has of it. A step that cannot be run has failed, and the next ones are run.
    pub(crate) fn run(&self, tier: Tier, built: &Built) -> Vec<Found> {
        println!("\n==== {}", self.name);
        let at_once = if tier == Tier::Long { 1 } else { self.at_once };
        let run = |step: &Step| {
            step.run(tier, built, at_once).unwrap_or_else(|error| {
                let failure = Some(format!("{error:#}"));
                vec![Found::of_step("a step that could not be run", Duration::ZERO, failure)]
            })
        };
        self.steps.iter().filter(|step| step.is_of(tier)).flat_map(run).collect()
    }
}

const fn pure(name: &'static str, steps: &'static [Step]) -> Layer {
    Layer { name, at_once: 2, looks_again: false, steps }
}

const fn with_servers(name: &'static str, at_once: usize, steps: &'static [Step]) -> Layer {
    Layer { name, at_once, looks_again: true, steps }
}

pub(crate) const LAYERS: &[Layer] = &[
    pure(
        "style",
        &[
            Step::Cargo(&["fmt", "--all", "--check"]),
            Step::Cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
            Step::Deny,
        ],
    ),
    pure(
        "pure",
        &[
            Step::Units,
            Step::Tests(
                "crates/sql",
                &["digest", "mask", "secrets", "robust", "settings", "fingerprint"],
            ),
            Step::Tests("crates/sql", &["tables", "ddl", "format", "fuzz"]),
            Step::Cargo(&["test", "--workspace", "--exclude", BENCHES, "--doc"]),
        ],
    ),
    pure("rooms", &[Step::Tests("xtask", &["rooms", "attacks"])]),
    pure(
        "statistics",
        &[
            Step::Tests("crates/stats", &["coverage"]),
            Step::Tests("crates/lab", &["coverage", "published_effects", "noise_floor"]),
            Step::Tests("crates/lab", &["pictures", "reckoned"]),
        ],
    ),
    with_servers(
        "servers",
        4,
        &[Step::Tests("crates/testkit", &["it"]), Step::Tests("crates/mysql", &["it"])],
    ),
    with_servers("digests", 2, &[Step::Tests("crates/sql", &["digests"])]),
    with_servers("kernel", 4, &[Step::Tests("crates/probes", &["it"])]),
    with_servers(
        "waggle",
        4,
        &[Step::Tests("crates/observe", &["it"]), Step::Tests("crates/waggle", &["it", "help"])],
    ),
    with_servers(
        "instrumentation",
        4,
        &[Step::Tests("crates/instrumentation", &["it"]), Step::Tests("crates/waggle", &["pfs"])],
    ),
    with_servers("locks", 3, &[Step::Tests("crates/waggle", &["locks", "guide", "ddl"])]),
    with_servers(
        "lab",
        3,
        &[Step::Tests("crates/waggle", &["lab"]), Step::Tests("crates/lab", &["it"])],
    ),
    with_servers("terminal", 3, &[Step::Tests("crates/waggle", &["terminal", "profile"])]),
    with_servers(
        "bench",
        1,
        &[
            Step::Tests("bench/tap", &["quick"]),
            Step::Tests("bench/sql", &["quick"]),
            Step::Tests("bench/pfs", &["quick"]),
            Step::Tests("bench/lab", &["quick"]),
            Step::Tests("bench/locks", &["quick"]),
            Step::Tests("bench/prove", &["quick"]),
        ],
    ),
    with_servers(
        "kernel 6.1",
        1,
        &[Step::Guest {
            kernel: "6.1",
            tests: &[
                ("crates/waggle", "rungs::the_hook_that_doctor_chooses_captures_every_statement"),
                (
                    "crates/probes",
                    "waits::kernels::a_row_lock_is_told_as_that_or_it_is_told_why_not",
                ),
            ],
        }],
    ),
    with_servers("clock", 1, &[Step::Tests("crates/waggle", &["clock"])]),
];

/// Packages of which the gate builds nothing but what clippy looks at.
const BENCHES: &str = "waggle-bench*";

/// What cargo builds for a tier.
pub(crate) fn cargo_words(tier: Tier) -> Vec<&'static str> {
    if tier == Tier::Long {
        return vec!["--workspace"];
    }
    let mut words = vec!["--workspace", "--exclude", BENCHES, "--lib", "--bins"];
    for target in programs().filter(|(package, target)| tier.has_some_of(package, target)) {
        words.extend(["--test", target.1]);
    }
    words
}

/// Programs of tests, each by the directory of its package and its name.
fn programs() -> impl Iterator<Item = (&'static str, &'static str)> {
    LAYERS.iter().flat_map(|layer| layer.steps).flat_map(|step| match step {
        Step::Tests(package, targets) => targets.iter().map(|target| (*package, *target)).collect(),
        _ => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The programs that cargo finds in the directories `tests` of the packages there.
    fn found(dir: &str, root: &Path) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for package in fs::read_dir(root.join(dir)).unwrap().map(|entry| entry.unwrap().path()) {
            for test in fs::read_dir(package.join("tests")).into_iter().flatten() {
                let test = test.unwrap().path();
                let is_program = test.join("main.rs").is_file()
                    || test.extension().is_some_and(|extension| extension == "rs");
                if is_program {
                    let package = package.strip_prefix(root).unwrap().display().to_string();
                    found.push((package, test.file_stem().unwrap().to_str().unwrap().to_owned()));
                }
            }
        }
        found
    }

    #[test]
    fn every_program_of_tests_is_in_a_layer() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
        let known: BTreeSet<(&str, &str)> = programs().collect();
        let all = [found("crates", &root), found("bench", &root)].concat();
        assert!(all.len() > 20, "{all:?}");
        let is_new = |one: &&(String, String)| !known.contains(&(one.0.as_str(), one.1.as_str()));
        assert_eq!(all.iter().filter(is_new).collect::<Vec<_>>(), Vec::<&(String, String)>::new());
    }
}
