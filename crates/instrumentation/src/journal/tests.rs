use super::*;
use crate::table::Table;

fn header() -> Header {
    Header {
        start: ServerStart { server: "a".into(), began_s: 1, process: Some(6) },
        command: "apply waits".into(),
        account: "root@localhost".into(),
        user: 0,
        pid: 7,
        connection: 8,
        at: Timestamp::UNIX_EPOCH,
    }
}

fn begin(directory: &Path) -> Result<Journal, JournalError> {
    Journal::begin(&Alone::within(directory)?, header())
}

fn change(name: &str) -> Change {
    let settings = |on: &str| Some(vec![Some(on.to_owned())]);
    Change {
        table: Table::Consumers,
        key: vec![name.to_owned()],
        before: settings("NO"),
        after: settings("YES"),
    }
}

fn undone() -> Undone {
    Undone {
        by: Undoer::Command,
        at: Timestamp::UNIX_EPOCH,
        left_alone: vec![change("c")],
        not_restored: vec![change("d")],
    }
}

#[test]
fn what_is_written_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = begin(directory.path()).unwrap();
    let planned = Planned { rows: 2, last_thread: 40 };
    journal.plan(planned).unwrap();
    journal.intend(&[change("a"), change("b")]).unwrap();
    journal.keep().unwrap();
    let path = journal.path().to_owned();
    journal.close(undone()).unwrap();
    let contents = read(&path).unwrap().unwrap();
    assert_eq!(contents.header, header());
    assert_eq!(contents.planned, Some(planned));
    assert_eq!(contents.changes, [change("a"), change("b")]);
    assert!(contents.kept);
    assert_eq!(contents.undone, Some(undone()));
    assert_eq!(all(directory.path()).unwrap().len(), 1);
}

#[test]
fn only_one_holds_a_journal_and_who_ends_lets_go() {
    let directory = tempfile::tempdir().unwrap();
    let journal = begin(directory.path()).unwrap();
    let path = journal.path().to_owned();
    assert!(Journal::take(&path).unwrap().is_none());
    drop(journal);
    assert!(Journal::take(&path).unwrap().is_some());
    Journal::wait_for(&path).unwrap();
}

#[test]
fn nobody_else_may_read_a_journal() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("a/b");
    let journal = begin(&place).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(journal.path()), mode(&place)), (0o600, 0o700));
}

#[test]
fn a_line_that_was_cut_off_counts_for_nothing_and_a_wrong_one_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = begin(directory.path()).unwrap();
    journal.intend(&[change("a")]).unwrap();
    let whole = std::fs::read(journal.path()).unwrap();
    for end in 0..whole.len() {
        std::fs::write(journal.path(), &whole[..end]).unwrap();
        let contents = read(journal.path()).unwrap();
        assert!(contents.is_none_or(|contents| contents.changes.len() <= 1));
    }
    // Whoever takes it over writes a line of its own.
    let path = journal.path().to_owned();
    drop(journal);
    let header = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for end in header..whole.len() {
        std::fs::write(&path, &whole[..end]).unwrap();
        Journal::take(&path).unwrap().unwrap().close(undone()).unwrap();
        assert_eq!(read(&path).unwrap().unwrap().undone, Some(undone()), "cut at {end}");
    }
    let mut wrong = whole.clone();
    wrong.extend_from_slice(b"{\"odd\":1}\n");
    wrong.extend_from_slice(b"{\"kept\":null}\n");
    std::fs::write(&path, wrong).unwrap();
    let error = read(&path).unwrap_err();
    assert!(error.to_string().contains("line 3 "), "{error}");
    assert!(matches!(error, JournalError::Wrong { server: Some(server), .. } if server == "a"));
}

#[test]
fn a_journal_can_be_read_while_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = begin(directory.path()).unwrap();
    let path = journal.path().to_owned();
    journal
        .intend(&(0..300).map(|number| change(&number.to_string())).collect::<Vec<_>>())
        .unwrap();
    let whole = std::fs::read(&path).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            // What the file holds at a place is always the same; only how much of it there is changes.
            for _ in 0..20_000 {
                journal.file.set_len(0).unwrap();
                journal.file.write_all(&whole).unwrap();
            }
        });
        while !writer.is_finished() {
            read(&path).unwrap();
        }
    });
    assert_eq!(read(&path).unwrap().unwrap().changes.len(), 300);
}

#[test]
fn the_place_follows_the_environment() {
    let of = |pairs: &'static [(&str, &str)], is_root| {
        let find = |name: &str| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        directory(find, is_root)
    };
    assert_eq!(of(&[], true), Path::new("/var/lib/waggle/journal"));
    assert_eq!(of(&[("HOME", "/h")], false), Path::new("/h/.local/state/waggle/journal"));
    assert_eq!(of(&[("XDG_STATE_HOME", "/x")], false), Path::new("/x/waggle/journal"));
    assert_eq!(of(&[("WAGGLE_STATE_DIR", "/s")], true), Path::new("/s/journal"));
}
