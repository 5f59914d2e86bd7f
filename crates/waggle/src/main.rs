//! waggle: every statement that a running MySQL or MariaDB server executes, where the time went,
//! and what looking cost.
#![forbid(unsafe_code)]

mod cli;
mod ddl;
mod lacking;
mod own_server;
mod progress;
mod said;
#[cfg(test)]
mod schema;
mod server_json;
mod streams;
mod text;
mod verification;
mod watch;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    cli::run(cli::Cli::parse())
}
