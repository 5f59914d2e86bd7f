//! How something is locked, and which mode has to wait for which: what the servers' own tables say.
//!
//! - Tables: `m_granted_incompatible` and `m_waiting_incompatible` of `MDL_object_lock` in `sql/mdl.cc` of MariaDB; in
//!   that of MySQL the first two arrays of `MDL_lock::m_object_lock_strategy`. Of the modes that the mix uses they are
//!   the same in MySQL 5.7, 8.0 and 9 and in MariaDB 10.11 and 11.4. The others of MySQL's priority matrices come in
//!   with `max_write_lock_count`, which nobody reaches.
//! - Names: MySQL takes `MDL_EXCLUSIVE` (`item_func.cc`, namespace `USER_LEVEL_LOCK`), MariaDB `MDL_SHARED_NO_WRITE`
//!   (`USER_LOCK`). Each excludes itself and lets nobody of its own kind go first.
//! - The server: of MySQL `SHARED` for `FLUSH TABLES WITH READ LOCK` and `INTENTION_EXCLUSIVE` for who writes
//!   (`MDL_lock::m_scoped_lock_strategy`); of MariaDB `FTWRL1`, then `FTWRL2`, and `TRANS_DML` (`MDL_backup_lock`).
//! - Rows and gaps: `lock_rec_has_to_wait` in `storage/innobase/lock/lock0lock.cc`, the same in all versions. Who asked
//!   first goes first (`lock_rec_has_to_wait_in_queue`) in MySQL 5.7 and MariaDB; from 8.0 on the heaviest transaction
//!   does (`lock_rec_grant_by_heap_no`).
//!
//! Of equal metadata locks the one that waits longest goes first (`MDL_lock::Ticket_list::add_ticket`,
//! `MDL_lock::reschedule_waiters`).

/// How something is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Mode {
    /// Of rows, names and the server.
    Shared,
    Exclusive,
    /// Of gaps: nobody else may insert, and inserting.
    Covers,
    Inserts,
    /// Of tables: `SHARED_READ`, `SHARED_WRITE`, `SHARED_UPGRADABLE`, `SHARED_READ_ONLY`, `SHARED_NO_READ_WRITE`,
    /// `EXCLUSIVE`.
    Reads,
    Writes,
    Upgradable,
    ReadOnly,
    NoReadWrite,
    Changes,
}

use Mode::{
    Changes, Covers, Exclusive, Inserts, NoReadWrite, ReadOnly, Reads, Shared, Upgradable, Writes,
};

/// The modes of tables, in the order of the letters below.
const OF_TABLES: [Mode; 6] = [Reads, Writes, Upgradable, ReadOnly, NoReadWrite, Changes];
/// A line per mode that is asked for, a letter per mode that another session has: `-` excludes.
const GRANTED: [&[u8; 6]; 6] = [b"++++--", b"+++---", b"++-+--", b"+-++--", b"------", b"------"];
/// A letter per mode that another session waits for: `-` goes first, whoever came first.
const PENDING: [&[u8; 6]; 6] = [b"++++--", b"++++--", b"+++++-", b"+-++--", b"+++++-", b"++++++"];

impl Mode {
    /// Whether who asks for this waits for one who has that.
    pub(in super::super) fn excludes(self, other: Mode) -> bool {
        match (self, other) {
            (Shared, Exclusive) | (Exclusive, Shared | Exclusive) => true,
            (Covers, Inserts) | (Inserts, Covers) => true,
            _ => self.is_minus(&GRANTED, other),
        }
    }

    /// Whether who asks for this lets one go first who waits for that.
    pub(super) fn stands_behind(self, other: Mode) -> bool {
        match self {
            Shared | Exclusive => self.excludes(other),
            Covers | Inserts => false,
            _ => self.is_minus(&PENDING, other),
        }
    }

    /// Whether that goes first only if it was asked for before.
    pub(super) fn is_queued(self) -> bool {
        matches!(self, Shared | Exclusive)
    }

    fn is_minus(self, table: &[&[u8; 6]; 6], other: Mode) -> bool {
        let at = |mode| OF_TABLES.iter().position(|known| *known == mode);
        let letter = at(self).zip(at(other)).map(|(line, column)| table[line][column]);
        letter == Some(b'-')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tables_exclude_is_symmetrical_and_holds_for_who_waits_only_where_it_excludes() {
        for one in OF_TABLES {
            for two in OF_TABLES {
                assert_eq!(one.excludes(two), two.excludes(one), "{one:?} {two:?}");
                assert!(!one.stands_behind(two) || one.excludes(two), "{one:?} {two:?}");
            }
        }
    }

    #[test]
    fn a_reader_stands_behind_a_change_that_waits_and_no_change_behind_anybody() {
        assert!(Reads.stands_behind(Changes) && !Reads.stands_behind(Writes));
        assert!(Upgradable.stands_behind(Changes) && !Upgradable.stands_behind(Upgradable));
        assert!(!OF_TABLES.into_iter().any(|mode| Changes.stands_behind(mode)));
    }

    #[test]
    fn nothing_excludes_what_is_of_another_kind() {
        assert!(!Shared.excludes(Changes) && !Reads.excludes(Exclusive));
        assert!(Inserts.excludes(Covers) && !Inserts.excludes(Inserts));
    }
}
