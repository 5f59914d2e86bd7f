//! The runs of the lab that are kept.

use std::fs;
use std::path::{Path, PathBuf};

use waggle_lab::run_dir::PACKED_WINDOWS;

/// Their directories, in the order of their names.
pub(crate) fn kept_runs() -> Vec<PathBuf> {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/results");
    let mut runs: Vec<PathBuf> =
        fs::read_dir(results).unwrap().map(|entry| entry.unwrap().path()).collect();
    runs.retain(|run| run.join(PACKED_WINDOWS).exists());
    runs.sort();
    runs
}
