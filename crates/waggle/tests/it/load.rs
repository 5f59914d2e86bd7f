//! Load for the servers under test.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use waggle_testkit::client::Value;
use waggle_testkit::sysbench::{Length, Report, Running, Sysbench};
use waggle_testkit::{Account, Client, Server, Transport, wait_until};

/// Statements of one transaction of `oltp_read_write`.
pub(crate) const PER_TRANSACTION: u64 = 20;

/// Sixteen threads over every transport, in text and prepared.
const MIX: [(Transport, bool, u32); 6] = [
    (Transport::Tcp, false, 3),
    (Transport::Tcp, true, 3),
    (Transport::Unix, false, 3),
    (Transport::Unix, true, 3),
    (Transport::Tls, false, 2),
    (Transport::Tls, true, 2),
];

/// Executions of [`bulk`].
const BULK_EXECUTIONS: u64 = 50;

/// sysbench's mixed read and write load, with its tables made.
pub(crate) fn read_write(server: &Server) -> Sysbench {
    let mut sysbench = Sysbench::new("oltp_read_write");
    sysbench.tables = 4;
    sysbench.prepare(server).unwrap();
    sysbench
}

/// About this many statements, over every transport, in text and prepared, all at once. Returns what
/// sysbench counted.
pub(crate) fn mixed(server: &Server, sysbench: &Sysbench, statements: u64) -> u64 {
    let threads: u32 = MIX.iter().map(|(.., threads)| threads).sum();
    let start = |&(transport, ps_mode, of_it): &(Transport, bool, u32)| -> Running {
        let share = statements * u64::from(of_it) / u64::from(threads);
        let length = Length::Events(share.div_ceil(PER_TRANSACTION));
        let part = Sysbench { transport, ps_mode, threads: of_it, length, ..sysbench.clone() };
        part.start(server).unwrap()
    };
    let running: Vec<Running> = MIX.iter().map(start).collect();
    running.into_iter().map(|one| executed(&one.wait().unwrap())).sum()
}

/// Executions of one INSERT with many rows of values each, which only MariaDB knows. Returns the number
/// of statements.
pub(crate) fn bulk(server: &Server) -> u64 {
    if !server.version().is_mariadb() {
        return 0;
    }
    let mut client = session(server);
    client.run("CREATE TABLE IF NOT EXISTS stock (sku INT, qty INT)").unwrap();
    let insert = client.prepare("INSERT INTO stock (sku, qty) VALUES (?, ?)").unwrap();
    for qty in 0..BULK_EXECUTIONS as i64 {
        let rows: Vec<_> = (0..100).map(|sku| vec![Value::Int(sku), Value::Int(qty)]).collect();
        assert_eq!(client.execute_bulk(&insert, &rows).unwrap().affected, 100);
    }
    client.quit().unwrap();
    1 + BULK_EXECUTIONS
}

/// The statements that the server has executed for sysbench.
pub(crate) fn executed(report: &Report) -> u64 {
    report.total + report.ignored_errors
}

/// A session on the unix socket as administrator, in the database `test`.
pub(crate) fn session(server: &Server) -> Client {
    Client::builder().database("test").connect(server, Transport::Unix, Account::ROOT).unwrap()
}

/// Threads of clients, by Performance Schema; none where it is off. A thread leaves this table when
/// what it counted has been added to the sums of its account; until then a reading of the sums can miss
/// it, or have it twice.
const THREADS: &str = "SELECT COUNT(*) FROM performance_schema.threads \
                       WHERE NAME = 'thread/sql/one_connection'";
/// Connections of clients. A COM_QUIT is counted when its connection leaves this list.
const CONNECTIONS: &str = "SELECT COUNT(*) FROM information_schema.processlist \
                           WHERE command <> 'Daemon' AND user <> 'system user'";

/// Waits until only the connection of waggle and ours are left, so that every COM_QUIT and every event
/// of those that left was counted. Ours is given, to be held while the counters are read.
#[must_use]
pub(crate) fn wait_until_alone(server: &Server) -> Client {
    let mut client = session(server);
    for sql in [CONNECTIONS, THREADS] {
        wait_until("the end of all other sessions", || {
            client.run(sql).unwrap()[0].text(0, 0).unwrap().parse::<u32>().unwrap() <= 2
        });
    }
    client
}

/// Two sessions that run this statement again and again until the end of `meanwhile`, which is told how often so far.
pub(crate) fn at_work<T>(
    server: &Server,
    statement: &str,
    meanwhile: impl FnOnce(&AtomicU64) -> T,
) -> T {
    let mut sessions = [session(server), session(server)];
    let (is_over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for session in &mut sessions {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    // A server that is killed answers no more.
                    let _ = session.run(statement);
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let result = catch_unwind(AssertUnwindSafe(|| meanwhile(&done)));
        is_over.store(true, Ordering::SeqCst);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    })
}
