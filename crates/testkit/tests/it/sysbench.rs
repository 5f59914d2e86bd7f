//! sysbench against every server.

use waggle_testkit::sysbench::{Length, Sysbench};
use waggle_testkit::{Account, Client, Error, Server, Transport, Version};

/// Waits until no other session is left, so that every COM_QUIT is counted, and returns the
/// statements that the server has counted and how many of them are ours.
fn questions(watcher: &mut Client) -> (u64, u64) {
    let sql = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', 'Threads_connected')";
    for asked in 1.. {
        let status = &watcher.run(sql).unwrap()[0];
        if status.text(1, 1).unwrap() == "1" {
            return (status.text(0, 1).unwrap().parse().unwrap(), asked);
        }
    }
    unreachable!()
}

#[test]
fn sysbench_and_the_server_count_the_same_statements_over_every_transport() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        let mut watcher = server.root().unwrap();
        let mut sysbench = Sysbench::new("oltp_read_write");
        sysbench.threads = 2;
        sysbench.length = Length::Events(40);
        sysbench.prepare(&server).unwrap();
        for transport in Transport::ALL {
            for ps_mode in [false, true] {
                (sysbench.transport, sysbench.ps_mode) = (transport, ps_mode);
                let (before, _) = questions(&mut watcher);
                let report = sysbench.run(&server).unwrap();
                let (after, own) = questions(&mut watcher);
                let quits = u64::from(sysbench.threads);
                let counted = after - before - own - quits;
                let sent = report.total + report.ignored_errors;
                assert_eq!(counted, sent, "{version} {transport} {ps_mode} {report:?}");
                assert!(report.read >= 40 * 14 && report.transactions == 40, "{report:?}");
                assert!(report.latency_max_ms >= report.latency_mean_ms, "{report:?}");
            }
        }
        sysbench.account = Account::SECRET;
        sysbench.run(&server).unwrap();
        sysbench.cleanup(&server).unwrap();
    }
}

#[test]
fn a_sysbench_that_fails_says_why() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let error = Sysbench::new("oltp_read_write").run(&server).unwrap_err();
    assert!(matches!(error, Error::Sysbench(_)));
    assert!(error.to_string().contains("doesn't exist"), "{error}");
}
