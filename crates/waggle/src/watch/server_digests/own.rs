//! waggle's own connections, whose statements are not shown as those of users.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use waggle_host::monotonic_ns;
use waggle_model::{RunningStatement, Statement};

/// The maximum number of remembered connections. One that is tried again every ten seconds is
/// forgotten after ten minutes, when nothing of it can come any more.
const CONNECTIONS_MAX: usize = 64;

/// Every connection of ours. The capture knows it before it sends its first statement.
#[derive(Debug, Default)]
pub(super) struct OwnConnections(Mutex<VecDeque<OwnConnection>>);

#[derive(Debug)]
struct OwnConnection {
    id: u64,
    /// The secret mark in its first statements.
    marker: String,
    /// The server through which they came: until they do, it is not known where it leads.
    pid: Option<u32>,
}

impl OwnConnections {
    fn all(&self) -> MutexGuard<'_, VecDeque<OwnConnection>> {
        // Nothing that holds it leaves it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection that has sent no statement yet. Returns the mark for its first statements.
    pub(super) fn add(&self, id: u32) -> String {
        let marker = format!("waggle_{}_{}", std::process::id(), monotonic_ns());
        let mut all = self.all();
        if all.len() == CONNECTIONS_MAX {
            all.pop_front();
        }
        all.push_back(OwnConnection { id: u64::from(id), marker: marker.clone(), pid: None });
        marker
    }

    /// The server to which a connection leads, once a statement of it was captured.
    pub(super) fn leads_to(&self, marker: &str) -> Option<u32> {
        self.all().iter().find(|own| own.marker == marker).and_then(|own| own.pid)
    }

    /// Whether a statement is ours. One that holds the marker shows to which server its connection
    /// leads.
    pub(super) fn sent(&self, statement: &Statement<'_>) -> bool {
        let Some(id) = statement.connection_id else { return false };
        let holds = |marker: &str| {
            statement.text.is_some_and(|text| {
                text.bytes.windows(marker.len()).any(|part| part == marker.as_bytes())
            })
        };
        let mut all = self.all();
        let mut with_id = all.iter_mut().filter(|own| own.id == id);
        with_id.any(|own| match own.pid {
            Some(pid) => pid == statement.pid,
            None if holds(&own.marker) => {
                own.pid = Some(statement.pid);
                true
            }
            None => false,
        })
    }

    /// Whether a statement that runs in a server is ours.
    pub(super) fn runs(&self, pid: u32, running: &RunningStatement) -> bool {
        let is_it = |own: &OwnConnection| own.id == running.connection_id && own.pid == Some(pid);
        self.all().iter().any(is_it)
    }
}

#[cfg(test)]
mod tests {
    use waggle_model::{Identity, Text};

    use super::*;

    const NOBODY: Identity = Identity { user: None, host: None, database: None };

    fn says(own: &OwnConnections, pid: u32, id: u64, text: &str) -> bool {
        own.sent(&Statement {
            pid,
            connection_id: Some(id),
            text: Some(Text { bytes: text.as_bytes(), length: text.len() as u64 }),
            ..Statement::unread(0, &NOBODY)
        })
    }

    #[test]
    fn a_connection_is_ours_where_its_marker_came_through_and_nowhere_else() {
        let own = OwnConnections::default();
        let marker = own.add(8);
        let question = format!("SELECT '{marker}'");
        assert!(!says(&own, 1, 8, "SELECT 1"), "of another, while nothing is known");
        assert!(!says(&own, 1, 9, &question), "somebody says what is seen in the list of sessions");
        assert_eq!(own.leads_to(&marker), None);
        assert!(says(&own, 2, 8, &question));
        assert_eq!(own.leads_to(&marker), Some(2));
        assert!(says(&own, 2, 8, "SELECT STATEMENT_DIGEST(_utf8mb4 X'')"));
        assert!(!says(&own, 1, 8, "SELECT 1"), "the same id on another server");
        let running = RunningStatement { connection_id: 8, ..RunningStatement::default() };
        assert!(own.runs(2, &running) && !own.runs(1, &running));
    }

    #[test]
    fn the_oldest_connections_are_forgotten() {
        let own = OwnConnections::default();
        let markers: Vec<String> = (0..=CONNECTIONS_MAX as u32).map(|id| own.add(id)).collect();
        assert!(!says(&own, 1, 0, &markers[0]));
        assert!(says(&own, 1, 1, &markers[1]));
    }
}
