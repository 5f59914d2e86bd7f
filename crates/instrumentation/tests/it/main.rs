//! Performance Schema and the counters of InnoDB of real servers of all five versions. A failure names
//! the version.
#![cfg(test)]

mod holding;
mod profiles;
mod reference;
mod written;

use waggle_mysql::{Connection, Options, Sources};
use waggle_testkit::{Server, Version};

/// A server with Performance Schema on and nothing else of it.
fn start(version: Version) -> (Server, Connection) {
    let server = Server::builder(version).arg("--performance-schema=ON").start().unwrap();
    let connection = connect(&server);
    (server, connection)
}

fn connect(server: &Server) -> Connection {
    let file = Some(server.defaults_file());
    let options = Options::read(&Sources { defaults_file: file, ..Sources::default() }).unwrap();
    Connection::open(&options).unwrap()
}
