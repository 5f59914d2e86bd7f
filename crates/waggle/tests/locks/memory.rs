//! Without an account: who blocks, by the memory of the server. Performance Schema is off.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

use waggle_testkit::wait_until;

use super::*;

const TAKE_1: &str = "UPDATE shop.t SET n = n + 1 WHERE id = 1";
const TAKE_2: &str = "UPDATE shop.t SET n = n + 1 WHERE id = 2";
const READ: &str = "SELECT n FROM shop.t WHERE id = 4";

/// `waggle locks --watch` of one server.
pub(super) struct Watching {
    waggle: Child,
    looks: Receiver<Value>,
}

impl Watching {
    fn begin(scene: &Scene) -> Self {
        let pid = scene.server.pid().to_string();
        Self::with(scene, &["--pid", &pid])
    }

    pub(super) fn with(scene: &Scene, arguments: &[&str]) -> Self {
        let begin = Instant::now();
        loop {
            let this = Self::start(arguments);
            // From the first look on it remembers what runs. A busy machine may need more time for the
            // program of the server than waggle takes.
            if this.looks.recv_timeout(PATIENCE).is_ok() && this.is_attached() {
                return this;
            }
            assert!(begin.elapsed() < PATIENCE, "{}: no look came", scene.version());
        }
    }

    fn start(arguments: &[&str]) -> Self {
        let mut waggle = Command::new(env!("CARGO_BIN_EXE_waggle"));
        waggle.args(["locks", "--json", "--watch", "200ms"]).args(arguments);
        let mut waggle = waggle.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(waggle.stdout.take().unwrap()).lines();
        let (sender, looks) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let Ok(look) = serde_json::from_str(&line) else { return };
                if sender.send(look).is_err() {
                    return;
                }
            }
        });
        Self { waggle, looks }
    }

    /// Whether it hears of what sessions run: by a program in the kernel.
    fn is_attached(&self) -> bool {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.waggle.id())).unwrap();
        let mut targets = open.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
        targets.any(|target| target.to_string_lossy().contains("bpf_link"))
    }

    /// The first look that is so.
    pub(super) fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        let mut last = Value::Null;
        while begin.elapsed() < PATIENCE {
            let Ok(look) = self.looks.recv_timeout(PATIENCE) else { break };
            if is_so(&look) {
                return look;
            }
            last = look;
        }
        panic!("it did not come: {what}: {last:#}");
    }

    fn until_drawn(&self, expected: &str) -> Value {
        self.until(expected, |look| drawn(&look["blockers"]) == expected)
    }

    /// The same for what has just come about: in a soak it has to be shown soon.
    fn until_soon(&self, scene: &Scene, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        let look = self.until(what, is_so);
        scene.shown_after(&format!("by memory: {what}"), begin);
        look
    }

    fn until_drawn_soon(&self, scene: &Scene, expected: &str) -> Value {
        self.until_soon(scene, expected, |look| drawn(&look["blockers"]) == expected)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.waggle.kill();
        self.waggle.wait().unwrap();
    }
}

fn scene(version: Version) -> Scene {
    Scene::with(version, &["--performance-schema=OFF"])
}

fn rows(version: Version) {
    let scene = scene(version);
    let watching = Watching::begin(&scene);
    let root = scene.session_after(&["SELECT 1", "BEGIN", TAKE_1, READ]);
    let middle = scene.waiting(&["BEGIN", TAKE_2, TAKE_1]);
    let last = scene.waiting(&["BEGIN", TAKE_2]);
    let (a, b, c) = (root.connection_id(), middle.connection_id(), last.connection_id());
    let look = watching.until_drawn_soon(&scene, &format!("{a}({b}({c}))"));
    let root = &look["blockers"][0];
    let session = &root["session"];
    assert_eq!((&session["user"], &session["command"]), (&"root".into(), &"Sleep".into()));
    assert_eq!(session["statement"]["text"], "SELECT n FROM shop.t WHERE id = ?", "{look:#}");
    assert_eq!(session["first_write"], "UPDATE shop.t SET n = n + ? WHERE id = ?", "{look:#}");
    assert!(session["since_s"].is_number(), "{version}: {look:#}");
    assert_eq!(root["remedy"], format!("KILL {a}"), "{version}");
    for waiter in [&root["waiters"][0], &root["waiters"][0]["waiters"][0]] {
        let lock = &waiter["waits_for"];
        assert_eq!((&lock["kind"], &lock["object"]), (&"row".into(), &"shop.t".into()), "{look:#}");
        assert_eq!(waiter["source"], "memory");
        assert_eq!(
            waiter["session"]["statement"]["text"],
            "UPDATE shop.t SET n = n + ? WHERE id = ?"
        );
    }
    assert_documented(&look);

    // Who looks once has not seen what ran, and says so.
    let once = |arguments: &[&str]| {
        let mut waggle = Command::new(env!("CARGO_BIN_EXE_waggle"));
        waggle.args(["locks", "--pid", &scene.server.pid().to_string()]).args(arguments);
        waggle.output().unwrap()
    };
    let begin = Instant::now();
    let output = loop {
        let output = once(&[]);
        if output.status.code() != Some(4) || begin.elapsed() > PATIENCE {
            break output;
        }
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{version}: {text}");
    assert!(text.contains(&format!("└─ {b} root@")) && text.contains("[memory]"), "{text}");
    assert!(text.contains("last statement not known: it ended before waggle came"), "{text}");
}

fn metadata(version: Version) {
    let scene = scene(version);
    let watching = Watching::begin(&scene);
    let root = scene.session_after(&["BEGIN", READ]);
    let alter = scene.waiting(&["ALTER TABLE shop.t ADD COLUMN later INT"]);
    let (a, b) = (root.connection_id(), alter.connection_id());
    watching.until_drawn(&format!("{a}({b})"));
    let readers = [(); 3].map(|()| scene.waiting(&[READ]));
    let look = watching.until_soon(&scene, "three readers behind the ALTER", |look| {
        let below = &look["blockers"][0]["waiters"][0]["waiters"];
        below.as_array().is_some_and(|below| below.len() == 3)
    });
    let root = &look["blockers"][0];
    assert_eq!(root["connection_id"], a, "{version}: {look:#}");
    assert_eq!(root["session"]["statement"]["text"], "SELECT n FROM shop.t WHERE id = ?");
    let lock = &root["waiters"][0]["waits_for"];
    assert_eq!(
        (&lock["kind"], &lock["object"]),
        (&"metadata".into(), &"shop.t".into()),
        "{look:#}"
    );
    assert_eq!(lock["mode"], "EXCLUSIVE", "{version}: {look:#}");
    assert_documented(&look);
    drop(readers);
}

fn tables(version: Version) {
    let scene = scene(version);
    let watching = Watching::begin(&scene);
    let mut holder = scene.session_after(&["LOCK TABLES shop.t WRITE"]);
    let writer = scene.waiting(&[TAKE_1]);
    let (a, b) = (holder.connection_id(), writer.connection_id());
    let look = watching.until_drawn_soon(&scene, &format!("{a}({b})"));
    assert_eq!(look["blockers"][0]["session"]["statement"]["text"], "LOCK TABLES shop.t WRITE");
    assert_eq!(look["blockers"][0]["waiters"][0]["waits_for"]["object"], "shop.t", "{look:#}");
    holder.run("UNLOCK TABLES").unwrap();
    watching.until("nobody waits", |look| look["somebody_waits"] == false);

    let holder = scene.session_after(&["FLUSH TABLES WITH READ LOCK"]);
    let writer = scene.waiting(&[TAKE_2]);
    let (a, b) = (holder.connection_id(), writer.connection_id());
    let look = watching.until_drawn_soon(&scene, &format!("{a}({b})"));
    assert_eq!(look["blockers"][0]["session"]["statement"]["text"], "FLUSH TABLES WITH READ LOCK");
    let object = if version.is_mariadb() { "BACKUP" } else { "GLOBAL" };
    assert_eq!(look["blockers"][0]["waiters"][0]["waits_for"]["object"], object, "{look:#}");
}

/// Who holds the lock of a table of MyISAM is in no list that is read.
fn unknown(version: Version) {
    let scene = scene(version);
    let watching = Watching::begin(&scene);
    scene.session_after(&[
        "CREATE TABLE shop.m (id INT) ENGINE = MyISAM",
        "INSERT INTO shop.m VALUES (1), (2)",
    ]);
    let reader = scene.waiting(&["SELECT SLEEP(600) FROM shop.m"]);
    let mut root = scene.server.root().unwrap();
    let sleeps = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {} AND STATE = 'User sleep'",
        reader.connection_id()
    );
    wait_until("the reader", || root.run(&sleeps).unwrap()[0].text(0, 0).as_deref() == Some("1"));
    let writer = scene.waiting(&["UPDATE shop.m SET id = 3"]);
    let look = watching.until("an unknown holder", |look| {
        look["undetermined"][0]["waiter"]["connection_id"] == writer.connection_id()
    });
    assert_eq!(look["blockers"], json!([]), "{version}: {look:#}");
    assert_eq!(look["undetermined"][0]["waiter"]["waits_for"]["kind"], "table", "{look:#}");
    let why = look["undetermined"][0]["why"].as_str().unwrap();
    assert!(why.contains("waggle reads no holder of such a lock"), "{version}: {why}");
    root.run(format!("KILL {}", reader.connection_id())).unwrap();
}

#[test]
fn without_an_account_a_chain_of_row_waits_has_its_idle_root_and_what_that_ran() {
    on_each(&Version::ALL, rows);
}

#[test]
fn without_an_account_readers_stand_behind_an_alter_behind_an_idle_reader() {
    on_each(&Version::ALL, metadata);
}

#[test]
fn without_an_account_the_holders_of_locked_tables_and_of_a_global_read_lock_are_named() {
    on_each(&Version::ALL, tables);
}

#[test]
fn a_holder_that_memory_does_not_tell_is_unknown_with_the_reason() {
    on_each(&Version::ALL, unknown);
}
