//! The buffer pool of a server that has just been started.

use waggle_lab::buffer_pool;
use waggle_testkit::{Client, Server, Version};

use super::connect;

/// Reads of the file of the table so far. A server reads pages of its own meanwhile, so that `Innodb_pages_read` of all files
/// says more.
fn read(client: &mut Client) -> u64 {
    let sql = "SELECT COALESCE(SUM(COUNT_READ), 0) FROM performance_schema.file_summary_by_instance \
               WHERE FILE_NAME LIKE '%load_of/one.ibd'";
    client.run(sql).unwrap()[0].text(0, 0).unwrap().parse().unwrap()
}

/// Reads that reading a table by both of its indexes takes from the disk, with what was there before and without.
fn reads(version: Version) -> [u64; 2] {
    const BOTH: [&str; 2] = [
        "SELECT SUM(LENGTH(pad)) FROM load_of.one FORCE INDEX (PRIMARY) WHERE id >= 0",
        "SELECT SUM(k) FROM load_of.one FORCE INDEX (k) WHERE k >= 0",
    ];
    let server = Server::builder(version)
        .arg("--innodb-buffer-pool-dump-at-shutdown=OFF")
        .arg("--innodb-buffer-pool-load-at-startup=OFF")
        .arg("--performance-schema=ON")
        .arg("--performance-schema-instrument=wait/io/file/innodb/%=ON");
    let mut server = server.start().unwrap();
    let mut client = server.root().unwrap();
    client.run("CREATE DATABASE load_of").unwrap();
    let table =
        "id INT PRIMARY KEY AUTO_INCREMENT, k INT NOT NULL, pad CHAR(200) NOT NULL, KEY k (k)";
    client.run(format!("CREATE TABLE load_of.one ({table})")).unwrap();
    client.run("INSERT INTO load_of.one (k, pad) VALUES (1, REPEAT('a', 200))").unwrap();
    for _ in 0..14 {
        client.run("INSERT INTO load_of.one (k, pad) SELECT k + id, pad FROM load_of.one").unwrap();
    }
    [false, true].map(|is_filled| {
        drop(server.restart());
        let mut client = server.root().unwrap();
        if is_filled {
            buffer_pool::fill(&mut connect(&server), "load_of").unwrap();
        }
        let before = read(&mut client);
        BOTH.iter().for_each(|sql| drop(client.run(*sql).unwrap()));
        read(&mut client) - before
    })
}

#[test]
fn what_was_read_through_is_not_read_from_the_disk_again() {
    for version in Version::ALL {
        let [empty, filled] = reads(version);
        assert!(empty > 200, "{version:?}: {empty} reads");
        assert_eq!(filled, 0, "{version:?}, of {empty} reads");
    }
}
