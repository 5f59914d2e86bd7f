//! Changes that last as long as somebody holds them.

mod error;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use waggle_mysql::{Connection, ConnectionError};

pub use self::error::HoldError;
use crate::apply::{Made, Pace, send, what, write};
use crate::change::Change;
use crate::journal::{Alone, Contents, Header, Journal, JournalError, Planned, Undoer, Undone};
use crate::left_connection::{mark, wait_for_end};
use crate::locked::{By, Locked, PATIENCE, briefly};
use crate::plan::Plan;
use crate::server_start::ServerStart;
use crate::state::{Key, Settings, State, rows};
use crate::table::Table;
use crate::undo::{Restored, is_rule, settings_at_start, undo};
use crate::{rebuild, sessions};

/// Changes that were written to a journal and are made.
#[derive(Debug)]
pub struct Hold {
    journal: Journal,
    planned: Option<Planned>,
    changes: Vec<Change>,
    /// Of [`Hold::switch`].
    pace: Pace,
}

impl Hold {
    /// Begins a journal. Nothing is changed yet.
    ///
    /// # Errors
    /// Another process holds changes of this server, some were to stay, or the journal cannot be written.
    pub fn begin(
        directory: &Path,
        connection: &mut Connection,
        command: &str,
    ) -> Result<Hold, HoldError> {
        let header = header(connection, command)?;
        let alone = Alone::within(directory)?;
        check_free_in(directory, &header.start)?;
        let journal = Journal::begin(&alone, header)?;
        Ok(Hold { journal, planned: None, changes: Vec::new(), pace: Pace::of_switches() })
    }

    /// Where its journal is.
    pub fn path(&self) -> &Path {
        self.journal.path()
    }

    /// Makes the changes of a plan, class by class. A row that no longer holds what the plan found was changed by
    /// somebody else, and is left alone. Whether it came to the end: false where it was stopped.
    ///
    /// # Errors
    /// The server refuses one, or the connection is broken. What was made by then is in the journal.
    pub fn make(
        &mut self,
        connection: &mut Connection,
        plan: &Plan,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&Made),
    ) -> Result<bool, HoldError> {
        briefly(connection, |connection| self.make_now(connection, plan, stop, tell))
    }

    fn make_now(
        &mut self,
        connection: &mut Connection,
        plan: &Plan,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&Made),
    ) -> Result<bool, HoldError> {
        rebuild::check(connection, &plan.changes)?;
        let planned = Planned { rows: plan.changes.len(), last_thread: plan.last_thread };
        self.journal.plan(planned)?;
        self.planned = Some(planned);
        let mut pace = Pace::default();
        for of_class in plan.changes.chunk_by(|one, other| what(one) == what(other)) {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let (as_planned, others) = parted(connection, of_class)?;
            // What somebody else has set goes into the journal, so that a later undo reports it.
            self.intend(&others)?;
            self.intend(&as_planned)?;
            write(connection, &as_planned, &mut pace, tell).map_err(full_or)?;
        }
        let late = late_threads(connection, &plan.changes, plan.last_thread)?;
        self.intend(&late)?;
        write(connection, &late, &mut pace, tell)?;
        Ok(true)
    }

    /// Writes to the journal what is about to be changed.
    fn intend(&mut self, changes: &[Change]) -> Result<(), JournalError> {
        self.journal.intend(changes)?;
        self.changes.extend_from_slice(changes);
        Ok(())
    }

    /// Makes further changes; each is in the same journal first. A value already written to a row
    /// once is not journaled again, so a journal stays small however often settings change. The
    /// undo restores what the rows held at first.
    ///
    /// # Errors
    /// As [`Hold::make`].
    pub fn add(
        &mut self,
        connection: &mut Connection,
        changes: &[Change],
        tell: &mut dyn FnMut(&Made),
    ) -> Result<(), HoldError> {
        self.intend_new(changes)?;
        briefly(connection, |connection| {
            write(connection, changes, &mut Pace::default(), tell).map_err(full_or)
        })
    }

    /// As [`Hold::add`], of what was read back before: now it is not. It is quicker, for what changes often.
    ///
    /// # Errors
    /// As [`Hold::make`].
    pub fn switch(
        &mut self,
        connection: &mut Connection,
        changes: &[Change],
    ) -> Result<(), HoldError> {
        self.intend_new(changes)?;
        let pace = &mut self.pace;
        briefly(connection, |connection| send(connection, changes, pace).map(drop).map_err(full_or))
    }

    /// Writes to the journal what it does not hold yet.
    fn intend_new(&mut self, changes: &[Change]) -> Result<(), JournalError> {
        let known: BTreeSet<_> = self.changes.iter().map(written).collect();
        let is_new = |change: &&Change| !known.contains(&written(change));
        let new: Vec<Change> = changes.iter().filter(is_new).cloned().collect();
        self.intend(&new)
    }

    /// The changes that are made.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Lets them stay until somebody asks to undo them.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn keep(mut self) -> Result<(), HoldError> {
        Ok(self.journal.keep()?)
    }

    /// Undoes them. While a lock of the whole server keeps the undo waiting, `tell` is told once, and
    /// it is tried for half a minute.
    ///
    /// # Errors
    /// The connection is broken, the lock stays, or the journal cannot be written.
    pub fn end(
        self,
        connection: &mut Connection,
        tell: &mut dyn FnMut(&Locked),
    ) -> Result<Restored, HoldError> {
        let by = By { undoer: Undoer::Command, patience: PATIENCE, tell };
        undo_journal(self.journal, self.planned, &self.changes, connection, by)
    }
}

/// Whether changes can be held: nobody holds any, and none are to stay.
///
/// # Errors
/// Somebody does, or some are; a journal cannot be read; or the connection is broken.
pub fn check_free(directory: &Path, connection: &mut Connection) -> Result<(), HoldError> {
    check_free_in(directory, &ServerStart::of(connection)?)
}

fn check_free_in(directory: &Path, start: &ServerStart) -> Result<(), HoldError> {
    let Some(contents) = of_start(directory, start)?.into_iter().find(Contents::is_open) else {
        return Ok(());
    };
    let Header { pid, command, at, .. } = contents.header;
    Err(match contents.kept {
        true => HoldError::Kept { command, at: at.strftime("%F %T").to_string() },
        false => HoldError::Held { pid, command },
    })
}

/// Changes for rows that hold what was found, and for rows that somebody has set to something else
/// meanwhile. A row that already holds the wanted value needs no change.
fn parted(
    connection: &mut Connection,
    changes: &[Change],
) -> Result<(Vec<Change>, Vec<Change>), ConnectionError> {
    let Some(first) = changes.first() else { return Ok(Default::default()) };
    let rows = rows(connection, first.table)?;
    let is =
        |change: &Change, settings: &Option<Settings>| rows.get(&change.key) == settings.as_ref();
    let (as_planned, others): (Vec<_>, Vec<_>) =
        changes.iter().cloned().partition(|change| is(change, &change.before));
    Ok((as_planned, others.into_iter().filter(|change| !is(change, &change.after)).collect()))
}

/// Where a change writes what.
fn written(change: &Change) -> (Table, &Key, Option<&Settings>) {
    (change.table, &change.key, change.after.as_ref())
}

/// `ER_RECORD_FILE_FULL`
const TABLE_FULL: u16 = 1114;

fn full_or(error: ConnectionError) -> HoldError {
    let is_full = error.number() == Some(TABLE_FULL);
    let said = error.to_string();
    let tables = [Table::Actors, Table::Objects].map(Table::name);
    match tables.into_iter().find(|table| is_full && said.contains(table)) {
        Some(table) => HoldError::Full { table },
        None => error.into(),
    }
}

/// The first line of a journal that this connection begins.
pub(crate) fn header(
    connection: &mut Connection,
    command: &str,
) -> Result<Header, ConnectionError> {
    let start = ServerStart::of(connection)?;
    let identity = connection.server_identity();
    let header = Header {
        start,
        command: command.to_owned(),
        account: identity.account.clone(),
        user: rustix::process::getuid().as_raw(),
        pid: std::process::id(),
        connection: identity.connection_id,
        at: Timestamp::now(),
    };
    mark(connection, &header)?;
    Ok(header)
}

/// Threads that began after the plan was made and before the rules were changed.
fn late_threads(
    connection: &mut Connection,
    changes: &[Change],
    last_thread: u64,
) -> Result<Vec<Change>, ConnectionError> {
    if !changes.iter().any(is_rule) {
        return Ok(Vec::new());
    }
    let state = State::read(connection)?;
    let sessions = sessions::read(connection)?;
    let late = sessions.iter().filter_map(|session| {
        let key = vec![session.thread.to_string()];
        let before = state.row(Table::Threads, &key)?.clone();
        let after = settings_at_start(&state, session)?;
        (session.thread > last_thread && before != after).then_some(Change {
            table: Table::Threads,
            key,
            before: Some(before),
            after: Some(after),
        })
    });
    Ok(late.collect())
}

/// The result for one journal.
#[derive(Debug)]
pub struct Ended {
    /// What the journal holds.
    pub contents: Contents,
    /// What was restored; `None` if the server restarted meanwhile and nothing was left.
    pub restored: Option<Restored>,
}

/// Undoes every journal of this server that nobody holds, the latest first. Journals of changes
/// made to stay are undone only if `kept` says so. `tell` as in [`Hold::end`].
///
/// # Errors
/// The connection is broken, a lock of the whole server stays, or a journal cannot be read or written.
pub fn undo_abandoned(
    directory: &Path,
    connection: &mut Connection,
    kept: bool,
    tell: &mut dyn FnMut(&Locked),
) -> Result<Vec<Ended>, HoldError> {
    let start = ServerStart::of(connection)?;
    let mut ended = Vec::new();
    for contents in of_server(directory, &start.server)?.into_iter().rev() {
        // What was to stay is gone since the server was started anew.
        if !contents.is_open() || contents.kept && !kept && contents.header.start.is(&start) {
            continue;
        }
        if let Some(journal) = Journal::take(&contents.path)? {
            let by = By { undoer: Undoer::Later, patience: PATIENCE, tell: &mut *tell };
            ended.extend(undo_taken(journal, &start, connection, by)?);
        }
    }
    Ok(ended)
}

/// The journals since this start of the server that [`undo_abandoned`] would undo. Nothing is changed.
///
/// # Errors
/// The connection is broken, or a journal cannot be read.
pub fn abandoned(
    directory: &Path,
    connection: &mut Connection,
) -> Result<Vec<Contents>, HoldError> {
    let start = ServerStart::of(connection)?;
    let mut left = Vec::new();
    for contents in of_start(directory, &start)? {
        let is_left = contents.is_open() && !contents.kept && !contents.changes.is_empty();
        if is_left && Journal::take(&contents.path)?.is_some() {
            left.push(contents);
        }
    }
    Ok(left)
}

/// Waits until the holder of a journal is gone, and undoes what it left; as long as a lock of the whole
/// server keeps that waiting.
///
/// # Errors
/// The connection is broken, or the journal cannot be read or written.
pub fn guard(
    path: &Path,
    connection: &mut Connection,
    tell: &mut dyn FnMut(&Locked),
) -> Result<Option<Ended>, HoldError> {
    let journal = Journal::wait_for(path)?;
    // Where all is undone, the server is asked nothing. Somebody may grant rights to this account now, and
    // MySQL would go on with the rights that it read too early.
    if !journal.read()?.is_some_and(|contents| contents.is_open() && !contents.kept) {
        return Ok(None);
    }
    let start = ServerStart::of(connection)?;
    let by = By { undoer: Undoer::Guardian, patience: Duration::MAX, tell };
    undo_taken(journal, &start, connection, by)
}

fn undo_taken(
    journal: Journal,
    start: &ServerStart,
    connection: &mut Connection,
    by: By<'_>,
) -> Result<Option<Ended>, HoldError> {
    // Another may have been quicker.
    let contents = journal.read()?.filter(Contents::is_open);
    let Some(contents) = contents else { return Ok(None) };
    // Connection ids grow while a server lives. After a restart within a second they say nothing,
    // and the process id may be unknown.
    let number = connection.server_identity().connection_id;
    if !contents.header.start.is(start) || number <= contents.header.connection {
        journal.close(Undone::whole(Undoer::Restart))?;
        return Ok(Some(Ended { contents, restored: None }));
    }
    wait_for_end(connection, &contents.header, &contents.path)?;
    let restored = undo_journal(journal, contents.planned, &contents.changes, connection, by)?;
    Ok(Some(Ended { contents, restored: Some(restored) }))
}

fn undo_journal(
    mut journal: Journal,
    planned: Option<Planned>,
    changes: &[Change],
    connection: &mut Connection,
    mut by: By<'_>,
) -> Result<Restored, HoldError> {
    let (last_thread, mut intended) = (planned.map(|planned| planned.last_thread), Vec::new());
    // The connection may be what is broken where nothing was changed.
    let restored = match changes {
        [] => Restored::default(),
        _ => by.patiently(|| {
            briefly(connection, |connection| {
                undo(connection, changes, last_thread, &mut |changes| {
                    journal.intend_once(changes, &mut intended)
                })
            })
        })?,
    };
    let Restored { left_alone, not_restored, .. } = restored.clone();
    journal.close(Undone { left_alone, not_restored, ..Undone::whole(by.undoer) })?;
    Ok(restored)
}

/// The journals since one start of a server, the oldest first.
///
/// # Errors
/// One cannot be read.
pub fn of_start(directory: &Path, start: &ServerStart) -> Result<Vec<Contents>, JournalError> {
    let mut of_start = of_server(directory, &start.server)?;
    of_start.retain(|contents| contents.header.start.is(start));
    Ok(of_start)
}

/// The journals of one server, the oldest first. An unreadable journal of another server is
/// ignored.
fn of_server(directory: &Path, server: &str) -> Result<Vec<Contents>, JournalError> {
    let all = crate::journal::all(directory)?.into_iter();
    let is_of_server = |contents: &Result<Contents, JournalError>| match contents {
        Ok(contents) => contents.header.start.server == server,
        Err(JournalError::Wrong { server: Some(other), .. }) => other == server,
        Err(_) => true,
    };
    all.filter(is_of_server).collect()
}
