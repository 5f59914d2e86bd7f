//! Load for the servers under test.

use std::thread;
use std::time::Duration;

use waggle_testkit::Account;
use waggle_testkit::Client;
use waggle_testkit::Server;
use waggle_testkit::Transport;
use waggle_testkit::sysbench::Length;
use waggle_testkit::sysbench::Report;
use waggle_testkit::sysbench::Running;
use waggle_testkit::sysbench::Sysbench;

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

/// sysbench's mixed read and write load, with its tables made.
pub(crate) fn read_write(server: &Server) -> Sysbench {
    let mut sysbench = Sysbench::new("oltp_read_write");
    sysbench.tables = 4;
    sysbench.prepare(server).unwrap();
    sysbench
}

/// About so many statements, over every transport, in text and prepared, all at once. Returns what
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

/// The statements that the server has executed for sysbench.
pub(crate) fn executed(report: &Report) -> u64 {
    report.total + report.ignored_errors
}

/// A session on the unix socket as administrator, in the database `test`.
pub(crate) fn session(server: &Server) -> Client {
    Client::builder().database("test").connect(server, Transport::Unix, Account::ROOT).unwrap()
}

/// Performance Schema adds up what a thread counted after its connection has gone from the list, and
/// while it does so the counts are in no table. Nothing tells when it is done.
const ADDED_UP: Duration = Duration::from_millis(100);

/// Waits until only the connection of waggle and ours are left, so that every COM_QUIT was counted,
/// and leaves.
pub(crate) fn wait_until_alone(server: &Server) {
    let mut client = session(server);
    let sql = "SELECT COUNT(*) FROM information_schema.processlist \
               WHERE id <> CONNECTION_ID() AND command <> 'Daemon' AND user <> 'system user'";
    while client.run(sql).unwrap()[0].text(0, 0).unwrap().parse::<u32>().unwrap() > 1 {
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(ADDED_UP);
    client.quit().unwrap();
}
