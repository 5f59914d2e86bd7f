//! `waggle pfs apply`

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use waggle_instrumentation::apply::Made;
use waggle_instrumentation::hold::Hold;
use waggle_instrumentation::{Change, activity};
use waggle_model::Reading;
use waggle_mysql::Connection;

use super::super::account::AccountArgs;
use super::super::{Failure, Outcome, duration, stop_on_signal};
use super::plan::{FilterArgs, find, in_words, plan};
use super::{cannot, guardian, journals, open, recover, with_grant};

/// How often a signal is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

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

/// How long changes stay.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct HoldArgs {
    /// Undo after this time; without it when Ctrl-C is pressed.
    #[arg(long = "for", value_name = "TIME", value_parser = duration, conflicts_with = "keep")]
    duration: Option<Duration>,
    /// Return at once and let it stay until `waggle pfs rollback` or a restart of the server.
    #[arg(long)]
    keep: bool,
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let profile = find(&args.profile)?;
    let command = format!("apply {}", args.profile);
    hold(&args.account, &args.hold, &command, |connection| {
        let plan = plan(connection, &profile, &args.filter.clone().into())?;
        eprint!("{}", in_words(&plan, false));
        Ok(plan.changes)
    })
}

/// Makes the changes that `plan` gives, holds them as long as is asked, and undoes them.
pub(super) fn hold(
    account: &AccountArgs,
    args: &HoldArgs,
    command: &str,
    plan: impl FnOnce(&mut Connection) -> Result<Vec<Change>, Failure>,
) -> Result<Outcome, Failure> {
    let stop = stop_on_signal()?;
    let options = account.clone().read()?;
    let mut connection = open(&options)?;
    recover(&mut connection)?;
    let changes = plan(&mut connection)?;
    if changes.is_empty() {
        return Ok(Outcome::Done);
    }
    let mut hold = Hold::intend(&journals(), &mut connection, command, changes).map_err(cannot)?;
    guardian::start(hold.path(), account)?;
    let before = activity::read(&mut connection).map_err(|error| Failure::Cannot(error.into()))?;
    let mut is_whole = true;
    let made = hold.make(&mut connection, &mut |made| {
        is_whole &= made.refused.is_empty();
        tell(made);
    });
    if let Err(error) = made {
        let restored = hold.end(&mut connection);
        let undone = restored.map_or_else(|error| error.to_string(), |_| "all is as before".into());
        let error = with_grant(error.into(), &connection);
        return Err(Failure::Cannot(error.context(format!("`{command}` failed; {undone}"))));
    }
    if args.keep {
        hold.keep().map_err(cannot)?;
        eprintln!("set; undo it with: waggle pfs rollback");
    } else {
        eprintln!("set{}; Ctrl-C undoes it", until(args.duration));
        wait(args.duration, &stop);
        show_activity(&mut connection, before)?;
        let changes = hold.changes().len();
        let restored = hold.end(&mut connection).map_err(cannot)?;
        eprintln!("undone: {} of {changes} rows", restored.restored);
        for row in &restored.left_alone {
            is_whole = false;
            eprintln!("left alone, changed by somebody else: {}", super::history::row(row));
        }
    }
    Ok(if is_whole { Outcome::Done } else { Outcome::No })
}

fn until(duration: Option<Duration>) -> String {
    duration.map_or(String::new(), |duration| format!(" for {} s", duration.as_secs_f64()))
}

fn tell(made: &Made) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    eprintln!(
        "  {:<20} {:>5} rows in {:.1} ms, the longest of {} statements {:.1} ms",
        made.what,
        made.rows,
        ms(made.took),
        made.statements,
        ms(made.longest)
    );
    for row in &made.refused {
        eprintln!("    the server did not take it: {}", super::history::row(row));
    }
}

fn wait(duration: Option<Duration>, stop: &AtomicBool) {
    let begin = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let left = duration.map(|duration| duration.saturating_sub(begin.elapsed()));
        if left == Some(Duration::ZERO) {
            return;
        }
        std::thread::sleep(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY)));
    }
}

/// How many events each class counted while the changes were made.
fn show_activity(
    connection: &mut Connection,
    before: Reading<activity::Events>,
) -> Result<(), Failure> {
    let after = activity::read(connection).map_err(|error| Failure::Cannot(error.into()))?;
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
}
