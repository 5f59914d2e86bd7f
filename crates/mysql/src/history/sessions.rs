//! The sessions: who they are and what they do now.

use std::collections::BTreeMap;

use crate::connection::{Connection, ConnectionError, MARK, Row, optional_text, text};

/// A session of a client, or a thread that runs statements by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// The id that `SHOW PROCESSLIST` shows; `None` if only its account is known.
    pub connection_id: Option<u64>,
    /// The user.
    pub user: Option<String>,
    /// The host.
    pub host: Option<String>,
    /// The default database.
    pub schema: Option<String>,
    /// `PROCESSLIST_STATE`.
    pub state: Option<String>,
    /// The statement that it runs.
    pub text: Option<Vec<u8>>,
    /// `PROCESSLIST_TIME`: for how many seconds it runs it, or rests.
    pub seconds: Option<u64>,
    /// The events that are under way.
    pub events: Vec<u64>,
    /// `TIMER_START` of the first of them, picoseconds since a start that all sessions share.
    pub started_ps: Option<u64>,
}

/// Sessions by thread.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// Sessions that exist now.
    pub now: BTreeMap<u64, Session>,
    /// Sessions that ended since the previous poll, if anything is known of them.
    pub gone: BTreeMap<u64, Session>,
    /// Why an ended session is not known, by thread.
    pub unknown: BTreeMap<u64, String>,
}

impl Sessions {
    /// These sessions, together with the previous ones.
    pub(super) fn with_earlier(&self, earlier: &Sessions) -> Sessions {
        let is_gone = |(thread, _): &(&u64, &Session)| !self.now.contains_key(thread);
        let gone = earlier.now.iter().filter(is_gone);
        Sessions {
            now: self.now.clone(),
            gone: gone.map(|(thread, session)| (*thread, session.clone())).collect(),
            unknown: BTreeMap::new(),
        }
    }

    /// User and host of a thread.
    pub(super) fn account(&self, thread: u64) -> Option<(String, String)> {
        let session = self.of(thread)?;
        Some((session.user.clone()?, session.host.clone()?))
    }

    /// Notes whose session it was.
    pub(super) fn name(&mut self, thread: u64, (user, host): (String, String)) {
        let session = match self.now.get_mut(&thread) {
            Some(session) => session,
            None => self.gone.entry(thread).or_default(),
        };
        session.user = Some(user);
        session.host = Some(host);
    }

    /// Who a thread is, or was.
    pub fn of(&self, thread: u64) -> Option<&Session> {
        self.now.get(&thread).or_else(|| self.gone.get(&thread))
    }
}

/// Reads every session but that of waggle.
pub(super) fn read(connection: &mut Connection, own: u64) -> Result<Sessions, ConnectionError> {
    let rows = connection.rows(&format!(
        "SELECT THREAD_ID AS {MARK}, PROCESSLIST_ID, PROCESSLIST_USER, PROCESSLIST_HOST, \
         PROCESSLIST_DB, PROCESSLIST_STATE, PROCESSLIST_INFO, PROCESSLIST_TIME \
         FROM performance_schema.threads \
         WHERE PROCESSLIST_ID IS NOT NULL AND THREAD_ID <> {own}"
    ))?;
    let mut now: BTreeMap<u64, Session> = rows.into_iter().filter_map(session_of).collect();
    let running = connection.rows(&format!(
        "SELECT THREAD_ID AS {MARK}, EVENT_ID, TIMER_START \
         FROM performance_schema.events_statements_current \
         WHERE END_EVENT_ID IS NULL AND THREAD_ID <> {own}"
    ))?;
    for row in &running {
        let session = text(row, 0).parse().ok().and_then(|thread: u64| now.get_mut(&thread));
        if let (Some(session), Ok(event)) = (session, text(row, 1).parse()) {
            session.events.push(event);
            let started_ps: Option<u64> = text(row, 2).parse().ok();
            session.started_ps = session.started_ps.into_iter().chain(started_ps).min();
        }
    }
    Ok(Sessions { now, ..Sessions::default() })
}

fn session_of(mut row: Row) -> Option<(u64, Session)> {
    let thread = text(&row, 0).parse().ok()?;
    let session = Session {
        connection_id: text(&row, 1).parse().ok(),
        user: optional_text(&row, 2),
        host: optional_text(&row, 3),
        schema: optional_text(&row, 4),
        state: optional_text(&row, 5),
        text: row.get_mut(6).and_then(Option::take),
        seconds: text(&row, 7).parse().ok(),
        events: Vec::new(),
        started_ps: None,
    };
    Some((thread, session))
}
