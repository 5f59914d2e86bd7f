//! The lab on real servers.
#![cfg(test)]

mod buffer_pool;
mod counters;
mod load;
mod redo;

fn connect(server: &waggle_testkit::Server) -> waggle_mysql::Connection {
    let (user, socket) = (Some("root".to_owned()), Some(server.socket()));
    let options = waggle_mysql::Options { user, socket, ..waggle_mysql::Options::default() };
    waggle_mysql::Connection::open(&options).unwrap()
}
