//! The load on real servers.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use waggle_lab::load::{
    AGE_ROWS, Count, Driver, LoadError, Pace, Reach, Request, Sysbench, SysbenchError, age, prepare,
};
use waggle_lab::suite::Workload;
use waggle_private_server::Launcher;
use waggle_testkit::{Client, Server, Version, launcher, wait_for, wait_showing, wait_until};

/// A server with tables, somebody who asks it, and what a load needs.
struct Stage {
    server: Server,
    watcher: Client,
    sysbench: Sysbench,
    launcher: Launcher,
    dir: TempDir,
}

fn workload(script: &str, arguments: &[&str]) -> Workload {
    let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
    Workload { name: script.to_owned(), script: script.to_owned(), arguments }
}

/// Makes tables, whatever happens.
fn made(request: &Request<'_>) -> Result<(), LoadError> {
    prepare(request, &AtomicBool::new(false)).map(|is_whole| assert!(is_whole))
}

impl Stage {
    fn with(version: Version, sessions: u32) -> Stage {
        let builder = Server::builder(version).max_connections(sessions + 10);
        let server = builder.arg("--max-prepared-stmt-count=100000").start().unwrap();
        let mut stage = Stage {
            watcher: server.root().unwrap(),
            sysbench: Sysbench::find(Path::new("sysbench")).unwrap(),
            launcher: launcher(),
            dir: TempDir::new().unwrap(),
            server,
        };
        stage.ask(&workload("oltp_read_write", &[]), 2, made).unwrap();
        stage
    }

    fn ask<T>(
        &mut self,
        workload: &Workload,
        threads: u32,
        ask: impl FnOnce(&Request<'_>) -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        let reach = Reach::private(&self.server.socket()).unwrap();
        ask(&Request {
            sysbench: &self.sysbench,
            launcher: &self.launcher,
            reach: &reach,
            workload,
            threads,
            tables: 2,
            rows: 1000,
            seed: 1,
            directory: self.dir.path(),
        })
    }

    fn start(&mut self, workload: &Workload, threads: u32) -> Driver {
        self.ask(workload, threads, Driver::start).unwrap()
    }

    /// A counter of the server.
    fn status(&mut self, name: &str) -> u64 {
        let rows = self.watcher.run(format!("SHOW GLOBAL STATUS LIKE '{name}'")).unwrap();
        rows[0].text(0, 1).unwrap().parse().unwrap()
    }

    /// Waits until the server has this many sessions.
    fn wait_sessions(&mut self, wanted: u64) {
        wait_showing(format_args!("{wanted} sessions"), || {
            let left = self.status("Threads_connected");
            if left == wanted { Ok(()) } else { Err(left) }
        });
    }
}

fn started(request: &Request<'_>) -> Result<(), LoadError> {
    Driver::start(request).map(drop)
}

/// Lets it work for a while and gives what was done, and in which time.
fn work(driver: &mut Driver, pace: Pace, time: Duration) -> (Count, f64) {
    let (before, begin) = (driver.count().unwrap(), Instant::now());
    driver.go(pace).unwrap();
    sleep(time);
    driver.pause().unwrap();
    let seconds = begin.elapsed().as_secs_f64();
    (driver.count().unwrap().since(&before), seconds)
}

/// Lets it work until what was done is enough, and gives that.
fn work_until(driver: &mut Driver, is_enough: impl Fn(&Count) -> bool) -> Count {
    let before = driver.count().unwrap();
    driver.go(Pace::Closed).unwrap();
    wait_until("the work", || is_enough(&driver.count().unwrap().since(&before)));
    driver.pause().unwrap();
    driver.count().unwrap().since(&before)
}

#[test]
fn the_sessions_count_what_the_server_counts_and_a_pause_is_still() {
    for version in [Version::Mysql57, Version::Mysql9, Version::Mariadb1011] {
        let mut stage = Stage::with(version, 8);
        let mut driver = stage.start(&workload("oltp_read_write", &[]), 8);
        let (mut all, commits) = (0, stage.status("Com_commit"));
        for _ in 0..3 {
            let count = work_until(&mut driver, |count| count.transactions > 100);
            all += count.transactions;
            assert_eq!(all, stage.status("Com_commit") - commits, "{version}");
            let shape = count.latency().unwrap().shape;
            assert_eq!(shape.iter().map(|(_, count)| count).sum::<u64>(), count.transactions);
            let questions = stage.status("Questions");
            sleep(Duration::from_millis(200));
            assert_eq!(stage.status("Questions"), questions + 1, "{version}");
        }
        let pid = driver.pid();
        drop(driver);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        stage.wait_sessions(1);
    }
}

#[test]
fn transactions_that_arrive_keep_their_rate_and_wait_for_a_free_session() {
    let mut stage = Stage::with(Version::Mariadb114, 8);
    let mut driver = stage.start(&workload("oltp_point_select", &[]), 8);
    let rate = 200.0;
    let (count, seconds) =
        work(&mut driver, Pace::Open { per_second: rate }, Duration::from_secs(3));
    let mean = rate * seconds;
    // Five times its standard deviation: one in a million Poisson numbers is so far from its mean.
    let off = (count.transactions as f64 - mean).abs();
    assert!(off < 5.0 * mean.sqrt(), "{} instead of {mean}", count.transactions);

    // More than any server does: what is served at the end had been due at the begin, and half of all
    // has waited for half the time.
    let (count, seconds) =
        work(&mut driver, Pace::Open { per_second: 1e7 }, Duration::from_secs(1));
    let latency = count.latency().unwrap();
    assert!(latency.p50_ns > 0.25e9 && latency.p50_ns < latency.p99_ns, "{latency:?}");
    assert!(latency.max_ns < seconds * 1e9, "{latency:?}");

    // What was left in the queue is gone.
    let (count, _) = work(&mut driver, Pace::Open { per_second: rate }, Duration::from_secs(1));
    assert!(count.latency().unwrap().p50_ns < 0.25e9, "{:?}", count.latency());
}

#[test]
fn two_hundred_sessions_stop_and_go() {
    let mut stage = Stage::with(Version::Mysql9, 200);
    let mut driver = stage.start(&workload("oltp_point_select", &[]), 200);
    assert_eq!(stage.status("Threads_connected"), 201);
    let executed = stage.status("Com_stmt_execute");
    let mut all = 0;
    for pace in [Pace::Closed, Pace::Open { per_second: 2000.0 }].repeat(5) {
        all += work(&mut driver, pace, Duration::from_millis(100)).0.transactions;
        assert_eq!(all, stage.status("Com_stmt_execute") - executed, "{pace:?}");
    }
    assert!(all > 0);
    drop(driver);
    stage.wait_sessions(1);
}

#[test]
fn a_transaction_that_met_a_deadlock_is_counted_once_and_its_retry_as_well() {
    let mut stage = Stage::with(Version::Mariadb1011, 16);
    // Two rows of each table only: many sessions cannot but wait in a circle.
    let few = ["--table-size=2", "--delete_inserts=0"];
    let arguments = [few.as_slice(), &["--index_updates=4", "--non_index_updates=4"]].concat();
    let mut driver = stage.start(&workload("oltp_write_only", &arguments), 16);
    let commits = stage.status("Com_commit");
    let count = work_until(&mut driver, |count| count.retries > 0);
    assert_eq!(count.transactions, stage.status("Com_commit") - commits);
}

#[test]
fn what_is_missing_is_named() {
    let mut stage = Stage::with(Version::Mariadb1011, 2);
    let nosuch = workload("oltp_nosuch", &[]);
    let refused = [stage.ask(&nosuch, 2, made), stage.ask(&nosuch, 2, started)];
    for error in refused.map(Result::unwrap_err) {
        assert!(
            matches!(&error, LoadError::Sysbench(SysbenchError::Script { script }) if script == "oltp_nosuch"),
            "{error}"
        );
    }
    let unknown = workload("oltp_read_only", &["--nosuch=1"]);
    let error = stage.ask(&unknown, 2, Driver::start).unwrap_err().to_string();
    assert!(error.contains("--nosuch") && error.contains("oltp_read_only"), "{error}");
}

#[test]
fn a_server_that_dies_ends_the_load_and_says_so() {
    for is_at_work in [true, false] {
        let mut stage = Stage::with(Version::Mariadb1011, 4);
        let mut driver = stage.start(&workload("oltp_read_write", &[]), 4);
        if is_at_work {
            driver.go(Pace::Closed).unwrap();
        }
        stage.server.kill9().unwrap();
        if !is_at_work {
            driver.go(Pace::Closed).unwrap();
        }
        let error = wait_for("the end of the load", || driver.count().err());
        let said = error.to_string();
        assert!(said.contains("oltp_read_write") && said.contains("FATAL"), "{said}");
        assert!(said.contains("2013") || said.contains("2006"), "{said}");
        assert!(driver.pause().is_err());
    }
}

#[test]
fn tables_are_not_made_to_their_end_where_somebody_stops_it() {
    let mut stage = Stage::with(Version::Mysql9, 4);
    let workload = workload("oltp_read_write", &[]);
    let stopped = stage.ask(&workload, 2, |request| prepare(request, &AtomicBool::new(true)));
    assert!(!stopped.unwrap());
}

#[test]
fn tables_are_aged_by_a_transaction_for_twenty_rows_or_until_somebody_stops_it() {
    let mut stage = Stage::with(Version::Mysql9, 4);
    let write = workload("oltp_write_only", &[]);
    let before = stage.status("Com_commit");
    assert!(stage.ask(&write, 2, |request| age(request, &AtomicBool::new(false))).unwrap());
    let transactions = stage.status("Com_commit") - before;
    assert!(transactions >= 2 * 1000 / AGE_ROWS, "{transactions}");
    assert!(!stage.ask(&write, 2, |request| age(request, &AtomicBool::new(true))).unwrap());
    // The watcher only.
    stage.wait_sessions(1);
}
