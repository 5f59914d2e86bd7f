//! Row locks: a chain, a queue, a deadlock.

use super::*;

const TAKE_1: &str = "UPDATE shop.t SET n = n + 1 WHERE id = 1";
const TAKE_2: &str = "UPDATE shop.t SET n = n + 1 WHERE id = 2";

fn chain(version: Version) {
    let scene = Scene::of(version);
    let (quiet, code) = scene.look(&[]);
    assert_eq!((&quiet["somebody_waits"], code), (&Value::Bool(false), Some(0)), "{quiet:#}");
    assert_eq!(quiet["statements_sent"], 3, "the first look, and nothing waits: {quiet:#}");

    let root = scene.session_after(&["USE shop", "BEGIN", TAKE_1]);
    let middle = scene.waiting(&["BEGIN", TAKE_2, TAKE_1]);
    if version == Version::Mysql80 {
        return a_chain_where_data_locks_are_not_safe(&scene, &root, &middle);
    }
    let last = scene.waiting(&["BEGIN", TAKE_2]);
    let (a, b, c) = (root.connection_id(), middle.connection_id(), last.connection_id());
    let look = scene.look_until_drawn(&format!("{a}({b}({c}))"));
    assert_eq!(look["row_lock_waiters"], 2);
    let blocker = &look["blockers"][0];
    let session = &blocker["session"];
    assert_eq!((&session["user"], &session["db"]), (&"root".into(), &"shop".into()), "{look:#}");
    assert_eq!(session["command"], "Sleep");
    assert!(session["since_s"].is_number(), "how long it is idle: {look:#}");
    assert_eq!(session["transaction"]["rows_modified"], 1);
    assert_eq!(blocker["remedy"], format!("KILL {a}"));
    match version.is_mariadb() {
        false => {
            assert_eq!(session["statement"]["text"], "UPDATE shop.t SET n = n + ? WHERE id = ?")
        }
        true => assert_eq!(
            session["statement"]["why_unknown"],
            "Performance Schema is off; start the server with performance_schema=ON"
        ),
    }
    let waiter = &blocker["waiters"][0];
    let lock = &waiter["waits_for"];
    assert_eq!((&lock["kind"], &lock["object"]), (&"row".into(), &"shop.t".into()), "{look:#}");
    assert_eq!(lock["index"], "PRIMARY");
    assert_eq!(waiter["waiters"][0]["waits_for"]["object"], "shop.t", "{look:#}");
    assert!(lock["mode"].as_str().unwrap().starts_with('X') && lock["record"].is_string());
    assert!(lock["key"].is_null() && waiter["waited_s"].is_number(), "{look:#}");
    assert_eq!(waiter["session"]["statement"]["is_running"], true);
    assert_documented(&look);
    let (open, code) = scene.look(&["--no-redact"]);
    assert_eq!(open["blockers"][0]["waiters"][0]["waits_for"]["key"], "1");
    assert_eq!(code, Some(1));
    let text = scene.text(&[]);
    assert!(
        text.contains(&format!("KILL {a}")) && text.contains(&format!("└─ {b} root@")),
        "{text}"
    );
}

/// The server is not asked who blocks: the blocker is named where only one can be it.
fn a_chain_where_data_locks_are_not_safe(scene: &Scene, root: &Client, middle: &Client) {
    let (a, b) = (root.connection_id(), middle.connection_id());
    let look = scene.look_until_drawn(&format!("{a}({b})"));
    assert_eq!(look["row_lock_waiters"], 1);
    assert_eq!(look["blockers"][0]["waiters"][0]["by_elimination"], true);
    let last = scene.waiting(&["BEGIN", TAKE_2]);
    let c = last.connection_id();
    let look = scene.look_until("an undetermined waiter", |look| {
        (look["undetermined"][0]["waiter"]["connection_id"] == c).then(|| look.clone())
    });
    let unknown = &look["undetermined"][0];
    assert!(unknown["why"].as_str().unwrap().contains("8.0.40"), "{look:#}");
    let mut candidates: Vec<u64> =
        unknown["candidates"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
    candidates.sort_unstable();
    assert_eq!(candidates, [u64::from(a), u64::from(b)]);
    assert!(scene.text(&[]).contains("blocked by: unknown"), "{}", scene.text(&[]));
}

/// MariaDB gives a transaction that writes nothing the id 0. One of them holds the lock; another is older, and holds
/// none.
fn behind_a_reader(version: Version) {
    let scene = Scene::of(version);
    let older = scene.session_after(&["BEGIN", "SELECT n FROM shop.t WHERE id = 2"]);
    let holder =
        scene.session_after(&["BEGIN", "SELECT n FROM shop.t WHERE id = 1 LOCK IN SHARE MODE"]);
    let waiter = scene.waiting(&[TAKE_1]);
    let (a, b) = (holder.connection_id(), waiter.connection_id());
    scene.look_until_drawn(&format!("{a}({b})"));
    drop(older);
}

/// Those who wait have written nothing either.
fn readers_behind_a_reader(version: Version) {
    let scene = Scene::of(version);
    let lock = "SELECT n FROM shop.t WHERE id = 1 FOR UPDATE";
    let holder = scene.session_after(&["BEGIN", lock]);
    let a = holder.connection_id();
    let first = scene.waiting(&["BEGIN", lock]);
    let b = first.connection_id();
    scene.look_until_drawn(&format!("{a}({b})"));
    let second = scene.waiting(&["BEGIN", lock]);
    let c = second.connection_id();
    scene.look_until_drawn(&format!("{a}({b} {c})"));
}

#[test]
fn a_reader_that_blocks_is_told_from_one_that_does_not() {
    on_each(&Version::ALL, behind_a_reader);
    on_each(&Version::ALL, readers_behind_a_reader);
}

fn queue(version: Version) {
    let scene = Scene::of(version);
    let root = scene.session_after(&["BEGIN", TAKE_1]);
    let waiters: Vec<Client> = (0..50).map(|_| scene.waiting(&[TAKE_1])).collect();
    let a = u64::from(root.connection_id());
    let look = scene.look_until("fifty waiters below one", |look| {
        let only = &look["blockers"][0];
        let is_flat = |node: &Value| node["waiters"].as_array().unwrap().is_empty();
        let below = only["waiters"].as_array()?;
        (only["connection_id"] == a && below.len() == 50 && below.iter().all(is_flat))
            .then(|| look.clone())
    });
    assert_eq!(look["blockers"].as_array().unwrap().len(), 1);
    assert_eq!(look["undetermined"].as_array().unwrap().len(), 0);
    let text = scene.text(&["--limit", "3"]);
    assert!(text.contains("47 more: ") && text.contains("50 wait"), "{text}");
    drop(waiters);
}

fn deadlock(version: Version) {
    let scene = Scene::of(version);
    let (before, _) = scene.look(&["--deadlock"]);
    assert_eq!(before["deadlock"], Value::Null);
    assert!(before.as_object().unwrap().contains_key("deadlock"));
    assert!(scene.text(&["--deadlock"]).contains("no deadlock since"));

    let mut one = scene.session_after(&["BEGIN", TAKE_1]);
    let mut two = scene.session_after(&["BEGIN", TAKE_2]);
    one.send(Packet::Query, TAKE_2.as_bytes()).unwrap();
    scene.look_until("a waiter", |look| (look["row_lock_waits"] == 1).then_some(()));
    let ended = two.query(TAKE_1).unwrap();
    let other = one.read_reply().unwrap();
    let is_victim = |results: &[waggle_testkit::client::ResultSet]| {
        results.iter().any(|result| result.error.as_ref().is_some_and(|error| error.0 == 1213))
    };
    assert!(is_victim(&ended) != is_victim(&other), "{ended:?} {other:?}");
    let victim = if is_victim(&ended) { two.connection_id() } else { one.connection_id() };

    let (look, _) = scene.look(&["--deadlock"]);
    let parties = look["deadlock"]["transactions"].as_array().unwrap();
    let mut ids: Vec<_> = parties.iter().map(|party| party["connection_id"].as_u64()).collect();
    // Which comes first depends on the version.
    ids.sort_unstable();
    assert_eq!(ids, [Some(one.connection_id().into()), Some(two.connection_id().into())]);
    for party in parties {
        assert_eq!(party["statement"], "UPDATE shop.t SET n = n + ? WHERE id = ?", "{look:#}");
        let lock = &party["waits_for"][0];
        assert_eq!((&lock["object"], &lock["index"]), (&"shop.t".into(), &"PRIMARY".into()));
        // MariaDB 11.4.5 names the other one; what the server says is what is shown.
        if version != Version::Mariadb114 {
            assert_eq!(party["rolled_back"], party["connection_id"] == victim, "{look:#}");
        }
    }
    assert_eq!(parties.iter().filter(|party| party["rolled_back"] == true).count(), 1, "{look:#}");
    assert_documented(&look);
    let text = scene.text(&["--deadlock"]);
    assert!(text.contains("rolled back") && !text.contains("id = 1"), "{text}");
}

#[test]
fn a_chain_of_three_is_drawn_from_its_idle_root() {
    on_each(&Version::ALL, chain);
}

#[test]
fn fifty_waiters_for_one_row_are_a_list() {
    on_each(&Version::ALL, queue);
}

#[test]
fn the_last_deadlock_is_told_with_its_victim() {
    on_each(&Version::ALL, deadlock);
}
