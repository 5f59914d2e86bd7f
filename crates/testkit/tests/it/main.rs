//! The kit against the real servers.
#![cfg(test)]

mod client;
mod server;
mod sysbench;

use std::sync::OnceLock;

use waggle_testkit::{Server, Version};

/// One server of each version for the tests that do not mind others on it. It is never dropped:
/// it ends with this process.
fn shared(version: Version) -> &'static Server {
    static SERVERS: [OnceLock<Server>; 5] = [const { OnceLock::new() }; 5];
    SERVERS[version as usize].get_or_init(|| Server::start(version).unwrap())
}
