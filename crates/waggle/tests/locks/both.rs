//! With an account, as the servers are installed: where SQL does not tell who blocks, the memory does.

use super::memory::Watching;
use super::*;

const TAKE_1: &str = "UPDATE shop.t SET n = n + 1 WHERE id = 1";
const TAKE_2: &str = "UPDATE shop.t SET n = n + 1 WHERE id = 2";
const READ: &str = "SELECT n FROM shop.u";

fn scene(version: Version) -> Scene {
    let scene = Scene::of(version);
    scene.session_after(&["CREATE TABLE shop.u (id INT PRIMARY KEY, n INT) ENGINE = InnoDB"]);
    scene
}

/// The participant with this id, wherever it stands.
fn find(nodes: &Value, id: u32) -> Option<&Value> {
    nodes.as_array()?.iter().find_map(|node| match node["connection_id"] == id {
        true => Some(node),
        false => find(&node["waiters"], id),
    })
}

/// A chain of three for rows, and one of three for a table. Who tells of each differs.
fn chains(version: Version) {
    let scene = scene(version);
    let rows = [
        scene.session_after(&["BEGIN", TAKE_1]),
        scene.waiting(&["BEGIN", TAKE_2, TAKE_1]),
        scene.waiting(&["BEGIN", TAKE_2]),
    ];
    let reader = scene.session_after(&["BEGIN", READ]);
    let alter = scene.waiting(&["ALTER TABLE shop.u ADD COLUMN later INT"]);
    let watching = Watching::with(
        &scene,
        &["--defaults-file", scene.server.defaults_file().to_str().unwrap()],
    );
    let id = alter.connection_id();
    watching.until("the ALTER", |look| find(&look["blockers"], id).is_some());
    let later = scene.waiting(&[READ]);
    let tables = [reader, alter, later];
    let drawn_as = |all: &[Client; 3]| {
        let [a, b, c] = [&all[0], &all[1], &all[2]].map(Client::connection_id);
        format!("{a}({b}({c}))")
    };
    let expected = [drawn_as(&rows), drawn_as(&tables)].join(" ");
    let look = watching.until(&expected, |look| drawn(&look["blockers"]) == expected);
    assert_eq!(look["undetermined"], json!([]), "{version}: {look:#}");
    let source = |client: &Client| {
        find(&look["blockers"], client.connection_id()).unwrap()["source"].clone()
    };
    let (of_rows, of_tables) = match version {
        Version::Mysql57 | Version::Mariadb1011 | Version::Mariadb114 => ("sql", "memory"),
        Version::Mysql80 => ("memory", "sql"),
        _ => ("sql", "sql"),
    };
    for (all, expected) in [(&rows, of_rows), (&tables, of_tables)] {
        assert_eq!(
            (source(&all[1]), source(&all[2])),
            (expected.into(), expected.into()),
            "{look:#}"
        );
    }
    // What only SQL knows, and what only who was there remembers.
    let root = find(&look["blockers"], rows[0].connection_id()).unwrap();
    assert_eq!(root["session"]["transaction"]["rows_modified"], 1, "{version}: {look:#}");
    let locks = [&rows[1], &tables[1]]
        .map(|one| &find(&look["blockers"], one.connection_id()).unwrap()["waits_for"]["object"]);
    assert_eq!(locks, ["shop.t", "shop.u"], "{version}: {look:#}");
    assert_documented(&look);
}

/// On MariaDB as installed nothing but the tap knows what an idle session ran last: from the begin of the watch on.
fn remembered(version: Version) {
    let scene = scene(version);
    let watching = Watching::with(
        &scene,
        &["--defaults-file", scene.server.defaults_file().to_str().unwrap()],
    );
    let write = "INSERT INTO shop.u VALUES (1, 1)";
    let _reader = scene.session_after(&["BEGIN", write, "SELECT n + 1 FROM shop.u"]);
    let _alter = scene.waiting(&["ALTER TABLE shop.u ADD COLUMN later INT"]);
    let look = watching.until("the last statement", |look| {
        look["blockers"][0]["session"]["statement"]["text"] == "SELECT n + ? FROM shop.u"
    });
    let session = &look["blockers"][0]["session"];
    assert_eq!(session["first_write"], "INSERT INTO shop.u VALUES (?, ?)", "{look:#}");
    // One look alone does not wait for the program of the server to be read, for which a busy machine needs a while.
    wait_showing("the lock as text", || {
        let text = Command::new(env!("CARGO_BIN_EXE_waggle"))
            .args(["locks", "--defaults-file"])
            .arg(scene.server.defaults_file())
            .output()
            .unwrap();
        let text = String::from_utf8(text.stdout).unwrap();
        if text.contains("EXCLUSIVE on shop.u [memory]") { Ok(()) } else { Err(text) }
    });
}

#[test]
fn chains_of_rows_and_of_tables_are_whole_whoever_tells_of_each() {
    on_each(&Version::ALL, chains);
}

#[test]
fn the_last_statement_of_an_idle_holder_is_remembered_with_an_account_too() {
    on_each(&[Version::Mariadb1011, Version::Mariadb114], remembered);
}
