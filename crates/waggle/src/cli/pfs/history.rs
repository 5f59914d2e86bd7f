//! `waggle pfs rollback` and `waggle pfs history`

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::Serialize;
use waggle_host::Process;
use waggle_instrumentation::Change;
use waggle_instrumentation::hold::{Ended, HoldError, of_start, undo_abandoned};
use waggle_instrumentation::journal::{self, Contents, Header, Journal, Undoer, Undone, all};
use waggle_instrumentation::locked::{Locked, in_the_way};
use waggle_instrumentation::server_start::ServerStart;
use waggle_instrumentation::undo::Restored;
use waggle_model::visible::on_a_line;
use waggle_mysql::Connection;

use super::super::account::AccountArgs;
use super::super::{Failure, Outcome, write_json};
use super::hold::tell_locked;
use super::journals;
use super::rights::Rights;
use crate::streams::{stdout, tell};

/// How long a command that is asked to end may take for undoing its changes.
const END_TIME: Duration = Duration::from_secs(30);

/// Undo every change that waggle made to this server and that is still there.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle pfs rollback --defaults-file /etc/mysql/waggle.cnf")]
pub(super) struct RollbackArgs {
    #[command(flatten)]
    account: AccountArgs,
}

pub(super) fn rollback(args: RollbackArgs) -> Result<Outcome, Failure> {
    let mut connection = super::open(&args.account.read()?)?;
    let directory = journals();
    let open = open_journals(&directory, &mut connection)?;
    let mut is_whole = true;
    for contents in &open {
        is_whole &= end_holder(contents, &mut connection)?;
        is_whole &= tell_undone(contents)?;
    }
    let changes = open.iter().flat_map(|contents| &contents.changes);
    let rights = Rights::to_change(changes.map(|change| change.table), &connection);
    let ended = undo_abandoned(&directory, &mut connection, true, &mut tell_locked)
        .map_err(|error| Failure::Cannot(rights.explain(error)))?;
    if ended.is_empty() && is_whole {
        tell!("nothing is left to undo");
    }
    for ended in &ended {
        tell(ended);
        is_whole &= ended.restored.as_ref().is_none_or(Restored::is_whole);
    }
    Ok(if is_whole { Outcome::Done } else { Outcome::No })
}

/// Asks the process that holds a journal to end, which undoes its changes. Whether it has.
fn end_holder(contents: &Contents, connection: &mut Connection) -> Result<bool, Failure> {
    if !is_held(contents)? {
        return Ok(true);
    }
    let pid = contents.header.pid;
    match ask_to_end(pid, &contents.path) {
        true => tell!("process {pid} holds `{}`: it is asked to end", contents.header.command),
        false => tell!("`{}` is being undone", contents.header.command),
    }
    wait_until_free(contents, connection, &AtomicBool::new(false))
}

/// Prints what the holder of a journal left when it undid its changes. Returns whether all is as
/// before; if the holder did not undo them, that is left for later.
fn tell_undone(contents: &Contents) -> Result<bool, Failure> {
    let now = journal::read(&contents.path)?;
    let Some(Undone { left_alone, not_restored, .. }) = now.and_then(|now| now.undone) else {
        return Ok(true);
    };
    Ok(tell_rows(&left_alone, &not_restored))
}

/// Waits until nobody holds a journal, but not for long. Whether it came to that.
fn wait_until_free(
    contents: &Contents,
    connection: &mut Connection,
    stop: &AtomicBool,
) -> Result<bool, Failure> {
    let begin = Instant::now();
    while is_held(contents)? {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if begin.elapsed() > END_TIME {
            let Header { pid, command, .. } = &contents.header;
            let who = match Process::of(*pid).has_open(&contents.path) {
                true => format!("end process {pid}"),
                // The guardian waits, whatever keeps this from being found out.
                false => kept_waiting(in_the_way(connection).ok().flatten().as_ref()),
            };
            tell!("`{command}` is still held after {} s; {who}", END_TIME.as_secs());
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(true)
}

/// What keeps a guardian from undoing changes, and that nobody has to do anything.
fn kept_waiting(locked: Option<&Locked>) -> String {
    match locked {
        Some(locked) => {
            format!("its guardian undoes it by itself as soon as the lock is gone; {locked}")
        }
        None => "its guardian goes on by itself; what keeps it waiting is not known".to_owned(),
    }
}

fn is_held(contents: &Contents) -> Result<bool, Failure> {
    let taken = Journal::take(&contents.path)?;
    Ok(taken.is_none())
}

/// Undoes what an earlier command left behind when it and its guardian died. Where the guardian is at it,
/// it is waited for.
pub(in crate::cli) fn recover(
    connection: &mut Connection,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let directory = journals();
    for contents in open_journals(&directory, connection)? {
        if is_held(&contents)? && !Process::of(contents.header.pid).has_open(&contents.path) {
            tell!("`{}` is being undone", contents.header.command);
            wait_until_free(&contents, connection, stop)?;
        }
    }
    for ended in undo_abandoned(&directory, connection, false, &mut tell_locked)? {
        tell(&ended);
    }
    Ok(())
}

/// The journals since this start of the server that are not undone.
fn open_journals(directory: &Path, connection: &mut Connection) -> Result<Vec<Contents>, Failure> {
    let start = ServerStart::of(connection)?;
    let all = of_start(directory, &start)?;
    Ok(all.into_iter().filter(Contents::is_open).collect())
}

/// Asks a process to end if it holds the journal. It may have ended meanwhile, with its guardian
/// undoing what it left, or a stranger may have its pid.
fn ask_to_end(pid: u32, journal: &Path) -> bool {
    let process = Pid::from_raw(pid.cast_signed());
    let process = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    // The number is nobody else's from here on, or the signal reaches nobody.
    let process = process.filter(|_| Process::of(pid).has_open(journal));
    process.is_some_and(|process| pidfd_send_signal(process, Signal::TERM).is_ok())
}

/// Prints the result for a journal.
pub(super) fn tell(ended: &Ended) {
    let command = &ended.contents.header.command;
    match &ended.restored {
        None => tell!("`{command}`: the server was started anew since; nothing was left of it"),
        Some(restored) => {
            let rows = undone_in_words(restored, ended.contents.changes.len());
            tell!("`{command}` is undone: {rows}");
            tell_rest(restored);
        }
    }
}

/// How many of the changed rows are as before again.
pub(super) fn undone_in_words(restored: &Restored, changes: usize) -> String {
    let rows = format!("{} of {changes} rows", restored.restored);
    let told = restored.restored + restored.left_alone.len() + restored.not_restored.len();
    match told < changes {
        true => format!("{rows}; of the others threads have ended, or rows were as before already"),
        false => rows,
    }
}

/// Prints which rows are not as before. Returns whether there are none.
pub(in crate::cli) fn tell_rest(restored: &Restored) -> bool {
    tell_rows(&restored.left_alone, &restored.not_restored)
}

fn tell_rows(left_alone: &[Change], not_restored: &[Change]) -> bool {
    for change in left_alone {
        tell!("left alone, changed by somebody else: {}", row(change));
    }
    for change in not_restored {
        tell!("the server did not take it back: {}", row(change));
    }
    left_alone.is_empty() && not_restored.is_empty()
}

/// The same where a command failed, and in words what that leaves.
pub(in crate::cli) fn rest_in_words(restored: Result<Restored, HoldError>) -> String {
    match restored {
        Ok(restored) if tell_rest(&restored) => "all is as before".to_owned(),
        Ok(_) => "all but the rows above is as before".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// A row and what it holds.
pub(in crate::cli) fn row(change: &Change) -> String {
    let side = |settings: &Option<Vec<Option<String>>>| match settings {
        None => "nothing".to_owned(),
        Some(settings) => {
            let settings = settings.iter().map(|setting| setting.as_deref().unwrap_or("NULL"));
            settings.collect::<Vec<_>>().join(" ")
        }
    };
    format!(
        "{} {}: holds {}, not {}",
        change.table.name(),
        on_a_line(&change.key.join(" ")),
        side(&change.before),
        side(&change.after)
    )
}

/// List who changed what, and when, on every server.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle pfs history --json | jq .")]
pub(super) struct HistoryArgs {
    /// One JSON object per command, with every change.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct AccountJson<'a> {
    server: &'a str,
    at: String,
    command: &'a str,
    account: &'a str,
    user: u32,
    pid: u32,
    changes: &'a [Change],
    reset: &'a BTreeMap<String, i64>,
    kept: bool,
    undone: &'a Option<Undone>,
}

pub(super) fn run(args: &HistoryArgs) -> Result<Outcome, Failure> {
    let mut out = stdout();
    for contents in all(&journals())? {
        let contents = match contents {
            Ok(contents) => contents,
            Err(error) => {
                tell!("waggle: {error}");
                continue;
            }
        };
        let Contents { header, changes, kept, reset, undone, .. } = &contents;
        if args.json {
            let row = AccountJson {
                server: &header.start.server,
                at: header.at.to_string(),
                command: &header.command,
                account: &header.account,
                user: header.user,
                pid: header.pid,
                changes,
                reset,
                kept: *kept,
                undone,
            };
            write_json(&mut out, &row)?;
            continue;
        }
        let end = match undone {
            Some(undone) => format!("undone {} {}", undone.at.strftime("%F %T"), by(undone.by)),
            None if !reset.is_empty() => "cannot be undone".to_owned(),
            None if *kept => "stays".to_owned(),
            None => "not undone".to_owned(),
        };
        writeln!(
            out,
            "{}  {}  by user {} as {}  {} rows  {end}  {}",
            header.at.strftime("%F %T"),
            on_a_line(&header.command),
            header.user,
            on_a_line(&header.account),
            changes.len() + reset.len(),
            on_a_line(&header.start.server)
        )?;
        for change in undone.iter().flat_map(|undone| &undone.left_alone) {
            writeln!(out, "    left alone: {}", row(change))?;
        }
        for change in undone.iter().flat_map(|undone| &undone.not_restored) {
            writeln!(out, "    not taken back: {}", row(change))?;
        }
    }
    Ok(Outcome::Done)
}

fn by(undoer: Undoer) -> &'static str {
    match undoer {
        Undoer::Command => "at its end",
        Undoer::Guardian => "by its guardian",
        Undoer::Later => "by a later command",
        Undoer::Restart => "by a restart of the server",
    }
}

#[cfg(test)]
mod tests {
    use waggle_instrumentation::locked::NotKnown;

    use super::*;

    #[test]
    fn a_guardian_behind_a_lock_of_somebody_unknown_goes_on_by_itself() {
        let not_known =
            NotKnown { why: "the instrument is off".to_owned(), candidates: Vec::new() };
        let said = kept_waiting(Some(&Locked { holders: Err(not_known) }));
        for part in ["by itself", "global read lock", "not known: the instrument is off"] {
            assert!(said.contains(part), "{said}");
        }
        let said = kept_waiting(None);
        assert!(said.contains("by itself") && said.contains("not known"), "{said}");
    }
}
