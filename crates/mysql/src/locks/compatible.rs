//! Which metadata locks exclude each other, and which requests stand behind which.
//!
//! The tables are `m_granted_incompatible` and `m_waiting_incompatible` of `MDL_object_lock` and of
//! `MDL_scoped_lock` in the server's `sql/mdl.cc`, which MySQL 5.7 to 9 and MariaDB share for these modes.

/// Modes of locks on objects, by their names in `metadata_locks.LOCK_TYPE`, in the order of the table.
const OBJECT_MODES: [&str; 10] = [
    "SHARED",
    "SHARED_HIGH_PRIO",
    "SHARED_READ",
    "SHARED_WRITE",
    "SHARED_WRITE_LOW_PRIO",
    "SHARED_UPGRADABLE",
    "SHARED_READ_ONLY",
    "SHARED_NO_WRITE",
    "SHARED_NO_READ_WRITE",
    "EXCLUSIVE",
];
/// A line per requested mode, a letter per granted one: `-` excludes.
const OBJECT: [&[u8; 10]; 10] = [
    b"+++++++++-",
    b"+++++++++-",
    b"++++++++--",
    b"++++++----",
    b"++++++----",
    b"+++++-+---",
    b"+++--+++--",
    b"+++---+---",
    b"++--------",
    b"----------",
];

/// A line per requested mode, a letter per mode that another session asked for and has not got: `-` goes first,
/// as long as nobody starves (`max_write_lock_count`).
const QUEUE: [&[u8; 10]; 10] = [
    b"+++++++++-",
    b"++++++++++",
    b"++++++++--",
    b"+++++++---",
    b"++++++-+--",
    b"+++++++++-",
    b"+++-++++--",
    b"+++++++++-",
    b"+++++++++-",
    b"++++++++++",
];

/// A mode of scopes: the whole server, a schema, the commits. It is theirs only.
const INTENTION: &str = "INTENTION_EXCLUSIVE";

/// Whether a lock that is asked for must wait for one that another session has. `None` for modes that are not known
/// here: those of MariaDB's backup locks.
pub(super) fn excludes(requested: &str, granted: &str) -> Option<bool> {
    match (requested, granted) {
        (INTENTION, INTENTION) => Some(false),
        (INTENTION, _) | (_, INTENTION) => Some(true),
        _ => look_up(&OBJECT, requested, granted),
    }
}

/// Whether a lock that is asked for stands behind one that another session has asked for before; `None` as above.
pub(super) fn stands_behind(requested: &str, pending: &str) -> Option<bool> {
    match (requested, pending) {
        (INTENTION, INTENTION) | (_, INTENTION) => Some(false),
        (INTENTION, pending) => Some(matches!(pending, "SHARED" | "EXCLUSIVE")),
        _ => look_up(&QUEUE, requested, pending),
    }
}

fn look_up(table: &[&[u8; 10]; 10], requested: &str, other: &str) -> Option<bool> {
    let at = |mode| OBJECT_MODES.iter().position(|known| *known == mode);
    Some(table[at(requested)?][at(other)?] == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_and_writers_share_and_an_alter_excludes_both() {
        let excludes = |one, two| excludes(one, two).unwrap();
        assert!(!excludes("SHARED_READ", "SHARED_WRITE"));
        assert!(excludes("SHARED_READ", "EXCLUSIVE"));
        assert!(excludes("EXCLUSIVE", "SHARED_HIGH_PRIO"));
        assert!(!excludes("SHARED_WRITE", "SHARED_UPGRADABLE"));
        assert!(excludes("SHARED_WRITE", "SHARED_READ_ONLY"));
        assert!(!excludes("SHARED_READ", "SHARED_READ_ONLY"));
    }

    #[test]
    fn a_reader_stands_behind_an_alter_that_waits_and_no_alter_behind_a_reader() {
        let behind = |one, two| stands_behind(one, two).unwrap();
        assert!(behind("SHARED_READ", "EXCLUSIVE") && !behind("EXCLUSIVE", "SHARED_READ"));
        assert!(!behind("EXCLUSIVE", "EXCLUSIVE") && !behind("SHARED_HIGH_PRIO", "EXCLUSIVE"));
        assert!(behind("SHARED_WRITE", "SHARED_NO_WRITE"));
        assert!(behind("INTENTION_EXCLUSIVE", "SHARED"));
        assert!(!behind("SHARED", "INTENTION_EXCLUSIVE"));
    }

    #[test]
    fn nobody_stands_behind_whom_he_would_not_wait_for() {
        for one in OBJECT_MODES {
            for two in OBJECT_MODES {
                let (behind, excluded) = (stands_behind(one, two), excludes(one, two));
                assert!(behind != Some(true) || excluded == Some(true), "{one} {two}");
            }
        }
    }

    #[test]
    fn of_backup_locks_nothing_is_known() {
        assert_eq!(excludes("BACKUP_FTWRL1", "BACKUP_TRANS_DML"), None);
        assert_eq!(stands_behind("BACKUP_FTWRL1", "BACKUP_DDL"), None);
    }

    #[test]
    fn a_global_read_lock_excludes_writers() {
        let excludes = |one, two| excludes(one, two).unwrap();
        assert!(excludes("INTENTION_EXCLUSIVE", "SHARED"));
        assert!(excludes("SHARED", "INTENTION_EXCLUSIVE"));
        assert!(!excludes("SHARED", "SHARED"));
        assert!(!excludes("INTENTION_EXCLUSIVE", "INTENTION_EXCLUSIVE"));
    }

    #[test]
    fn the_table_is_symmetrical() {
        for one in OBJECT_MODES {
            for two in OBJECT_MODES {
                assert_eq!(excludes(one, two), excludes(two, one), "{one} {two}");
            }
        }
    }
}
