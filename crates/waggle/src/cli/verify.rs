//! `waggle verify`

use super::{Failure, Outcome};

/// Compare what is captured with the own counters of the server.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle verify --for 10s")]
pub(super) struct Args {
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(_args: Args) -> Result<Outcome, Failure> {
    Ok(Outcome::Done)
}
