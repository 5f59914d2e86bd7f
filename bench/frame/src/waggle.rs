//! The binary that is measured.

use std::path::PathBuf;

use anyhow::{Result, ensure};

/// The binary `waggle`, beside this one in the build directory.
///
/// # Errors
/// It is not built.
pub fn waggle() -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("waggle");
    ensure!(path.is_file(), "{} is missing: run cargo build -p waggle first", path.display());
    Ok(path)
}
