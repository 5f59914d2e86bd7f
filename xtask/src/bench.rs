//! `cargo xtask bench`: builds a bench and what it measures, and runs it.
//!
//! The benches are programs of their own: that of the tap needs clang and the kernel's headers, and
//! this one must build without them.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result, ensure};

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    /// The bench and its own arguments, such as `tap --pairs 40`, `sql`, `pfs`, `lab` or `locks`; with
    /// `--help` each lists them.
    #[arg(value_name = "BENCH", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let (package, arguments) = match args.arguments.split_first() {
        Some((name, rest)) if name == "sql" => ("waggle-bench-sql", rest),
        Some((name, rest)) if name == "pfs" => ("waggle-bench-pfs", rest),
        Some((name, rest)) if name == "lab" => ("waggle-bench-lab", rest),
        Some((name, rest)) if name == "locks" => ("waggle-bench-locks", rest),
        _ => ("waggle-bench", &*args.arguments),
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(&cargo);
    build.args(["build", "--quiet", "--package", package]);
    if package == "waggle-bench" {
        // What it measures.
        build.args(["--package", "waggle"]);
    }
    let built = build.status().context("cargo build")?;
    ensure!(built.success(), "the bench cannot be built: cargo xtask setup fetches what it needs");
    let run = ["run", "--quiet", "--package", package, "--bin", package, "--"];
    // This process becomes the bench: a Ctrl-C is for it alone, which may have something to keep.
    let error = Command::new(&cargo).args(run).args(arguments).exec();
    Err(error).context("cargo run")
}
