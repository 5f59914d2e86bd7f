//! Servers that tests of one program use one after another.
//!
//! To start a server takes seconds, and most tests leave it as they found it. So a server that reads
//! as it did when it was started goes to the next test; any other is thrown away.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::Row;
use crate::{Client, Result, Server, ServerBuilder, Version};

/// Idle servers at most: two of each version. Each takes some hundred MiB of memory.
const IDLE_MAX: usize = 2 * Version::ALL.len();
/// The server needs a moment to end the sessions of clients that have gone.
const SESSIONS_END: Duration = Duration::from_secs(2);

/// What a test can leave behind: a query, each row of whose result counts. Where a server has no such
/// table, nothing of it can be left.
const TRACES: [&str; 13] = [
    "SHOW DATABASES",
    "SELECT table_schema, table_name FROM information_schema.tables \
     WHERE table_schema NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')",
    "SELECT * FROM mysql.user",
    "SELECT * FROM mysql.db",
    "SELECT * FROM mysql.tables_priv",
    "SHOW GLOBAL VARIABLES",
    "SELECT * FROM performance_schema.setup_actors",
    "SELECT * FROM performance_schema.setup_consumers",
    "SELECT name, enabled, timed FROM performance_schema.setup_instruments",
    "SELECT * FROM performance_schema.setup_objects",
    "SELECT * FROM performance_schema.setup_threads",
    "SELECT DISTINCT name, instrumented, history FROM performance_schema.threads \
     WHERE type = 'BACKGROUND'",
    "SELECT name, status FROM information_schema.innodb_metrics",
];

/// Idle servers, the one that was used last at the end.
static IDLE: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Idle {
    server: Server,
    /// How it was started.
    kind: String,
    /// How it read then.
    fresh: u64,
}

/// A server for one test. Dropping it hands it on, or ends it.
#[derive(Debug)]
pub struct Leased(
    /// `None` while it is dropped.
    Option<Idle>,
);

impl ServerBuilder {
    /// A server that was started like this one and reads as it did then, or a new one. Counters,
    /// histories and digests may be those of earlier tests.
    ///
    /// # Errors
    /// As [`ServerBuilder::start`].
    pub fn lease(self) -> Result<Leased> {
        let kind = format!("{self:?}");
        if let Some(idle) = take(&kind) {
            return Ok(Leased(Some(idle)));
        }
        let server = self.start()?;
        let fresh = traces(&server)?;
        Ok(Leased(Some(Idle { server, kind, fresh })))
    }
}

fn take(kind: &str) -> Option<Idle> {
    let mut idle = idle();
    let at = idle.iter().rposition(|one| one.kind == kind)?;
    Some(idle.remove(at))
}

impl Deref for Leased {
    type Target = Server;

    fn deref(&self) -> &Server {
        let idle = self.0.as_ref();
        &idle.unwrap_or_else(|| unreachable!("it is there until it is dropped")).server
    }
}

impl DerefMut for Leased {
    fn deref_mut(&mut self) -> &mut Server {
        let idle = self.0.as_mut();
        &mut idle.unwrap_or_else(|| unreachable!("it is there until it is dropped")).server
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        // A test that failed may have left anything.
        let Some(used) = self.0.take().filter(|_| !thread::panicking()) else { return };
        let now = tidy(&used.server).and_then(|()| traces(&used.server));
        if used.server.pid() == 0 || !now.is_ok_and(|now| now == used.fresh) {
            return;
        }
        let mut idle = idle();
        idle.push(used);
        let ended = (idle.len() > IDLE_MAX).then(|| idle.remove(0));
        // Others need not wait while it ends.
        drop((idle, ended));
    }
}

fn idle() -> MutexGuard<'static, Vec<Idle>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What removes the databases and accounts that a test made: a query, whose rows are statements.
const TIDY: &str = "\
    SELECT CONCAT('DROP DATABASE `', schema_name, '`') FROM information_schema.schemata \
    WHERE schema_name NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys', 'test') \
    UNION ALL SELECT CONCAT('DROP USER ', QUOTE(user), '@', QUOTE(host)) FROM mysql.user \
    WHERE user NOT IN ('root', 'app', 'secret') AND user NOT LIKE 'm%.s%' \
    UNION ALL SELECT 'DROP DATABASE test' UNION ALL SELECT 'CREATE DATABASE test'";

/// Removes what a test made. What cannot be removed is found by [`traces`].
fn tidy(server: &Server) -> Result<()> {
    let mut client = server.root()?;
    is_alone(&mut client)?;
    let statements = client.run(TIDY)?;
    let statements = statements[0].rows.iter().filter_map(|row| row[0].as_deref());
    statements.map(<[u8]>::to_vec).try_for_each(|sql| client.query(sql).map(drop))
}

/// A number that tells whether anything of [`TRACES`] is otherwise.
fn traces(server: &Server) -> Result<u64> {
    let mut client = server.root()?;
    let mut hasher = DefaultHasher::new();
    is_alone(&mut client)?.hash(&mut hasher);
    for sql in TRACES {
        for result in client.query(sql)? {
            let mut rows = result.rows;
            rows.retain(|row| !is_volatile(row));
            rows.sort();
            rows.hash(&mut hasher);
        }
    }
    Ok(hasher.finish())
}

/// Whether a row of `SHOW GLOBAL VARIABLES` changes by itself.
fn is_volatile(row: &Row) -> bool {
    let name = row.first().and_then(Option::as_deref).unwrap_or_default();
    name.starts_with(b"gtid_") || name.starts_with(b"innodb_buffer_pool_dump")
}

/// Whether all other sessions have ended, or do so soon.
fn is_alone(client: &mut Client) -> Result<bool> {
    let sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE user NOT IN \
               ('system user', 'event_scheduler') AND id <> CONNECTION_ID()";
    let begin = Instant::now();
    loop {
        let others = client.run(sql)?[0].text(0, 0);
        let is_alone = others.as_deref() == Some("0");
        if is_alone || begin.elapsed() > SESSIONS_END {
            return Ok(is_alone);
        }
        thread::sleep(Duration::from_millis(5));
    }
}
