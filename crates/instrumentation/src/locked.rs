//! Changes that a lock of the whole server keeps waiting.
//!
//! On MySQL an `UPDATE` of a table of Performance Schema waits for a global read lock (`FLUSH TABLES
//! WITH READ LOCK`, as backups take it) like that of any other table. On MariaDB it does not.

use std::time::{Duration, Instant};

use waggle_mysql::connection::{MARK, text};
use waggle_mysql::locks::{Key, Unknown, read_lock_holders};
use waggle_mysql::{Connection, ConnectionError};

use crate::hold::HoldError;
use crate::journal::Undoer;

/// How long a command tries to undo changes behind a lock.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// `ER_LOCK_WAIT_TIMEOUT`
const TIMED_OUT: u16 = 1205;

/// A connection id and its account.
type Holder = (u64, String);

/// Who has the lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", in_words(holders))]
pub struct Locked {
    /// Its holders, or why they are not known.
    pub holders: Result<Vec<Holder>, NotKnown>,
}

/// Why it is not known who has the lock, and who may have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotKnown {
    /// The reason.
    pub why: String,
    /// Those whose last statements tell of such a lock.
    pub candidates: Vec<Holder>,
}

fn in_words(holders: &Result<Vec<Holder>, NotKnown>) -> String {
    let names = |all: &[Holder], word: &str| {
        let names = all.iter().map(|(id, account)| format!("connection {id} ({account})"));
        names.collect::<Vec<_>>().join(word)
    };
    match holders {
        Ok(holders) => {
            let kills: Vec<String> = holders.iter().map(|(id, _)| format!("KILL {id}")).collect();
            format!(
                "the global read lock of {} is in the way; UNLOCK TABLES there ends it, or {}",
                names(holders, " and "),
                kills.join(" and ")
            )
        }
        Err(NotKnown { why, candidates }) => {
            let may = match candidates.is_empty() {
                true => String::new(),
                false => format!(
                    "; it may be {}, who ran FLUSH TABLES WITH READ LOCK",
                    names(candidates, " or ")
                ),
            };
            format!(
                "a global read lock (FLUSH TABLES WITH READ LOCK) is in the way; who has it is not \
                 known: {why}{may}"
            )
        }
    }
}

/// Who undoes changes, and how long it tries where a lock is in the way.
pub(crate) struct By<'a> {
    pub(crate) undoer: Undoer,
    pub(crate) patience: Duration,
    /// Told the first time.
    pub(crate) tell: &'a mut dyn FnMut(&Locked),
}

impl By<'_> {
    /// Works again and again while a lock is in the way; each try waits for it.
    pub(crate) fn patiently<T>(
        &mut self,
        mut work: impl FnMut() -> Result<T, HoldError>,
    ) -> Result<T, HoldError> {
        let begin = Instant::now();
        let mut is_told = false;
        loop {
            match work() {
                Err(HoldError::Locked(locked)) if begin.elapsed() < self.patience => {
                    if !is_told {
                        (self.tell)(&locked);
                    }
                    is_told = true;
                }
                done => return done,
            }
        }
    }
}

/// Works with a connection whose statements wait for a lock for a second only.
pub(crate) fn briefly<T>(
    connection: &mut Connection,
    work: impl FnOnce(&mut Connection) -> Result<T, HoldError>,
) -> Result<T, HoldError> {
    let wait = |connection: &mut Connection, seconds: &str| {
        connection.rows(&format!("SET SESSION lock_wait_timeout = {seconds}"))
    };
    wait(connection, "1")?;
    let done = work(connection);
    let is_locked = matches!(
        &done,
        Err(HoldError::Connection(error)) if error.number() == Some(TIMED_OUT)
    );
    let done = match is_locked {
        true => Err(HoldError::Locked(Locked { holders: holders(connection)? })),
        false => done,
    };
    // It fails on a broken connection only, which every later statement will find.
    let _ = wait(connection, "DEFAULT");
    done
}

/// Whether a global read lock keeps changes waiting, and whose it is. A change of nothing finds it out.
///
/// # Errors
/// The server refuses the change for another reason, or the connection is broken.
pub fn in_the_way(connection: &mut Connection) -> Result<Option<Locked>, HoldError> {
    let changed = briefly(connection, |connection| {
        Ok(connection.rows(
            "UPDATE performance_schema.setup_consumers SET ENABLED = ENABLED WHERE NAME = ''",
        )?)
    });
    match changed {
        Ok(_) => Ok(None),
        Err(HoldError::Locked(locked)) => Ok(Some(locked)),
        Err(error) => Err(error),
    }
}

fn holders(connection: &mut Connection) -> Result<Result<Vec<Holder>, NotKnown>, ConnectionError> {
    Ok(match read_lock_holders(connection)? {
        Ok(ids) => Ok(with_accounts(connection, ids)?),
        Err(Unknown { why, candidates }) => {
            let ids = candidates.iter().filter_map(Key::connection_id).collect();
            Err(NotKnown { why, candidates: with_accounts(connection, ids)? })
        }
    })
}

fn with_accounts(
    connection: &mut Connection,
    ids: Vec<u64>,
) -> Result<Vec<Holder>, ConnectionError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let list = ids.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let rows = connection.rows(&format!(
        "SELECT ID AS {MARK}, CONCAT(USER, '@', HOST) FROM information_schema.PROCESSLIST \
         WHERE ID IN ({list})"
    ))?;
    let account = |id: u64| {
        let row = rows.iter().find(|row| text(row, 0) == id.to_string());
        row.map_or("account unknown".to_owned(), |row| text(row, 1))
    };
    Ok(ids.into_iter().map(|id| (id, account(id))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locked() -> HoldError {
        HoldError::Locked(Locked { holders: Ok(vec![(7, "backup@localhost".to_owned())]) })
    }

    #[test]
    fn the_holder_is_named_with_what_ends_its_lock() {
        let said = locked().to_string();
        assert!(said.contains("connection 7 (backup@localhost)"), "{said}");
        assert!(said.contains("KILL 7"), "{said}");
    }

    #[test]
    fn who_may_be_the_holder_is_named_as_such_and_not_to_be_killed() {
        let unknown = |candidates: &[u64]| {
            let candidates = candidates.iter().map(|id| (*id, "app@db".to_owned())).collect();
            let why = "the instrument is off".to_owned();
            Locked { holders: Err(NotKnown { why, candidates }) }.to_string()
        };
        let said = unknown(&[7, 8]);
        for part in
            ["not known: the instrument is off", "it may be connection 7 (app@db) or connection 8"]
        {
            assert!(said.contains(part), "{said}");
        }
        assert!(!said.contains("KILL"), "{said}");
        assert!(!unknown(&[]).contains("may be"));
    }

    #[test]
    fn who_is_in_the_way_is_told_once_and_then_tried_again() {
        let mut told = 0;
        let mut tell = |_: &Locked| told += 1;
        let mut by = By { undoer: Undoer::Guardian, patience: Duration::MAX, tell: &mut tell };
        let mut tries = 0;
        let done = by.patiently(|| {
            tries += 1;
            if tries < 4 { Err(locked()) } else { Ok(tries) }
        });
        assert_eq!(done.unwrap(), 4);
        assert_eq!(told, 1);
    }

    #[test]
    fn without_patience_the_lock_is_the_error() {
        let mut by = By { undoer: Undoer::Command, patience: Duration::ZERO, tell: &mut |_| {} };
        assert!(matches!(by.patiently(|| Err::<(), _>(locked())), Err(HoldError::Locked(_))));
    }
}
