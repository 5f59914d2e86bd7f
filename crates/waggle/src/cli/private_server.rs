//! `waggle private-server`: becomes a server that ends with the waggle that started it. For internal
//! use.

use std::path::PathBuf;

use anyhow::Context;
use waggle_private_server::{Inside, Launch, Launcher, Look};

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
    /// Its root directory and its mounts are those of this process.
    #[arg(long, value_name = "PID")]
    inside: Option<u32>,
    /// What it may write, in our root directory.
    #[arg(long, requires = "at")]
    own: Option<PathBuf>,
    /// Where it sees that.
    #[arg(long)]
    at: Option<PathBuf>,
    /// Its user and group, as numbers.
    #[arg(long, value_name = "UID:GID", value_parser = user)]
    user: Option<(u32, u32)>,
    /// A processor that it may use; unset: all.
    #[arg(long = "processor", value_name = "NUMBER")]
    processors: Vec<usize>,
    /// Look at something instead, and print it.
    #[arg(long)]
    look: Option<Look>,
    /// The program and its arguments, or those of the look.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let Args { parent, root, inside, own, at, user, processors, look, command } = args;
    let inside = inside.map(|process| Inside { process, own: own.zip(at) });
    let launch = Launch { parent, root, inside, user, processors, look, command };
    let ended = launch.run().map_err(anyhow::Error::from);
    let program = launch.command.first().map_or("", String::as_str);
    let ended = match launch.look {
        Some(_) => ended,
        None => ended.with_context(|| format!("{program} cannot be started")),
    };
    ended.map_err(Failure::Cannot)?;
    Ok(Outcome::Done)
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
    Ok(Launcher {
        program,
        arguments: vec![COMMAND.to_owned()],
        processors: Vec::new(),
        stop: None,
    })
}
