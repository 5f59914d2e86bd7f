//! The redo log of a server that has just been started.

use waggle_lab::redo;
use waggle_testkit::{Client, Server, Version};

use super::connect;

fn status(client: &mut Client, name: &str) -> Option<u64> {
    let rows = client.run(format!("SHOW GLOBAL STATUS LIKE '{name}'")).unwrap();
    rows[0].text(0, 1).map(|number| number.parse().unwrap())
}

/// Writes the log of a server through and gives its capacity, and what was written, bytes.
fn written(version: Version) -> Option<(u64, u64)> {
    let server = Server::builder(version).start().unwrap();
    let mut client = server.root().unwrap();
    let capacity = status(&mut client, "Innodb_redo_log_capacity_resized");
    let before = status(&mut client, "Innodb_redo_log_current_lsn");
    redo::write_through(&mut connect(&server)).unwrap();
    let left = client.run("SHOW DATABASES LIKE 'waggle%'").unwrap();
    assert_eq!(left[0].rows.len(), 0);
    let after = status(&mut client, "Innodb_redo_log_current_lsn");
    Some((capacity?, after? - before?))
}

#[test]
fn a_log_of_files_that_are_made_anew_is_written_through_and_no_other() {
    let (capacity, bytes) = written(Version::Mysql9).unwrap();
    assert!(bytes >= 2 * capacity && bytes < 3 * capacity, "{bytes} of {capacity} bytes");
    assert_eq!(written(Version::Mysql80), None);
}
