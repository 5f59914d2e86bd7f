//! The lab on real servers.

#[cfg(test)]
mod buffer_pool;
#[cfg(test)]
mod counters;
#[cfg(test)]
mod load;
#[cfg(test)]
mod redo;

#[cfg(test)]
fn connect(server: &waggle_testkit::Server) -> waggle_mysql::Connection {
    let (user, socket) = (Some("root".to_owned()), Some(server.socket()));
    let options = waggle_mysql::Options { user, socket, ..waggle_mysql::Options::default() };
    waggle_mysql::Connection::open(&options, None).unwrap()
}
