//! The runs of the lab that are kept with their windows.

use std::fs;
use std::path::{Path, PathBuf};

use waggle_lab::kept::{RUN, WINDOWS};

const RESULTS: &str = "bench/results";

/// Their directories, in the order of their names.
pub(crate) fn kept_runs() -> Vec<PathBuf> {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(RESULTS);
    let entries = fs::read_dir(results).unwrap().map(|entry| entry.unwrap().path());
    let has = |path: &PathBuf, name: &str| path.join(name).is_file();
    let is_run = |path: &PathBuf| has(path, RUN) && has(path, WINDOWS);
    let mut runs: Vec<PathBuf> = entries.filter(is_run).collect();
    runs.sort();
    runs
}
