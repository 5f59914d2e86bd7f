//! Changes that last as long as somebody holds them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use waggle_model::Reading;
use waggle_mysql::connection::{MARK, absent_or};
use waggle_mysql::{Connection, ConnectionError};

use crate::apply::{Made, Pace, what, write};
use crate::change::Change;
use crate::journal::{Alone, Begun, Contents, Journal, JournalError, Planned, Undoer, Undone};
use crate::life::Life;
use crate::plan::Plan;
use crate::rebuild;
use crate::sessions;
use crate::state::{Key, Settings, State, rows};
use crate::table::Table;
use crate::undo::{Restored, is_rule, settings_at_start, undo};

/// Why changes cannot be held or undone.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The server.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// A table takes no more rows.
    #[error(
        "{table} is full: it holds as many rows as performance_schema_{table}_size allows; name fewer \
         accounts or objects, or raise that variable in the server's option file and restart it"
    )]
    Full {
        /// `setup_actors` or `setup_objects`.
        table: &'static str,
    },
    /// The changes could be made, and not be taken back.
    #[error(
        "a rule for events, functions, procedures or triggers can be removed on this server only by emptying \
         setup_objects and filling it again, for which the account lacks a right; run {grant}"
    )]
    NoWayBack {
        /// The statement that gives the right.
        grant: String,
    },
    /// A table cannot be read, so that it is not known what of the changes is still there.
    #[error(
        "what {table} holds cannot be read, so that not all is undone: {why}; waggle pfs rollback undoes the rest once \
         it can be read"
    )]
    NotKnown {
        /// Which table.
        table: &'static str,
        /// Why.
        why: String,
    },
    /// The connection of a process that is gone is still there: what it sent last could be made after it was undone.
    #[error(
        "nothing was undone: connection {connection}, which made the changes, still runs on the server; end it with \
         KILL {connection}, then run waggle pfs rollback"
    )]
    StillRuns {
        /// Its number.
        connection: u64,
    },
    /// Changes of the same server were to stay: what came on top of them would be undone in the wrong order.
    #[error("`{command}` of {at} stays on this server; undo it first: waggle pfs rollback")]
    Kept {
        /// What was asked for.
        command: String,
        /// When.
        at: String,
    },
    /// Another process holds changes of the same server: what each found would depend on the other.
    #[error(
        "process {pid} holds `{command}` on this server; waggle pfs rollback ends it, and undoes that"
    )]
    Held {
        /// Which process.
        pid: u32,
        /// What it was asked for.
        command: String,
    },
}

/// Changes that were written to a journal and are made.
#[derive(Debug)]
pub struct Hold {
    journal: Journal,
    planned: Option<Planned>,
    changes: Vec<Change>,
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
        let begun = begun(connection, command)?;
        let alone = Alone::within(directory)?;
        check_free_in(directory, &begun.life)?;
        let journal = Journal::begin(&alone, begun)?;
        Ok(Hold { journal, planned: None, changes: Vec::new() })
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
            // What somebody else has set is known, so that whoever undoes the rest shows it.
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

    /// Makes further changes, each of which is in the same journal before. What was written to a row
    /// once stands there already and is not told twice, so that a journal stays small however often
    /// settings go to and fro. All of them go back to what the rows held at first.
    ///
    /// # Errors
    /// As [`Hold::make`].
    pub fn add(
        &mut self,
        connection: &mut Connection,
        changes: &[Change],
        tell: &mut dyn FnMut(&Made),
    ) -> Result<(), HoldError> {
        let known: BTreeSet<_> = self.changes.iter().map(written).collect();
        let new = changes.iter().filter(|change| !known.contains(&written(change)));
        let new: Vec<Change> = new.cloned().collect();
        self.intend(&new)?;
        write(connection, changes, &mut Pace::default(), tell).map_err(full_or)
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

    /// Undoes them.
    ///
    /// # Errors
    /// The connection is broken, or the journal cannot be written.
    pub fn end(self, connection: &mut Connection) -> Result<Restored, HoldError> {
        undo_journal(self.journal, self.planned, &self.changes, connection, Undoer::Command)
    }
}

/// Whether changes can be held: nobody holds any, and none are to stay.
///
/// # Errors
/// Somebody does, or some are; a journal cannot be read; or the connection is broken.
pub fn check_free(directory: &Path, connection: &mut Connection) -> Result<(), HoldError> {
    check_free_in(directory, &Life::of(connection)?)
}

fn check_free_in(directory: &Path, life: &Life) -> Result<(), HoldError> {
    let Some(contents) = of_life(directory, life)?.into_iter().find(Contents::is_open) else {
        return Ok(());
    };
    let Begun { pid, command, at, .. } = contents.begun;
    Err(match contents.kept {
        true => HoldError::Kept { command, at: at.strftime("%F %T").to_string() },
        false => HoldError::Held { pid, command },
    })
}

/// The changes of rows that hold what was found, and of those that somebody has set to something else
/// meanwhile. What somebody has set as it is to be needs no change.
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

/// The first line of a journal of this process.
pub(crate) fn begun(connection: &mut Connection, command: &str) -> Result<Begun, ConnectionError> {
    let life = Life::of(connection)?;
    let identity = connection.server_identity();
    Ok(Begun {
        life,
        command: command.to_owned(),
        account: identity.account.clone(),
        user: rustix::process::getuid().as_raw(),
        pid: std::process::id(),
        connection: identity.connection_id,
        at: Timestamp::now(),
    })
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

/// What came of one journal.
#[derive(Debug)]
pub struct Ended {
    /// What the journal holds.
    pub contents: Contents,
    /// What was restored; `None` where the server was started anew since, and nothing was left.
    pub restored: Option<Restored>,
}

/// Undoes every journal of this server that nobody holds, the latest first. Those that are to stay
/// only where `kept` says so.
///
/// # Errors
/// The connection is broken, or a journal cannot be read or written.
pub fn undo_abandoned(
    directory: &Path,
    connection: &mut Connection,
    kept: bool,
) -> Result<Vec<Ended>, HoldError> {
    let life = Life::of(connection)?;
    let mut ended = Vec::new();
    for contents in of_server(directory, &life.server)?.into_iter().rev() {
        // What was to stay has ended with the life of the server.
        if !contents.is_open() || contents.kept && !kept && contents.begun.life.is(&life) {
            continue;
        }
        if let Some(journal) = Journal::take(&contents.path)? {
            ended.extend(undo_taken(journal, &life, connection, Undoer::Later)?);
        }
    }
    Ok(ended)
}

/// The journals of this life of the server that [`undo_abandoned`] would undo. Nothing is changed.
///
/// # Errors
/// The connection is broken, or a journal cannot be read.
pub fn abandoned(
    directory: &Path,
    connection: &mut Connection,
) -> Result<Vec<Contents>, HoldError> {
    let life = Life::of(connection)?;
    let mut left = Vec::new();
    for contents in of_life(directory, &life)? {
        let is_left = contents.is_open() && !contents.kept && !contents.changes.is_empty();
        if is_left && Journal::take(&contents.path)?.is_some() {
            left.push(contents);
        }
    }
    Ok(left)
}

/// Waits until whoever holds a journal is gone, and undoes what it left.
///
/// # Errors
/// The connection is broken, or the journal cannot be read or written.
pub fn guard(path: &Path, connection: &mut Connection) -> Result<Option<Ended>, HoldError> {
    let journal = Journal::wait_for(path)?;
    if journal.read()?.is_none_or(|contents| contents.kept) {
        return Ok(None);
    }
    let life = Life::of(connection)?;
    undo_taken(journal, &life, connection, Undoer::Guardian)
}

fn undo_taken(
    journal: Journal,
    life: &Life,
    connection: &mut Connection,
    by: Undoer,
) -> Result<Option<Ended>, HoldError> {
    // Another may have been quicker.
    let contents = journal.read()?.filter(Contents::is_open);
    let Some(contents) = contents else { return Ok(None) };
    // Numbers of connections grow as long as a server lives: the start of one that is started anew
    // within a second tells nothing, and its process may be unknown.
    let number = connection.server_identity().connection_id;
    if !contents.begun.life.is(life) || number <= contents.begun.connection {
        journal.close(Undone::whole(Undoer::Restart))?;
        return Ok(Some(Ended { contents, restored: None }));
    }
    wait_for_end(connection, contents.begun.connection)?;
    let restored = undo_journal(journal, contents.planned, &contents.changes, connection, by)?;
    Ok(Some(Ended { contents, restored: Some(restored) }))
}

/// Waits until the server has ended a connection whose process is gone: its last statement may still
/// run, and would be made after it was undone. A server that nobody schedules can take long.
fn wait_for_end(connection: &mut Connection, other: u64) -> Result<(), HoldError> {
    const LOOKS: u32 = 3_000;
    const LOOKS_BEFORE_KILL: u32 = 50;
    const BETWEEN: std::time::Duration = std::time::Duration::from_millis(10);
    for look in 0..LOOKS {
        if !is_there(connection, other)? {
            return Ok(());
        }
        if look == LOOKS_BEFORE_KILL {
            kill(connection, other)?;
        }
        std::thread::sleep(BETWEEN);
    }
    Err(HoldError::StillRuns { connection: other })
}

/// Whether a connection is there. An account without PROCESS sees those of others in one of the two tables only.
fn is_there(connection: &mut Connection, other: u64) -> Result<bool, ConnectionError> {
    let mut rows = connection.rows(&format!(
        "SELECT ID AS {MARK} FROM information_schema.PROCESSLIST WHERE ID = {other}"
    ))?;
    let threads = connection.rows(&format!(
        "SELECT PROCESSLIST_ID AS {MARK} FROM performance_schema.threads WHERE PROCESSLIST_ID = {other}"
    ));
    if let Reading::Value(threads) = absent_or(connection, "the threads", threads)? {
        rows.extend(threads);
    }
    Ok(!rows.is_empty())
}

/// `ER_NO_SUCH_THREAD`: it ended meanwhile; `ER_KILL_DENIED_ERROR`: it is waited for all the same.
const NOT_KILLED: [u16; 2] = [1094, 1095];

fn kill(connection: &mut Connection, other: u64) -> Result<(), ConnectionError> {
    match connection.rows(&format!("KILL {other}")) {
        Err(error) if !error.number().is_some_and(|it| NOT_KILLED.contains(&it)) => Err(error),
        _ => Ok(()),
    }
}

fn undo_journal(
    mut journal: Journal,
    planned: Option<Planned>,
    changes: &[Change],
    connection: &mut Connection,
    by: Undoer,
) -> Result<Restored, HoldError> {
    // The connection may be what is broken where nothing was changed.
    let restored = match changes {
        [] => Restored::default(),
        _ => {
            let last_thread = planned.map(|planned| planned.last_thread);
            undo(connection, changes, last_thread, &mut |changes| journal.intend(changes))?
        }
    };
    let Restored { left_alone, not_restored, .. } = restored.clone();
    journal.close(Undone { left_alone, not_restored, ..Undone::whole(by) })?;
    Ok(restored)
}

/// The journals of one life of a server, the oldest first.
///
/// # Errors
/// One cannot be read.
pub fn of_life(directory: &Path, life: &Life) -> Result<Vec<Contents>, JournalError> {
    let mut of_life = of_server(directory, &life.server)?;
    of_life.retain(|contents| contents.begun.life.is(life));
    Ok(of_life)
}

/// The journals of one server, the oldest first. One of another server that cannot be read is none of ours.
fn of_server(directory: &Path, server: &str) -> Result<Vec<Contents>, JournalError> {
    let all = crate::journal::all(directory)?.into_iter();
    let is_of_server = |contents: &Result<Contents, JournalError>| match contents {
        Ok(contents) => contents.begun.life.server == server,
        Err(JournalError::Wrong { server: Some(other), .. }) => other == server,
        Err(_) => true,
    };
    all.filter(is_of_server).collect()
}
