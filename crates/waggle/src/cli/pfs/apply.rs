//! `waggle pfs apply`

use std::io::Write;

use waggle_instrumentation::State;
use waggle_instrumentation::activity::{self, Events, Verdict};
use waggle_model::Reading;
use waggle_model::visible::on_a_line;
use waggle_mysql::Connection;

use super::super::account::AccountArgs;
use super::super::{Failure, Outcome, write_json};
use super::hold::{HoldArgs, Report, Request, hold};
use super::plan::{FilterArgs, find, plan};
use crate::streams::{stdout, tell};

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
    Ok(activity::read(connection)?)
}

/// Prints what each class counted since `begin`. Returns whether all of them do what was set.
fn show_activity(
    connection: &mut Connection,
    begin: Reading<Events>,
    json: bool,
) -> Result<bool, Failure> {
    let (begin, end) = match (begin, read_events(connection)?) {
        (Reading::Value(begin), Reading::Value(end)) => (begin, end),
        (Reading::Absent(why), _) | (_, Reading::Absent(why)) => {
            tell!("events were not counted: {why}");
            return Ok(true);
        }
    };
    let state = State::read(connection)?;
    let proofs = activity::prove(&state, &begin, &end);
    let mut out = stdout();
    if json {
        write_json(&mut out, &proofs)?;
    } else {
        writeln!(out, "{:<20} {:>8} {:>12}", "class", "enabled", "events")?;
        for proof in &proofs {
            let note = match proof.verdict {
                Verdict::Counts | Verdict::Still => "",
                Verdict::Silent => "  nothing of it happened",
                Verdict::CountsThoughOff => "  COUNTS THOUGH IT IS OFF",
            };
            let class = on_a_line(&proof.class);
            writeln!(out, "{class:<20} {:>8} {:>12}{note}", proof.enabled, proof.events)?;
        }
    }
    Ok(!proofs.iter().any(|proof| proof.verdict == Verdict::CountsThoughOff))
}
