//! `waggle pfs apply`

use std::io::{self, Write};

use waggle_instrumentation::activity;
use waggle_model::Reading;
use waggle_mysql::Connection;

use super::super::account::AccountArgs;
use super::super::{Failure, Outcome};
use super::hold::{HoldArgs, Report, Request, hold};
use super::plan::{FilterArgs, find, in_words, plan};

/// Set a profile until this command ends, and undo it then.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: waggle pfs apply waits --for 10m --defaults-file /etc/mysql/waggle.cnf"
)]
pub(super) struct Args {
    /// A name from `waggle pfs profiles`, or the path of a TOML file.
    profile: String,
    #[command(flatten)]
    hold: HoldArgs,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    account: AccountArgs,
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let profile = find(&args.profile)?;
    let request = Request {
        command: format!("apply {}", args.profile),
        plan: |connection: &mut Connection| {
            let plan = plan(connection, &profile, &args.filter.clone().into())?;
            eprint!("{}", in_words(&plan, false));
            Ok(plan.changes)
        },
        report: events,
    };
    hold(&args.account, &args.hold, request)
}

/// How many events each class counts while the changes are made.
pub(super) fn events(connection: &mut Connection) -> Result<Report, Failure> {
    let failed = |error: waggle_mysql::ConnectionError| Failure::Cannot(error.into());
    let before = activity::read(connection).map_err(failed)?;
    Ok(Box::new(move |connection| {
        let after = activity::read(connection).map_err(failed)?;
        let (before, after) = match (before, after) {
            (Reading::Value(before), Reading::Value(after)) => (before, after),
            (Reading::Absent(why), _) | (_, Reading::Absent(why)) => {
                eprintln!("events were not counted: {why}");
                return Ok(());
            }
        };
        let mut out = io::stdout().lock();
        for (class, events) in activity::by_class(&before, &after) {
            writeln!(out, "{class:<20} {events:>12} events")?;
        }
        Ok(())
    }))
}
