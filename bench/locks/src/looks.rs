//! The time of a look, as its client sees it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;
use waggle_mysql::locks::Poller;
use waggle_mysql::{Connection, Options, Sources};
use waggle_testkit::client::Command;
use waggle_testkit::{Server, Version};

const WAITERS: u64 = 50;
pub(crate) const TAKE: &str = "UPDATE shop.t SET n = n + 1 WHERE id = 1";
/// Longer than InnoDB keeps its copy of the transactions, so that each look pays for one.
const PAUSE: Duration = Duration::from_millis(110);
/// Until all of them wait.
pub(crate) const UNTIL_THEY_WAIT: Duration = Duration::from_secs(2);
const TABLES: [&str; 7] = [
    "CREATE DATABASE shop",
    "CREATE TABLE shop.t (id INT PRIMARY KEY, n INT) ENGINE = InnoDB",
    "CREATE TABLE shop.big (id INT PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE = InnoDB",
    "INSERT INTO shop.t VALUES (1, 0)",
    "INSERT INTO shop.big (n) VALUES (1), (2), (3), (4), (5), (6)",
    "INSERT INTO shop.big (n) SELECT 1 FROM shop.big a, shop.big b, shop.big c",
    "INSERT INTO shop.big (n) SELECT 1 FROM shop.big a, shop.big b, shop.big c LIMIT 200000",
];

/// Looks at one server in one state.
pub(crate) struct Looks {
    pub(crate) version: String,
    pub(crate) state: &'static str,
    /// Statements of the last look.
    pub(crate) statements: u64,
    pub(crate) median_ms: f64,
    pub(crate) longest_ms: f64,
}

/// Looks so often at a server in each of three states.
pub(crate) fn measure(version: Version, looks: usize) -> Result<Vec<Looks>> {
    let server = Server::start(version)?;
    let session = || server.root();
    let mut root = session()?;
    for statement in TABLES {
        root.run(statement)?;
    }
    let options = Sources { defaults_file: Some(server.defaults_file()), ..Sources::default() };
    let mut connection = Connection::open(&Options::read(&options)?)?;
    let mut poller = Poller::new(&mut connection)?;
    let mut look = |state: &'static str| -> Result<Looks> {
        let mut times = Vec::new();
        let mut statements = 0;
        for _ in 0..looks {
            let begin = Instant::now();
            statements = poller.poll(&mut connection)?.statements;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
            sleep(PAUSE);
        }
        times.sort_by(f64::total_cmp);
        let version = server.version_string().to_owned();
        let (median_ms, longest_ms) = (times[looks / 2], times[looks - 1]);
        Ok(Looks { version, state, statements, median_ms, longest_ms })
    };
    let quiet = look("nothing waits")?;
    root.run("BEGIN")?;
    root.run(TAKE)?;
    let mut waiters = Vec::new();
    for _ in 0..WAITERS {
        let mut waiter = session()?;
        waiter.send(Command::Query, TAKE.as_bytes())?;
        waiters.push(waiter);
    }
    sleep(UNTIL_THEY_WAIT);
    let waiting = look("50 wait")?;
    let mut holder = session()?;
    holder.run("BEGIN")?;
    holder.run("UPDATE shop.big SET n = n + 1")?;
    let many_locks = look("50 wait, 200,000 locks held")?;
    // Who waits is killed by the server's end: a wait lasts 50 s at most.
    Ok(vec![quiet, waiting, many_locks])
}
