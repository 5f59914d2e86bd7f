//! Which metadata locks exclude each other.
//!
//! The tables are `m_granted_incompatible` of `MDL_object_lock` and of `MDL_scoped_lock` in the
//! server's `sql/mdl.cc`, which MySQL 5.7 to 9 and MariaDB share for these modes.

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

/// Whether a lock that is asked for must wait for one that another session has. Modes that are not
/// known here (those of MariaDB's backup locks) count as exclusive.
pub(super) fn excludes(requested: &str, granted: &str) -> bool {
    match (requested, granted) {
        // Modes of scopes: the whole server, a schema, the commits. The first is theirs only.
        ("INTENTION_EXCLUSIVE", "INTENTION_EXCLUSIVE") => false,
        ("INTENTION_EXCLUSIVE", _) | (_, "INTENTION_EXCLUSIVE") => true,
        _ => {
            let at = |mode| OBJECT_MODES.iter().position(|known| *known == mode);
            match (at(requested), at(granted)) {
                (Some(line), Some(letter)) => OBJECT[line][letter] == b'-',
                _ => true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_and_writers_share_and_an_alter_excludes_both() {
        assert!(!excludes("SHARED_READ", "SHARED_WRITE"));
        assert!(excludes("SHARED_READ", "EXCLUSIVE"));
        assert!(excludes("EXCLUSIVE", "SHARED_HIGH_PRIO"));
        assert!(!excludes("SHARED_WRITE", "SHARED_UPGRADABLE"));
        assert!(excludes("SHARED_WRITE", "SHARED_READ_ONLY"));
        assert!(!excludes("SHARED_READ", "SHARED_READ_ONLY"));
    }

    #[test]
    fn a_global_read_lock_excludes_writers() {
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
