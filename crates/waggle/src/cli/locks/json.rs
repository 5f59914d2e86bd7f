//! The JSON of `waggle locks`: `docs/reference/locks-json.md`.

use serde::Serialize;
use waggle_model::Reading;
use waggle_mysql::locks::{
    Deadlock, Key, Lock, Node, Remedy, Session, SomebodyWaits, Source, Unknown,
};
use waggle_sql::printable;

use super::Look;

#[derive(Serialize)]
pub(super) struct LookJson {
    at: String,
    server: String,
    pid: Option<u32>,
    somebody_waits: Option<bool>,
    row_lock_waits: Option<u64>,
    row_lock_waiters: Option<usize>,
    row_lock_waits_since_start: Option<u64>,
    other_lock_waits: Option<usize>,
    waits_without_lock: usize,
    blockers: Vec<NodeJson>,
    undetermined: Vec<UndeterminedJson>,
    not_known: Vec<String>,
    memory_after_ms: Option<u64>,
    statements_sent: u64,
    /// Left out unless it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    deadlock: Option<Option<Deadlock>>,
}

#[derive(Serialize)]
struct NodeJson {
    connection_id: Option<u64>,
    /// Only of a transaction without a session.
    detached_transaction: Option<String>,
    session: Option<Session>,
    waits_for: Option<Lock>,
    waited_s: Option<f64>,
    source: Option<Source>,
    by_elimination: bool,
    also_blocked_by: Vec<Key>,
    in_circle: bool,
    remedy: Option<String>,
    remedy_note: Option<String>,
    remedy_may_not_be_enough: Option<&'static str>,
    waiters: Vec<NodeJson>,
}

#[derive(Serialize)]
struct UndeterminedJson {
    #[serde(flatten)]
    unknown: Unknown,
    waiter: NodeJson,
}

/// A look as it leaves the program: literals and keys only where they are asked for.
pub(super) fn of(look: &Look<'_>) -> LookJson {
    let locks = look.locks;
    let undetermined = locks.tree.undetermined.iter();
    let mut not_known = locks.not_known.clone();
    not_known.extend(look.deadlock.and_then(Reading::why).map(str::to_owned));
    LookJson {
        at: look.at.to_string(),
        server: look.server.version.clone(),
        pid: look.pid,
        somebody_waits: match locks.somebody_waits() {
            SomebodyWaits::ForLock | SomebodyWaits::NotForLock(_) => Some(true),
            SomebodyWaits::No => Some(false),
            SomebodyWaits::NotKnown => None,
        },
        row_lock_waits: locks.row_waits.value().map(|waits| waits.now),
        row_lock_waiters: locks.row_waiters,
        row_lock_waits_since_start: locks.row_waits.value().map(|waits| waits.since_start),
        other_lock_waits: locks.other_lock_waits(),
        waits_without_lock: locks.waits_without_lock,
        blockers: locks.tree.roots.iter().map(|one| node(one, look, true)).collect(),
        undetermined: undetermined
            .map(|(unknown, waiter)| UndeterminedJson {
                unknown: unknown.clone(),
                waiter: node(waiter, look, false),
            })
            .collect(),
        not_known,
        memory_after_ms: look.memory_after().map(|after| after.as_millis() as u64),
        statements_sent: locks.statements,
        deadlock: look
            .deadlock
            .map(|read| read.value().cloned().flatten().map(|one| shown(one, look.redact))),
    }
}

fn node(node: &Node, look: &Look<'_>, is_root: bool) -> NodeJson {
    let lock = node.wait.as_ref().map(|wait| {
        let mut lock = wait.lock.clone();
        lock.key = lock.key.filter(|_| !look.redact);
        lock
    });
    let session = look.locks.sessions.get(&node.key);
    let Remedy { command, note, not_enough } = match is_root {
        true => Remedy::of(node, look.locks, look.server),
        false => Remedy::default(),
    };
    NodeJson {
        connection_id: node.key.connection_id(),
        detached_transaction: match &node.key {
            Key::Session(_) => None,
            Key::Detached(transaction) => Some(transaction.clone()),
        },
        session: session.map(|session| {
            let mut session = session.clone();
            let text = session.statement.text.take();
            session.statement.text = text.map(|text| printable(text.as_bytes(), None, look.redact));
            let write = session.first_write.take();
            session.first_write = write.map(|text| printable(text.as_bytes(), None, look.redact));
            session
        }),
        waits_for: lock,
        waited_s: node.wait.as_ref().and_then(|wait| wait.waited_s),
        source: node.wait.as_ref().map(|wait| wait.source),
        by_elimination: node.wait.as_ref().is_some_and(|wait| wait.by_elimination),
        also_blocked_by: node.also_blocked_by.clone(),
        in_circle: node.in_circle,
        remedy: command,
        remedy_note: note,
        remedy_may_not_be_enough: not_enough,
        waiters: node.waiters.iter().map(|one| self::node(one, look, false)).collect(),
    }
}

/// A deadlock without literals, where that is asked for.
pub(super) fn shown(mut deadlock: Deadlock, redact: bool) -> Deadlock {
    for party in &mut deadlock.transactions {
        let text = party.statement.take();
        party.statement = text.map(|text| printable(text.as_bytes(), None, redact));
    }
    deadlock
}
