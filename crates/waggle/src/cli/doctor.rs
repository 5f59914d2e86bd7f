//! `waggle doctor`

use super::{Failure, Outcome};

/// Say what can be measured here, what cannot, and what to do about it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle doctor")]
pub(super) struct Args {
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(_args: Args) -> Result<Outcome, Failure> {
    Ok(Outcome::Done)
}
