//! Journals with changed lines, and the statements that would undo what can be read of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;
use waggle_fuzz_frame::{Counts, Fuzzer, Random, edge, mutate, run};

use super::*;
use crate::apply;
use crate::table::Table;
use crate::variables::VARIABLES;

/// Bytes of a usual journal at most, and of the few long ones.
const USUAL: usize = 4000;
const LONG: usize = 256 * 1024;
const LONG_EVERY: usize = 2000;

const PIECES: &[&[u8]] = &[
    b"\n",
    b"{",
    b"}",
    b"[",
    b"]",
    b"[]",
    b"null",
    b"\"",
    b"\\u0000",
    b"\\ud800",
    b"\\",
    b"'",
    b"''",
    b";",
    b"--",
    b"0",
    b"-1",
    b"1e400",
    b"18446744073709551616",
    b"\"kept\"\n",
    b"{\"kept\":null}\n",
    b",",
    b":",
    b"\xff",
    b"{\"change\":",
    b"\"key\":[]",
    b"\"key\":[\"1 OR 1=1\"]",
    b"\"threads\"",
    b"\"metrics\"",
    b"\"objects\"",
    b"[[[[[[[[",
];
const NAMES: [&str; 7] = [
    "wait/io/file/sql/binlog",
    "statement/sql/select",
    "%",
    "o'x\\",
    "7",
    "TABLE",
    "buffer_page_io",
];

struct Journals {
    directory: TempDir,
    path: PathBuf,
    text: Vec<u8>,
}

impl Journals {
    fn new() -> Journals {
        // In memory: a disk would take most of the time.
        let directory = TempDir::new_in("/dev/shm").unwrap();
        let path = directory.path().join("a.jsonl");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        Journals { directory, path, text: Vec::new() }
    }

    fn line(&mut self, entry: &Entry) {
        serde_json::to_writer(&mut self.text, entry).unwrap();
        self.text.push(b'\n');
    }

    fn entry(random: &mut Random) -> Entry {
        match random.below(12) {
            0 => Entry::Planned(Planned { rows: random.below(9), last_thread: edge(random) }),
            1 => Entry::Kept,
            2 => Entry::Reset([("lock_timeouts".to_owned(), edge(random).cast_signed())].into()),
            _ => Entry::Change(Journals::change(random)),
        }
    }

    fn end(random: &mut Random) -> Entry {
        Entry::Undone(Undone {
            by: Undoer::Later,
            at: Timestamp::UNIX_EPOCH,
            left_alone: vec![Journals::change(random)],
            not_restored: vec![],
        })
    }

    /// A change as waggle makes it, or one whose key or settings are those of another table.
    fn change(random: &mut Random) -> Change {
        let table = *random.pick(&Table::ALL);
        let like = if random.below(8) == 0 { *random.pick(&Table::ALL) } else { table };
        let shape = like.shape();
        let name = |random: &mut Random| match random.below(30) {
            // A name that nothing of the server's own can have.
            0 => String::new(),
            _ => (*random.pick(&NAMES)).to_owned(),
        };
        let key = match like {
            Table::Threads => vec!["7".to_owned()],
            Table::Variables => vec![random.pick(&VARIABLES).name.to_owned()],
            _ => shape.key.iter().map(|_| name(random)).collect(),
        };
        let values = match like {
            Table::Timers => [Some("CYCLE"), Some("TICK"), None],
            // Numbers and switches alike take 0 and 1.
            Table::Variables => [Some("0"), Some("1"), None],
            _ => [Some("YES"), Some("NO"), None],
        };
        // Rows of few tables come and go.
        let gone_every = if shape.grows { 6 } else { 60 };
        let mut settings = || {
            let mut one = || values[random.below(3)].map(str::to_owned);
            let settings = shape.settings.iter().map(|_| one()).collect();
            (random.below(gone_every) != 0).then_some(settings)
        };
        Change { table, key, before: settings(), after: settings() }
    }
}

impl Fuzzer for Journals {
    const SUBJECT: &'static str = "journal";
    /// The longest journal, its entries, and the statements.
    const MEMORY_MAX: u64 = 32 << 20;

    fn make(&mut self, _: u64, random: &mut Random) -> usize {
        self.text.clear();
        if random.below(20) != 0 {
            let start = ServerStart { server: "a".into(), began_s: 1, process: Some(6) };
            let header = Header {
                start,
                command: "apply waits".into(),
                account: "root@localhost".into(),
                user: 0,
                pid: 7,
                connection: edge(random),
                at: Timestamp::UNIX_EPOCH,
            };
            self.line(&Entry::Header(header));
        }
        for _ in 0..random.below(8) {
            self.line(&Journals::entry(random));
        }
        // Nothing follows it.
        for _ in 0..[1, 0, 0, 0, 0, 0, 0, 2][random.below(8)] {
            self.line(&Journals::end(random));
        }
        if random.below(3) != 0 {
            for _ in 0..random.below(5) {
                mutate(&mut self.text, random, PIECES, &[], USUAL);
            }
        }
        if random.below(LONG_EVERY) == 0 {
            let piece = random.pick(PIECES);
            self.text.extend(piece.repeat(LONG / piece.len()));
        }
        self.text.len()
    }

    fn check(&mut self, counts: &mut Counts) {
        fs::write(&self.path, &self.text).unwrap();
        let before = match read(&self.path) {
            Ok(contents) => contents,
            Err(error) => {
                counts.met("refused");
                assert!(error.to_string().len() < 1000, "{error}");
                assert!(all(self.directory.path()).unwrap()[0].is_err());
                return;
            }
        };
        // Who takes it over removes a line that was cut off, and reads the same.
        let journal = Journal::take(&self.path).unwrap().unwrap();
        assert_eq!(journal.read().unwrap(), before);
        let Some(contents) = before else { return };
        counts.met("read");
        counts.add_to("open", u64::from(contents.is_open()));
        let undone: Vec<Change> = contents.changes.iter().map(Change::inverse).collect();
        for batch in apply::statements(&undone) {
            let Some(sql) = batch.sql() else { continue };
            counts.met("statements");
            assert!(batch.shortened(3).is_some());
            assert!(is_ours(&sql), "{sql}");
        }
    }
}

/// Whether a statement writes settings and does nothing else.
fn is_ours(sql: &str) -> bool {
    let begins = [
        "UPDATE performance_schema.",
        "INSERT INTO performance_schema.",
        "DELETE FROM performance_schema.",
        "SET GLOBAL innodb_monitor_",
    ];
    let sets_variable =
        VARIABLES.iter().any(|it| sql.starts_with(&format!("SET GLOBAL {} = ", it.name)));
    (sets_variable || begins.iter().any(|begin| sql.starts_with(begin)))
        && without_literals(sql).is_some_and(|words| {
            words.chars().all(|c| c.is_ascii_alphanumeric() || "_.,=() ".contains(c))
                && !words.contains(" OR ")
        })
}

/// The statement without what stands between quotes; `None` where a quote does not end.
fn without_literals(sql: &str) -> Option<String> {
    let (mut words, mut is_inside) = (String::new(), false);
    let mut chars = sql.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' if is_inside => drop(chars.next()?),
            '\'' => is_inside = !is_inside,
            _ if is_inside => {}
            _ => words.push(char),
        }
    }
    (!is_inside).then_some(words)
}

#[test]
fn no_journal_makes_anything_panic_hang_or_grow() {
    let Some((inputs, counts)) = run(Journals::new) else { return };
    for (what, at_least) in [("read", 10), ("open", 20), ("statements", 4), ("refused", 10)] {
        assert!(counts.of(what) * at_least > inputs, "{what}: {counts:?}");
    }
}
