//! `waggle innodb`

mod reset;
mod status;
mod switch;
mod watch;

use waggle_instrumentation::metrics::{Counter, read};
use waggle_model::Reading;
use waggle_mysql::Connection;

use super::{Failure, Outcome};

/// The counters of InnoDB (information_schema.INNODB_METRICS): see them, turn them on or off for a
/// while, watch them.
///
/// What is turned on or off is written to a journal before. It is set back when the command ends,
/// within two seconds of its death, and by `waggle pfs rollback`; `waggle pfs history` lists it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle innodb status --defaults-file /etc/mysql/waggle.cnf")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Status(status::Args),
    Enable(switch::EnableArgs),
    Disable(switch::DisableArgs),
    Reset(reset::Args),
    Watch(watch::Args),
}

pub(super) use switch::plan;

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    match args.command {
        Command::Status(args) => status::run(args),
        Command::Enable(args) => switch::enable(args),
        Command::Disable(args) => switch::disable(args),
        Command::Reset(args) => reset::run(args),
        Command::Watch(args) => watch::run(args),
    }
}

/// Every counter; a failure where they cannot be read.
fn counters(connection: &mut Connection) -> Result<Vec<Counter>, Failure> {
    match read(connection)? {
        Reading::Value(counters) => Ok(counters),
        Reading::Absent(why) => Err(Failure::Cannot(anyhow::anyhow!("{why}"))),
    }
}
