//! `waggle servers`

use super::{Failure, Outcome};

/// List the MySQL and MariaDB servers of this host.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle servers --json")]
pub(super) struct Args {
    /// One JSON object per server.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(_args: Args) -> Result<Outcome, Failure> {
    Ok(Outcome::Done)
}
