//! Waits as they were read in the memory of a server: the same tree as from its tables. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use waggle_model::{
    Command, Flavour, Reading, SeenLocks, SeenMetadataLock, SeenRowWait, SeenSession, TimeClass,
    WaitsFor,
};

use super::WAITERS_MAX;
use super::compatible::{BACKUP_MODES, INTENTION, OBJECT_MODES};
use super::metadata::{Request, from_requests};
use super::poll::Locks;
use super::sessions::{LastStatement, Session, SessionKind};
use super::told;
use super::tree::Tree;
use super::wait::{Key, Lock, LockKind, Source, Unknown, Wait};
use crate::connection::ServerIdentity;

/// The state in which sessions of MariaDB wait for a backup lock, which has modes of its own.
const BACKUP: &str = "Waiting for backup lock";
/// A mode that MySQL has and MariaDB has not.
const LOW_PRIORITY: &str = "SHARED_WRITE_LOW_PRIO";
const NOT_SEEN: &str = "no session that was read holds a lock in the way: the holder may be on no thread \
                        (a pool of threads), be without a session, or have let go of it meanwhile";
/// Why a holder may not be among those who were seen.
const POOLED: &str = "sessions of a pool of threads are not seen while they are idle";
const UNREADABLE: &str = "some sessions could not be read";
const TOO_MANY: &str = "some transactions have too many locks to be read";
const NOT_PROVEN: &str = "its request could not be read for certain";
const NOT_IN_MEMORY: &str = "waggle reads no holder of such a lock in the memory of the server; an account \
                             may tell more";

/// What is known of a session beside its memory.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// For how long it runs, or is idle, in seconds.
    pub since_s: Option<f64>,
    /// The last statement of an idle session.
    pub last: Option<String>,
    /// The first statement of its transaction that wrote something.
    pub first_write: Option<String>,
    /// Why `last` is not known.
    pub why_unknown: Option<String>,
    /// Seconds since its transaction began.
    pub transaction_s: Option<f64>,
}

/// The server, of which no account tells anything.
pub fn server_in_memory(flavour: Flavour, version: &str) -> ServerIdentity {
    ServerIdentity {
        version: version.to_owned(),
        flavour,
        port: None,
        connection_id: 0,
        account: String::new(),
        performance_schema: false,
        thread_per_connection: true,
    }
}

/// The tree of what was seen; `about` says what else is known of a session.
pub fn in_memory(
    seen: &SeenLocks,
    flavour: Flavour,
    about: &dyn Fn(&SeenSession) -> About,
) -> Locks {
    let mut not_known: Vec<String> = Vec::new();
    not_known.extend(seen.rows.why().map(|why| format!("waits for row locks: {why}")));
    not_known.extend(seen.metadata.why().map(|why| format!("metadata locks: {why}")));
    if seen.unreadable > 0 {
        not_known.push(format!("{} sessions could not be read", seen.unreadable));
    }
    let mut waits = waits_in_memory(seen, flavour);
    let row_waiters = seen.rows.value().map(Vec::len);
    let other_waits = Reading::Value(waits.len() - row_waiters.unwrap_or(0));
    let is_none = |wait: &&Wait| wait.lock.kind == LockKind::None;
    let waits_without_lock = waits.iter().filter(is_none).count();
    if waits.len() > 2 * WAITERS_MAX {
        not_known.push(format!("only {} of {} waits are shown", 2 * WAITERS_MAX, waits.len()));
        waits.truncate(2 * WAITERS_MAX);
    }
    let known: BTreeMap<u64, (&SeenSession, About)> =
        seen.sessions.iter().map(|one| (one.connection_id, (one, about(one)))).collect();
    for wait in &mut waits {
        let waiter = wait.waiter.connection_id().and_then(|id| known.get(&id));
        wait.waited_s = waiter.and_then(|(_, about)| about.since_s);
    }
    let tree = Tree::build(waits);
    let mut sessions = BTreeMap::new();
    for key in tree.participants() {
        let of = key.connection_id().and_then(|id| known.get(&id));
        sessions.extend(of.map(|(seen, about)| (key, session(seen, about))));
    }
    let row_waits = Reading::absent("the counters of InnoDB need an account");
    Locks {
        row_waits,
        row_waiters,
        other_waits,
        waits_without_lock,
        kept_out: kept_out(&seen.sessions),
        tree,
        sessions,
        not_known,
        memory_after: None,
        over: Instant::now(),
        statements: 0,
    }
}

/// Every wait: the waits for rows first, then what the states of other sessions name.
pub fn waits_in_memory(seen: &SeenLocks, flavour: Flavour) -> Vec<Wait> {
    let mut waits: Vec<Wait> = seen.rows.value().into_iter().flatten().map(row).collect();
    let for_rows: BTreeSet<Key> = waits.iter().map(|wait| wait.waiter.clone()).collect();
    let others = others(seen, flavour);
    waits.extend(others.into_iter().filter(|wait| !for_rows.contains(&wait.waiter)));
    let why = match (seen.is_pooled, seen.unreadable) {
        (true, _) => Some(POOLED),
        (false, 1..) => Some(UNREADABLE),
        (false, 0) => None,
    };
    waits.iter_mut().for_each(|wait| wait.not_all = wait.not_all.or(why));
    waits
}

fn row(seen: &SeenRowWait) -> Wait {
    let table =
        seen.table.as_ref().map(|(schema, name)| format!("{}.{}", text(schema), text(name)));
    let record = seen.record.map(|(space, page, heap)| format!("{space}:{page}:{heap}"));
    let keys = |ids: &[u64]| ids.iter().map(|id| Key::Session(*id)).collect();
    let candidates = keys(&seen.candidates);
    Wait {
        waiter: Key::Session(seen.connection_id),
        lock: Lock { object: table, record, mode: mode(seen.mode), ..Lock::of(LockKind::Row) },
        waited_s: None,
        blockers: keys(&seen.blockers),
        by_elimination: false,
        not_all: (!seen.is_whole).then_some(TOO_MANY),
        overtaken: false,
        unknown: seen.unknown.clone().map(|why| Unknown { why, candidates }),
        source: Source::Memory,
    }
}

/// The mode of a lock of InnoDB, as `data_locks` names it.
fn mode(mode: u32) -> Option<String> {
    let name = ["IS", "IX", "S", "X", "AUTO_INC"].get((mode & 7) as usize)?;
    let flags = [(0x200, "GAP"), (0x400, "REC_NOT_GAP"), (0x800, "INSERT_INTENTION")];
    let flags =
        flags.iter().filter(|(flag, _)| mode & flag != 0).map(|(_, name)| format!(",{name}"));
    Some(format!("{name}{}", flags.collect::<String>()))
}

/// Connections that InnoDB does not let in; `None` where nobody is known to be one, and of some it is not known.
fn kept_out(sessions: &[SeenSession]) -> Option<BTreeSet<u64>> {
    let mut running = sessions.iter().filter(|one| one.command != Command::SLEEP);
    let is_kept_out = |one: &&SeenSession| one.waits_for == Some(TimeClass::InnodbTicket);
    let kept_out: BTreeSet<u64> =
        running.clone().filter(is_kept_out).map(|one| one.connection_id).collect();
    (!kept_out.is_empty() || running.all(|one| one.waits_for.is_some())).then_some(kept_out)
}

/// The waits that the states of sessions tell of, or their threads.
fn others(seen: &SeenLocks, flavour: Flavour) -> Vec<Wait> {
    let locks = seen.metadata.value().map(Vec::as_slice).unwrap_or_default();
    let mut waits = Vec::new();
    for session in seen.sessions.iter().filter(|one| one.command != Command::SLEEP) {
        let state = session.state.as_deref().map(text).unwrap_or_default();
        let Some(waits_for) = WaitsFor::seen(&state, session.waits_for) else { continue };
        let Some(kind) = LockKind::of(waits_for) else { continue };
        let mut wait = Wait {
            waiter: Key::Session(session.connection_id),
            lock: Lock { state: Some(state.clone()), ..Lock::of(kind) },
            waited_s: None,
            blockers: Vec::new(),
            by_elimination: false,
            not_all: None,
            overtaken: false,
            unknown: None,
            source: Source::Memory,
        };
        match (waits_for, &seen.metadata) {
            (WaitsFor::MetadataLock, Reading::Value(_)) => {
                metadata(&mut wait, session.connection_id, &state, locks, flavour);
            }
            (WaitsFor::MetadataLock, Reading::Absent(why)) => wait.leave_unknown(why),
            (WaitsFor::Unnamed(who) | WaitsFor::NoLock(who), _) => {
                wait.leave_unknown(told::waits_for(who))
            }
            _ => wait.leave_unknown(NOT_IN_MEMORY),
        }
        waits.push(wait);
    }
    waits
}

fn metadata(
    wait: &mut Wait,
    waiter: u64,
    state: &str,
    locks: &[SeenMetadataLock],
    flavour: Flavour,
) {
    let asked = locks.iter().find(|one| one.is_pending && one.connection_id == waiter);
    let Some(asked) = asked else { return wait.leave_unknown(NOT_PROVEN) };
    let object = object(state, asked);
    let is_backup = flavour == Flavour::Mariadb && state.eq_ignore_ascii_case(BACKUP);
    let of_this = locks.iter().filter(|one| one.lock == asked.lock);
    let requests: Option<Vec<Request>> = of_this
        .map(|one| {
            Some(Request {
                object: object.clone(),
                mode: metadata_mode(one.mode, flavour, is_backup)?,
                is_pending: one.is_pending,
                connection: one.connection_id,
            })
        })
        .collect();
    let Some(requests) = requests else {
        return wait.leave_unknown("a lock on this object has a mode that waggle does not know");
    };
    from_requests(wait, waiter, &requests);
    if let Some(unknown) = wait.unknown.as_mut().filter(|unknown| unknown.candidates.is_empty()) {
        unknown.why = NOT_SEEN.to_owned();
    }
}

/// The name of a mode; both families number them, in an order of their own.
fn metadata_mode(mode: u32, flavour: Flavour, is_backup: bool) -> Option<String> {
    let at = mode as usize;
    if is_backup {
        return BACKUP_MODES.get(at).map(|name| (*name).to_owned());
    }
    let objects = OBJECT_MODES.into_iter();
    let has = |name: &&str| flavour == Flavour::Mysql || *name != LOW_PRIORITY;
    let mut modes = std::iter::once(INTENTION).chain(objects.filter(has));
    modes.nth(at).map(str::to_owned)
}

/// `shop.orders` for a table, `SCHEMA shop`, `GLOBAL READ` for others: what the state calls it.
fn object(state: &str, lock: &SeenMetadataLock) -> String {
    let parts = [&lock.schema, &lock.name].map(|part| text(part));
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let name = parts.join(".");
    if state.eq_ignore_ascii_case("Waiting for table metadata lock") {
        return name;
    }
    let kind = state.strip_prefix("Waiting for ").unwrap_or(state);
    let kind = kind.strip_suffix(" lock").unwrap_or(kind);
    let kind = kind.strip_suffix(" metadata").unwrap_or(kind);
    let kind = kind.strip_suffix(" read").unwrap_or(kind);
    format!("{} {name}", kind.to_uppercase()).trim_end().to_owned()
}

fn session(seen: &SeenSession, about: &About) -> Session {
    let is_idle = seen.command == Command::SLEEP;
    let optional = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(text);
    let running = seen.text.as_deref().filter(|_| !is_idle).map(text);
    let kind = match seen.identity.user.as_deref() {
        Some(b"event_scheduler") => SessionKind::EventScheduler,
        Some(b"<replication_slave>") => SessionKind::Applier,
        // What threads of replication do is not told here.
        Some(b"system user") => SessionKind::System,
        // Every client has a host or an address.
        Some(_) if seen.identity.host.is_some() => SessionKind::Client,
        _ => SessionKind::Unknown,
    };
    let statement = LastStatement {
        is_running: running.is_some(),
        why_unknown: about.why_unknown.clone().filter(|_| is_idle && about.last.is_none()),
        text: running.or_else(|| about.last.clone().filter(|_| is_idle)),
        ..LastStatement::default()
    };
    Session {
        user: optional(&seen.identity.user),
        host: optional(&seen.identity.host),
        db: optional(&seen.identity.database),
        command: Some(if is_idle { "Sleep" } else { "Query" }.to_owned()),
        state: optional(&seen.state),
        since_s: about.since_s,
        kind,
        xa_prepared: statement.prepared().filter(|_| is_idle),
        first_write: about.first_write.clone(),
        killed: seen.is_killed,
        transaction_s: about.transaction_s,
        statement,
        ..Session::default()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
