//! What is advised where KILL does harm or nothing.

use waggle_testkit::Account;

use super::memory::Watching;
use super::*;

/// `ER_PARSE_ERROR`
const SYNTAX: u16 = 1064;

/// Looks until a session of this kind blocks the waiter.
fn until_blocked_by(scene: &Scene, kind: &str, waiter: &Client) -> Value {
    let look = scene.look_until_soon(kind, |look| {
        let blocker = &look["blockers"][0];
        let is_it = blocker["session"]["kind"] == kind
            && blocker["waiters"][0]["connection_id"] == waiter.connection_id();
        is_it.then(|| look.clone())
    });
    assert_documented(&look);
    look["blockers"][0].clone()
}

/// The applier of a replica sleeps in a statement that has locked a row.
fn applier(version: Version) {
    let source = Server::builder(version).binlog(true).arg("--binlog-format=STATEMENT");
    let source = source.lease().unwrap();
    let mut scene = Scene::with(version, &["--server-id=2"]);
    let mut on_source = source.root().unwrap();
    let slow = format!("{WRITE} AND IF(@@port = {}, SLEEP(120), 0) = 0", scene.server.port());
    for sql in [
        "SET sql_log_bin = 0",
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY, n INT) ENGINE = InnoDB",
        "INSERT INTO shop.t VALUES (1, 0)",
        "SET sql_log_bin = 1",
        &slow,
    ] {
        on_source.run(sql).unwrap();
    }
    let [change, from, start] = match version {
        Version::Mysql9 => ["CHANGE REPLICATION SOURCE TO", "SOURCE", "START REPLICA"],
        _ => ["CHANGE MASTER TO", "MASTER", "START SLAVE"],
    };
    let (port, user) = (source.port(), Account::APP.user);
    // MariaDB 11.4 else checks the certificate.
    let tls = if version.is_mariadb() { ", MASTER_SSL_VERIFY_SERVER_CERT = 0" } else { "" };
    let change = format!(
        "{change} {from}_HOST = '127.0.0.1', {from}_PORT = {port}, {from}_USER = '{user}'{tls}"
    );
    scene.session_after(&[&change, start]);
    scene.look_until("the applier's statement", |_| {
        let sql = "SELECT id FROM information_schema.processlist WHERE state = 'User sleep'";
        (!scene.session().run(sql).unwrap()[0].rows.is_empty()).then_some(())
    });
    let waiter = scene.waiting(&[WRITE]);
    let blocker = until_blocked_by(&scene, "applier", &waiter);
    let stop = match version {
        Version::Mysql57 | Version::Mysql80 => "STOP SLAVE SQL_THREAD FOR CHANNEL ''",
        Version::Mysql9 => "STOP REPLICA SQL_THREAD FOR CHANNEL ''",
        // Without Performance Schema it does not say for which connection an applier works.
        _ => "STOP ALL REPLICAS SQL_THREAD",
    };
    assert_eq!(blocker["remedy"], stop, "{version}: {blocker:#}");
    // The server takes it: one without replication has nothing to stop.
    let taken = on_source.query(stop).unwrap().remove(0);
    assert!(taken.error.is_none_or(|(code, _)| code != SYNTAX), "{version}: {stop}");
    let text = scene.text(&[]);
    let kill = format!("KILL {}", blocker["connection_id"]);
    assert!(text.contains("applier of replication") && !text.contains(&kill), "{text}");
    // Who reads its memory may not know the applier. Then nobody is named, and nobody is to be killed.
    let pid = scene.server.pid().to_string();
    let watching = Watching::with(&scene, &["--pid", &pid]);
    let look = watching.until("the waiter in memory", |look| look["somebody_waits"] == true);
    let named = &look["blockers"][0];
    let no_kill = |remedy: &Value| remedy.is_null() || remedy == stop;
    assert!(no_kill(&named["remedy"]), "{version}: {look:#}");
    assert!(
        named.is_null() || named["connection_id"] == blocker["connection_id"],
        "{version}: {look:#}"
    );
    drop(watching);
    // A replica that shuts down waits for the statement.
    scene.server.kill9().unwrap();
}

fn event(version: Version) {
    let scene = Scene::with(version, &["--event-scheduler=ON"]);
    let event = format!("CREATE EVENT shop.e ON SCHEDULE AT NOW() DO {WRITE} AND SLEEP(120) = 0");
    scene.session_after(&[&event]);
    scene.look_until("the event", |_| {
        let sql = "SELECT id FROM information_schema.processlist WHERE state = 'User sleep'";
        (!scene.session().run(sql).unwrap()[0].rows.is_empty()).then_some(())
    });
    let waiter = scene.waiting(&[WRITE]);
    let blocker = until_blocked_by(&scene, "event", &waiter);
    let kill = format!("KILL {}", blocker["connection_id"]);
    assert_eq!(blocker["remedy"], kill, "{version}: {blocker:#}");
    assert!(blocker["remedy_note"].as_str().unwrap().contains("event"), "{blocker:#}");
    scene.session_after(&[&kill]);
}

/// A session is killed that has changed many rows.
fn rolling_back(version: Version) {
    let scene = Scene::of(version);
    let killed = scene.with_many_changes();
    let waiter = scene.waiting(&[WRITE]);
    let id = killed.connection_id();
    scene.look_until_drawn(&format!("{id}({})", waiter.connection_id()));
    scene.session_after(&[&format!("KILL {id}")]);
    let look = scene.look_until_soon("a rollback", |look| {
        let transaction = &look["blockers"][0]["session"]["transaction"];
        (transaction["rolling_back"] == true).then(|| look.clone())
    });
    let blocker = &look["blockers"][0];
    assert_eq!(blocker["connection_id"], id, "{look:#}");
    assert_eq!(blocker["remedy"], Value::Null, "{look:#}");
    assert_ne!(blocker["session"]["killed"], false, "{version}: {look:#}");
    let left = &blocker["session"]["transaction"]["rows_modified"];
    let note = blocker["remedy_note"].as_str().unwrap();
    assert!(note.contains(&format!("{left} changes are left")), "{version}: {note}");
    assert!(left.as_u64().unwrap() < 131_073, "{version}: {look:#}");
}

/// A transaction that is prepared by XA outlives its session. MySQL 9 takes it from the session at once.
fn prepared(version: Version) {
    let scene = Scene::of(version);
    let mut session = scene.session_after(&["XA START 'x'", WRITE, "XA END 'x'", "XA PREPARE 'x'"]);
    let _waiter = scene.waiting(&[WRITE]);
    let look = scene.look_until_soon("a transaction of XA", |look| {
        look["blockers"][0]["waiters"][0].is_object().then(|| look.clone())
    });
    let blocker = &look["blockers"][0];
    let [remedy, note] = ["remedy", "remedy_note"].map(|key| blocker[key].as_str());
    match (version, version.is_mariadb()) {
        (Version::Mysql9, _) => assert_eq!(remedy, Some("XA RECOVER"), "{look:#}"),
        // MariaDB keeps no statements by default.
        (_, true) => assert!(note.unwrap().contains("if it has run XA PREPARE"), "{look:#}"),
        _ => assert_eq!(
            (remedy, &blocker["session"]["xa_prepared"]),
            (None, &true.into()),
            "{look:#}"
        ),
    }
    assert!(note.unwrap().contains("XA"), "{look:#}");
    assert_documented(&look);
    session.run("XA ROLLBACK 'x'").unwrap();
}

#[test]
fn a_transaction_that_is_prepared_by_xa_is_not_freed_by_kill() {
    on_each(&Version::ALL, prepared);
}

#[test]
fn an_applier_is_named_and_is_to_be_stopped() {
    on_each(&Version::ALL, applier);
}

#[test]
fn an_event_is_named() {
    on_each(&Version::ALL, event);
}

#[test]
fn who_is_rolled_back_is_not_to_be_killed_once_more() {
    on_each(&Version::ALL, rolling_back);
}
