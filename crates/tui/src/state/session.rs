//! A running session, ready to display.

use std::cmp::Reverse;

use waggle_model::visible;
use waggle_model::{Blocked, Blocker, RunningStatement, SessionSettings, TimeClass};
use waggle_sql::SqlModes;

use super::blocked::{Wait, wait};

/// Sessions that are looked at of one interval; a server may have thousands.
const SESSIONS_MAX: usize = 500;
/// The start of a statement is the same at each look, but for the distance of two clocks, nanoseconds.
const CLOCKS_APART_NS: u64 = 20_000_000;
/// Characters of text that the history keeps of a session.
const TEXT_KEPT: usize = 200;

/// One running session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) connection_id: u64,
    pub(crate) user: Box<str>,
    pub(crate) host: Box<str>,
    pub(crate) database: Box<str>,
    pub(crate) state: Box<str>,
    pub(crate) wait: Wait,
    /// What it does, and for how long, nanoseconds; `None` if that is not measured.
    pub(crate) now: Option<(TimeClass, u64)>,
    /// Who holds the lock that it waits for, as far as somebody looked.
    pub(crate) blocked: Option<Box<Blocked>>,
    /// The end of the interval, nanoseconds of the clock that dates what is known of the holder.
    pub(crate) seen_ns: u64,
    /// How long it runs; `None` if its start is not known.
    pub(crate) age_ns: Option<u64>,
    /// The statement without secrets, and without literals unless they were asked for; the command
    /// where it has none.
    pub(crate) text: Box<str>,
    /// Those under which it was read.
    pub(crate) modes: SqlModes,
    /// Bytes of the statement that are not in `text`, as far as that is known.
    pub(crate) is_cut: bool,
}

/// The running sessions, the blocked ones first, then the oldest.
pub(crate) fn sessions(running: &[RunningStatement], now_ns: u64, literals: bool) -> Vec<Session> {
    let mut order: Vec<(Wait, Reverse<Option<u64>>, &RunningStatement)> = running
        .iter()
        .map(|one| {
            let age_ns = one.start_ns.map(|start| now_ns.saturating_sub(start));
            (wait(one, age_ns), Reverse(age_ns), one)
        })
        .collect();
    order.sort_by_key(|(wait, age, one)| (*wait, *age, one.connection_id));
    order.truncate(SESSIONS_MAX);
    let session = |(wait, Reverse(age_ns), one): (_, _, &RunningStatement)| {
        let now = one.waits.map(|now| (now.class, now_ns.saturating_sub(now.since_ns)));
        Session { now, seen_ns: now_ns, ..Session::of(one, wait, age_ns, literals) }
    };
    order.into_iter().map(session).collect()
}

/// The text of a statement as it may be shown: without secrets, and without literals unless they were
/// asked for.
pub(crate) fn printable(text: &[u8], settings: Option<SessionSettings>, literals: bool) -> String {
    let settings = settings.and_then(|settings| {
        waggle_sql::SessionSettings::of_session(settings.sql_mode, settings.charset.as_str())
    });
    waggle_sql::printable(text, settings, !literals)
}

/// The modes under which a text was read.
pub(crate) fn modes(settings: Option<SessionSettings>) -> SqlModes {
    settings.map_or(SqlModes::default(), |settings| SqlModes::from_bits(settings.sql_mode))
}

fn lossy(bytes: Option<&[u8]>) -> Box<str> {
    visible::name(&String::from_utf8_lossy(bytes.unwrap_or_default())).into()
}

/// Bytes that it takes, as if nobody shared what it knows.
pub(super) fn bytes_of(blocked: &Blocked) -> usize {
    let texts = [&blocked.object, &blocked.unknown].into_iter().flatten().map(String::len);
    let blockers =
        blocked.blockers.iter().map(|blocker| size_of::<Blocker>() + blocker.text_bytes());
    size_of::<Blocked>() + 8 * blocked.by.len() + texts.chain(blockers).sum::<usize>()
}

impl Session {
    fn of(one: &RunningStatement, wait: Wait, age_ns: Option<u64>, literals: bool) -> Session {
        let text = one.text.as_deref();
        Session {
            connection_id: one.connection_id,
            user: lossy(one.identity.user.as_deref()),
            host: lossy(one.identity.host.as_deref()),
            database: lossy(one.identity.database.as_deref()),
            state: lossy(one.state.as_deref()),
            wait,
            now: None,
            blocked: one.blocked.clone().map(Box::new),
            seen_ns: 0,
            age_ns,
            text: text
                .map_or_else(
                    || format!("({})", one.command),
                    |text| printable(text, one.settings, literals),
                )
                .into(),
            modes: modes(one.settings),
            is_cut: text.is_some_and(|text| one.text_length > text.len() as u64),
        }
    }

    /// Whether both run the same statement.
    pub(super) fn is_same_statement(&self, other: &Session) -> bool {
        let start = |it: &Session| it.age_ns.map(|age| it.seen_ns.saturating_sub(age));
        let is_same_start = match (start(self), start(other)) {
            (Some(one), Some(two)) => one.abs_diff(two) <= CLOCKS_APART_NS,
            (one, two) => one == two,
        };
        self.connection_id == other.connection_id && is_same_start
    }

    /// Takes over what another look says of the same statement; the history keeps only the beginning of a text.
    pub(super) fn follow(&mut self, now: &Session) {
        let longer = match now.text.len() < self.text.len() {
            true => (self.text.clone(), self.is_cut),
            false => (now.text.clone(), now.is_cut),
        };
        *self = now.clone();
        (self.text, self.is_cut) = longer;
    }

    /// The same with the beginning of its text.
    pub(crate) fn shortened(&self) -> Session {
        let end = self.text.char_indices().nth(TEXT_KEPT).map_or(self.text.len(), |(at, _)| at);
        let text = self.text.get(..end).unwrap_or_default();
        Session { text: text.into(), is_cut: self.is_cut || end < self.text.len(), ..self.clone() }
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let texts = [&self.user, &self.host, &self.database, &self.state, &self.text];
        let blocked = self.blocked.iter().map(|blocked| bytes_of(blocked));
        let texts = texts.iter().map(|text| text.len()).sum::<usize>();
        size_of::<Session>() + texts + blocked.sum::<usize>()
    }
}
