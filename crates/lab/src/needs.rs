//! The disk and the memory that a run needs, checked before anything is started.

use std::path::Path;
use std::slice::from_ref;

use rustix::fs::statfs;
use waggle_host::memory::available_bytes;
use waggle_private_server::free_bytes;

use crate::budget::ROW_BYTES;
use crate::error::LabError;
use crate::schedule::Schedule;
use crate::suite::{Scale, Suite};
use crate::window::Cell;

/// A window in its file and in the reports: the longest in `bench/results` have 4 kB.
const WINDOW_BYTES: u64 = 8 << 10;
/// Reports with their charts, without their part of each window.
const REPORT_BYTES: u64 = 32 << 20;
/// What a server writes beside its tables and its redo log, bytes. Sizes of MySQL 8.0 and later, which
/// has most of it, by its manual and by what a new server has on the disk:
///
/// - data dictionary and system tables, `ibdata1` and `mysql.ibd` among them: about 120 MiB, and what
///   initialising left;
/// - two undo tablespaces of 16 MiB, which double while long work holds back the purge ("Undo
///   Tablespaces"); the transactions of sysbench are short;
/// - doublewrite files: two for each buffer pool instance (8 at most), each with 128 pages of 16 KiB
///   (`innodb_doublewrite_files`, `innodb_doublewrite_pages`); before 8.0.20 they are in `ibdata1`;
/// - temporary tablespaces: `ibtmp1` with 12 MiB, and a pool of ten small ones of sessions
///   ("Temporary Tablespaces").
const SERVER_BYTES: u64 = SYSTEM_BYTES + UNDO_BYTES + DOUBLEWRITE_BYTES + TEMPORARY_BYTES;
const SYSTEM_BYTES: u64 = 200 << 20;
const UNDO_BYTES: u64 = 2 * (64 << 20);
const DOUBLEWRITE_BYTES: u64 = 2 * 8 * 128 * (16 << 10);
const TEMPORARY_BYTES: u64 = 16 << 20;
/// Memory of a server without its buffer pool, with Performance Schema and all instruments, and of each session with its
/// session of the load, bytes. Most of the second is for the 100 prepared statements of a session of `oltp_read_write`;
/// nothing is given back between cells.
const SERVER_MEMORY: u64 = 1 << 30;
const SESSION_MEMORY: u64 = 4 << 20;

/// The part of its buffer pool that a server takes at its start to describe all pages: one tenth. It is 8 % in MySQL
/// 5.7.22 and 8.0.12, and about 10 % by the manual ("InnoDB Startup Options", `innodb_buffer_pool_size`).
const DESCRIBED: u64 = 10;

/// What a run takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Servers that are there at the same time.
    pub servers: u64,
    /// Rows of all tables.
    pub rows: u64,
    /// Redo log of a server, bytes: `innodb_redo_log_capacity`, or all files of `innodb_log_file_size`.
    /// A server may fill it, and before 8.0.30 its files have their whole size from the start.
    pub redo_log: u64,
    /// Buffer pool of a server, bytes.
    pub buffer_pool: u64,
    /// Most sessions at one server.
    pub sessions: u64,
}

impl Needs {
    /// What these cells of a suite take, on private servers.
    pub fn of(suite: &Suite, cells: &[Cell], scale: Scale) -> Needs {
        let data = &suite.data;
        Needs {
            servers: Schedule::new(suite, cells, 0, 0).servers_at_once() as u64,
            rows: u64::from(data.tables) * u64::from(data.rows.of(scale)),
            redo_log: u64::from(data.redo_log_mib.of(scale)) << 20,
            buffer_pool: data.buffer_pool_bytes(scale),
            sessions: cells.iter().map(|cell| u64::from(cell.threads)).max().unwrap_or(0),
        }
    }

    /// The needs of the cell that takes most memory. It need not be one with the most servers.
    pub fn most_memory(suite: &Suite, cells: &[Cell], scale: Scale) -> Option<Needs> {
        let each = cells.iter().map(|cell| Needs::of(suite, from_ref(cell), scale));
        each.max_by_key(Needs::memory_bytes)
    }

    /// Room on the disk: the data with the logs, and a copy for each server.
    pub fn disk_bytes(&self) -> u64 {
        let data = SERVER_BYTES + self.redo_log + (self.rows as f64 * ROW_BYTES) as u64;
        (self.servers + 1) * data
    }

    /// Memory. A buffer pool holds no more than the data, and describes all of its pages.
    pub fn memory_bytes(&self) -> u64 {
        let data = (self.rows as f64 * ROW_BYTES) as u64;
        let pool = self.buffer_pool.min(data + (64 << 20)) + self.buffer_pool / DESCRIBED;
        self.servers * (SERVER_MEMORY + pool + self.sessions * SESSION_MEMORY)
    }

    /// Memory, with the data if their place is in memory.
    pub fn memory_bytes_with(&self, place: &Path) -> u64 {
        self.memory_bytes() + if is_in_memory(place) { self.disk_bytes() } else { 0 }
    }

    /// Checks that a place has room for it.
    ///
    /// # Errors
    /// It has too little: how much, and what to do.
    pub fn check_disk(&self, place: &Path) -> Result<(), LabError> {
        let free = free_bytes(place)?;
        enough(
            format!("room on the disk of {}", place.display()),
            self.disk_bytes(),
            free,
            "make room there, choose a smaller --scale, or name another place with TMPDIR, which counts for \
             programs of this root directory",
        )
    }

    /// Checks that what is free on the disk of a server in use, which calls its data directory `name`, is enough for the
    /// tables: once for the rows, and once more for the binary log.
    ///
    /// # Errors
    /// It has too little: how much, and what to do.
    pub fn check_tables(&self, free: u64, name: &str) -> Result<(), LabError> {
        enough(
            format!("room on the disk of the server ({name})"),
            2 * (self.rows as f64 * ROW_BYTES) as u64,
            free,
            "make room there, choose a smaller --scale, or leave the load to others with --no-load",
        )
    }

    /// Checks that the host has the memory for it, and for the data if their place is in memory.
    ///
    /// # Errors
    /// It has too little: how much, and what to do.
    pub fn check_memory(&self, place: &Path) -> Result<(), LabError> {
        let available = available_bytes().unwrap_or(u64::MAX);
        enough(
            "memory".to_owned(),
            self.memory_bytes_with(place),
            available,
            "choose a smaller --scale, fewer threads with --only, or a suite with a smaller buffer pool",
        )
    }
}

/// Checks that there is room for the windows of a run and its reports in its directory.
///
/// # Errors
/// It has too little: how much, and what to do.
pub fn check_kept(place: &Path, windows: usize) -> Result<(), LabError> {
    let above = place.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    enough(
        format!("room on the disk of {}", place.display()),
        REPORT_BYTES + windows as u64 * WINDOW_BYTES,
        free_bytes(above)?,
        "make room there, or name another directory with --output",
    )
}

fn enough(what: String, needed: u64, there: u64, remedy: &'static str) -> Result<(), LabError> {
    if there >= needed {
        return Ok(());
    }
    let words = |bytes: u64| format!("{} MiB", bytes >> 20);
    Err(LabError::TooLittle { what, needed: words(needed), there: words(there), remedy })
}

/// Whether a place is on a file system in memory (statfs(2)).
fn is_in_memory(place: &Path) -> bool {
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    statfs(place).is_ok_and(|there| there.f_type as u64 == TMPFS_MAGIC)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::budget::TimeEstimate;
    use crate::lengths::Lengths;

    const SMALL: Needs = Needs {
        servers: 3,
        rows: 1_000_000,
        redo_log: 1 << 30,
        buffer_pool: 1 << 30,
        sessions: 1024,
    };

    #[test]
    fn a_run_whose_windows_have_no_room_is_refused_with_the_place_and_the_remedy() {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("not/there/yet");
        check_kept(&run, 1).unwrap();
        let said = check_kept(&run, 1 << 40).unwrap_err().to_string();
        for part in [&run.display().to_string(), "MiB", "--output"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn the_reference_says_what_whole_suites_need() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/lab-run.md");
        let page = fs::read_to_string(path).unwrap();
        let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        for (name, text) in Suite::builtin() {
            let suite = Suite::parse(name, text).unwrap();
            for scale in Scale::ALL {
                let (cells, lengths) = (suite.cells(), Lengths::of(scale));
                let needs = Needs::of(&suite, &cells, scale);
                let (suite, is_in_use, has_load) = (&suite, false, true);
                let estimate = TimeEstimate { suite, scale, lengths, is_in_use, has_load };
                let row = format!(
                    "| `{name}` | `{}` | {} | {} | {:.1} | {:.1} | {:.1} |",
                    scale.name(),
                    needs.servers,
                    needs.sessions,
                    gib(needs.disk_bytes()),
                    gib(needs.memory_bytes()),
                    estimate.choose(&cells, None, None).seconds / 3600.0
                );
                assert!(page.contains(&row), "the page has no line\n{row}");
            }
        }
    }

    #[test]
    fn a_host_that_has_too_little_is_told_of_what_and_what_to_do() {
        assert!(SMALL.disk_bytes() > 4 * (260_000_000 + SMALL.redo_log));
        let without = Needs { redo_log: 0, ..SMALL };
        assert_eq!(SMALL.disk_bytes() - without.disk_bytes(), 4 * SMALL.redo_log);
        assert!(SMALL.memory_bytes() > 3 * 1024 * SESSION_MEMORY);
        let wide = Needs { buffer_pool: 900 << 30, rows: 1, ..SMALL };
        assert!(
            wide.memory_bytes() > 3 * (90 << 30),
            "few rows in a pool that the host has no room for"
        );
        // A file system without blocks: nothing is ever free in it.
        let disk = SMALL.check_disk(Path::new("/proc")).unwrap_err().to_string();
        assert!(disk.contains("room on the disk") && disk.contains("TMPDIR"), "{disk}");
        let tables = SMALL.check_tables(0, "/data").unwrap_err().to_string();
        assert!(tables.contains("(/data)") && tables.contains("--no-load"), "{tables}");
        let huge = Needs { sessions: 1 << 40, ..SMALL };
        let memory = huge.check_memory(Path::new("/proc")).unwrap_err().to_string();
        assert!(memory.contains("memory") && memory.contains("--only"), "{memory}");
    }
}
