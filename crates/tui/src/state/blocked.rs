//! Finds running sessions that wait for somebody, from the session's state and from whether its
//! thread sleeps.

use waggle_model::{RunningStatement, WaitsFor};
use waggle_sql::Kind;

/// What is known of a session's waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wait {
    /// It waits for a lock: its thread or the server says so.
    Lock,
    /// It probably waits for a row lock, for which no server has a state of its own.
    Row,
    /// It waits for somebody or something, but for no lock.
    NoLock,
    /// Nothing tells of a lock.
    None,
}

/// How long a statement must run before it is taken for waiting without a word of the server.
const LONG_NS: u64 = 500_000_000;

/// States in which a session waits for a row lock and that are short where nothing waits. InnoDB sets
/// no state while it waits, so the state is that of the step that asked for the row: `updating`,
/// `deleting from main table`, `update` (an INSERT), `searching rows for update`, and `statistics`
/// (a row found by a unique key).
fn is_usually_short(state: &str) -> bool {
    matches!(
        state,
        "updating"
            | "update"
            | "deleting from main table"
            | "searching rows for update"
            | "statistics"
    )
}

/// States in which a session waits for a row lock, and that are long in many a healthy statement, as
/// seen on MySQL 5.7.22, 8.0.12, 9.7 and MariaDB 10.11, 11.4: `Sending data` (5.7, 8.0.12, MariaDB),
/// `executing` (9.7), `optimizing` (8.0.12), `init for update` (MariaDB), and `System lock`, which
/// stays where a range is looked at before the rows are (MySQL).
fn is_often_long(state: &str) -> bool {
    matches!(state, "sending data" | "executing" | "optimizing" | "init for update" | "system lock")
}

/// Whether a statement may lock rows: all but a query that says nothing of it, as far as it was read.
fn may_lock_rows(running: &RunningStatement) -> bool {
    const CLAUSES: [&[u8]; 3] = [b"FOR UPDATE", b"FOR SHARE", b"SHARE MODE"];
    let Some(text) = running.text().filter(|text| !text.is_truncated()) else { return true };
    let sql = text.bytes;
    let holds = |clause: &[u8]| sql.windows(clause.len()).any(|at| at.eq_ignore_ascii_case(clause));
    waggle_sql::kind(sql) != Kind::Select || CLAUSES.into_iter().any(holds)
}

/// What is known of a session's waiting at the end of an interval.
pub(crate) fn wait(running: &RunningStatement, age_ns: Option<u64>) -> Wait {
    let state = String::from_utf8_lossy(running.state.as_deref().unwrap_or_default());
    let state = state.trim();
    let told = WaitsFor::seen(state, running.waits.map(|now| now.class));
    let told = told.filter(|whom| *whom != WaitsFor::Nobody);
    match (running.waits, told) {
        (Some(now), _) if now.class.is_lock() => Wait::Lock,
        (_, Some(whom)) if !whom.is_lock() => Wait::NoLock,
        (Some(_), _) => Wait::None,
        (None, Some(_)) => Wait::Lock,
        (None, None) => probably(running, &state.to_ascii_lowercase(), age_ns),
    }
}

/// The same where neither the thread nor the server says it.
fn probably(running: &RunningStatement, state: &str, age_ns: Option<u64>) -> Wait {
    let is_long = age_ns.is_some_and(|age| age >= LONG_NS);
    let waits = match running.has_slept {
        // What goes on does not wait.
        Some(false) => false,
        Some(true) => is_usually_short(state) || (is_often_long(state) && may_lock_rows(running)),
        None => is_usually_short(state),
    };
    if is_long && waits { Wait::Row } else { Wait::None }
}

#[cfg(test)]
mod tests {
    use waggle_model::{NowWait, TimeClass};

    use super::*;

    fn of(state: &str, text: &str, has_slept: Option<bool>, age_ns: u64) -> Wait {
        let running = RunningStatement {
            state: Some(state.as_bytes().to_vec()),
            text: Some(text.as_bytes().to_vec()),
            text_length: text.len() as u64,
            has_slept,
            ..RunningStatement::default()
        };
        wait(&running, Some(age_ns))
    }

    #[test]
    fn a_state_that_names_a_lock_is_waiting_at_once() {
        for state in [
            "Waiting for table metadata lock",
            "Waiting for table flush",
            "User lock",
            "waiting for global read lock",
        ] {
            assert_eq!(of(state, "SELECT 1", None, 0), Wait::Lock, "{state}");
        }
        let other = "Waiting for master to send event";
        assert_eq!(of(other, "SELECT 1", Some(true), u64::MAX), Wait::None);
        let disk = "Waiting for disk space";
        assert_eq!(of(disk, "INSERT INTO t VALUES (1)", Some(true), u64::MAX), Wait::NoLock);
    }

    #[test]
    fn what_its_thread_waits_for_counts_more_than_a_state() {
        let of = |class| {
            let waits = Some(NowWait { class, since_ns: 0 });
            let state = Some(b"updating".to_vec());
            let running = RunningStatement { waits, state, ..RunningStatement::default() };
            wait(&running, Some(LONG_NS))
        };
        assert_eq!(of(TimeClass::RowLock), Wait::Lock);
        assert_eq!(of(TimeClass::DiskRead), Wait::None);
        let waits = Some(NowWait { class: TimeClass::Other, since_ns: 0 });
        let state = Some(b"Waiting for semi-sync ACK from replica".to_vec());
        let running = RunningStatement { waits, state, ..RunningStatement::default() };
        assert_eq!(wait(&running, None), Wait::NoLock);
    }

    #[test]
    fn an_update_that_was_not_seen_before_is_waiting_only_where_it_takes_long() {
        let update = "UPDATE t SET v = 1";
        assert_eq!(of("updating", update, None, 1_000), Wait::None);
        assert_eq!(of("Updating", update, None, LONG_NS), Wait::Row);
        assert_eq!(of("Sending data", update, None, u64::MAX), Wait::None);
        let running = RunningStatement { state: Some(b"updating".to_vec()), ..Default::default() };
        assert_eq!(wait(&running, None), Wait::None);
    }

    #[test]
    fn what_went_on_since_the_look_before_does_not_wait_and_what_slept_may() {
        for state in ["updating", "Sending data", "System lock", "init for update", "executing"] {
            let update = "UPDATE t SET v = 1";
            assert_eq!(of(state, update, Some(false), u64::MAX), Wait::None, "{state}");
            assert_eq!(of(state, update, Some(true), LONG_NS), Wait::Row, "{state}");
            assert_eq!(of(state, update, Some(true), 1_000), Wait::None, "{state}");
            let query = of(state, "SELECT v FROM t", Some(true), LONG_NS);
            assert_eq!(query == Wait::Row, state == "updating", "{state}");
            let locking = "select v from t for update";
            assert_eq!(of(state, locking, Some(true), LONG_NS), Wait::Row, "{state}");
        }
        assert_eq!(of("User sleep", "DO SLEEP(9)", Some(true), LONG_NS), Wait::None);
    }
}
