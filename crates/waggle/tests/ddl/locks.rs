//! Who waits behind a statement.

use std::thread;
use std::time::Duration;

use waggle_testkit::Version;
use waggle_testkit::client::Command;

use super::{Audit, PFS, TAP, session, start, statements, text};

#[test]
fn sessions_that_wait_behind_an_alter_are_named() {
    for version in Version::ALL {
        let server = start(version);
        let (mut holder, mut alter, mut reader) =
            (session(&server), session(&server), session(&server));
        holder.run("CREATE TABLE locked (a INT) ENGINE=InnoDB").unwrap();
        holder.run("CREATE TABLE free (a INT) ENGINE=InnoDB").unwrap();
        let sources =
            [TAP, PFS].map(|source| (source, Audit::tail(&server, source, &["--every", "200ms"])));
        holder.run("BEGIN").unwrap();
        holder.run("SELECT * FROM locked").unwrap();
        alter.send(Command::Query, b"ALTER TABLE locked ADD COLUMN b INT").unwrap();
        wait_for_state(&mut holder, 1);
        reader.send(Command::Query, b"SELECT a FROM test.locked").unwrap();
        wait_for_state(&mut holder, 2);
        // Many looks of either source: one of them has to come, also where the host stands still at times.
        thread::sleep(Duration::from_secs(3));
        holder.run("COMMIT").unwrap();
        alter.read_reply().unwrap();
        reader.read_reply().unwrap();
        alter.run("DROP TABLE free").unwrap();
        for (source, mut audit) in sources {
            audit.wait_for_statements(2);
            let lines = audit.end();
            let listed = statements(&lines);
            let of = |kind: &str| *listed.iter().find(|line| text(line, "kind") == kind).unwrap();
            let waiting = of("alter_table")["waiting"].as_array();
            let waiting = waiting.unwrap_or_else(|| panic!("{version} {source}: {listed:#?}"));
            assert_eq!(waiting.len(), 1, "{version} {source}: {waiting:#?}");
            assert_eq!(waiting[0]["connection_id"], reader.connection_id(), "{version} {source}");
            assert_eq!(waiting[0]["state"], "Waiting for table metadata lock");
            assert_eq!(waiting[0]["text"], "SELECT a FROM test.locked", "{version} {source}");
            assert!(of("alter_table")["duration_us"].as_f64().unwrap() > 1e6, "{version} {source}");
        }
    }
}

/// Waits until so many sessions wait for a metadata lock.
fn wait_for_state(client: &mut waggle_testkit::Client, wanted: usize) {
    let sql = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE \
               'Waiting for%metadata lock'";
    for _ in 0..1000 {
        let waiting = client.run(sql).unwrap()[0].text(0, 0).unwrap();
        if waiting.parse::<usize>().unwrap() >= wanted {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{wanted} sessions do not wait");
}
