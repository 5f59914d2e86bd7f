//! What the pages of the guide show is what waggle prints: their commands are run on a real server, and
//! their outputs compared, but for numbers and the width of columns. `UPDATE=1` writes them anew. The
//! JSON has the paths of the reference.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy sees tests in #[test] functions only"
)]

#[path = "guide/page.rs"]
mod page;
#[path = "guide/reference.rs"]
mod reference;

use std::process::Command;
use std::time::{Duration, Instant};

use page::Page;
use tempfile::TempDir;
use waggle_testkit::client::Command as Packet;
use waggle_testkit::{Account, Client, Server, Transport, Version};

/// What does not come within this time does not come.
const PATIENCE: Duration = Duration::from_secs(60);

fn session(server: &Server, statements: &[&str]) -> Client {
    let mut client = Client::connect(server, Transport::Unix, Account::ROOT).unwrap();
    statements.iter().for_each(|statement| drop(client.run(statement).unwrap()));
    client
}

fn with_a_table() -> Server {
    let server = Server::builder(Version::Mysql9).start().unwrap();
    session(&server, &["CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)"]);
    server
}

/// Waits until so many sessions wait for a metadata lock.
fn until_waiting(server: &Server, sessions: usize) {
    let begin = Instant::now();
    let mut client = session(server, &[]);
    let sql = "SELECT 1 FROM performance_schema.threads WHERE PROCESSLIST_STATE = \
               'Waiting for table metadata lock'";
    while client.run(sql).unwrap()[0].rows.len() < sessions {
        assert!(begin.elapsed() < PATIENCE, "nobody waits for the lock");
    }
}

#[test]
fn performance_schema_is_set_as_the_guide_says() {
    Page::read("performance-schema.md").check(&with_a_table());
}

#[test]
fn the_counters_of_innodb_are_shown_as_the_guide_says() {
    Page::read("innodb-metrics.md").check(&with_a_table());
}

#[test]
fn who_blocks_whom_is_drawn_as_the_guide_says() {
    let server = with_a_table();
    let _root = session(&server, &["BEGIN", "SELECT * FROM shop.t LIMIT 1"]);
    let mut middle = session(&server, &[]);
    middle.send(Packet::Query, b"ALTER TABLE shop.t ADD COLUMN price INT").unwrap();
    until_waiting(&server, 1);
    let mut last = session(&server, &[]);
    last.send(Packet::Query, b"SELECT * FROM shop.t").unwrap();
    until_waiting(&server, 2);
    Page::read("locks.md").check(&server);
}

#[test]
fn json_is_printed_as_the_reference_says() {
    let server = with_a_table();
    let state = TempDir::new().unwrap();
    for (command, documented) in reference::documented("pfs-json.md") {
        let (about, needs_account) = match command.as_str() {
            "waggle pfs plan --json" => ("minimal --schema shop", true),
            "waggle pfs apply --json" => ("minimal --for 1s", true),
            "waggle pfs profiles --json" | "waggle pfs history --json" => ("", false),
            "waggle innodb watch --json" => ("--for 1s", true),
            "waggle innodb enable --json" => ("module_log --for 1s", true),
            _ => ("", true),
        };
        let mut waggle = Command::new(env!("CARGO_BIN_EXE_waggle"));
        waggle.args(command.split(' ').skip(1)).args(about.split_whitespace());
        if needs_account {
            waggle.arg("--defaults-file").arg(server.defaults_file());
        }
        let output = waggle.env("WAGGLE_STATE_DIR", state.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{command}: {said}");
        let printed = String::from_utf8(output.stdout).unwrap();
        reference::compare(&command, &documented, &printed);
    }
}
