//! waggle: every statement that a running MySQL or MariaDB server executes, where the time went,
//! and what looking cost.
#![forbid(unsafe_code)]

mod cli;
mod ddl;
mod lacking;
mod own_server;
mod said;
#[cfg(test)]
mod schema;
mod server_json;
mod streams;
mod text;
mod verification;
mod watch;

use std::process::ExitCode;
use std::{panic, thread};

use clap::Parser;
use waggle_mysql::DRIVER_THREAD;

fn main() -> ExitCode {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        // Its connection tells that it ended.
        if thread::current().name() != Some(DRIVER_THREAD) {
            before(panic);
        }
    }));
    cli::run(cli::Cli::parse())
}
