//! Prepared statements, in SQL and in the binary protocol.

use waggle_model::Command;
use waggle_testkit::client::{ResultSet, Value};

use crate::matrix::absent::Absent;
use crate::matrix::scene::{EARLY, Scene};
use crate::matrix::talker::Talker;

/// The text that the server shows of a prepared statement: with the values, where it has them.
fn shown(scene: &Scene, absent: Absent, with_values: &str, with_marks: &str) -> String {
    if scene.lacks(absent) { with_marks } else { with_values }.to_owned()
}

fn select(scene: &Scene, with_values: &str, with_marks: &str) -> String {
    if scene.query_cache {
        // The cache is asked with the values.
        return with_values.to_owned();
    }
    shown(scene, Absent::PreparedValues, with_values, with_marks)
}

fn change(scene: &Scene, with_values: &str, with_marks: &str) -> String {
    shown(scene, Absent::PreparedValuesOfChanges, with_values, with_marks)
}

pub(crate) fn before_the_attach(scene: &mut Scene) {
    let text = select(scene, &EARLY.replace('?', "12"), EARLY);
    let (talker, statement) = &mut scene.early().prepared;
    for _twice in 0..2 {
        let results = talker.execute(statement, &[Value::Int(12)], &text);
        assert_eq!(results[0].rows.len(), 1);
    }
    talker.run("SELECT 'after'");
}

pub(crate) fn in_sql(scene: &mut Scene, talker: &mut Talker) {
    let marks = "SELECT n FROM numbers WHERE n < ?";
    talker.run(&format!("PREPARE one FROM '{marks}'"));
    talker.run("SET @n = 4");
    let text = select(scene, "SELECT n FROM numbers WHERE n < 4", marks);
    for _twice in 0..2 {
        assert_eq!(talker.run("EXECUTE one USING @n").rows.len(), 3);
        // The server shows the statement that runs.
        talker.last(|last| last.text = Some(text.clone().into_bytes()));
    }
    talker.run("DEALLOCATE PREPARE one");
    assert!(talker.query("EXECUTE one USING @n").error.is_some());
}

pub(crate) fn binary(scene: &mut Scene, talker: &mut Talker) {
    let marks = "SELECT n FROM numbers WHERE n < ? AND pad <> ?";
    let statement = talker.prepare(marks);
    for n in [3, 9] {
        let text =
            select(scene, &format!("SELECT n FROM numbers WHERE n < {n} AND pad <> 'q'"), marks);
        let results = talker.execute(&statement, &[Value::Int(n), Value::from("q")], &text);
        assert_eq!(results[0].rows.len() as i64, n - 1);
    }
    talker.client.close_statement(statement).unwrap();
    let marks = "UPDATE kept SET v = ? WHERE id <= 2";
    let statement = talker.prepare(marks);
    for v in [1000, 1001] {
        let text = change(scene, &marks.replace('?', &v.to_string()), marks);
        talker.execute(&statement, &[Value::Int(v)], &text);
    }
    let statement = talker.prepare("DO 1");
    talker.execute(&statement, &[], "DO 1");
}

pub(crate) fn failing(scene: &mut Scene, talker: &mut Talker) {
    // An error has a status of its own, so that a refused PREPARE shows, as a command.
    let refused = talker.note(Command::PREPARE, Some(b"SELECT n FROM nowhere"));
    let error = talker.client.prepare("SELECT n FROM nowhere").unwrap_err();
    let waggle_testkit::Error::Refused { code, message } = error else { panic!("{error}") };
    let result = ResultSet { error: Some((code, message)), ..ResultSet::default() };
    let mut refused = refused.answered(&result);
    if scene.lacks(Absent::RefusedText) {
        refused.text = None;
    }
    talker.expect(refused);

    let marks = "INSERT INTO kept (id, v) VALUES (?, 1)";
    let statement = talker.prepare(marks);
    let text = change(scene, &marks.replace('?', "1"), marks);
    let results = talker.execute(&statement, &[Value::Int(1)], &text);
    assert_eq!(results[0].error.as_ref().unwrap().0, 1062);
}

/// One execution with many rows of values, whether the server runs it at once (INSERT) or row by row.
pub(crate) fn bulk(_scene: &mut Scene, talker: &mut Talker) {
    let pair = |one: i64, other: i64| vec![Value::Int(one), Value::Int(other)];
    for (marks, rows, error) in [
        ("INSERT INTO bag (v) VALUES (?)", (0..100).map(|v| vec![Value::Int(v)]).collect(), 0),
        ("UPDATE kept SET v = v + ? WHERE id = ?", (1..=3).map(|id| pair(7, id)).collect(), 0),
        ("INSERT INTO kept (v, id) VALUES (?, ?)", vec![pair(7, 1), pair(7, 2)], 1062),
    ] {
        let statement = talker.prepare(marks);
        let note = talker.note(Command::BULK_EXECUTE, Some(marks.as_bytes()));
        let result = talker.client.execute_bulk(&statement, &rows).unwrap();
        assert_eq!(result.error.as_ref().map_or(0, |(number, _)| *number), error, "{result:?}");
        assert_eq!(result.affected, if error == 0 { rows.len() as u64 } else { 0 });
        talker.expect(note.answered(&result));
    }
}

pub(crate) fn cursor(scene: &mut Scene, talker: &mut Talker) {
    let marks = "SELECT n, pad FROM numbers WHERE n <= ?";
    let statement = talker.prepare(marks);
    let text = select(scene, &marks.replace('?', "700"), marks);
    let note = talker.note(Command::EXECUTE, Some(text.as_bytes()));
    let results = talker.client.execute(&statement, &[Value::Int(700)], true).unwrap();
    assert!(results[0].has_cursor());
    talker.expect(note.answered(&results[0]));
    for expected in [3, 600, 97] {
        let fetched =
            talker.command(Command::FETCH, |client| client.fetch(&statement, 600.min(expected)));
        assert_eq!(fetched.rows.len(), expected as usize);
    }
    talker.command(Command(26), |client| client.reset_statement(&statement));
    talker.client.close_statement(statement).unwrap();
}

pub(crate) fn long_data(scene: &mut Scene, talker: &mut Talker) {
    let marks = "SELECT LENGTH(?)";
    let statement = talker.prepare(marks);
    for _piece in 0..3 {
        talker.client.send_long_data(&statement, 0, &[b'a'; 100_000]).unwrap();
    }
    let text = select(scene, &format!("SELECT LENGTH('{}')", "a".repeat(300_000)), marks);
    let results = talker.execute(&statement, &[Value::Long], &text);
    assert_eq!(results[0].text(0, 0).as_deref(), Some("300000"));
}
