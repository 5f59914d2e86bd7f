//! The counters of InnoDB that prove what a suite sets.

use waggle_lab::check_counters;
use waggle_lab::suite::Suite;
use waggle_mysql::{Connection, Options};
use waggle_testkit::{Server, Version};

#[test]
fn every_server_has_those_of_every_suite() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        let (user, socket) = (Some("root".to_owned()), Some(server.socket()));
        let options = Options { user, socket, ..Options::default() };
        let mut connection = Connection::open(&options, None).unwrap();
        for (name, text) in Suite::builtin() {
            let suite = Suite::parse(name, text).unwrap();
            check_counters(&mut connection, &suite.counters).unwrap();
        }
    }
}
