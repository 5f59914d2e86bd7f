//! Which running sessions wait for a lock, by what the server says that they do.

/// What is known of a session's waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wait {
    /// It waits for a lock: the server says so.
    Lock,
    /// It probably waits for a row lock, for which the servers have no state of its own.
    Row,
    /// Nothing tells of a lock.
    None,
}

/// How long a session must be in a state that is usually short before it is taken for waiting.
const LONG_NS: u64 = 500_000_000;

/// States that name a lock (`PROCESSLIST_STATE`, compared without case).
///
/// - Every family, from `stage_…` in `sql/mysqld.cc` and the metadata locks of `sql/mdl.cc`:
///   `Waiting for table metadata lock`, `Waiting for schema metadata lock`, `Waiting for table
///   level lock`, `Waiting for global read lock`, `Waiting for table flush`, `Waiting for commit
///   lock`, MariaDB's `Waiting for backup lock`, MySQL's `Waiting for backup lock`: all begin with
///   `Waiting for` and hold `lock` or `flush`.
/// - `User lock` (`GET_LOCK`), `System lock` (`LOCK TABLES` of others, and the lock of the storage
///   engine), `Table lock` (MariaDB before 10.0 and its forks).
fn names_a_lock(state: &str) -> bool {
    let waits = state.starts_with("waiting for");
    waits && (state.contains("lock") || state.contains("flush"))
        || matches!(state, "user lock" | "table lock" | "system lock")
}

/// States in which a session waits for a row lock, and in which it also works. InnoDB sets no state
/// while it waits, so the state is that of the step that asked for the row:
///
/// - `updating`, `deleting from main table`, `update` (an INSERT), `searching rows for update`:
///   MySQL 5.7 and 8.0; MariaDB writes them with a capital letter.
/// - `statistics` (a row found by a unique key), `sending data` (5.7 and MariaDB), `executing`
///   (MySQL 8.0 and later): a locking read. These are long in many a healthy query, so they are not
///   taken for waiting; only `statistics` is, which is short wherever nothing waits.
fn asks_for_rows(state: &str) -> bool {
    matches!(
        state,
        "updating"
            | "update"
            | "deleting from main table"
            | "searching rows for update"
            | "statistics"
    )
}

/// Whether a session waits for a lock.
pub(crate) fn wait(state: &str, age_ns: Option<u64>) -> Wait {
    let state = state.trim().to_ascii_lowercase();
    if names_a_lock(&state) {
        Wait::Lock
    } else if asks_for_rows(&state) && age_ns.is_some_and(|age| age >= LONG_NS) {
        Wait::Row
    } else {
        Wait::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_names_a_lock_is_waiting_at_once() {
        for state in [
            "Waiting for table metadata lock",
            "Waiting for table flush",
            "User lock",
            "System lock",
            "waiting for global read lock",
        ] {
            assert_eq!(wait(state, None), Wait::Lock, "{state}");
        }
        assert_eq!(wait("Waiting for master to send event", Some(u64::MAX)), Wait::None);
    }

    #[test]
    fn an_update_is_waiting_only_where_it_takes_long() {
        assert_eq!(wait("updating", Some(1_000)), Wait::None);
        assert_eq!(wait("Updating", Some(LONG_NS)), Wait::Row);
        assert_eq!(wait("updating", None), Wait::None);
        assert_eq!(wait("Sending data", Some(u64::MAX)), Wait::None);
    }
}
