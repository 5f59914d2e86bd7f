//! The files of `/proc/PID` (proc_pid_stat(5), proc_pid_status(5)): cut lines give `None`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use waggle_model::Reading;

/// Every process id below this `/proc`. Threads are not listed there.
pub(super) fn pids(proc_root: &Path) -> impl Iterator<Item = u32> {
    fs::read_dir(proc_root)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Bytes of `stat` that are read: more than its first 22 fields can take.
const STAT_READ: usize = 1024;

/// The start of the process in this folder, in clock ticks since boot. It is read from the `stat` of
/// the first thread, which has the same start: for that of the process the kernel adds up the
/// processor time of every thread (`do_task_stat`), a thousand of them at a busy server.
pub(super) fn started(folder: &Path, pid: u32) -> Option<u64> {
    let mut stat = [0; STAT_READ];
    let mut file = File::open(folder.join(format!("task/{pid}/stat"))).ok()?;
    let length = file.read(&mut stat).ok()?;
    start_ticks(stat.get(..length)?)
}

/// Field 22 of `stat`: the start in clock ticks since boot. The name in field 2 may itself hold
/// spaces and brackets, so the fields are counted from the last `)`.
pub(super) fn start_ticks(stat: &[u8]) -> Option<u64> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    let mut fields = fields.split_ascii_whitespace().skip(19);
    let field = fields.next()?;
    // The last field of a cut line may be cut itself.
    fields.next()?;
    field.parse().ok()
}

/// The value of one line of `status`.
pub(super) fn line<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

/// Where a link of `/proc` points, or why that cannot be said.
pub(super) fn link(path: &Path) -> Reading<PathBuf> {
    match fs::read_link(path) {
        Ok(target) => Reading::Value(target),
        Err(error) => Reading::absent(no_right(path, &error)),
    }
}

/// What is wrong and what helps.
pub(super) fn no_right(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{} may not be read; run as root or give CAP_SYS_PTRACE", path.display())
        }
        io::ErrorKind::NotFound => format!("{}: the process has ended", path.display()),
        _ => format!("{}: {error}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "77 (my) sq (l)d) S 1 77 77 0 -1 4194560 20 0 0 0 5 6 0 0 20 0 38 0 4711 \
                        1855229952 99240 18446744073709551615";

    #[test]
    fn the_start_is_field_22_whatever_the_name_holds() {
        assert_eq!(start_ticks(STAT.as_bytes()), Some(4711));
        assert_eq!(start_ticks(b"1 (\xff\xfe) S"), None);
    }

    #[test]
    fn a_cut_line_gives_the_start_or_nothing_but_never_a_part_of_it() {
        for end in 0..STAT.len() {
            let got = start_ticks(&STAT.as_bytes()[..end]);
            assert!(got.is_none() || got == Some(4711), "{got:?} from {end} bytes");
        }
    }

    #[test]
    fn a_line_of_status_is_found_by_its_whole_name() {
        let status = "Name:\tmysqld\nNSpid:\t77\t1\nPid:\t77\nUid";
        assert_eq!(line(status, "Pid"), Some("77"));
        assert_eq!(line(status, "NSpid"), Some("77\t1"));
        assert_eq!(line(status, "Uid"), None);
    }
}
