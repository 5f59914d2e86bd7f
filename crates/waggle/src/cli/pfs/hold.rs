//! Changes that are held while a command runs.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use waggle_instrumentation::apply::Made;
use waggle_instrumentation::hold::Hold;
use waggle_instrumentation::{Change, Table};
use waggle_mysql::Connection;

use super::super::account::AccountArgs;
use super::super::{Failure, Outcome, duration, stop_on_signal};
use super::{cannot, guardian, journals, open, recover};

/// How often a signal is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long changes stay.
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct HoldArgs {
    /// Undo after this time; without it when Ctrl-C is pressed.
    #[arg(long = "for", value_name = "TIME", value_parser = duration, conflicts_with = "keep")]
    duration: Option<Duration>,
    /// Return at once and let it stay until `waggle pfs rollback` or a restart of the server.
    #[arg(long)]
    keep: bool,
}

/// Says what was counted since it was made.
pub(in super::super) type Report = Box<dyn FnOnce(&mut Connection) -> Result<(), Failure>>;

/// What is to be held.
pub(in super::super) struct Request<P> {
    /// What was asked for, such as `apply waits`.
    pub(in super::super) command: String,
    /// Gives the changes.
    pub(in super::super) plan: P,
    /// Called before the changes are made; what it gives is called before they are undone.
    pub(in super::super) report: fn(&mut Connection) -> Result<Report, Failure>,
}

/// Makes changes, holds them as long as is asked, and undoes them.
pub(in super::super) fn hold<P>(
    account: &AccountArgs,
    args: &HoldArgs,
    request: Request<P>,
) -> Result<Outcome, Failure>
where
    P: FnOnce(&mut Connection) -> Result<Vec<Change>, Failure>,
{
    let Request { command, plan, report } = request;
    let stop = stop_on_signal()?;
    let options = account.clone().read()?;
    let mut connection = open(&options)?;
    recover(&mut connection)?;
    let changes = plan(&mut connection)?;
    if changes.is_empty() {
        return Ok(Outcome::Done);
    }
    let mut hold = Hold::intend(&journals(), &mut connection, &command, changes).map_err(cannot)?;
    guardian::start(hold.path(), account)?;
    let report = report(&mut connection)?;
    let mut is_whole = true;
    let made = hold.make(&mut connection, &mut |made| {
        is_whole &= made.refused.is_empty();
        tell(made);
    });
    if let Err(error) = made {
        let tables = hold.changes().iter().map(|change| change.table);
        let rights = rights_for(tables, &connection);
        let restored = hold.end(&mut connection);
        let undone = restored.map_or_else(|error| error.to_string(), |_| "all is as before".into());
        let error = with_grant(error.into(), &rights);
        return Err(Failure::Cannot(error.context(format!("`{command}` failed; {undone}"))));
    }
    if args.keep {
        hold.keep().map_err(cannot)?;
        eprintln!("set; undo it with: waggle pfs rollback");
    } else {
        eprintln!("set{}; Ctrl-C undoes it", until(args.duration));
        wait(args.duration, &stop);
        report(&mut connection)?;
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

/// Waits for a time or, without one, for a signal.
pub(in super::super) fn wait(duration: Option<Duration>, stop: &AtomicBool) {
    let begin = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let left = duration.map(|duration| duration.saturating_sub(begin.elapsed()));
        if left == Some(Duration::ZERO) {
            return;
        }
        std::thread::sleep(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY)));
    }
}

/// The statements that give the rights to change tables.
pub(in super::super) fn rights_for(
    tables: impl IntoIterator<Item = Table>,
    connection: &Connection,
) -> String {
    let server = connection.server_identity();
    let (user, host) = server.account.rsplit_once('@').unwrap_or((&server.account, "%"));
    let rights: BTreeSet<_> =
        tables.into_iter().map(|table| table.right_to_change(server)).collect();
    let grants = rights.iter().map(|right| format!("GRANT {right} TO '{user}'@'{host}'"));
    let grants = grants.collect::<Vec<_>>().join("; ");
    format!("account {} may not change this; run {grants}", server.account)
}

/// An error, and what the account lacks where it is a missing right.
pub(in super::super) fn with_grant(error: anyhow::Error, rights: &str) -> anyhow::Error {
    let is_denied = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<waggle_mysql::ConnectionError>())
        .any(waggle_mysql::ConnectionError::is_access_denied);
    if is_denied { error.context(rights.to_owned()) } else { error }
}
