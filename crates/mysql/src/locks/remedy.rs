//! What ends a wait. It is for a person to decide, and never sent.
//!
//! It is a promise: the command frees somebody. So it is not given for sessions that hold the lock together, or take
//! turns.

use waggle_model::Flavour;

use super::poll::Locks;
use super::sessions::{Session, SessionKind};
use super::tree::Node;
use super::wait::{Key, LockKind, Wait};
use crate::connection::ServerIdentity;

/// What frees those who wait for somebody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remedy {
    /// The command; `None` where none helps.
    pub command: Option<String>,
    /// What to know before it is sent, or why none helps.
    pub note: Option<String>,
    /// Why somebody else may hold the lock, too, so that it may not be enough; `None`: it is.
    pub not_enough: Option<&'static str>,
}

/// The first versions that know `STOP REPLICA`.
const REPLICA_IN_MYSQL: [u32; 3] = [8, 0, 22];
const REPLICA_IN_MARIADB: [u32; 3] = [10, 5, 1];
/// How the channels of group replication are called.
const GROUP: &str = "group_replication_";
/// Holders that are listed.
const HOLDERS_MAX: usize = 20;

impl Remedy {
    /// What frees those who wait for the root of a tree.
    pub fn of(root: &Node, locks: &Locks, server: &ServerIdentity) -> Remedy {
        let waits = || root.waiters.iter().filter_map(|waiter| waiter.wait.as_ref());
        if waits().next().is_some() && waits().all(|wait| wait.overtaken) {
            return turns(root, waits(), server);
        }
        let alone: Vec<&Node> =
            root.waiters.iter().filter(|waiter| waiter.also_blocked_by.is_empty()).collect();
        let Some(longest) = alone.first() else { return several(root) };
        let not_all = |waiter: &&Node| waiter.wait.as_ref().and_then(|wait| wait.not_all);
        let is_sure = alone.iter().any(|waiter| not_all(waiter).is_none());
        let not_enough = if is_sure { None } else { not_all(longest) };
        Remedy { not_enough, ..Remedy::that_ends(&root.key, locks.sessions.get(&root.key), server) }
    }

    /// What ends one who holds a lock.
    fn that_ends(key: &Key, session: Option<&Session>, server: &ServerIdentity) -> Remedy {
        let transaction = session.and_then(|session| session.transaction.as_ref());
        if let Some(transaction) = transaction.filter(|transaction| transaction.rolling_back) {
            let left = transaction.rows_modified;
            return nothing(&format!(
                "its transaction is being rolled back, {left} changes are left to undo; KILL changes \
                 nothing, and a restart of the server begins the rollback anew"
            ));
        }
        let id = match key {
            Key::Session(id) => *id,
            Key::Detached(_) => return detached(session.and_then(|session| session.xa_prepared)),
        };
        if id == server.connection_id {
            return nothing("it is the connection of this command, which ends by itself");
        }
        // It may be a thread of the server.
        let Some(session) = session.filter(|session| session.kind != SessionKind::Unknown) else {
            return nothing("it has ended, or the server does not list it; look again");
        };
        if session.killed == Some(true) {
            return nothing(
                "it, or its statement, was killed already, or its client is gone; it ends by itself",
            );
        }
        match session.kind {
            SessionKind::Client => kill(id, session, server, None),
            SessionKind::Event => {
                let note = "it is an event, which runs again at its next time";
                kill(id, session, server, Some(note))
            }
            SessionKind::Applier => stop(server, "SQL_THREAD", session.channel.as_deref()),
            SessionKind::Receiver => stop(server, "IO_THREAD", session.channel.as_deref()),
            SessionKind::EventScheduler => command("SET GLOBAL event_scheduler = OFF".to_owned()),
            SessionKind::System | SessionKind::Unknown => {
                nothing("it is a thread of the server, which KILL does not end")
            }
        }
    }
}

fn command(command: String) -> Remedy {
    Remedy { command: Some(command), ..Remedy::default() }
}

fn nothing(why: &str) -> Remedy {
    Remedy { note: Some(why.to_owned()), ..Remedy::default() }
}

/// Nobody at the root of a tree is alone in the way.
fn several(root: &Node) -> Remedy {
    let Some(longest) = root.waiters.first() else { return Remedy::default() };
    let holders: Vec<&Key> = std::iter::once(&root.key).chain(&longest.also_blocked_by).collect();
    let named: Vec<String> =
        holders.iter().take(HOLDERS_MAX).map(|key| (*key).to_string()).collect();
    let more = match holders.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    nothing(&format!(
        "it is in the way of all of {}{more}: a KILL of one of them alone frees nobody",
        named.join(", ")
    ))
}

/// Everybody who has the lock has got it since it was asked for.
fn turns<'a>(
    root: &Node,
    mut waits: impl Iterator<Item = &'a Wait>,
    server: &ServerIdentity,
) -> Remedy {
    let number = 1 + root.waiters.iter().map(|one| one.also_blocked_by.len()).max().unwrap_or(0);
    let who = match number {
        1 => "another session".to_owned(),
        _ => format!("{number} sessions"),
    };
    let setting = match waits.all(|wait| starves(wait, server.flavour)) {
        true => "SET GLOBAL max_write_lock_count = 100 lets it through after 100 of them",
        false => "it goes on when there are fewer of them at a time",
    };
    nothing(&format!(
        "{who} got the lock after it was asked for: they take turns, and none holds it long. A KILL frees nobody; \
         {setting}"
    ))
}

/// Whether `max_write_lock_count` limits how many others overtake this request. On MariaDB it does not for `LOCK TABLES …
/// READ` (seen on 10.11).
fn starves(wait: &Wait, flavour: Flavour) -> bool {
    let mode = wait.lock.mode.as_deref().unwrap_or_default();
    let reads = ["SHARED_READ", "SHARED_READ_ONLY"].contains(&mode);
    wait.lock.kind == LockKind::Metadata
        && reads
        && (flavour == Flavour::Mysql || mode == "SHARED_READ")
}

/// A transaction without a session. Only its coordinator knows how one of XA has to end.
fn detached(xa_prepared: Option<bool>) -> Remedy {
    if xa_prepared == Some(false) {
        return nothing(
            "no transaction is prepared by XA, so it is one of InnoDB, or is left from a crash; it ends \
             by itself",
        );
    }
    let note = "XA COMMIT or XA ROLLBACK with its xid ends it; its coordinator knows which. If XA \
                RECOVER lists none, it is a transaction of InnoDB, which ends by itself";
    Remedy { note: Some(note.to_owned()), ..command("XA RECOVER".to_owned()) }
}

/// `KILL` in the form that all servers take: `KILL 7` ends the connection.
fn kill(id: u64, session: &Session, server: &ServerIdentity, note: Option<&str>) -> Remedy {
    if session.xa_prepared == Some(true) {
        return nothing(
            "it has prepared a transaction of XA, whose locks outlive KILL; XA COMMIT or XA ROLLBACK \
             ends it, in this session or after it; its coordinator knows which",
        );
    }
    let unseen = session.killed.is_none().then(|| {
        // Of a server that is read in its memory only.
        if server.connection_id == 0 {
            return "whether it was killed already, and is being rolled back, could not be read in this build"
                .to_owned();
        }
        let grant = server.grant("PROCESS ON *.*");
        format!(
            "this account cannot see whether it was killed already and is being rolled back: then \
             KILL changes nothing; run {grant}"
        )
    });
    let prepared = (session.is_idle() && session.xa_prepared.is_none())
        .then(|| "if it has run XA PREPARE, KILL does not free its locks".to_owned());
    let notes: Vec<String> =
        note.map(str::to_owned).into_iter().chain(unseen).chain(prepared).collect();
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    Remedy { note, ..command(format!("KILL {id}")) }
}

/// `STOP REPLICA SQL_THREAD FOR CHANNEL 'x'`, as this server spells it. `''` is the channel without a
/// name. Where the channel is not known, the threads of all are stopped: MariaDB would else stop that
/// of the connection without a name, which can be another one.
fn stop(server: &ServerIdentity, thread: &str, channel: Option<&str>) -> Remedy {
    if channel.is_some_and(|channel| channel.starts_with(GROUP)) {
        let note = "the server leaves its replication group, and takes no writes; KILL would do so with \
                    an error";
        let command = command("STOP GROUP_REPLICATION".to_owned());
        return Remedy { note: Some(note.to_owned()), ..command };
    }
    let number = server.server_version().number;
    let quoted = channel.map(super::quoted);
    let since = match server.flavour {
        Flavour::Mysql => REPLICA_IN_MYSQL,
        Flavour::Mariadb => REPLICA_IN_MARIADB,
    };
    let [one, all] = if number >= since { ["REPLICA", "REPLICAS"] } else { ["SLAVE", "SLAVES"] };
    let stop = match (server.flavour, quoted) {
        (Flavour::Mysql, Some(channel)) => format!("STOP {one} {thread} FOR CHANNEL {channel}"),
        (Flavour::Mysql, None) => format!("STOP {one} {thread}"),
        (Flavour::Mariadb, Some(channel)) => format!("STOP {one} {channel} {thread}"),
        (Flavour::Mariadb, None) => format!("STOP ALL {all} {thread}"),
    };
    let of_all = "its channel is not known, so this stops the threads of all channels";
    let how = "it stops when its statement has ended, and applies its transaction again after START; \
               KILL would stop replication with an error";
    let notes = [(channel.is_none(), of_all), (thread == "SQL_THREAD", how)];
    let notes: Vec<&str> =
        notes.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note).collect();
    Remedy { note: (!notes.is_empty()).then(|| notes.join("; ")), ..command(stop) }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use waggle_model::Reading;

    use super::*;
    use crate::locks::{Lock, Source, Transaction, Tree};

    fn session(kind: SessionKind) -> Session {
        Session { kind, killed: Some(false), ..Session::default() }
    }

    fn remedy(session: &Session, version: &str) -> Remedy {
        Remedy::that_ends(&Key::Session(7), Some(session), &ServerIdentity::of_version(version))
    }

    fn of(kind: SessionKind, channel: Option<&str>, version: &str) -> String {
        let session = Session { channel: channel.map(str::to_owned), ..session(kind) };
        remedy(&session, version).command.unwrap_or_default()
    }

    fn assert_nothing(remedy: Remedy, why: &str) {
        assert_eq!(remedy.command, None);
        let note = remedy.note.unwrap();
        assert!(note.contains(why), "{note}");
    }

    #[test]
    fn an_applier_is_stopped_and_not_killed() {
        let applier = |channel, version| of(SessionKind::Applier, channel, version);
        assert_eq!(applier(Some(""), "5.7.22"), "STOP SLAVE SQL_THREAD FOR CHANNEL ''");
        assert_eq!(applier(Some(""), "9.7.4"), "STOP REPLICA SQL_THREAD FOR CHANNEL ''");
        assert_eq!(applier(Some("eu"), "9.7.4"), "STOP REPLICA SQL_THREAD FOR CHANNEL 'eu'");
        assert_eq!(applier(Some("eu"), "11.4.5-MariaDB"), "STOP REPLICA 'eu' SQL_THREAD");
        let group = "group_replication_applier";
        assert_eq!(applier(Some(group), "9.7.4"), "STOP GROUP_REPLICATION");
    }

    #[test]
    fn where_the_channel_is_not_known_all_are_stopped_and_that_is_said() {
        let applier = |version| of(SessionKind::Applier, None, version);
        assert_eq!(applier("8.0.12"), "STOP SLAVE SQL_THREAD");
        assert_eq!(applier("9.7.4"), "STOP REPLICA SQL_THREAD");
        assert_eq!(applier("11.4.5-MariaDB"), "STOP ALL REPLICAS SQL_THREAD");
        assert_eq!(applier("10.4.2-MariaDB"), "STOP ALL SLAVES SQL_THREAD");
        let note = remedy(&session(SessionKind::Applier), "9.7.4").note.unwrap();
        assert!(note.contains("all channels") && note.contains("START"), "{note}");
    }

    #[test]
    fn only_clients_and_events_are_killed() {
        assert_eq!(of(SessionKind::Client, None, "9.7.4"), "KILL 7");
        assert_eq!(of(SessionKind::Event, None, "11.4.5-MariaDB"), "KILL 7");
        assert_eq!(
            of(SessionKind::EventScheduler, None, "5.7.22"),
            "SET GLOBAL event_scheduler = OFF"
        );
        assert_eq!(of(SessionKind::System, None, "9.7.4"), "");
        assert_eq!(of(SessionKind::Receiver, None, "5.7.22"), "STOP SLAVE IO_THREAD");
    }

    #[test]
    fn nobody_is_killed_who_is_not_seen_or_is_this_command() {
        let server = ServerIdentity::of_version("9.7.4");
        assert_nothing(Remedy::that_ends(&Key::Session(7), None, &server), "look again");
        assert_nothing(remedy(&Session::default(), "9.7.4"), "look again");
        let own = Key::Session(server.connection_id);
        let client = session(SessionKind::Client);
        assert_nothing(Remedy::that_ends(&own, Some(&client), &server), "this command");
    }

    #[test]
    fn who_was_killed_is_not_killed_again_and_where_that_is_not_seen_it_is_said() {
        let killed = |killed| Session { killed, ..session(SessionKind::Client) };
        assert_nothing(remedy(&killed(Some(true)), "9.7.4"), "killed already");
        assert_eq!(remedy(&killed(Some(false)), "9.7.4").note, None);
        let Remedy { command, note, .. } = remedy(&killed(None), "9.7.4");
        assert_eq!(command.unwrap(), "KILL 7");
        assert!(note.unwrap().contains("GRANT PROCESS ON *.*"));
    }

    #[test]
    fn a_transaction_of_xa_is_left_to_its_coordinator() {
        let idle = |xa_prepared| Session {
            command: Some("Sleep".to_owned()),
            xa_prepared,
            ..session(SessionKind::Client)
        };
        assert_nothing(remedy(&idle(Some(true)), "8.0.12"), "XA ROLLBACK");
        assert_eq!(remedy(&idle(Some(false)), "8.0.12").note, None);
        assert!(remedy(&idle(None), "8.0.12").note.unwrap().contains("XA PREPARE"));

        let server = ServerIdentity::of_version("9.7.4");
        let detached = |xa_prepared| {
            let session = Session { xa_prepared, ..Session::default() };
            Remedy::that_ends(&Key::Detached("9".to_owned()), Some(&session), &server)
        };
        assert_nothing(detached(Some(false)), "by itself");
        let Remedy { command, note, .. } = detached(None);
        assert_eq!(command.unwrap(), "XA RECOVER");
        assert!(note.unwrap().contains("coordinator"));
    }

    #[test]
    fn nothing_helps_where_a_transaction_is_rolled_back() {
        let transaction = Transaction {
            id: "9".to_owned(),
            age_s: None,
            rows_locked: 0,
            rows_modified: 260_000,
            rolling_back: true,
        };
        let session = Session { transaction: Some(transaction), ..Session::default() };
        let server = ServerIdentity::of_version("9.7.4");
        for key in [Key::Session(7), Key::Detached("9".to_owned())] {
            assert_nothing(
                Remedy::that_ends(&key, Some(&session), &server),
                "260000 changes are left",
            );
        }
    }

    /// The remedy of the first of them, in whose tree 9 waits for these.
    fn of_holders(holders: &[u64], change: impl Fn(&mut Wait)) -> Remedy {
        let mut wait = Wait {
            waiter: Key::Session(9),
            lock: Lock::of(LockKind::Metadata),
            waited_s: Some(5.0),
            blockers: holders.iter().map(|id| Key::Session(*id)).collect(),
            by_elimination: false,
            not_all: None,
            overtaken: false,
            unknown: None,
            source: Source::Sql,
        };
        change(&mut wait);
        let clients = holders.iter().map(|id| (Key::Session(*id), session(SessionKind::Client)));
        let locks = Locks {
            row_waits: Reading::absent("not read"),
            row_waiters: None,
            other_waits: Reading::Value(1),
            waits_without_lock: 0,
            kept_out: None,
            tree: Tree::build(vec![wait]),
            sessions: clients.collect(),
            not_known: Vec::new(),
            memory_after: None,
            over: Instant::now(),
            statements: 0,
        };
        Remedy::of(&locks.tree.roots[0], &locks, &ServerIdentity::of_version("9.7.4"))
    }

    #[test]
    fn only_who_is_alone_in_the_way_is_killed() {
        let alone = of_holders(&[11], |_| {});
        assert_eq!((alone.command.as_deref(), alone.not_enough), (Some("KILL 11"), None));
        let perhaps = of_holders(&[11], |wait| wait.not_all = Some("some are not seen"));
        assert_eq!(perhaps.command.as_deref(), Some("KILL 11"));
        assert_eq!(perhaps.not_enough, Some("some are not seen"));
        assert_nothing(of_holders(&[11, 12, 13], |_| {}), "all of 11, 12, 13: a KILL of one");
        let many: Vec<u64> = (11..=39).collect();
        assert_nothing(of_holders(&many, |_| {}), "29, 30 and 9 more:");
    }

    #[test]
    fn nobody_is_killed_who_takes_turns_with_others() {
        let turns = |holders: &[u64]| of_holders(holders, |wait| wait.overtaken = true);
        assert_nothing(turns(&[11, 12]), "2 sessions got the lock after");
        assert_nothing(turns(&[11]), "another session got the lock after");
        let reads = |wait: &mut Wait| {
            (wait.overtaken, wait.lock.mode) = (true, Some("SHARED_READ_ONLY".to_owned()));
        };
        assert_nothing(of_holders(&[11, 12], reads), "max_write_lock_count");
        let row = |wait: &mut Wait| (wait.overtaken, wait.lock.kind) = (true, LockKind::Row);
        assert!(!of_holders(&[11, 12], row).note.unwrap().contains("max_write_lock_count"));
    }
}
