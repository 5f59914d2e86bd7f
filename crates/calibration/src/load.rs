//! Sessions that read rows by their key.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use waggle_host::processors::stay_on;
use waggle_mysql::{Connection, ConnectionError, Options};
use waggle_stats::Random;

/// The rows of the table.
const ROWS: usize = 10_000;
/// Rows of one `INSERT`.
const ROWS_AT_ONCE: usize = 500;
/// Like a row of sysbench: what is read is 120 bytes.
const TEXT: &str = "REPEAT('0123456789', 12)";

/// What a client touches of its own between two statements. One that does nothing else leaves all caches to the server,
/// and events are cheaper than under any application: this turns over the first cache of a processor, 32 to 48 KiB.
const CLIENT_BYTES: usize = 64 * 1024;
const CACHE_LINE: usize = 64;

/// Makes the table that is read, in a database of its own.
///
/// # Errors
/// The server refuses it.
pub(crate) fn prepare(connection: &mut Connection) -> Result<(), ConnectionError> {
    connection.rows("CREATE DATABASE waggle")?;
    connection.rows(
        "CREATE TABLE waggle.point (id INT NOT NULL PRIMARY KEY, c VARCHAR(120) NOT NULL) \
         ENGINE = InnoDB",
    )?;
    for first in (0..ROWS).step_by(ROWS_AT_ONCE) {
        let rows = (first..first + ROWS_AT_ONCE).map(|id| format!("({id}, {TEXT})"));
        let rows = rows.collect::<Vec<_>>().join(", ");
        connection.rows(&format!("INSERT INTO waggle.point VALUES {rows}"))?;
    }
    Ok(())
}

fn touch(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().step_by(CACHE_LINE) {
        *byte = byte.wrapping_add(1);
    }
    std::hint::black_box(bytes);
}

/// Sessions at work; dropping it ends them.
pub struct PointSelects {
    stop: Arc<AtomicBool>,
    /// One for each session, so that they do not share a cache line at every statement.
    done: Vec<Arc<AtomicU64>>,
    sessions: Vec<JoinHandle<Result<(), ConnectionError>>>,
}

impl PointSelects {
    /// Starts this many sessions, on these processors where the kernel lets them.
    ///
    /// # Errors
    /// One cannot log in.
    pub(crate) fn start(
        options: &Options,
        sessions: u32,
        processors: &[usize],
    ) -> Result<PointSelects, ConnectionError> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut load = PointSelects { stop, done: Vec::new(), sessions: Vec::new() };
        for number in 0..sessions {
            let mut connection = Connection::open_to_own_server(options)?;
            let (stop, done) = (load.stop.clone(), Arc::new(AtomicU64::new(0)));
            load.done.push(done.clone());
            let mut random = Random::seeded(u64::from(number));
            let processors = processors.to_vec();
            load.sessions.push(std::thread::spawn(move || {
                // Elsewhere its statements are no others, they only cost less evenly.
                let _ = stay_on(&processors);
                let mut own = vec![0_u8; CLIENT_BYTES];
                while !stop.load(Ordering::Relaxed) {
                    let id = random.below(ROWS);
                    connection.rows(&format!("SELECT c FROM waggle.point WHERE id = {id}"))?;
                    done.fetch_add(1, Ordering::Relaxed);
                    touch(&mut own);
                }
                Ok(())
            }));
        }
        Ok(load)
    }

    /// How many sessions were started.
    pub(crate) fn sessions(&self) -> u32 {
        self.done.len() as u32
    }

    /// Whether every session is still at work.
    ///
    /// # Errors
    /// What ended one.
    pub(crate) fn check(&mut self) -> Result<(), ConnectionError> {
        let Some(ended) = self.sessions.iter().position(JoinHandle::is_finished) else {
            return Ok(());
        };
        // One that panicked has said so by itself; its statements are missing.
        self.sessions.swap_remove(ended).join().unwrap_or(Ok(()))
    }

    /// Statements that were answered so far.
    pub(crate) fn statements(&self) -> u64 {
        self.done.iter().map(|done| done.load(Ordering::Relaxed)).sum()
    }
}

impl Drop for PointSelects {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for session in self.sessions.drain(..) {
            // What ended one early was told by `check`.
            let _ = session.join();
        }
    }
}
