//! What a running session waits for, since when, and who holds it, while it waits.

use serde_json::{Value, json};
use waggle_testkit::client::Command;
use waggle_testkit::{Client, Server, Version};

use crate::load::session;
use crate::watching::Waggle;

/// More than a server waits at once for a metadata lock: the pieces of a wait are told as one.
const PIECE_US: u64 = 1_500_000;

/// Whether what runs is of a digest of its interval.
fn has_digest(told: &Value, line: &Value) -> bool {
    let mut digests = line["digests"].as_array().into_iter().flatten();
    digests.any(|one| one["digest"] == told["digest"] && one["schema"] == told["schema"])
}

/// A session at its work, and what is to be told of it.
struct Made {
    client: Client,
    waits_for: &'static [&'static str],
    held_by: Option<u32>,
    object: Option<&'static str>,
    /// What the holder runs, or ran last.
    held_since: Option<&'static str>,
}

impl Made {
    fn sends(
        server: &Server,
        sql: &str,
        waits_for: &'static [&'static str],
        held_by: Option<u32>,
        object: Option<&'static str>,
    ) -> Made {
        let mut client = session(server);
        client.run("USE test").unwrap();
        client.send(Command::Query, sql.as_bytes()).unwrap();
        Made { client, waits_for, held_by, object, held_since: None }
    }

    fn id(&self) -> u32 {
        self.client.connection_id()
    }

    /// What is wrong with what a line tells of it.
    fn wrong(&self, line: &Value) -> Option<String> {
        let sessions = line["sessions"].as_array()?;
        let Some(told) = sessions.iter().find(|one| one["connection_id"] == self.id()) else {
            return Some(format!("{} is not among the sessions", self.id()));
        };
        let is_class = self.waits_for.iter().any(|class| told["waits_for"] == *class);
        let held_by = self.held_by.map(|id| json!([id]));
        let is_told = is_class
            && told["waits_us"].as_u64().is_some_and(|us| self.held_by.is_none() || us > PIECE_US)
            && has_digest(told, line)
            && told["blocked_by"] == held_by.unwrap_or(Value::Null)
            && told["blocked_by_unknown"].is_null()
            && (self.object.is_none() || told["waits_for_object"] == json!(self.object))
            && (self.held_since.is_none() || self.is_holder(&told["blockers"][0]));
        (!is_told).then(|| format!("{:?} is wanted of {told:#}", self.waits_for))
    }

    fn is_holder(&self, told: &Value) -> bool {
        told["connection_id"] == json!(self.held_by)
            && told["user"] == "root"
            && told["idle"].is_boolean()
            && told["since"].is_string()
            && told["statement"] == json!(self.held_since)
    }

    /// Whether a line tells of its wait after its end.
    fn has_waited(&self, line: &Value) -> bool {
        let mut waits = line["lock_waits"].as_array().unwrap().iter();
        waits.any(|wait| {
            wait["connection_id"] == self.id() && wait["blocked_by"] == json!([self.held_by])
        })
    }
}

/// Ends all of them. Who is killed gets no reply on some servers, and its wait is told all the same.
fn kill_and_be_told(waggle: &mut Waggle, killer: &mut Client, all: &[Made], version: Version) {
    for made in all {
        killer.run(format!("KILL {}", made.id())).unwrap();
    }
    let held = all.iter().filter(|made| made.held_since.is_some());
    let held: Vec<&Made> = held.collect();
    waggle.wait_for("the waits of those who were killed", |waggle| {
        let lines = waggle.lines();
        let told = |made: &&&Made| lines.iter().any(|line| made.has_waited(line));
        let missing = held.iter().filter(|made| !told(made)).map(|made| made.id());
        let missing: Vec<u32> = missing.collect();
        if !missing.is_empty() {
            let told: Vec<&Value> =
                lines.iter().flat_map(|line| line["lock_waits"].as_array().unwrap()).collect();
            println!("{version}: no wait of {missing:?} in {told:#?}");
        }
        missing.is_empty()
    });
}

#[test]
fn a_running_session_tells_what_it_waits_for_and_who_holds_it() {
    Version::each(|version| {
        let server = Server::start(version).unwrap();
        let mut reader = session(&server);
        for sql in [
            "CREATE TABLE test.t (id INT PRIMARY KEY, v INT) ENGINE = InnoDB",
            "CREATE TABLE test.u (id INT PRIMARY KEY, v INT) ENGINE = InnoDB",
            "INSERT INTO test.t VALUES (1, 0)",
            "INSERT INTO test.u VALUES (1, 0)",
            "BEGIN",
            "SELECT * FROM test.t",
        ] {
            reader.run(sql).unwrap();
        }
        let mut writer = session(&server);
        writer.run("BEGIN").unwrap();
        writer.run("UPDATE test.u SET v = 1 WHERE id = 1").unwrap();
        let (reads, writes) = (Some(reader.connection_id()), Some(writer.connection_id()));
        let alter = "ALTER TABLE t ADD COLUMN w INT";
        let alter = Made::sends(&server, alter, &["metadata_lock"], reads, Some("test.t"));
        // Some of them wait before waggle comes.
        let update = "UPDATE u SET v = 2 WHERE id = 1";
        let mut all = vec![Made::sends(&server, update, &["row_lock"], writes, None)];
        let mut waggle = Waggle::watch(&server, &["--interval", "300ms"]);
        // From now on it is remembered what they run.
        reader.run("SELECT v FROM test.t WHERE id = 1").unwrap();
        writer.run("SELECT v FROM test.u WHERE id = 1").unwrap();
        all.push(Made::sends(&server, update, &["row_lock"], writes, None));
        let held = Some(alter.id());
        let late =
            Made::sends(&server, "SELECT * FROM t", &["metadata_lock"], held, Some("test.t"));
        all.extend([alter, late]);
        let busy = "DO BENCHMARK(4000000000, SHA2('x', 256))";
        all.push(Made::sends(&server, busy, &["cpu", "run_queue"], None, None));
        all.push(Made::sends(&server, "DO SLEEP(1000)", &["sleep"], None, None));
        let held_since = [
            Some("SELECT v FROM test.u WHERE id = ?"),
            None,
            Some("SELECT v FROM test.t WHERE id = ?"),
            Some("ALTER TABLE t ADD COLUMN w INT"),
        ];
        for (made, held_since) in all.iter_mut().zip(held_since) {
            made.held_since = held_since;
        }
        let mut wrong = Vec::new();
        waggle.wait_for("the truth of all sessions", |waggle| {
            let line = waggle.lines().pop().unwrap();
            wrong = all.iter().filter_map(|made| made.wrong(&line)).collect();
            if !wrong.is_empty() {
                println!("{version}: {}", wrong.join("\n"));
            }
            wrong.is_empty()
        });
        let lines = waggle.lines();
        kill_and_be_told(&mut waggle, &mut reader, &all, version);
        waggle.interrupt();
        let told = |line: &Value| line["time_us"].is_object() || line["time_us_absent"].is_string();
        assert!(lines.iter().all(told), "{version}: {lines:#?}");
    });
}
