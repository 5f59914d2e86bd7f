//! States of a session that mean waiting, and what each tells of whom the session waits for.
//!
//! The states are the `stage_…` of MySQL 5.7, 8.0 and 9.7 and of MariaDB 10.11 and 11.4. A group of
//! [`STATES`] names the servers' sources. Rows in InnoDB are not among them: no server has a state
//! for a wait for a row.

use crate::TimeClass;

/// Whom a session waits for, as far as its state tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// The holder of a metadata lock. The server has a list of these locks.
    MetadataLock,
    /// Who has locked a table of an engine without row locks.
    TableLock,
    /// Who still uses a table that was opened before a flush.
    OldTables,
    /// A worker of replication whose transaction comes first.
    EarlierCommit,
    /// Workers of replication that are busy.
    Workers,
    /// The holder of a lock whom the server does not name; in words, who that is.
    Unnamed(&'static str),
    /// No lock, but somebody or something else; in words, who or what that is.
    NoLock(&'static str),
    /// Nobody who could be ended: for work, for a time, or for another server of replication.
    Nobody,
    /// The state says that it waits, and is not known here.
    Unknown,
}

use WaitsFor::{
    EarlierCommit, MetadataLock, NoLock, Nobody, OldTables, TableLock, Unknown, Unnamed, Workers,
};

/// Every state that is known, by its place in the sources of the servers. Case does not count.
const STATES: &[(&str, &[(&str, WaitsFor)])] = &[
    (
        "`MDL_key::m_namespace_to_wait_state_name` in sql/mdl.cc",
        &[
            ("Waiting for acl cache lock", MetadataLock),
            ("Waiting for backup lock", MetadataLock),
            ("Waiting for check constraint metadata lock", MetadataLock),
            ("Waiting for column statistics lock", MetadataLock),
            ("Waiting for commit lock", MetadataLock),
            ("Waiting for event metadata lock", MetadataLock),
            ("Waiting for foreign key metadata lock", MetadataLock),
            ("Waiting for global read lock", MetadataLock),
            ("Waiting for library metadata lock", MetadataLock),
            ("Waiting for locking service lock", MetadataLock),
            ("Waiting for resource groups metadata lock", MetadataLock),
            ("Waiting for schema metadata lock", MetadataLock),
            ("Waiting for spatial reference system lock", MetadataLock),
            ("Waiting for stored function metadata lock", MetadataLock),
            ("Waiting for stored package body metadata lock", MetadataLock),
            ("Waiting for stored procedure metadata lock", MetadataLock),
            ("Waiting for table metadata lock", MetadataLock),
            ("Waiting for tablespace metadata lock", MetadataLock),
            ("Waiting for trigger metadata lock", MetadataLock),
            ("User lock", MetadataLock),
        ],
    ),
    (
        "`wait_for_lock` in mysys/thr_lock.c",
        &[("Waiting for table level lock", TableLock), ("Table lock", TableLock)],
    ),
    (
        "`stage_waiting_on_row_lock` in storage/rocksdb/ha_rocksdb.cc",
        &[("Waiting for row lock", Unnamed("a transaction that has locked the row, in MyRocks"))],
    ),
    (
        "`TABLE_SHARE::wait_for_old_version` in sql/table.cc",
        &[("Waiting for table flush", OldTables)],
    ),
    (
        "`Query_cache::try_lock` in sql/sql_cache.cc",
        &[("Waiting for query cache lock", Unnamed(QUERY_CACHE))],
    ),
    (
        "INSERT DELAYED, sql/sql_insert.cc",
        &[
            ("Waiting for INSERT", Nobody),
            ("Waiting for delay_list", Unnamed("a session that begins an INSERT DELAYED")),
            ("Waiting for handler insert", NoLock("the thread of INSERT DELAYED")),
            ("Waiting for handler lock", Unnamed("the thread of INSERT DELAYED")),
            ("Waiting for handler open", NoLock("the thread of INSERT DELAYED")),
        ],
    ),
    (
        "sql/backup.cc of MariaDB; NDB, for all its schemas",
        &[
            ("Waiting for DDLs", NoLock("DDL statements that began before the backup")),
            ("Waiting for non trans tables to be flushed", NoLock(NON_TRANSACTIONAL)),
            (
                "Waiting for ndbcluster global schema lock",
                Unnamed("a DDL statement on a node of NDB"),
            ),
        ],
    ),
    (
        "the commit: sql/binlog.cc, sql/rpl_gtid_state.cc, sql/rpl_gtid_execution.cc, \
         plugin/semisync",
        &[
            ("waiting for handler commit", Nobody),
            (
                "Waiting for Binlog Group Commit ticket",
                NoLock("transactions that commit before it"),
            ),
            ("Waiting for GTID to be committed", NoLock(GTID)),
            ("Waiting for GTID to be written to binary log", NoLock(GTID)),
            ("Waiting for semi-sync ACK from slave", NoLock(ACKNOWLEDGE)),
            ("Waiting for semi-sync ACK from replica", NoLock(ACKNOWLEDGE)),
            ("Waiting for semi-sync slave connection", Nobody),
            ("Waiting for semi-sync replica connection", Nobody),
            (
                "Executing hook on transaction begin.",
                NoLock("transactions of its replication group"),
            ),
        ],
    ),
    (
        "a full disk: mysys/errors.c",
        &[
            ("Waiting for disk space", NoLock(DISK)),
            ("Waiting for someone to free space", NoLock(DISK)),
        ],
    ),
    (
        "workers of replication: sql/rpl_rli_pdb.cc, sql/rpl_replica_commit_order_manager.cc and \
         sql/rpl_mta_submode.cc of MySQL, sql/rpl_parallel.cc of MariaDB",
        &[
            ("Waiting for preceding transaction to commit", EarlierCommit),
            ("Waiting for prior transaction to commit", EarlierCommit),
            ("Waiting for prior transaction to start commit", EarlierCommit),
            ("Waiting for dependent transaction to commit", Workers),
            ("Waiting for Slave Worker queue", Workers),
            ("Waiting for Replica Worker queue", Workers),
            ("Waiting for Slave Worker to release partition", Workers),
            ("Waiting for Replica Worker to release partition", Workers),
            ("Waiting for Slave Workers to free pending events", Workers),
            ("Waiting for Replica Workers to free pending events", Workers),
            ("Waiting for slave workers to process their queues", Workers),
            ("Waiting for replica workers to process their queues", Workers),
            ("Waiting for workers to exit", Workers),
            ("Waiting for room in worker thread event queue", Workers),
            ("Waiting for worker threads to be idle", Workers),
            ("Waiting for worker threads to pause for global read lock", Workers),
            ("Waiting while replication worker thread pool is busy", NoLock(POOL)),
            (
                "Waiting due to global read lock",
                Unnamed("a session with FLUSH TABLES WITH READ LOCK"),
            ),
            ("Waiting for parallel replication deadlock handling to complete", NoLock("a KILL")),
            ("Waiting for other master connection to process the same GTID", NoLock(CONNECTION)),
            ("Waiting for an event from Coordinator", Nobody),
            ("Waiting for work from SQL thread", Nobody),
            ("Waiting for work from main SQL threads", Nobody),
        ],
    ),
    (
        "other threads of replication, and who waits for them: sql/rpl_replica.cc, sql/slave.cc, \
         sql/rpl_rli.cc, sql/rpl_gtid.cc",
        &[
            ("Killing slave", NoLock(APPLIER_END)),
            ("Killing replica", NoLock(APPLIER_END)),
            ("Waiting for slave mutex on exit", NoLock(APPLIER_END)),
            ("Waiting for replica mutex on exit", NoLock(APPLIER_END)),
            ("Waiting for slave thread to start", NoLock("a thread of replication that begins")),
            ("Waiting for replica thread to start", NoLock("a thread of replication that begins")),
            (
                "Waiting for no channel reference.",
                NoLock("sessions that read the state of the channel"),
            ),
            ("Waiting for the slave SQL thread to advance position", NoLock(APPLIER)),
            ("Waiting for the replica SQL thread to advance position", NoLock(APPLIER)),
            ("Waiting in MASTER_GTID_WAIT()", NoLock(APPLIER)),
            ("Waiting in MASTER_GTID_WAIT() (primary waiter)", NoLock(APPLIER)),
            ("Waiting for the slave SQL thread to free enough relay log space", NoLock(APPLIER)),
            ("Waiting for the replica SQL thread to free relay log space", NoLock(APPLIER)),
            ("Waiting for master update", Nobody),
            ("Waiting for source update", Nobody),
            ("Waiting for master to send event", Nobody),
            ("Waiting for source to send event", Nobody),
            ("Waiting for the next event in relay log", Nobody),
            ("Waiting until MASTER_DELAY seconds after master executed event", Nobody),
            ("Waiting until SOURCE_DELAY seconds after source executed event", Nobody),
            ("Waiting to reconnect after a failed binlog dump request", Nobody),
            ("Waiting to reconnect after a failed master event read", Nobody),
            ("Waiting to reconnect after a failed source event read", Nobody),
            ("Waiting to reconnect after a failed registration on master", Nobody),
            ("Waiting to reconnect after a failed registration on source", Nobody),
            ("Waiting to finalize termination", Nobody),
            ("Waiting for requests", Nobody),
            ("Waiting for background binlog tasks", Nobody),
            ("Waiting for event from ndbcluster", Nobody),
            ("Waiting for first event from ndbcluster", Nobody),
        ],
    ),
    (
        "the event scheduler: sql/events.cc, sql/event_queue.cc",
        &[
            ("Waiting on empty queue", Nobody),
            ("Waiting for next activation", Nobody),
            ("Waiting for the scheduler to stop", NoLock("the event scheduler, which has to end")),
        ],
    ),
    (
        "Galera: `stage_waiting_isolation` and the following in sql/mysqld.cc of MariaDB",
        &[
            ("Waiting to execute in isolation", NoLock(CLUSTER)),
            (
                "Waiting for TOI DDL",
                NoLock("a DDL statement that runs on all nodes of the cluster"),
            ),
            ("Waiting for flow control", NoLock("a node of the cluster that is behind")),
            ("Waiting for certification", NoLock(CLUSTER)),
            ("Waiting to reach ready state", NoLock(CLUSTER)),
        ],
    ),
    (
        "`wt_thd_cond_timedwait` in storage/maria/ma_write.c",
        &[("Waiting for a resource", Unnamed("another transaction of Aria"))],
    ),
];

const ACKNOWLEDGE: &str = "a replica that has to acknowledge the transaction (semi-synchronous)";
const APPLIER: &str = "the applier of replication, which has not come that far";
const APPLIER_END: &str = "threads of replication, which have to end";
const CLUSTER: &str = "other nodes of the cluster";
const CONNECTION: &str = "another connection of replication with the same transaction";
const DISK: &str = "free space: a disk is full";
const GTID: &str =
    "the session that has the GTID (SELECT @@GLOBAL.gtid_owned) or a later transaction";
const NON_TRANSACTIONAL: &str = "statements on tables without transactions";
const TICKET: &str = "InnoDB to let it in: innodb_thread_concurrency statements are inside already";
const QUERY_CACHE: &str = "a session that changes the query cache, or sends a result from it to a client that does \
                           not read (state: sending cached result to client)";
const POOL: &str =
    "a session that changes slave_parallel_threads, or stops the workers for a global read lock";

/// How a state begins that says that a session waits.
const BEGIN: &str = "waiting ";

impl WaitsFor {
    /// What a state tells; `None` if it does not say that the session waits.
    pub fn of(state: &str) -> Option<WaitsFor> {
        let known = waiting_states().find(|known| known.name.eq_ignore_ascii_case(state));
        if let Some(known) = known {
            return Some(known.waits_for);
        }
        let state = state.to_ascii_lowercase();
        // A newer server may have more kinds of metadata locks.
        let is_lock = state.ends_with(" metadata lock");
        let unknown = if is_lock { MetadataLock } else { Unknown };
        state.starts_with(BEGIN).then_some(unknown)
    }

    /// The same, where it is known for what its thread waits: no state says that InnoDB does not let it in.
    pub fn seen(state: &str, class: Option<TimeClass>) -> Option<WaitsFor> {
        let by_thread = || (class == Some(TimeClass::InnodbTicket)).then_some(NoLock(TICKET));
        WaitsFor::of(state).or_else(by_thread)
    }

    /// Whom the session waits for, in words.
    pub fn whom(self) -> &'static str {
        match self {
            MetadataLock => "the holder of a metadata lock",
            TableLock => "who has locked the table",
            OldTables => "who still uses the table as it was before a flush",
            EarlierCommit => "the worker of replication whose transaction comes first",
            Workers => "workers of replication that are busy",
            Unnamed(who) | NoLock(who) => who,
            Nobody => "nobody who could be ended",
            Unknown => "somebody or something",
        }
    }

    /// Whether it waits as for a lock: somebody who could be ended has what it needs. What is not known may be a lock.
    pub fn is_lock(self) -> bool {
        !matches!(self, NoLock(_) | Nobody)
    }
}

/// A state that is known.
#[derive(Clone, Copy, Debug)]
pub struct WaitingState {
    /// As the server shows it.
    pub name: &'static str,
    /// What it tells.
    pub waits_for: WaitsFor,
    /// Where the servers' sources have it.
    pub source: &'static str,
}

/// Every state that is known.
pub fn waiting_states() -> impl Iterator<Item = WaitingState> {
    let of = |source, states: &'static [(&str, WaitsFor)]| {
        states.iter().map(move |(name, waits_for)| WaitingState {
            name,
            waits_for: *waits_for,
            source,
        })
    };
    STATES.iter().flat_map(move |(source, states)| of(*source, states))
}

/// The states whose sessions wait for somebody although they do not begin with `Waiting`.
pub fn other_waiting_states() -> impl Iterator<Item = &'static str> {
    states(|name, waits_for| !begins(name) && waits_for != Nobody)
}

/// The states that begin with `Waiting` and in which nobody holds the session up.
pub fn idle_states() -> impl Iterator<Item = &'static str> {
    states(|name, waits_for| begins(name) && waits_for == Nobody)
}

fn states(of: fn(&str, WaitsFor) -> bool) -> impl Iterator<Item = &'static str> {
    waiting_states().filter(move |it| of(it.name, it.waits_for)).map(|it| it.name)
}

fn begins(name: &str) -> bool {
    name.get(..BEGIN.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(BEGIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_of_waiting_that_is_not_known_is_still_waiting() {
        assert_eq!(WaitsFor::of("Waiting for the moon"), Some(Unknown));
        assert_eq!(WaitsFor::of("Waiting for moon metadata lock"), Some(MetadataLock));
        assert_eq!(WaitsFor::of("waiting for TABLE flush"), Some(OldTables));
        assert_eq!(WaitsFor::of("Sending data"), None);
        assert_eq!(WaitsFor::of("User sleep"), None);
        assert_eq!(WaitsFor::of("Waiting on empty queue"), Some(Nobody));
    }

    #[test]
    fn a_thread_tells_what_no_state_does() {
        let seen = |state, class| WaitsFor::seen(state, Some(class));
        assert_eq!(seen("statistics", TimeClass::InnodbTicket), Some(NoLock(TICKET)));
        assert_eq!(seen("Waiting for table flush", TimeClass::InnodbTicket), Some(OldTables));
        assert_eq!(seen("statistics", TimeClass::Latch), None);
    }

    #[test]
    fn each_state_stands_in_the_table_once() {
        let mut names: Vec<String> =
            waiting_states().map(|it| it.name.to_ascii_lowercase()).collect();
        names.sort();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn who_waits_for_no_lock_is_no_lock_and_what_is_not_known_may_be_one() {
        let is_lock = |state: &str| WaitsFor::of(state).map(WaitsFor::is_lock);
        for state in ["User lock", "Waiting for table flush", "Waiting for the moon"] {
            assert_eq!(is_lock(state), Some(true), "{state}");
        }
        for state in ["Waiting for disk space", "Waiting on empty queue"] {
            assert_eq!(is_lock(state), Some(false), "{state}");
        }
    }

    #[test]
    fn states_are_listed_for_a_filter() {
        assert!(other_waiting_states().any(|name| name == "User lock"));
        assert!(idle_states().any(|name| name == "waiting for handler commit"));
        assert!(!idle_states().any(|name| name == "Waiting for table flush"));
    }
}
