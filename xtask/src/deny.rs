//! cargo-deny: the licences and the sources of what we depend on, by `deny.toml`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use anyhow::Result;
use anyhow::ensure;
use waggle_testkit::target_dir;

use crate::program::checked;

/// The same for everybody, since a rule can change its meaning from one version to the next.
const VERSION: &str = "0.20.2";
/// What needs no database from the network; that is `advisories`.
const CHECKS: [&str; 3] = ["licenses", "bans", "sources"];

/// Checks every dependency; installs cargo-deny where it is missing.
pub(crate) fn check() -> Result<()> {
    let cargo_deny = install()?;
    println!("\n== cargo deny check {}", CHECKS.join(" "));
    let ended = Command::new(&cargo_deny).arg("check").args(CHECKS).status();
    let ended = ended.with_context(|| cargo_deny.display().to_string())?;
    ensure!(ended.success(), "cargo deny ended with {ended}; the rules are in deny.toml");
    Ok(())
}

/// Where cargo-deny is. It is built under `target/tools` where it is missing: two minutes of CPU,
/// once, half of what an optimised build takes; the check takes a second with either.
pub(crate) fn install() -> Result<PathBuf> {
    let tools = target_dir().join("tools");
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
