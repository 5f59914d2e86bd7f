//! How long the digests of a server are, from its file and its memory.

use waggle_model::Reading;
use waggle_probes::servers::digest_length::addresses;
use waggle_probes::servers::elf::Elf;
use waggle_testkit::{Server, Version};

use crate::layout::binaries;
use crate::recognised;

#[test]
fn the_variable_is_found_in_every_way_that_a_build_has() {
    for (version, path) in binaries() {
        let [exported, returned] = addresses(&Elf::open(path).unwrap());
        assert!(exported.is_some(), "{version}");
        // That of 5.7 reads it through a table that the loader fills; MariaDB has no such function.
        let is_direct = matches!(version, Version::Mysql80 | Version::Mysql9);
        let expected = exported.filter(|_| is_direct);
        assert_eq!(returned, expected, "{version}");
    }
}

#[test]
fn the_value_is_that_of_the_option() {
    for version in [Version::Mysql57, Version::Mariadb1011] {
        let option = "--max-digest-length=2000";
        let server = Server::builder(version).arg(option).start().unwrap();
        let found = recognised(&server).server;
        assert_eq!(found.max_digest_length, Reading::Value(2000), "{version}");
    }
}
