//! Stored programs: a CALL is one statement, whatever it sends on its way.

use waggle_model::Command;

use crate::matrix::absent::Absent;
use crate::matrix::scene::Scene;
use crate::matrix::talker::Talker;

/// The rows of a CALL are what the server sums up for it, which differs by family.
fn unknown_rows(talker: &Talker) {
    talker.last(|last| {
        last.rows_sent = None;
        last.rows_examined = None;
    });
}

fn function_rows(scene: &Scene, talker: &Talker) {
    if scene.lacks(Absent::RowsOfFunctions) {
        talker.last(|last| last.rows_sent = None);
    }
}

pub(crate) fn two_results(_: &mut Scene, talker: &mut Talker) {
    for _twice in 0..2 {
        let results = talker.call("CALL two_results()");
        assert_eq!(results.len(), 3);
        unknown_rows(talker);
        talker.run("SELECT 'after'");
    }
    let results = talker.client.query("CALL two_results();SELECT 5;CALL silent()").unwrap();
    let note = |text: &str| talker.note(Command::QUERY, Some(text.as_bytes()));
    for (text, result) in
        ["CALL two_results()", "SELECT 5", "CALL silent()"].into_iter().zip(&results[2..])
    {
        let mut note = note(text).answered(result);
        note.sent_ns = 0;
        talker.expect(note);
        if text.starts_with("CALL") {
            unknown_rows(talker);
        }
    }
}

pub(crate) fn silent(scene: &mut Scene, talker: &mut Talker) {
    let results = talker.call("CALL silent()");
    // MySQL gives the rows of the last change, MariaDB of all.
    assert_eq!(results[0].affected, if scene.is_mariadb() { 5 } else { 3 });
}

pub(crate) fn failing(_: &mut Scene, talker: &mut Talker) {
    let results = talker.call("CALL signals()");
    assert_eq!(results[0].error.as_ref().unwrap().0, 5001);
    let results = talker.call("CALL fails_late()");
    assert_eq!(results.last().unwrap().error.as_ref().unwrap().0, 1146);
    unknown_rows(talker);
}

pub(crate) fn handler(_: &mut Scene, talker: &mut Talker) {
    let results = talker.call("CALL handles()");
    assert_eq!((results.len(), results[0].text(0, 0).as_deref()), (3, Some("handled")));
    unknown_rows(talker);
}

pub(crate) fn prepared(_: &mut Scene, talker: &mut Talker) {
    let statement = talker.prepare("CALL two_results()");
    for _twice in 0..2 {
        assert_eq!(talker.execute(&statement, &[], "CALL two_results()").len(), 3);
        unknown_rows(talker);
    }
}

/// The default database changes inside the routine and back.
pub(crate) fn elsewhere(_: &mut Scene, talker: &mut Talker) {
    let results = talker.call("CALL abcd.elsewhere()");
    assert_eq!(results[0].text(0, 0).as_deref(), Some("abcd"));
    unknown_rows(talker);
    assert_eq!(talker.run("SELECT DATABASE()").text(0, 0).as_deref(), Some("test"));
}

/// The user of the statement is the one who called.
pub(crate) fn definer(scene: &mut Scene, talker: &mut Talker) {
    // Also where this is the first statement of the session that the tap sees.
    let early = &mut scene.early().calls;
    early.call("CALL as_definer()");
    unknown_rows(early);
    early.run("SELECT 'after'");
    let results = talker.call("CALL as_definer()");
    assert_eq!(results[0].text(0, 0).as_deref(), Some("root@localhost"));
    unknown_rows(talker);
    talker.run("SELECT CURRENT_USER()");
    talker.run("SELECT half(n) FROM numbers WHERE n <= 3");
    function_rows(scene, talker);
}

pub(crate) fn function_and_trigger(scene: &mut Scene, talker: &mut Talker) {
    talker.run("SELECT half(10)");
    function_rows(scene, talker);
    // What the trigger and the function run has no reply of its own.
    assert!(scene.lacks(Absent::Nested));
    assert_eq!(talker.run("INSERT INTO watched (v) VALUES (1), (2)").affected, 2);
}
