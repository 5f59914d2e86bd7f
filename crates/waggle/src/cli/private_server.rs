//! `waggle private-server`: becomes a server that ends with the waggle that started it. For internal
//! use.

use std::path::PathBuf;

use anyhow::Context;
use waggle_private_server::{Launch, Launcher};

use super::{Failure, Outcome};

/// The name of the command.
const COMMAND: &str = "private-server";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The process without which the server shall not live.
    #[arg(long)]
    parent: i32,
    /// Its root directory.
    #[arg(long)]
    root: Option<PathBuf>,
    /// Its user and group, as numbers.
    #[arg(long, value_name = "UID:GID", value_parser = user)]
    user: Option<(u32, u32)>,
    /// A processor that it may use; unset: all.
    #[arg(long = "processor", value_name = "NUMBER")]
    processors: Vec<usize>,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let Args { parent, root, user, processors, command } = args;
    let launch = Launch { parent, root, user, processors, command };
    let error = anyhow::Error::from(launch.run());
    let program = launch.command.first().cloned().unwrap_or_default();
    Err(Failure::Cannot(error.context(format!("{program} cannot be started"))))
}

fn user(text: &str) -> Result<(u32, u32), String> {
    let numbers =
        text.split_once(':').and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
    numbers.ok_or_else(|| format!("`{text}` is no UID:GID"))
}

/// Starts servers by this very program.
pub(super) fn launcher() -> Result<Launcher, Failure> {
    let program = std::env::current_exe().context("waggle does not find its own program");
    let program = program.map_err(Failure::Cannot)?;
    Ok(Launcher { program, arguments: vec![COMMAND.to_owned()], processors: Vec::new() })
}
