//! What a run needs of the host, looked at before anything is started.

use std::fs;
use std::path::Path;

use rustix::fs::statfs;
use waggle_private_server::free_bytes;

use crate::budget::ROW_BYTES;
use crate::error::LabError;
use crate::schedule::Schedule;
use crate::suite::{Scale, Suite};
use crate::window::Cell;

/// A window in its file and in the reports: the longest that are kept in `bench/results` have 4 kB.
const WINDOW_BYTES: u64 = 8 << 10;
/// Reports with their charts, beside what they have of each window.
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
/// What a server takes in memory beside its buffer pool, with Performance Schema and all instruments, and for each
/// session with the session of the load on the other side, bytes. Most of the second is of the 100 statements that a
/// session of `oltp_read_write` has prepared; nothing is given back between cells.
const SERVER_MEMORY: u64 = 1 << 30;
const SESSION_MEMORY: u64 = 4 << 20;

/// A server takes such a part of its buffer pool at its start, for what describes its pages, however few it reads: 8 % in
/// MySQL 5.7.22 and 8.0.12, about 10 % by the manual ("InnoDB Startup Options", `innodb_buffer_pool_size`).
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

    /// Room on the disk: the data with the logs, and a copy for each server.
    pub fn disk_bytes(&self) -> u64 {
        let data = SERVER_BYTES + self.redo_log + (self.rows as f64 * ROW_BYTES) as u64;
        (self.servers + 1) * data
    }

    /// Memory. A buffer pool holds no more than the data, and has what describes all of its pages.
    pub fn memory_bytes(&self) -> u64 {
        let data = (self.rows as f64 * ROW_BYTES) as u64;
        let pool = self.buffer_pool.min(data + (64 << 20)) + self.buffer_pool / DESCRIBED;
        self.servers * (SERVER_MEMORY + pool + self.sessions * SESSION_MEMORY)
    }

    /// Whether there is memory for it, and for the data where their place is in memory.
    pub fn has_memory(&self, place: &Path) -> bool {
        available_memory().is_none_or(|available| self.memory_bytes_with(place) <= available)
    }

    /// Memory, with the data where their place is in memory.
    pub fn memory_bytes_with(&self, place: &Path) -> u64 {
        self.memory_bytes() + if is_in_memory(place) { self.disk_bytes() } else { 0 }
    }

    /// Looks whether there is room for it at a place.
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

    /// Looks whether there is room for the tables at the place of a server that is there, which its user calls `name`:
    /// once for the rows, and once more for the binary log.
    ///
    /// # Errors
    /// It has too little: how much, and what to do; or nothing can be told of that place.
    pub fn check_tables(&self, place: &Path, name: &str) -> Result<(), LabError> {
        let free = free_bytes(place)?;
        enough(
            format!("room on the disk of the server ({name})"),
            2 * (self.rows as f64 * ROW_BYTES) as u64,
            free,
            "make room there, choose a smaller --scale, or leave the load to others with --no-load",
        )
    }

    /// Looks whether the host has the memory for it, and for the data where their place is in memory.
    ///
    /// # Errors
    /// It has too little: how much, and what to do.
    pub fn check_memory(&self, place: &Path) -> Result<(), LabError> {
        let available = available_memory().unwrap_or(u64::MAX);
        enough(
            "memory".to_owned(),
            self.memory_bytes_with(place),
            available,
            "choose a smaller --scale, fewer threads with --only, or a suite with a smaller buffer pool",
        )
    }
}

/// Looks whether there is room for the windows of a run and its reports in the directory that it will have.
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

/// Memory that we may still take, bytes: of the host, and of the control groups that we are in.
fn available_memory() -> Option<u64> {
    let of_groups = fs::read_to_string("/proc/self/cgroup").ok();
    let of_groups = of_groups.and_then(|text| left_in_groups(Path::new("/sys/fs/cgroup"), &text));
    available_on_host().into_iter().chain(of_groups).min()
}

/// `MemAvailable` of proc_meminfo(5), bytes.
fn available_on_host() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

/// What the limits of a control group and of those above it leave, bytes, by the line of version 2 in
/// `/proc/self/cgroup`; `None` where none has a limit. Files that are cached in memory can be given back, but for those
/// that are nowhere else (tmpfs and shared memory;
/// `Documentation/admin-guide/cgroup-v2.rst`: `memory.max`, `memory.current`, `memory.stat`).
fn left_in_groups(root: &Path, text: &str) -> Option<u64> {
    let group = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let left = |group: &Path| {
        let read = |file: &str| fs::read_to_string(root.join(group).join(file)).ok();
        let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
        let (limit, used) = (number("memory.max")?, number("memory.current")?);
        let parts = read("memory.stat")?;
        let part = |name: &str| {
            let mut lines = parts.lines();
            let bytes = lines.find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
            bytes.unwrap_or(0)
        };
        let cached = part("file ").saturating_sub(part("shmem "));
        Some(limit.saturating_sub(used.saturating_sub(cached)))
    };
    Path::new(group).ancestors().filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Reckoning;
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
    fn the_narrowest_control_group_counts_without_its_cached_files() {
        let root = tempfile::tempdir().unwrap();
        let within = root.path().join("a/b");
        fs::create_dir_all(&within).unwrap();
        let group = |group: &str, limit: &str, used: u64, files: u64| {
            let file = |name: &str, text: String| {
                fs::write(root.path().join(group).join(name), text).unwrap();
            };
            file("memory.max", format!("{limit}\n"));
            file("memory.current", format!("{used}\n"));
            file("memory.stat", format!("anon 1\nfile {}\nshmem 7\n", files + 7));
        };
        let left = |text: &str| left_in_groups(root.path(), text);
        assert_eq!(left("0::/a/b\n"), None);
        group("a/b", "max", 500, 0);
        assert_eq!(left("0::/a/b\n"), None);
        group("a", "1000", 700, 100);
        assert_eq!(left("1:name=systemd:/\n0::/a/b\n"), Some(400));
        group("a/b", "300", 250, 50);
        assert_eq!(left("0::/a/b\n"), Some(100));
        assert_eq!(left("3:memory:/a\n"), None);
    }

    #[test]
    fn the_guide_says_what_whole_suites_need() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/lab.md");
        let guide = fs::read_to_string(path).unwrap();
        let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        for (name, text) in Suite::builtin() {
            let suite = Suite::parse(name, text).unwrap();
            for scale in Scale::ALL {
                let (cells, lengths) = (suite.cells(), Lengths::of(scale));
                let needs = Needs::of(&suite, &cells, scale);
                let (suite, is_foreign, has_load) = (&suite, false, true);
                let reckoning = Reckoning { suite, scale, lengths, is_foreign, has_load };
                let row = format!(
                    "| `{name}` | `{}` | {} | {} | {:.1} | {:.1} | {:.1} |",
                    scale.name(),
                    needs.servers,
                    needs.sessions,
                    gib(needs.disk_bytes()),
                    gib(needs.memory_bytes()),
                    reckoning.choose(&cells, None, None).seconds / 3600.0
                );
                assert!(guide.contains(&row), "the guide has no line\n{row}");
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
        let tables = SMALL.check_tables(Path::new("/proc"), "/data").unwrap_err().to_string();
        assert!(tables.contains("(/data)") && tables.contains("--no-load"), "{tables}");
        let huge = Needs { sessions: 1 << 40, ..SMALL };
        let memory = huge.check_memory(Path::new("/proc")).unwrap_err().to_string();
        assert!(memory.contains("memory") && memory.contains("--only"), "{memory}");
        assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
