//! Who holds the lock that something waits for, and what it ran.

use ratatui_core::text::Line;
use waggle_model::{Blocked, Blocker, Identity, Ran, StatementLockWait, visible};

use super::named;
use crate::state::{Session, WaitsNow, printable};
use crate::view::number::{age, ms};
use crate::view::text::clean;

/// Holders of which more than the id is told.
const SHOWN: usize = 3;
const NOT_READ: &str = "not read yet";

/// Who holds the lock that a session waits for.
pub(super) fn of_session(session: &Session, literals: bool, width: usize) -> Vec<Line<'static>> {
    match &session.blocked {
        Some(blocked) => lines(blocked, session.seen_ns, literals, width),
        None if session.now.is_some_and(|(class, _)| class.is_lock()) => {
            named("Held by", NOT_READ, width)
        }
        None => Vec::new(),
    }
}

/// The longest wait of a digest for a lock of those that go on.
pub(super) fn of_waiting_digest(
    waits: &WaitsNow,
    literals: bool,
    width: usize,
) -> Vec<Line<'static>> {
    let StatementLockWait { wait, connection_id, identity, .. } = &waits.longest;
    let id = connection_id.map_or("?".to_owned(), |id| id.to_string());
    let (who, class) = (account(identity), wait.class.name());
    let more = match waits.sessions.saturating_sub(1) {
        0 => String::new(),
        1 => "; 1 more session waits".to_owned(),
        more => format!("; {more} more sessions wait"),
    };
    let what = format!("session {id}, {who}: {class}, for {}{more}", age(wait.length_ns));
    let mut lines = named("Waits now", &what, width);
    match &wait.blocked {
        Some(blocked) => {
            let now_ns = wait.begin_ns + wait.length_ns;
            lines.extend(self::lines(blocked, now_ns, literals, width));
        }
        None => lines.extend(named("Held by", NOT_READ, width)),
    }
    lines
}

/// The longest wait of a digest for a lock of those that are over.
pub(super) fn of_digest(
    longest: &StatementLockWait,
    literals: bool,
    width: usize,
) -> Vec<Line<'static>> {
    let StatementLockWait { wait, connection_id, .. } = longest;
    let id = connection_id.map_or("?".to_owned(), |id| id.to_string());
    let length = ms(Some(wait.length_ns as f64));
    let what = format!("{length} ms in session {id}: {}", wait.class.name());
    let mut lines = named("Longest lock wait", &what, width);
    match &wait.blocked {
        Some(blocked) => {
            lines.extend(self::lines(blocked, wait.begin_ns + wait.length_ns, literals, width));
        }
        None => lines.extend(named("Held by", "it was over before waggle looked", width)),
    }
    lines
}

fn lines(blocked: &Blocked, now_ns: u64, literals: bool, width: usize) -> Vec<Line<'static>> {
    let on = blocked.object.iter().map(|object| format!(" on {object}")).collect::<String>();
    let ids: Vec<String> = blocked.by.iter().map(ToString::to_string).collect();
    let holders = match ids.as_slice() {
        [] => {
            let why = blocked.unknown.as_deref().unwrap_or("nobody holds it any more");
            format!("unknown{on}: {why}")
        }
        [id] => format!("session {id}{on}"),
        ids => format!("all of {}{on}", ids.join(", ")),
    };
    // Who waits itself need not hold anything: it is not the one to be looked at.
    let is_behind = !blocked.blockers.is_empty() && blocked.blockers.iter().all(|one| one.waits);
    let mut lines = named(if is_behind { "Waits behind" } else { "Held by" }, &holders, width);
    for blocker in blocked.blockers.iter().take(SHOWN).filter(|one| one.is_idle.is_some()) {
        lines.extend(self::blocker(blocker, now_ns, literals, width));
    }
    lines
}

fn account(identity: &Identity) -> String {
    let name = |bytes: &Option<Vec<u8>>| {
        let bytes = bytes.as_deref().unwrap_or(b"?");
        visible::name(&String::from_utf8_lossy(bytes)).into_owned()
    };
    format!("{}@{}", name(&identity.user), name(&identity.host))
}

/// What is known of one that was seen.
fn blocker(blocker: &Blocker, now_ns: u64, literals: bool, width: usize) -> Vec<Line<'static>> {
    let is_idle = blocker.is_idle == Some(true);
    let does = match (is_idle, blocker.waits) {
        (true, _) => "idle",
        (false, true) => "waits for a lock itself, running",
        (false, false) => "running",
    };
    let since = blocker.since_ns.map(|since| format!(" for {}", age(now_ns.saturating_sub(since))));
    let who = format!("{}, {does}{}", account(&blocker.identity), since.unwrap_or_default());
    let mut lines = named(&format!("  Session {}", blocker.connection_id), &who, width);
    let text = |ran: &Ran| {
        let text = printable(&ran.text, ran.settings, literals);
        clean(&text).collect::<String>()
    };
    let ran = match &blocker.statement {
        Some(ran) => text(ran),
        None => "not known: it ended before waggle came, or was lost".to_owned(),
    };
    lines.extend(named(if is_idle { "  Ran last" } else { "  Runs" }, &ran, width));
    if let Some(write) = &blocker.first_write {
        lines.extend(named("  Wrote first", &text(write), width));
    }
    lines
}
