//! One sysbench whose sessions are at work or stand still.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;
use waggle_sysbench::Running;

use super::board::{Allowed, Board};
use super::{Count, LoadError, Request};

/// The script around the stock script.
pub(super) const SCRIPT: &str = include_str!("lab.lua");
/// sysbench itself gives its sessions 30 s (`THREAD_INIT_TIMEOUT`).
const START_MAX: Duration = Duration::from_secs(60);
/// The longest transaction: it may wait for a lock for 50 s (`innodb_lock_wait_timeout`).
const PAUSE_MAX: Duration = Duration::from_secs(120);
/// After this time one that does not end is killed.
const END_MAX: Duration = Duration::from_secs(10);
/// Between two looks; later ones are rarer. A window ends with a look.
const LOOK_MIN: Duration = Duration::from_micros(100);
const LOOK_MAX: Duration = Duration::from_micros(500);

/// How transactions follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Each session begins one when its last one has ended.
    Closed,
    /// They arrive, as a Poisson process, whatever the server does. Those that find no session free wait
    /// in one queue; their time counts from the arrival. What is left in the queue at a pause is dropped.
    Open {
        /// Mean rate of all sessions together, transactions per second.
        per_second: f64,
    },
}

/// One sysbench: sessions at one server, at work or standing still. It ends when dropped, politely where
/// it can, and is killed by the kernel where we are killed.
#[derive(Debug)]
pub struct Driver {
    running: Running,
    board: Board,
}

impl Driver {
    /// Starts it and returns when all sessions have connected, have prepared their statements and stand
    /// still. The server must admit this many sessions (`max_connections`) and, unless the workload turns
    /// them off, prepared statements: with `oltp_read_write` 2 and 9 for each table in each session
    /// (`max_prepared_stmt_count` is 16,382 by default).
    ///
    /// # Errors
    /// The script is missing, a session cannot be had, or it takes longer than a minute.
    pub fn start(request: &Request<'_>) -> Result<Driver, LoadError> {
        let board = Board::create(request.threads);
        let board = board.map_err(LoadError::system("make the memory of the sessions"))?;
        let stdin = board.open_again().map_err(LoadError::system("share that memory"))?;
        let mut command = request.command(&keep_script(request.directory)?, request.threads)?;
        command.arg("run").env("WAGGLE_LAB_SCRIPT", request.script()?);
        let running = request.start(command, Stdio::from(stdin))?;
        let mut driver = Driver { running, board };
        driver.wait("connect", START_MAX, Board::is_still)?;
        Ok(driver)
    }

    /// The process of sysbench.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Lets the sessions work. Those that are at work are paused before.
    ///
    /// # Errors
    /// sysbench has ended, or as [`Driver::pause`].
    pub fn go(&mut self, pace: Pace) -> Result<(), LoadError> {
        self.pause()?;
        let allowed = match pace {
            Pace::Closed => Allowed::Closed,
            Pace::Open { per_second } => Allowed::Open { per_second },
        };
        self.board.release(allowed).map_err(LoadError::system("release the sessions"))
    }

    /// Lets no session begin a transaction and returns when none is inside one. In an open load sessions
    /// may still wait for an arrival that will be dropped.
    ///
    /// # Errors
    /// sysbench has ended, or a transaction does not end in two minutes.
    pub fn rest(&mut self) -> Result<(), LoadError> {
        self.wait("leave the last pause", PAUSE_MAX, Board::hold)?;
        self.wait("end their transactions", PAUSE_MAX, Board::is_at_rest)
    }

    /// Lets no session begin a transaction and returns when all stand still.
    ///
    /// # Errors
    /// As [`Driver::rest`].
    pub fn pause(&mut self) -> Result<(), LoadError> {
        self.rest()?;
        self.wait("stand still", PAUSE_MAX, Board::is_still)
    }

    /// What the sessions have done since they were started; exact in a pause.
    ///
    /// # Errors
    /// sysbench has ended, or a session met an error that it was not told to ignore.
    pub fn count(&mut self) -> Result<Count, LoadError> {
        self.check()?;
        self.board.count().map_err(LoadError::system("read what the sessions did"))
    }

    /// Transactions of the sessions since they were started.
    ///
    /// # Errors
    /// As [`Driver::count`].
    pub fn transactions(&mut self) -> Result<u64, LoadError> {
        self.check()?;
        self.board.transactions().map_err(LoadError::system("read what the sessions did"))
    }

    /// For how long the next arrival of an open load has been waiting for a session, s.
    ///
    /// # Errors
    /// What the sessions do cannot be read.
    pub fn behind_s(&self) -> Result<f64, LoadError> {
        let behind_ns = self.board.behind_ns();
        Ok(behind_ns.map_err(LoadError::system("read what the sessions did"))? / 1e9)
    }

    fn wait(
        &mut self,
        what: &'static str,
        limit: Duration,
        is_so: fn(&Board) -> io::Result<bool>,
    ) -> Result<(), LoadError> {
        let begin = Instant::now();
        let mut nap = LOOK_MIN;
        while !is_so(&self.board).map_err(LoadError::system("look at the sessions"))? {
            self.check()?;
            if begin.elapsed() > limit {
                let script = self.running.script().to_owned();
                return Err(LoadError::Late { script, what, seconds: limit.as_secs() });
            }
            sleep(nap);
            nap = (2 * nap).min(LOOK_MAX);
        }
        self.check()
    }

    /// Whether all sessions are well.
    fn check(&mut self) -> Result<(), LoadError> {
        if let Some(status) = self.running.ended()? {
            return Err(self.running.failed(format!("it ended with {status}")).into());
        }
        let has_failed = self.board.has_failed();
        match has_failed.map_err(LoadError::system("look at the sessions"))? {
            true => Err(self.running.failed("a session failed").into()),
            false => Ok(()),
        }
    }

    /// Lets the sessions log out, and waits a while until they have.
    fn end(&mut self) {
        if self.check().is_err() || self.board.release(Allowed::End).is_err() {
            return;
        }
        let begin = Instant::now();
        while begin.elapsed() < END_MAX && matches!(self.running.ended(), Ok(None)) {
            sleep(LOOK_MAX);
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // One that is still there then is killed.
        self.end();
    }
}

/// Writes the script where sysbench can read it; each session reads it again, so it is never changed in
/// place.
fn keep_script(dir: &Path) -> Result<PathBuf, LoadError> {
    let write = || -> io::Result<PathBuf> {
        let path = std::path::absolute(dir)?.join("lab.lua");
        if fs::read(&path).is_ok_and(|run_dir| run_dir == SCRIPT.as_bytes()) {
            return Ok(path);
        }
        let mut file = NamedTempFile::new_in(dir)?;
        file.write_all(SCRIPT.as_bytes())?;
        file.persist(&path).map_err(|failed| failed.error)?;
        Ok(path)
    };
    write().map_err(LoadError::system(format!("write the script to {}", dir.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_written_once_and_replaced_where_it_differs() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = keep_script(dir.path()).unwrap();
        assert!(path.is_absolute());
        let written = fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(keep_script(dir.path()).unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written);
        fs::write(&path, "error()").unwrap();
        keep_script(dir.path()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), SCRIPT);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
