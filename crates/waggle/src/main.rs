//! waggle: every statement that a running MySQL or MariaDB server executes, where the time went,
//! and what looking cost.
#![forbid(unsafe_code)]

mod capture;
mod cli;
mod cost;
mod ddl;
#[cfg(test)]
mod schema;
mod verification;
mod watch;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    cli::run(cli::Cli::parse())
}
