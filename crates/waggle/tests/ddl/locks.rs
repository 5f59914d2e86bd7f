//! Who waits behind a statement.

use std::thread;
use std::time::Duration;

use serde_json::Value;
use waggle_testkit::client::{Client, Command};
use waggle_testkit::{Server, Version, wait_until};

use super::{Audit, PFS, TAP, session, start, statements, text};

/// For how long sessions wait behind a transaction, at the first try and at the next ones. The sources look
/// several times a second, where the host lets them, and nobody is told when: where one did not look
/// meanwhile, it is given more time.
const HELD: [Duration; 3] =
    [Duration::from_secs(2), Duration::from_secs(20), Duration::from_secs(120)];
/// Statements of one try that are listed.
const OF_A_TRY: usize = 3;

/// Sessions that wait for each other.
struct Queue {
    holder: Client,
    alter: Client,
    drop: Client,
    reader: Client,
}

impl Queue {
    fn begin(server: &Server) -> Queue {
        let [mut holder, alter, drop, reader] = std::array::from_fn(|_| session(server));
        holder.run("CREATE TABLE free (a INT) ENGINE=InnoDB").unwrap();
        Queue { holder, alter, drop, reader }
    }

    /// So long an ALTER waits for a transaction, a DROP behind it, and a reader behind both.
    fn pile_up(&mut self, held: Duration) {
        self.holder.run("CREATE TABLE locked (a INT) ENGINE=InnoDB").unwrap();
        self.holder.run("BEGIN").unwrap();
        self.holder.run("SELECT * FROM locked").unwrap();
        self.alter.send(Command::Query, b"ALTER TABLE locked ADD COLUMN b INT").unwrap();
        wait_for_state(&mut self.holder, 1);
        self.drop.send(Command::Query, b"DROP TABLE locked").unwrap();
        wait_for_state(&mut self.holder, 2);
        self.reader.send(Command::Query, b"SELECT a FROM test.locked").unwrap();
        wait_for_state(&mut self.holder, 3);
        thread::sleep(held);
        self.holder.run("COMMIT").unwrap();
        // The reader finds no table any more.
        for session in [&mut self.alter, &mut self.drop, &mut self.reader] {
            session.read_reply().unwrap();
        }
    }
}

#[test]
fn sessions_that_wait_behind_a_definition_are_named_and_those_before_it_are_not() {
    Version::each(|version| {
        let server = start(version);
        let mut queue = Queue::begin(&server);
        let mut sources =
            [TAP, PFS].map(|source| (source, Audit::tail(&server, source, &["--every", "200ms"])));
        let mut listed = 0;
        for held in HELD {
            queue.pile_up(held);
            listed += OF_A_TRY;
            sources.iter_mut().for_each(|(_, audit)| audit.wait_for_statements(listed));
            if sources.iter().all(|(_, audit)| is_everybody_named(&audit.lines())) {
                break;
            }
        }
        queue.alter.run("DROP TABLE free").unwrap();
        for (source, mut audit) in sources {
            audit.wait_for_statements(listed + 1);
            let lines = audit.end();
            let listed = statements(&lines);
            let [.., alter, drop, free] = listed[..] else { panic!("{version} {source}") };
            let kinds = [alter, drop, free].map(|line| text(line, "kind"));
            let expected = ["alter_table", "drop_table", "drop_table"];
            assert_eq!(kinds, expected, "{version} {source}: {listed:#?}");
            let [second, third] =
                [&queue.drop, &queue.reader].map(|client| u64::from(client.connection_id()));
            assert_eq!(waiting(alter), [second, third], "{version} {source}: {listed:#?}");
            assert_eq!(waiting(drop), [third], "{version} {source}: {listed:#?}");
            let reader = &drop["waiting"][0];
            assert_eq!(reader["state"], "Waiting for table metadata lock");
            assert_eq!(reader["text"], "SELECT a FROM test.locked", "{version} {source}");
            assert!(alter["duration_us"].as_f64().unwrap() > 1e6, "{version} {source}");
            // It may be too short to be seen.
            assert!(waiting(free).is_empty(), "{version} {source}: {free:#}");
        }
    });
}

/// The sessions that waited behind a statement; none where it was not seen.
fn waiting(line: &Value) -> Vec<u64> {
    let waiting = line["waiting"].as_array().into_iter().flatten();
    waiting.map(|one| one["connection_id"].as_u64().unwrap()).collect()
}

/// Whether both of the last try name all who waited behind them.
fn is_everybody_named(lines: &[Value]) -> bool {
    let listed = statements(lines);
    let [.., alter, drop] = listed[..] else { return false };
    waiting(alter).len() >= 2 && !waiting(drop).is_empty()
}

/// Waits until this many sessions wait for a metadata lock.
fn wait_for_state(client: &mut Client, wanted: usize) {
    let sql = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE \
               'Waiting for%metadata lock'";
    wait_until(format_args!("{wanted} waiting sessions"), || {
        let waiting = client.run(sql).unwrap()[0].text(0, 0).unwrap();
        waiting.parse::<usize>().unwrap() >= wanted
    });
}
