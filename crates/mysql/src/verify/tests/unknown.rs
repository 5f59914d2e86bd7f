//! What the server counts and waggle does not know.

use waggle_model::{Command, Reading};

use super::{captured, server};
use crate::counters::Sums;
use crate::verify::verify;

#[test]
fn a_class_of_events_that_nobody_knows_is_missing_and_never_something_else() {
    let mut server = server("11.4.5-MariaDB", &[], 10, 4);
    let Reading::Value(events) = &mut server.events else { panic!("no events") };
    let calls = |count| Sums { count, ..Sums::default() };
    events.insert("statement/com/Bulk_execute".to_owned(), calls(3));
    events.insert("statement/com/Ping".to_owned(), calls(100));
    let mut captured = captured(&[("SELECT ?", false, 10), ("DO ?", true, 4)]);
    captured.commands.insert(Command::BULK_EXECUTE, 3);
    captured.connections.entry(5).or_default().certain += 3;
    let report = verify(&captured, &server);
    assert_eq!((report.captured, report.server_counted), (17, Some(17)));
    assert!(report.passed(), "{report:?}");

    let Reading::Value(events) = &mut server.events else { panic!("no events") };
    events.insert("statement/com/Tomorrow".to_owned(), calls(50));
    let report = verify(&captured, &server);
    assert_eq!((report.missing, report.server_counted), (50, Some(67)), "{report:?}");
    let named = report.not_compared.iter().any(|line| line.contains("statement/com/Tomorrow"));
    assert!(named && !report.passed(), "{report:?}");
}

#[test]
fn a_command_that_nobody_knows_is_missing_where_questions_count() {
    let mut server = server("10.11.19-MariaDB", &[], 0, 0);
    server.events = Reading::absent("Performance Schema is off");
    server.connections = Reading::absent("Performance Schema is off");
    server.questions = Reading::Value(13);
    let mut captured = captured(&[("SELECT ?", false, 10)]);
    captured.commands.insert(Command(17), 1);
    captured.commands.insert(Command(200), 2);
    assert_eq!(verify(&captured, &server).missing, 2);
}
