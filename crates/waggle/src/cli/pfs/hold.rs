//! Holds changes while a command runs.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use waggle_instrumentation::apply::Made;
use waggle_instrumentation::hold::{Hold, HoldError, check_free};
use waggle_instrumentation::locked::Locked;
use waggle_instrumentation::plan::Plan;
use waggle_mysql::Connection;

use super::super::account::AccountArgs;
use super::super::{Failure, Outcome, some_time, stop_on_signal};
use super::guard::Guard;
use super::history::{recover, rest_in_words, tell_rest, undone_in_words};
use super::plan::in_words;
use super::rights::Rights;
use super::{guardian, journals, open};
use crate::streams::{stderr, tell};

/// How often a signal is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long what stays is looked at.
const PROOF: Duration = Duration::from_secs(1);

/// How long changes stay.
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct HoldArgs {
    /// Undo after this time; unset: at Ctrl-C. A bare number is seconds.
    #[arg(long = "for", value_name = "TIME", value_parser = some_time, conflicts_with = "keep")]
    duration: Option<Duration>,
    /// Return after counting events for one second, and leave the change until `waggle pfs
    /// rollback` or a restart of the server.
    #[arg(long)]
    keep: bool,
    /// Undo at once when the server becomes slower by more than this, such as 3%: the CPU time
    /// per statement, or the time of a statement. It is measured for half a minute to two minutes before
    /// the change.
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "keep")]
    guard: Option<f64>,
    /// What was counted meanwhile as JSON.
    #[arg(long)]
    json: bool,
}

/// Prints what was counted since the change, as JSON or text. Returns whether everything does what
/// was set.
pub(in super::super) type Report = Box<dyn FnOnce(&mut Connection, bool) -> Result<bool, Failure>>;

/// What is to be held.
pub(in super::super) struct Request<P> {
    /// What was asked for, such as `apply waits`.
    pub(in super::super) command: String,
    /// Gives the plan for the server as it is.
    pub(in super::super) plan: P,
    /// Called when the changes are made; what it returns is called before they are undone.
    pub(in super::super) report: fn(&mut Connection) -> Result<Report, Failure>,
}

/// Makes changes, holds them as long as is asked, and undoes them.
pub(in super::super) fn hold<P>(
    account: &AccountArgs,
    args: &HoldArgs,
    request: Request<P>,
) -> Result<Outcome, Failure>
where
    P: Fn(&mut Connection) -> Result<Plan, Failure>,
{
    let Request { command, plan: planned, report } = request;
    let stop = stop_on_signal()?;
    let options = account.clone().read()?;
    let mut connection = open(&options)?;
    recover(&mut connection, &stop)?;
    let mut plan = planned(&mut connection)?;
    let words = in_words(&plan, false);
    write!(stderr(), "{words}")?;
    if plan.changes.is_empty() {
        return Ok(Outcome::Done);
    }
    let mut guard = None;
    if let Some(share) = args.guard {
        guard = guarded(&mut connection, &plan, share, &stop)?;
        // The undo goes back to what somebody else set meanwhile.
        plan = planned(&mut connection)?;
        if in_words(&plan, false) != words {
            write!(
                stderr(),
                "somebody changed settings meanwhile; now\n{}",
                in_words(&plan, false)
            )?;
        }
    }
    if stop.load(Ordering::Relaxed) {
        tell!("stopped; nothing was changed");
        return Ok(Outcome::No);
    }
    let mut hold = begin(&mut connection, account, &command)?;
    let mut is_whole = true;
    let made = hold.make(&mut connection, &plan, &stop, &mut |made| {
        is_whole &= made.refused.is_empty();
        tell(made);
    });
    let is_made = match made {
        Ok(is_made) => is_made,
        Err(error) => {
            let what = format!("`{command}` failed");
            return Err(failed(error, hold, &mut connection, what));
        }
    };
    if !is_made {
        tell!("stopped before all was set");
    }
    let time = if args.keep { Some(PROOF) } else { args.duration };
    if is_made && !args.keep {
        tell!("set{}; Ctrl-C undoes it", until(time));
    }
    let mut held = || -> Result<bool, Failure> {
        let report = report(&mut connection)?;
        let alarm = wait_guarded(time, &stop, guard.as_mut(), &mut connection)?;
        if let Some(alarm) = &alarm {
            tell!("undone at once: {alarm}");
        }
        Ok(report(&mut connection, args.json)? && alarm.is_none())
    };
    // Whatever fails meanwhile, it is undone.
    let held = if is_made { held() } else { Ok(false) };
    let is_stopped = stop.load(Ordering::Relaxed);
    if let (true, false, Ok(does_what_was_set)) = (args.keep, is_stopped, &held) {
        hold.keep()?;
        tell!("set; undo it with: waggle pfs rollback");
        return Ok(if is_whole && *does_what_was_set { Outcome::Done } else { Outcome::No });
    }
    // It was to stay.
    is_whole &= !args.keep;
    let changes = hold.changes().len();
    let restored = hold.end(&mut connection, &mut tell_locked).map_err(left_to_the_guardian)?;
    tell!("undone: {}", undone_in_words(&restored, changes));
    is_whole &= tell_rest(&restored);
    is_whole &= held?;
    Ok(if is_whole { Outcome::Done } else { Outcome::No })
}

/// Measures the server as it is, to guard it from then on.
fn guarded(
    connection: &mut Connection,
    plan: &Plan,
    share: f64,
    stop: &AtomicBool,
) -> Result<Option<Guard>, Failure> {
    // Before it takes its time.
    check_free(&journals(), connection)?;
    tell!("the server is measured as it is");
    let guard = Guard::begin(connection, &plan.changes, share, stop).map_err(Failure::Cannot)?;
    if let Some(guard) = &guard {
        tell!("guarded: {}", guard.watched());
    }
    Ok(guard)
}

/// Says who keeps an undo waiting. The undo goes on where nobody can be told.
pub(in super::super) fn tell_locked(locked: &Locked) {
    tell!("not undone yet, it goes on as soon as the lock is gone: {locked}");
}

/// The guardian's part, if this connection cannot.
pub(in super::super) fn left_to_the_guardian(error: HoldError) -> Failure {
    let when = match error {
        HoldError::Connection(_) => "the server answers",
        HoldError::Locked(_) => "that lock is gone",
        _ => return error.into(),
    };
    let who = format!(
        "it was not undone here: its guardian does it as soon as {when}; waggle pfs history says when"
    );
    Failure::Cannot(anyhow::Error::new(error).context(who))
}

/// What could not be made is undone.
pub(in super::super) fn failed(
    error: HoldError,
    hold: Hold,
    connection: &mut Connection,
    what: String,
) -> Failure {
    let tables = hold.changes().iter().map(|change| change.table);
    let rights = Rights::to_change(tables, connection);
    let undone = rest_in_words(hold.end(connection, &mut tell_locked));
    let error = rights.explain(error);
    Failure::Cannot(error.context(format!("{what}; {undone}")))
}

/// Begins a journal, and starts its guardian.
pub(in super::super) fn begin(
    connection: &mut Connection,
    account: &AccountArgs,
    command: &str,
) -> Result<Hold, Failure> {
    let hold = Hold::begin(&journals(), connection, command)?;
    match guardian::start(hold.path(), account) {
        Ok(()) => Ok(hold),
        Err(failure) => {
            // Nothing was changed: only the journal is closed, and where that fails it is found empty later.
            let _ = hold.end(connection, &mut tell_locked);
            Err(failure)
        }
    }
}

fn until(duration: Option<Duration>) -> String {
    duration.map_or(String::new(), |duration| format!(" for {} s", duration.as_secs_f64()))
}

fn tell(made: &Made) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    tell!(
        "  {:<20} {:>5} rows in {:.1} ms, the longest of {} statements {:.1} ms",
        made.what,
        made.rows,
        ms(made.took),
        made.statements,
        ms(made.longest)
    );
    for row in &made.refused {
        tell!("    the server did not take it: {}", super::history::row(row));
    }
}

/// Waits for a time or, without one, for a signal.
pub(in super::super) fn wait(duration: Option<Duration>, stop: &AtomicBool) {
    // Nobody says anything to stop it.
    let _ = wait_unless(duration, stop, || Ok(None));
}

/// The same. Gives what the guard found to be slower.
fn wait_guarded(
    duration: Option<Duration>,
    stop: &AtomicBool,
    guard: Option<&mut Guard>,
    connection: &mut Connection,
) -> Result<Option<String>, Failure> {
    let Some(guard) = guard else {
        wait(duration, stop);
        return Ok(None);
    };
    wait_unless(duration, stop, || Ok(guard.look(connection)?))
}

fn wait_unless(
    duration: Option<Duration>,
    stop: &AtomicBool,
    mut alarm: impl FnMut() -> Result<Option<String>, Failure>,
) -> Result<Option<String>, Failure> {
    let begin = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let left = duration.map(|duration| duration.saturating_sub(begin.elapsed()));
        if left == Some(Duration::ZERO) {
            break;
        }
        std::thread::sleep(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY)));
        let alarm = alarm()?;
        if alarm.is_some() {
            return Ok(alarm);
        }
    }
    Ok(None)
}

/// A share such as `3%` or `3`.
pub(in super::super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    let share = number.ok().filter(|share| *share > 0.0 && *share <= 100.0);
    share.map(|share| share / 100.0).ok_or_else(|| format!("`{text}` is no share; write 3%"))
}
