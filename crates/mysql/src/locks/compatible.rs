//! Which metadata locks exclude each other, and which requests wait behind which.
//!
//! The tables are `m_granted_incompatible` and `m_waiting_incompatible` of `MDL_object_lock`,
//! `MDL_scoped_lock` and, of MariaDB, `MDL_backup_lock` in the server's `sql/mdl.cc`. MySQL 5.7 to 9
//! and MariaDB share those of objects and scopes.

/// Modes of locks on objects, by their names in `metadata_locks.LOCK_TYPE`, in the order of the table.
pub(super) const OBJECT_MODES: [&str; 10] = [
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

/// Modes of MariaDB's backup locks: of `BACKUP STAGE`, of `FLUSH TABLES WITH READ LOCK`, and of
/// statements that change something.
pub(super) const BACKUP_MODES: [&str; 14] = [
    "BACKUP_START",
    "BACKUP_FLUSH",
    "BACKUP_WAIT_FLUSH",
    "BACKUP_WAIT_DDL",
    "BACKUP_WAIT_COMMIT",
    "BACKUP_FTWRL1",
    "BACKUP_FTWRL2",
    "BACKUP_DML",
    "BACKUP_TRANS_DML",
    "BACKUP_SYS_DML",
    "BACKUP_DDL",
    "BACKUP_BLOCK_DDL",
    "BACKUP_ALTER_COPY",
    "BACKUP_COMMIT",
];
/// As [`OBJECT`].
const BACKUP: [&[u8; 14]; 14] = [
    b"-----++++++-++",
    b"-+++++++++++++",
    b"-++++++-++++++",
    b"-++++++-++-+++",
    b"-++++++-+--++-",
    b"+++++++----+-+",
    b"+++++++----+--",
    b"+------+++++++",
    b"+++++--+++++++",
    b"++++---+++++++",
    b"+++----++++-++",
    b"-----+++++--++",
    b"+++++--+++++++",
    b"++++-+-+++++++",
];
/// As [`QUEUE`].
const BACKUP_QUEUE: [&[u8; 14]; 14] = [
    b"+----++++++-++",
    b"++++++++++++++",
    b"++++++++++++++",
    b"++++++++++++++",
    b"++++++++++++++",
    b"++++++++++++++",
    b"++++++++++++++",
    b"+------+++++++",
    b"+++++--+++++++",
    b"++++---+++++++",
    b"+++----++++-++",
    b"-+++++++++++++",
    b"+++++--+++++++",
    b"++++-+-+++++++",
];

/// A mode of scopes: the whole server, a schema, the commits. It is theirs only.
pub(super) const INTENTION: &str = "INTENTION_EXCLUSIVE";

/// Whether a lock that is asked for must wait for one that another session has. `None` for modes that
/// are not known here.
pub(super) fn excludes(requested: &str, granted: &str) -> Option<bool> {
    match (requested, granted) {
        (INTENTION, INTENTION) => Some(false),
        (INTENTION, _) | (_, INTENTION) => Some(true),
        _ => look_up(&OBJECT_MODES, &OBJECT, requested, granted)
            .or_else(|| look_up(&BACKUP_MODES, &BACKUP, requested, granted)),
    }
}

/// Whether a lock that is asked for stands behind one that another session has asked for before; `None` as above.
pub(super) fn stands_behind(requested: &str, pending: &str) -> Option<bool> {
    match (requested, pending) {
        (INTENTION, INTENTION) | (_, INTENTION) => Some(false),
        (INTENTION, pending) => Some(matches!(pending, "SHARED" | "EXCLUSIVE")),
        _ => look_up(&OBJECT_MODES, &QUEUE, requested, pending)
            .or_else(|| look_up(&BACKUP_MODES, &BACKUP_QUEUE, requested, pending)),
    }
}

fn look_up<const N: usize>(
    modes: &[&str; N],
    table: &[&[u8; N]; N],
    requested: &str,
    other: &str,
) -> Option<bool> {
    let at = |mode| modes.iter().position(|known| *known == mode);
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
        for modes in [&OBJECT_MODES[..], &BACKUP_MODES] {
            for one in modes {
                for two in modes {
                    let (behind, excluded) = (stands_behind(one, two), excludes(one, two));
                    assert!(behind != Some(true) || excluded == Some(true), "{one} {two}");
                }
            }
        }
    }

    #[test]
    fn a_backup_and_a_global_read_lock_of_mariadb_exclude_who_changes_something() {
        let excludes = |one, two| excludes(one, two).unwrap();
        assert!(excludes("BACKUP_TRANS_DML", "BACKUP_FTWRL2"));
        assert!(excludes("BACKUP_COMMIT", "BACKUP_FTWRL2"));
        assert!(!excludes("BACKUP_COMMIT", "BACKUP_FTWRL1"));
        assert!(excludes("BACKUP_DDL", "BACKUP_WAIT_DDL"));
        assert!(!excludes("BACKUP_TRANS_DML", "BACKUP_WAIT_DDL"));
        assert_eq!(stands_behind("BACKUP_TRANS_DML", "BACKUP_FTWRL1"), Some(true));
        assert_eq!(stands_behind("BACKUP_FTWRL1", "BACKUP_DDL"), Some(false));
        assert_eq!(super::excludes("BACKUP_DDL", "SHARED"), None);
        assert_eq!(super::excludes("BACKUP_OF_THE_FUTURE", "BACKUP_DDL"), None);
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
    fn the_table_of_objects_is_symmetrical() {
        for one in OBJECT_MODES {
            for two in OBJECT_MODES {
                assert_eq!(excludes(one, two), excludes(two, one), "{one} {two}");
            }
        }
    }
}
