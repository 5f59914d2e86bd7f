//! cargo-deny: checks licences and sources of dependencies against `deny.toml`.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use waggle_testkit::target_dir;

use crate::program::checked;

/// The same for everybody, since a rule can change its meaning from one version to the next.
const VERSION: &str = "0.20.2";
/// What needs no database from the network; that is `advisories`.
const CHECKS: [&str; 3] = ["licenses", "bans", "sources"];

/// Checks every dependency; cargo-deny is installed where it is missing.
pub(crate) fn command() -> Result<Command> {
    let mut command = Command::new(install()?);
    command.arg("check").args(CHECKS);
    Ok(command)
}

/// Where cargo-deny is. It is built where it is missing, once for every clone: two minutes of CPU, half of
/// what an optimised build takes; the check takes a second with either.
pub(crate) fn install() -> Result<PathBuf> {
    let tools = cache_dir().join("waggle/tools");
    let cargo_deny = tools.join("bin/cargo-deny");
    let version = checked(Command::new(&cargo_deny).arg("--version"));
    if version.is_ok_and(|version| version.trim() == format!("cargo-deny {VERSION}")) {
        return Ok(cargo_deny);
    }
    eprintln!("building cargo-deny {VERSION}, once: two minutes or so");
    let mut install = Command::new("cargo");
    install.args(["install", "--quiet", "--locked", "--force", "--debug"]);
    install.args(["cargo-deny", "--version", VERSION]);
    // Kept, so that what an interrupted build did is not done again.
    install.arg("--root").arg(&tools).env("CARGO_TARGET_DIR", tools.join("build"));
    install.env("CARGO_PROFILE_DEV_DEBUG", "none");
    checked(&mut install).context("cargo-deny cannot be installed")?;
    Ok(cargo_deny)
}

/// Where programs keep what they can make again (XDG Base Directory Specification).
fn cache_dir() -> PathBuf {
    let named = |variable: &str| env::var_os(variable).map(PathBuf::from);
    let absolute = |path: &PathBuf| path.is_absolute();
    let cache = named("XDG_CACHE_HOME").filter(absolute);
    cache.or_else(|| named("HOME").map(|home| home.join(".cache"))).unwrap_or_else(target_dir)
}
