//! `cargo xtask bench`: builds a bench and what it measures, and runs it.
//!
//! Benches are separate programs: the bench of the tap needs clang and kernel headers, and xtask
//! must build without them.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result, ensure};

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    /// The bench and its own arguments, such as `tap --texts`, `sql`, `pfs`, `lab`, `locks` or `prove`; with
    /// `--help` each lists them.
    #[arg(value_name = "BENCH", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// For tests this peer of the bench of the digests is built fast instead.
const PEER_IN_FULL: &str = "profile.dev.package.sqlparser.opt-level=2";

pub(crate) fn run(args: Args) -> Result<()> {
    let name = args.arguments.first().and_then(|name| name.to_str()).unwrap_or_default();
    let (package, arguments) = match name {
        "sql" | "pfs" | "lab" | "locks" | "prove" => {
            (format!("waggle-bench-{name}"), &args.arguments[1..])
        }
        _ => ("waggle-bench".to_owned(), &*args.arguments),
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(&cargo);
    build.args(["build", "--quiet", "--package", &package, "--config", PEER_IN_FULL]);
    if ["waggle-bench", "waggle-bench-prove"].contains(&package.as_str()) {
        // What it measures.
        build.args(["--package", "waggle"]);
    }
    let built = build.status().context("cargo build")?;
    ensure!(built.success(), "the bench cannot be built: cargo xtask setup fetches what it needs");
    let run = ["run", "--quiet", "--package", &package, "--bin", &package];
    let run = run.iter().copied().chain(["--config", PEER_IN_FULL, "--"]);
    // This process becomes the bench: a Ctrl-C is for it alone, which may have something to keep.
    let error = Command::new(&cargo).args(run).args(arguments).exec();
    Err(error).context("cargo run")
}
