//! What one poll of the locks costs on each of the five servers, in three states: nothing waits, fifty
//! sessions wait for one row, and the same while a transaction holds 200,000 row locks:
//! `cargo run -p waggle-mysql --example locks_cost`. Times are as the client sees them.
#![allow(clippy::print_stdout, reason = "the table is what this program is for")]

use std::error::Error;
use std::time::{Duration, Instant};

use waggle_mysql::locks::Poller;
use waggle_mysql::{Connection, Options, Sources};
use waggle_testkit::client::Command;
use waggle_testkit::{Account, Client, Server, Transport, Version};

const POLLS: usize = 101;
const WAITERS: u64 = 50;
const TAKE: &str = "UPDATE shop.t SET n = n + 1 WHERE id = 1";

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "{:<14} {:<30} {:>10} {:>10} {:>10}",
        "server", "state", "statements", "median ms", "max ms"
    );
    for version in Version::ALL {
        measure(version)?;
    }
    Ok(())
}

fn measure(version: Version) -> Result<(), Box<dyn Error>> {
    let server = Server::start(version)?;
    let session = || Client::connect(&server, Transport::Unix, Account::ROOT);
    let mut root = session()?;
    root.run("CREATE DATABASE shop")?;
    root.run("CREATE TABLE shop.t (id INT PRIMARY KEY, n INT) ENGINE = InnoDB")?;
    root.run("CREATE TABLE shop.big (id INT PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE = InnoDB")?;
    root.run("INSERT INTO shop.t VALUES (1, 0)")?;
    root.run("INSERT INTO shop.big (n) VALUES (1), (2), (3), (4), (5), (6)")?;
    root.run("INSERT INTO shop.big (n) SELECT 1 FROM shop.big a, shop.big b, shop.big c")?;
    root.run(
        "INSERT INTO shop.big (n) SELECT 1 FROM shop.big a, shop.big b, shop.big c LIMIT 200000",
    )?;

    let options = Sources { defaults_file: Some(server.defaults_file()), ..Sources::default() };
    let mut connection = Connection::open(&Options::read(&options)?, None)?;
    let mut poller = Poller::new(&mut connection)?;
    let mut print = |state: &str| -> Result<(), Box<dyn Error>> {
        let mut times = Vec::new();
        let mut statements = 0;
        for _ in 0..POLLS {
            let begin = Instant::now();
            statements = poller.poll(&mut connection)?.statements;
            times.push(begin.elapsed());
            // Longer than InnoDB keeps its copy of the transactions, so that each poll pays for one.
            std::thread::sleep(Duration::from_millis(110));
        }
        times.sort_unstable();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let (median, max) = (ms(times[POLLS / 2]), ms(times[POLLS - 1]));
        println!("{:<14} {state:<30} {statements:>10} {median:>10.2} {max:>10.2}", version.name());
        Ok(())
    };
    print("nothing waits")?;
    root.run("BEGIN")?;
    root.run(TAKE)?;
    let mut waiters = Vec::new();
    for _ in 0..WAITERS {
        let mut waiter = session()?;
        waiter.send(Command::Query, TAKE.as_bytes())?;
        waiters.push(waiter);
    }
    // Until all of them wait.
    std::thread::sleep(Duration::from_secs(2));
    print("50 wait")?;
    let mut holder = session()?;
    holder.run("BEGIN")?;
    holder.run("UPDATE shop.big SET n = n + 1")?;
    print("50 wait, 200,000 locks held")?;
    // Who waits is killed by the server's end: a wait lasts 50 s at most.
    Ok(())
}
