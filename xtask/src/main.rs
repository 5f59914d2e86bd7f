//! The tasks of the project: `cargo xtask --help`.
//!
//! xtask must build on a machine without clang, because `setup` installs clang. So it depends on
//! the test kit, never on `waggle-probes`. It runs programs that need `waggle-probes` as separate
//! programs.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tasks speak to a terminal")]

mod bench;
mod demo;
mod deny;
mod fuzz;
mod pictures;
mod program;
mod setup;
mod soak;
mod test;
mod vm;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Tasks of the project.
#[derive(Debug, Parser)]
enum Task {
    /// Make this machine ready: packages, tracefs, the servers of the tests, cargo-deny.
    Setup,
    /// Watch a real server: the ones that run, or a private one under traffic.
    Demo(demo::Args),
    /// Run every layer of the tests: of the gate, or of the long tier.
    Test(test::Args),
    /// Measure, and keep the results under bench/results.
    Bench(bench::Args),
    /// Run the large forms of the tests, and keep their results under bench/results.
    Soak(soak::Args),
    /// Run many inputs through what must bear any, and keep the result under bench/results.
    Fuzz(fuzz::Args),
    /// Take the pictures of the documents anew, from a real run.
    Pictures,
    /// Run a command under another kernel, in qemu.
    Vm(vm::VmArgs),
}

fn main() -> ExitCode {
    match run(Task::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without a backtrace, under which what failed would be lost.
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Setup => setup::run().and_then(|()| deny::install().map(drop)),
        Task::Demo(args) => demo::run(args),
        Task::Test(args) => test::run(&args),
        Task::Bench(args) => bench::run(args),
        Task::Soak(args) => soak::run(args),
        Task::Fuzz(args) => fuzz::run(&args),
        Task::Pictures => pictures::run(),
        Task::Vm(args) => vm::run(args),
    }
}
