//! `waggle pfs rollback` and `waggle pfs history`

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::Serialize;
use waggle_instrumentation::Change;
use waggle_instrumentation::hold::{Ended, HoldError, of_life, undo_abandoned};
use waggle_instrumentation::journal::{self, Begun, Contents, Journal, Undoer, Undone, all};
use waggle_instrumentation::life::Life;
use waggle_instrumentation::undo::Restored;
use waggle_mysql::Connection;

use super::super::account::AccountArgs;
use super::super::{Failure, Outcome};
use super::rights::Rights;
use super::{cannot, journals};

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
        is_whole &= end_holder(contents)?;
        is_whole &= tell_undone(contents)?;
    }
    let changes = open.iter().flat_map(|contents| &contents.changes);
    let rights = Rights::to_change(changes.map(|change| change.table), &connection);
    let ended = undo_abandoned(&directory, &mut connection, true)
        .map_err(|error| Failure::Cannot(rights.explain(error)))?;
    if ended.is_empty() && is_whole {
        eprintln!("nothing is left to undo");
    }
    for ended in &ended {
        tell(ended);
        is_whole &= ended.restored.as_ref().is_none_or(Restored::is_whole);
    }
    Ok(if is_whole { Outcome::Done } else { Outcome::No })
}

/// Asks the process that holds a journal to end, which undoes its changes. Whether it has.
fn end_holder(contents: &Contents) -> Result<bool, Failure> {
    if !is_held(contents)? {
        return Ok(true);
    }
    let pid = contents.begun.pid;
    match ask_to_end(pid, &contents.path) {
        true => eprintln!("process {pid} holds `{}`: it is asked to end", contents.begun.command),
        false => eprintln!("`{}` is being undone", contents.begun.command),
    }
    wait_until_free(contents, &AtomicBool::new(false))
}

/// Says what whoever held a journal left when it undid its changes. Whether all is as before; where it did not undo
/// them that is for later.
fn tell_undone(contents: &Contents) -> Result<bool, Failure> {
    let now = journal::read(&contents.path).map_err(|error| Failure::Cannot(error.into()))?;
    let Some(Undone { left_alone, not_restored, .. }) = now.and_then(|now| now.undone) else {
        return Ok(true);
    };
    Ok(tell_rows(&left_alone, &not_restored))
}

/// Waits until nobody holds a journal, but not for long. Whether it came to that.
fn wait_until_free(contents: &Contents, stop: &AtomicBool) -> Result<bool, Failure> {
    let begin = Instant::now();
    while is_held(contents)? {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if begin.elapsed() > END_TIME {
            let Begun { pid, command, .. } = &contents.begun;
            let who = match has_open(*pid, &contents.path) {
                true => format!("end process {pid}"),
                false => "its guardian is at it, and needs the server to answer".to_owned(),
            };
            eprintln!("`{command}` is still held after {} s; {who}", END_TIME.as_secs());
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(true)
}

fn is_held(contents: &Contents) -> Result<bool, Failure> {
    let taken = Journal::take(&contents.path).map_err(|error| Failure::Cannot(error.into()))?;
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
        if is_held(&contents)? && !has_open(contents.begun.pid, &contents.path) {
            eprintln!("`{}` is being undone", contents.begun.command);
            wait_until_free(&contents, stop)?;
        }
    }
    for ended in undo_abandoned(&directory, connection, false).map_err(cannot)? {
        tell(&ended);
    }
    Ok(())
}

/// The journals of this life of the server that are not undone.
fn open_journals(directory: &Path, connection: &mut Connection) -> Result<Vec<Contents>, Failure> {
    let life = Life::of(connection).map_err(|error| Failure::Cannot(error.into()))?;
    let all = of_life(directory, &life).map_err(|error| Failure::Cannot(error.into()))?;
    Ok(all.into_iter().filter(Contents::is_open).collect())
}

/// Asks a process to end where it is the one that holds a journal: it may have ended meanwhile, and its
/// guardian undo what it left, or a stranger have its number.
fn ask_to_end(pid: u32, journal: &Path) -> bool {
    let process = Pid::from_raw(pid.cast_signed());
    let process = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    // The number is nobody else's from here on, or the signal reaches nobody.
    let process = process.filter(|_| has_open(pid, journal));
    process.is_some_and(|process| pidfd_send_signal(process, Signal::TERM).is_ok())
}

fn has_open(pid: u32, path: &Path) -> bool {
    let same =
        |one: &Metadata, other: &Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
    let (Ok(it), Ok(files)) = (path.metadata(), fs::read_dir(format!("/proc/{pid}/fd"))) else {
        return false;
    };
    files.flatten().any(|file| fs::metadata(file.path()).is_ok_and(|open| same(&open, &it)))
}

/// Says what came of a journal.
pub(super) fn tell(ended: &Ended) {
    let command = &ended.contents.begun.command;
    match &ended.restored {
        None => eprintln!("`{command}`: the server was started anew since; nothing was left of it"),
        Some(restored) => {
            let rows = undone_in_words(restored, ended.contents.changes.len());
            eprintln!("`{command}` is undone: {rows}");
            tell_rest(restored);
        }
    }
}

/// How many rows of so many changes are as before again.
pub(super) fn undone_in_words(restored: &Restored, changes: usize) -> String {
    let rows = format!("{} of {changes} rows", restored.restored);
    let told = restored.restored + restored.left_alone.len() + restored.not_restored.len();
    match told < changes {
        true => format!("{rows}; of the others threads have ended, or rows were as before already"),
        false => rows,
    }
}

/// Says which rows are not as before. Whether there are none.
pub(in crate::cli) fn tell_rest(restored: &Restored) -> bool {
    tell_rows(&restored.left_alone, &restored.not_restored)
}

fn tell_rows(left_alone: &[Change], not_restored: &[Change]) -> bool {
    for change in left_alone {
        eprintln!("left alone, changed by somebody else: {}", row(change));
    }
    for change in not_restored {
        eprintln!("the server did not take it back: {}", row(change));
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
        change.key.join(" "),
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
    let mut out = io::stdout().lock();
    for contents in all(&journals()).map_err(|error| Failure::Cannot(error.into()))? {
        let contents = match contents {
            Ok(contents) => contents,
            Err(error) => {
                eprintln!("waggle: {error}");
                continue;
            }
        };
        let Contents { begun, changes, kept, reset, undone, .. } = &contents;
        if args.json {
            let row = AccountJson {
                server: &begun.life.server,
                at: begun.at.to_string(),
                command: &begun.command,
                account: &begun.account,
                user: begun.user,
                pid: begun.pid,
                changes,
                reset,
                kept: *kept,
                undone,
            };
            serde_json::to_writer(&mut out, &row).map_err(io::Error::from)?;
            writeln!(out)?;
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
            begun.at.strftime("%F %T"),
            begun.command,
            begun.user,
            begun.account,
            changes.len() + reset.len(),
            begun.life.server
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
