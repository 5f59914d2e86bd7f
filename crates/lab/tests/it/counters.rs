//! The counters of InnoDB that prove what a suite sets.

use waggle_lab::check_counters;
use waggle_lab::suite::Suite;
use waggle_testkit::{Server, Version};

use super::connect;

#[test]
fn every_server_has_those_of_every_suite() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        let mut connection = connect(&server);
        for (name, text) in Suite::builtin() {
            let suite = Suite::parse(name, text).unwrap();
            check_counters(&mut connection, &suite.counters).unwrap();
        }
    }
}
