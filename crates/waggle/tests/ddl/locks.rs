//! Who waits behind a statement.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use waggle_testkit::client::{Client, Command};
use waggle_testkit::{Server, Version};

use super::{Audit, PATIENCE, PFS, TAP, session, start, statements, text};

/// For how long a session waits behind an `ALTER`, at the first try and at the next ones. The sources look
/// several times a second, where the host lets them, and nobody is told when: where one did not look
/// meanwhile, it is given more time.
const HELD: [Duration; 3] =
    [Duration::from_secs(2), Duration::from_secs(20), Duration::from_secs(120)];

/// Sessions that wait for each other.
struct Queue {
    holder: Client,
    alter: Client,
    reader: Client,
}

impl Queue {
    fn begin(server: &Server) -> Queue {
        let (mut holder, alter, reader) = (session(server), session(server), session(server));
        holder.run("CREATE TABLE locked (a INT) ENGINE=InnoDB").unwrap();
        holder.run("CREATE TABLE free (a INT) ENGINE=InnoDB").unwrap();
        Queue { holder, alter, reader }
    }

    /// Adds a column, for which somebody waits so long.
    fn add_a_column(&mut self, name: &str, held: Duration) {
        self.holder.run("BEGIN").unwrap();
        self.holder.run("SELECT * FROM locked").unwrap();
        let alter = format!("ALTER TABLE locked ADD COLUMN {name} INT");
        self.alter.send(Command::Query, alter.as_bytes()).unwrap();
        wait_for_state(&mut self.holder, 1);
        self.reader.send(Command::Query, b"SELECT a FROM test.locked").unwrap();
        wait_for_state(&mut self.holder, 2);
        thread::sleep(held);
        self.holder.run("COMMIT").unwrap();
        self.alter.read_reply().unwrap();
        self.reader.read_reply().unwrap();
    }
}

#[test]
fn sessions_that_wait_behind_an_alter_are_named() {
    for version in Version::ALL {
        let server = start(version);
        let mut queue = Queue::begin(&server);
        let mut sources =
            [TAP, PFS].map(|source| (source, Audit::tail(&server, source, &["--every", "200ms"])));
        let mut alters = 0;
        for held in HELD {
            queue.add_a_column(&format!("column_{alters}"), held);
            alters += 1;
            sources.iter_mut().for_each(|(_, audit)| audit.wait_for_statements(alters));
            if sources.iter().all(|(_, audit)| is_somebody_named(&audit.lines())) {
                break;
            }
        }
        queue.alter.run("DROP TABLE free").unwrap();
        for (source, mut audit) in sources {
            audit.wait_for_statements(alters + 1);
            let lines = audit.end();
            let listed = statements(&lines);
            let (free, alter) = (listed[alters], listed[alters - 1]);
            let kinds = (text(alter, "kind"), text(free, "kind"));
            assert_eq!(kinds, ("alter_table", "drop_table"), "{version} {source}: {listed:#?}");
            let waiting = alter["waiting"].as_array();
            let waiting = waiting.unwrap_or_else(|| panic!("{version} {source}: {listed:#?}"));
            assert_eq!(waiting.len(), 1, "{version} {source}: {waiting:#?}");
            let reader = queue.reader.connection_id();
            assert_eq!(waiting[0]["connection_id"], reader, "{version} {source}");
            assert_eq!(waiting[0]["state"], "Waiting for table metadata lock");
            assert_eq!(waiting[0]["text"], "SELECT a FROM test.locked", "{version} {source}");
            assert!(alter["duration_us"].as_f64().unwrap() > 1e6, "{version} {source}");
            // It may be too short to be seen.
            let behind_free = free["waiting"].as_array().map_or(0, Vec::len);
            assert_eq!(behind_free, 0, "{version} {source}: {free:#}");
        }
    }
}

/// Whether the last statement names who waited behind it.
fn is_somebody_named(lines: &[Value]) -> bool {
    let last = statements(lines).pop().unwrap();
    last["waiting"].as_array().is_some_and(|waiting| !waiting.is_empty())
}

/// Waits until so many sessions wait for a metadata lock.
fn wait_for_state(client: &mut Client, wanted: usize) {
    let sql = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE \
               'Waiting for%metadata lock'";
    let begin = Instant::now();
    loop {
        let waiting = client.run(sql).unwrap()[0].text(0, 0).unwrap();
        if waiting.parse::<usize>().unwrap() >= wanted {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{wanted} sessions do not wait");
        thread::sleep(Duration::from_millis(10));
    }
}
