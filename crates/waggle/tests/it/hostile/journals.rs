//! Journals that waggle did not write, and directories that are not ours.

use std::fs::{self, File};
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use tempfile::TempDir;
use waggle_instrumentation::server_start::ServerStart;
use waggle_mysql::{Connection, Options};
use waggle_testkit::{Client, Server, Version};

use super::{NOBODY, assert_told, open_to};
use crate::load;
use crate::watching::{Ended, Waggle};

/// A server that writes down every statement, and a place for journals.
struct Scene {
    server: Server,
    state: TempDir,
}

impl Scene {
    fn new() -> Scene {
        let server = Server::builder(Version::Mysql80).arg("--general-log=1").start().unwrap();
        let state = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::create_dir(state.path().join("journal")).unwrap();
        open_to(&state.path().join("journal"), 0o700);
        Scene { server, state }
    }

    fn journal(&self) -> PathBuf {
        self.state.path().join("journal/20261128T000000.000000000-7.jsonl")
    }

    /// A first line that names this connection of this server.
    fn header(&self, connection: u64) -> Value {
        let options = Options {
            user: Some("root".into()),
            socket: Some(self.server.socket()),
            ..Options::default()
        };
        let start = ServerStart::of(&mut Connection::open(&options).unwrap()).unwrap();
        json!({ "begun": {
            "life": start, "command": "apply waits", "account": "root@localhost", "user": 0, "pid": 7,
            "connection": connection, "at": "2026-11-28T00:00:00Z",
        } })
    }

    fn write(&self, lines: &[Value]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(self.journal(), text).unwrap();
    }

    fn run(&self, words: &[&str]) -> Ended {
        let (state, file) = (self.state.path(), self.server.defaults_file());
        let state = format!("WAGGLE_STATE_DIR={}", state.display());
        let account = ["--defaults-file", file.to_str().unwrap()];
        Waggle::through(&["env", &state], &[&["pfs"], words, &account].concat()).end()
    }

    /// What the server was told.
    fn told(&self) -> String {
        let logs = fs::read_dir(self.server.datadir()).unwrap().map(|entry| entry.unwrap().path());
        let logs = logs.filter(|path| path.extension().is_some_and(|it| it == "log"));
        logs.map(|path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()).collect()
    }

    /// That nobody has told the server to change anything.
    fn assert_unchanged(&self, about: &str) {
        let told = self.told();
        assert!(told.contains("performance_schema.threads"), "it is written down");
        for word in [
            "UPDATE ",
            "INSERT INTO performance_schema",
            "DELETE ",
            "KILL",
            "GLOBAL inno",
            "TRUNCATE",
        ] {
            assert!(!told.contains(word), "{about}: {word}");
        }
    }
}

fn consumer(key: &[&str], before: &[&str], after: &[&str]) -> Value {
    json!({ "change": { "table": "consumers", "key": key, "before": before, "after": after } })
}

#[test]
fn a_journal_that_waggle_cannot_have_written_is_refused_by_name_and_not_done() {
    let scene = Scene::new();
    let good = consumer(&["events_stages_current"], &["YES"], &["NO"]);
    let thread = |key: &str| json!({ "change": { "table": "threads", "key": [key], "before": ["NO", "NO"], "after": ["YES", "YES"] } });
    let undone =
        json!({ "undone": { "by": "later", "at": "2026-11-28T00:00:00Z", "left_alone": [] } });
    let long = "x".repeat(1 << 20);
    let forged = [
        ("SQL in the place of a number", thread("1 OR SLEEP(9)")),
        ("a number that is none of a thread", thread("+1")),
        (
            "a table of accounts",
            json!({ "change": {
            "table": "user", "key": ["root"], "before": ["a"], "after": ["b"] } }),
        ),
        ("a statement", json!({ "statement": "DROP DATABASE test" })),
        (
            "more than a change has",
            json!({ "change": { "table": "consumers", "key": ["x"],
            "before": ["NO"], "after": ["YES"], "sql": "DROP DATABASE test" } }),
        ),
        ("a setting that is none", consumer(&["x"], &["NO', x = '"], &["YES"])),
        ("two names", consumer(&["x", "y"], &["NO"], &["YES"])),
        ("no name", consumer(&[""], &["NO"], &["YES"])),
        ("two settings", consumer(&["x"], &["NO", "NO"], &["YES", "YES"])),
        ("a long name", consumer(&[&long], &["NO"], &["YES"])),
        ("a name with an escape sequence", consumer(&["\u{1b}[2J"], &["NO"], &["YES"])),
        (
            "a consumer that comes",
            json!({ "change": { "table": "consumers", "key": ["x"],
            "before": null, "after": ["YES"] } }),
        ),
        ("a second header", scene.header(1)),
        ("a counter that is none", json!({ "reset": { "\u{7}": 1 } })),
        ("no object", json!(7)),
    ];
    let name = scene.journal().display().to_string();
    for (about, line) in forged {
        // What comes before it is not done, either.
        scene.write(&[scene.header(1), good.clone(), line]);
        let ended = scene.run(&["rollback"]);
        assert_told(&ended, about, 4, &[&name, "line 3 ", "nothing of it was undone"]);
        assert!(ended.err.len() < 1000 && !ended.err.contains("DROP"), "{about}: {}", ended.err);
    }
    scene.write(&[scene.header(1), undone, good.clone()]);
    assert_told(&scene.run(&["rollback"]), "after its end", 4, &[&name, "line 3 "]);
    scene.write(std::slice::from_ref(&good));
    assert_told(&scene.run(&["rollback"]), "no header", 4, &[&name, "line 1 "]);
    fs::write(scene.journal(), format!("{}\n", "[".repeat(1 << 20))).unwrap();
    assert_told(&scene.run(&["rollback"]), "deep", 4, &[&name, "line 1 "]);
    File::create(scene.journal()).unwrap().set_len(300 << 20).unwrap();
    assert_told(&scene.run(&["rollback"]), "huge", 4, &[&name, "longer"]);
    assert_told(&scene.run(&["status", "--interval", "10ms"]), "status", 0, &[&name, "longer"]);
    scene.assert_unchanged("all");
}

/// The number of a session's connection, which is idle from here on.
fn victim(server: &Server) -> (Client, u64) {
    let mut session = load::session(server);
    session.run("SELECT 1").unwrap();
    let id = u64::from(session.connection_id());
    (session, id)
}

#[test]
fn a_connection_that_a_journal_names_is_ended_only_if_it_shows_that_it_is_waggles() {
    let scene = Scene::new();
    let change = consumer(&["events_stages_current"], &["NO"], &["YES"]);
    let (mut session, id) = victim(&scene.server);
    scene.write(&[scene.header(id), change.clone()]);
    let name = scene.journal().display().to_string();
    let words = [&name[..], "nothing was undone", &format!("connection {id}")];
    assert_told(&scene.run(&["rollback"]), "a stranger", 4, &words);
    session.run("SELECT 1").unwrap();
    scene.assert_unchanged("a stranger");
    // The one that began the journal has its lock, and is stuck.
    let at = "2026-11-28T00:00:00Z".parse::<jiff::Timestamp>().unwrap().as_nanosecond();
    session.run(format!("SELECT GET_LOCK('waggle-{id}-7-{at}', 0)")).unwrap();
    assert_told(&scene.run(&["rollback"]), "waggle's own", 0, &["is undone"]);
    assert!(session.run("SELECT 1").is_err(), "it was ended");
    assert!(scene.told().contains(&format!("KILL {id}")));
}

#[test]
fn a_place_for_journals_that_others_can_write_is_refused_by_name() {
    let scene = Scene::new();
    let (journal, directory) = (scene.journal(), scene.state.path().join("journal"));
    let change = consumer(&["events_stages_current"], &["NO"], &["YES"]);
    let write = || scene.write(&[scene.header(1), change.clone()]);
    let refused = |about: &str, place: &Path, word: &str| {
        let place = place.display().to_string();
        assert_told(&scene.run(&["rollback"]), about, 4, &[&place, word]);
        let status = scene.run(&["status", "--interval", "10ms"]);
        assert_told(&status, about, 0, &[&place, word]);
        let apply = scene.run(&["apply", "waits", "--for", "10ms"]);
        assert_told(&apply, about, 4, &[&place, word]);
        scene.assert_unchanged(about);
    };
    write();
    chown(&journal, Some(NOBODY), None).unwrap();
    refused("a file of nobody's", &journal, "belongs to uid 65534");
    chown(&journal, Some(0), None).unwrap();
    open_to(&journal, 0o620);
    refused("a file that a group writes", &journal, "others than its owner may write it");
    open_to(&journal, 0o600);
    let elsewhere = scene.state.path().join("elsewhere");
    fs::rename(&journal, &elsewhere).unwrap();
    symlink(&elsewhere, &journal).unwrap();
    refused("a link", &journal, "symbolic link");
    fs::remove_file(&journal).unwrap();
    fs::hard_link(&elsewhere, &journal).unwrap();
    refused("a hard link", &journal, "hard link");
    fs::remove_file(&journal).unwrap();
    mknodat(CWD, &journal, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    refused("a FIFO", &journal, "no regular file");
    fs::remove_file(&journal).unwrap();
    chown(&directory, Some(NOBODY), None).unwrap();
    refused("a directory of nobody's", &directory, "belongs to uid 65534");
    chown(&directory, Some(0), None).unwrap();
    open_to(&directory, 0o770);
    refused("a directory that a group writes", &directory, "others than its owner may write it");
    open_to(&directory, 0o700);
    chown(scene.state.path(), Some(NOBODY), None).unwrap();
    refused("a directory in one of nobody's", &directory, "above it belongs to others");
    chown(scene.state.path(), Some(0), None).unwrap();
    let real = scene.state.path().join("real");
    fs::rename(&directory, &real).unwrap();
    symlink(&real, &directory).unwrap();
    refused("a link to a directory", &directory, "symbolic link");
}
