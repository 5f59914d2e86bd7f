//! What ends a wait. It is for a person to decide, and never sent.

use waggle_model::Flavour;

use super::sessions::{Session, SessionKind};
use super::wait::Key;
use crate::connection::ServerIdentity;

/// What frees those who wait for somebody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remedy {
    /// The command; `None` where none helps.
    pub command: Option<String>,
    /// What to know before it is sent, or why none helps.
    pub note: Option<String>,
}

/// The first versions that know `STOP REPLICA`.
const REPLICA_IN_MYSQL: [u32; 3] = [8, 0, 22];
const REPLICA_IN_MARIADB: [u32; 3] = [10, 5, 1];
/// How the channels of group replication are called.
const GROUP: &str = "group_replication_";

impl Remedy {
    /// What ends the one at the root of a tree.
    pub fn of(key: &Key, session: Option<&Session>, server: &ServerIdentity) -> Remedy {
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
    Remedy { command: Some(command), note: None }
}

fn nothing(why: &str) -> Remedy {
    Remedy { command: None, note: Some(why.to_owned()) }
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
            return "whether it was killed already, and is being rolled back, is not read without an account"
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
    use super::*;
    use crate::locks::Transaction;

    fn session(kind: SessionKind) -> Session {
        Session { kind, killed: Some(false), ..Session::default() }
    }

    fn remedy(session: &Session, version: &str) -> Remedy {
        Remedy::of(&Key::Session(7), Some(session), &ServerIdentity::of_version(version))
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
        assert_nothing(Remedy::of(&Key::Session(7), None, &server), "look again");
        assert_nothing(remedy(&Session::default(), "9.7.4"), "look again");
        let own = Key::Session(server.connection_id);
        let client = session(SessionKind::Client);
        assert_nothing(Remedy::of(&own, Some(&client), &server), "this command");
    }

    #[test]
    fn who_was_killed_is_not_killed_again_and_where_that_is_not_seen_it_is_said() {
        let killed = |killed| Session { killed, ..session(SessionKind::Client) };
        assert_nothing(remedy(&killed(Some(true)), "9.7.4"), "killed already");
        assert_eq!(remedy(&killed(Some(false)), "9.7.4").note, None);
        let Remedy { command, note } = remedy(&killed(None), "9.7.4");
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
            Remedy::of(&Key::Detached("9".to_owned()), Some(&session), &server)
        };
        assert_nothing(detached(Some(false)), "by itself");
        let Remedy { command, note } = detached(None);
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
            assert_nothing(Remedy::of(&key, Some(&session), &server), "260000 changes are left");
        }
    }
}
