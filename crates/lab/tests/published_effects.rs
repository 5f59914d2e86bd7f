//! Whether `docs/published_effects.md` says what the runs say that are kept.
#![allow(clippy::unwrap_used, reason = "clippy sees tests in #[test] functions only")]

use std::fs;
use std::path::{Path, PathBuf};

use waggle_lab::analysis::analyse_all;
use waggle_lab::{Begun, kept, report};

const PAGE: &str = "docs/published_effects.md";
const RESULTS: &str = "bench/results";
/// What stands before it is written by hand.
const MARK: &str = "<!-- From here on written by the command above. -->\n";

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The directories of the runs that are kept.
fn runs() -> Vec<PathBuf> {
    let entries = fs::read_dir(at(RESULTS)).unwrap().map(|entry| entry.unwrap().path());
    let has = |path: &PathBuf, name: &str| path.join(name).is_file();
    let is_run = |path: &PathBuf| has(path, kept::RUN) && has(path, kept::WINDOWS);
    let mut runs: Vec<PathBuf> = entries.filter(is_run).collect();
    runs.sort();
    runs
}

/// A section for each run of a suite with published figures.
fn sections() -> Vec<String> {
    let mut sections = Vec::new();
    for run in runs() {
        let begun: Begun = kept::read_run(&run).unwrap();
        let windows = kept::read_windows(&run).unwrap();
        let suite = begun.suite().unwrap();
        if !suite.published.is_empty() {
            let analysis = analyse_all(&suite, &windows);
            sections.push(report::effects(&suite, &begun.facts, &windows, &analysis));
        }
    }
    sections
}

#[test]
fn the_page_of_published_effects_is_what_the_runs_say_that_are_kept() {
    let page = fs::read_to_string(at(PAGE)).unwrap();
    let (by_hand, generated) = page.split_once(MARK).unwrap();
    let sections = sections();
    let now = match sections.is_empty() {
        true => "\nNo run is kept.\n".to_owned(),
        false => sections.iter().map(|section| format!("\n{section}")).collect(),
    };
    if std::env::var_os("UPDATE").is_some() {
        fs::write(at(PAGE), format!("{by_hand}{MARK}{now}")).unwrap();
        return;
    }
    let differing = now.lines().zip(generated.lines()).find(|(now, kept)| now != kept);
    assert!(
        now == generated,
        "{PAGE} is not what the runs in {RESULTS} say; run UPDATE=1 cargo test -p waggle-lab --test \
         published_effects and commit the page; the first line that differs (runs, page): {differing:?}"
    );
}
