//! Where the kit keeps its files: the build directory, and nowhere else.

use std::env;
use std::path::{Path, PathBuf};

/// The build directory: `CARGO_TARGET_DIR`, else where this program was built, else `target` of
/// the workspace.
///
/// Cargo does not tell a running test its build directory. It marks the directory with
/// `CACHEDIR.TAG` (<https://bford.info/cachedir/>), which also finds one set in a configuration
/// file or given as a relative path.
pub fn target_dir() -> PathBuf {
    let absolute = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from).filter(|p| p.is_absolute());
    absolute.or_else(tagged_dir).unwrap_or_else(|| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").components().collect()
    })
}

/// Where the programs of the servers and their data directories are.
pub fn servers_dir() -> PathBuf {
    target_dir().join("servers")
}

fn tagged_dir() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    program.ancestors().find(|dir| dir.join("CACHEDIR.TAG").is_file()).map(Path::to_owned)
}
