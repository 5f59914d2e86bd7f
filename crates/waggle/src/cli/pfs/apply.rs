//! `waggle pfs apply`

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use waggle_instrumentation::activity::{self, Events, Verdict};
use waggle_instrumentation::apply::Made;
use waggle_instrumentation::hold::Hold;
use waggle_instrumentation::{Change, State};
use waggle_model::Reading;
use waggle_mysql::Connection;

use super::super::account::AccountArgs;
use super::super::{Failure, Outcome, duration, stop_on_signal};
use super::guard::Guard;
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
    /// Undo at once when the server becomes slower by more than this, such as 3%: the processor time
    /// per statement, or the time of a statement. It is measured for 15 seconds before the change.
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "keep")]
    guard: Option<f64>,
    /// What every class counted meanwhile as one JSON array.
    #[arg(long, conflicts_with = "keep")]
    json: bool,
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
    let guard = args.guard.map(|share| {
        eprintln!("the server is measured as it is");
        Guard::begin(&mut connection, share).map_err(Failure::Cannot)
    });
    let mut guard = guard.transpose()?;
    let mut hold = Hold::intend(&journals(), &mut connection, command, changes).map_err(cannot)?;
    guardian::start(hold.path(), account)?;
    let mut is_whole = true;
    let made = hold.make(&mut connection, &mut |made| {
        is_whole &= made.refused.is_empty();
        tell(made);
    });
    if let Err(error) = made {
        let restored = hold.end(&mut connection);
        let undone = restored.map_or_else(|error| error.to_string(), |_| "all is as before".into());
        let error = with_grant(error, &connection);
        return Err(Failure::Cannot(error.context(format!("`{command}` failed; {undone}"))));
    }
    if args.keep {
        hold.keep().map_err(cannot)?;
        eprintln!("set; undo it with: waggle pfs rollback");
        return Ok(if is_whole { Outcome::Done } else { Outcome::No });
    }
    eprintln!("set{}; Ctrl-C undoes it", until(args.duration));
    let begin = read_events(&mut connection)?;
    let alarm = wait(args.duration, &stop, guard.as_mut(), &mut connection)?;
    if let Some(alarm) = &alarm {
        is_whole = false;
        eprintln!("undone at once: {alarm}");
    }
    is_whole &= show_activity(&mut connection, begin, args.json)?;
    let changes = hold.changes().len();
    let restored = hold.end(&mut connection).map_err(cannot)?;
    eprintln!("undone: {} of {changes} rows", restored.restored);
    for row in &restored.left_alone {
        is_whole = false;
        eprintln!("left alone, changed by somebody else: {}", super::history::row(row));
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

/// Waits for the end. Gives what the guard found to be slower.
fn wait(
    duration: Option<Duration>,
    stop: &AtomicBool,
    mut guard: Option<&mut Guard>,
    connection: &mut Connection,
) -> Result<Option<String>, Failure> {
    let begin = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let left = duration.map(|duration| duration.saturating_sub(begin.elapsed()));
        if left == Some(Duration::ZERO) {
            break;
        }
        std::thread::sleep(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY)));
        if let Some(guard) = &mut guard {
            let alarm = guard.look(connection);
            let alarm = alarm.map_err(|error| Failure::Cannot(error.into()))?;
            if alarm.is_some() {
                return Ok(alarm);
            }
        }
    }
    Ok(None)
}

/// A share such as `3%` or `3`.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    let share = number.ok().filter(|share| *share > 0.0 && *share <= 100.0);
    share.map(|share| share / 100.0).ok_or_else(|| format!("`{text}` is no share; write 3%"))
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
