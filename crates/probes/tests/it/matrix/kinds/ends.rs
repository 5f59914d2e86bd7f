//! Statements and sessions that are ended from outside.

use waggle_model::{Command, Loss};
use waggle_testkit::client::{Command as Send, ResultSet, Transport};

use crate::matrix::absent::Absent;
use crate::matrix::expected::Expected;
use crate::matrix::scene::Scene;
use crate::matrix::talker::Talker;

/// Sends a statement and waits until it runs; its note.
fn begin(scene: &mut Scene, talker: &mut Talker, sql: &str) -> Expected {
    let note = talker.note(Command::QUERY, Some(sql.as_bytes()));
    talker.client.send(Send::Query, sql.as_bytes()).unwrap();
    let text = sql.as_bytes().to_vec();
    scene.wait_until_runs(talker.id(), |now| {
        let is_asleep = now.state.as_deref() == Some(b"User sleep");
        now.text.as_deref() == Some(text.as_slice()) && (is_asleep || !sql.contains("SLEEP"))
    });
    note
}

fn killed(scene: &mut Scene, talker: &mut Talker, sql: &str) -> ResultSet {
    let note = begin(scene, talker, sql);
    scene.control.run(&format!("KILL QUERY {}", talker.id()));
    let results = talker.client.read_reply().unwrap();
    talker.expect(note.answered(&results[0]));
    talker.run("SELECT 'it goes on'");
    results.into_iter().next().unwrap()
}

/// MySQL ends a sleep without an error, MariaDB mostly with one: the client knows.
pub(crate) fn killed_query(scene: &mut Scene, talker: &mut Talker) {
    let result = killed(scene, talker, "SELECT SLEEP(600)");
    assert!(result.error.is_none() || scene.is_mariadb(), "{result:?}");
}

pub(crate) fn killed_query_with_error(scene: &mut Scene, talker: &mut Talker) {
    let sql =
        "SELECT COUNT(*) FROM numbers a, numbers b, numbers c, numbers d WHERE a.pad <= b.pad";
    assert_eq!(killed(scene, talker, sql).error.unwrap().0, 1317);
    killed(scene, talker, "UPDATE kept SET v = v + SLEEP(600)");
}

pub(crate) fn killed_connection(scene: &mut Scene) {
    let mut talker = scene.open();
    talker.run("SELECT 'before'");
    let mut note = begin(scene, &mut talker, "SELECT SLEEP(600)");
    let id = talker.id();
    scene.look();
    let before = scene.losses();
    scene.control.run(&format!("KILL {id}"));
    scene.wait_until_gone(id);
    scene.look();
    let unseen = scene.losses().since(&before).get(Loss::EndedUnseen);
    assert_eq!(unseen, u64::from(scene.lacks(Absent::KilledConnection)));
    if !scene.lacks(Absent::KilledConnection) {
        // 1927, or 0 if the statement ended by itself in the same moment.
        note.error = None;
        note.client_gone = true;
        talker.expect(note);
    }
    talker.client.hang_up();
}

/// No statement runs, so none may be captured.
pub(crate) fn killed_idle(scene: &mut Scene) {
    let mut talker = scene.open();
    talker.run("SELECT 'before'");
    let id = talker.id();
    scene.control.run(&format!("KILL {id}"));
    // MySQL 5.7 can miss the kill of a session that is just about to wait for its client.
    talker.client.hang_up();
    scene.wait_until_gone(id);
}

/// The client has gone when its reply is sent.
pub(crate) fn client_gone(scene: &mut Scene) {
    let mut talker = scene.open();
    let mut note = begin(scene, &mut talker, "SELECT SLEEP(0.2)");
    let id = talker.id();
    note.rows_sent = Some(1);
    note.client_gone = true;
    talker.expect(note);
    assert_eq!(scene.lacks(Absent::Reset), scene.transport == Transport::Unix);
    talker.client.abort().unwrap();
    scene.wait_until_gone(id);
}
