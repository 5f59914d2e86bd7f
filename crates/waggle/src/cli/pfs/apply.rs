//! `waggle pfs apply`

use std::io::{self, Write};

use waggle_instrumentation::State;
use waggle_instrumentation::activity::{self, Events, Verdict};
use waggle_model::Reading;
use waggle_mysql::Connection;

use super::super::account::AccountArgs;
use super::super::{Failure, Outcome};
use super::hold::{HoldArgs, Report, Request, hold};
use super::plan::{FilterArgs, find, plan};

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
        plan: |connection: &mut Connection| plan(connection, &profile, &args.filter.clone().into()),
        report: events,
    };
    hold(&args.account, &args.hold, request)
}

/// What each class of instruments counts while the changes hold.
pub(super) fn events(connection: &mut Connection) -> Result<Report, Failure> {
    let begin = read_events(connection)?;
    Ok(Box::new(move |connection, json| show_activity(connection, begin, json)))
}

fn read_events(connection: &mut Connection) -> Result<Reading<Events>, Failure> {
    activity::read(connection).map_err(|error| Failure::Cannot(error.into()))
}

/// Says what each class counted since `begin`. Whether all of them do what was set.
fn show_activity(
    connection: &mut Connection,
    begin: Reading<Events>,
    json: bool,
) -> Result<bool, Failure> {
    let (begin, end) = match (begin, read_events(connection)?) {
        (Reading::Value(begin), Reading::Value(end)) => (begin, end),
        (Reading::Absent(why), _) | (_, Reading::Absent(why)) => {
            eprintln!("events were not counted: {why}");
            return Ok(true);
        }
    };
    let state = State::read(connection).map_err(|error| Failure::Cannot(error.into()))?;
    let proofs = activity::prove(&state, &begin, &end);
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, &proofs).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        writeln!(out, "{:<20} {:>8} {:>12}", "class", "enabled", "events")?;
        for proof in &proofs {
            let note = match proof.verdict {
                Verdict::Counts | Verdict::Still => "",
                Verdict::Silent => "  nothing of it happened",
                Verdict::CountsThoughOff => "  COUNTS THOUGH IT IS OFF",
            };
            writeln!(out, "{:<20} {:>8} {:>12}{note}", proof.class, proof.enabled, proof.events)?;
        }
    }
    Ok(!proofs.iter().any(|proof| proof.verdict == Verdict::CountsThoughOff))
}
