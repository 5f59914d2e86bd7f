//! Builds that lack one field. Each field is hidden in turn: the capture goes on, what hangs on the
//! field is absent, and all else is as exact as before.

use waggle_model::Command;
use waggle_probes::servers::layout::Field;
use waggle_testkit::client::{Transport, Value};
use waggle_testkit::{Account, Server, Version, on_each_build};

use super::expected::Expected;
use super::scene::TABLES;
use super::start;
use super::talker::{Log, Login, Talker};
use crate::capture::{Capture, Seen};

const PING: Command = Command(14);
const INIT_DB: Command = Command(2);

/// What the comparison says of a statement whose field is absent, by what it names.
fn lacks(field: Field) -> &'static [&'static str] {
    match field {
        Field::QueryText | Field::QueryLength => &["text", "length"],
        Field::Database | Field::DatabaseLength => &["database"],
        Field::ServerStatus => &["status"],
        Field::Command => &["command"],
        Field::RowsSent => &["rows sent"],
        Field::RowsExamined => &["rows examined"],
        Field::Diagnostics | Field::DiagnosticsStatus => &["error", "rows affected"],
        Field::SecurityContext => &["user", "host"],
        Field::RowsAffected => &["rows affected"],
        Field::ErrorNumber => &["error"],
        Field::User => &["user"],
        Field::Host => &["host"],
        Field::ConnectionId
        | Field::StartTime
        | Field::LockTime
        | Field::State
        | Field::SqlMode
        | Field::Charset
        | Field::IsSent
        | Field::Killed
        | Field::Address => &[],
    }
}

/// Statements of each kind that a field can tell from others.
fn script(talker: &mut Talker) {
    talker.run("SELECT n FROM numbers WHERE n <= 3");
    talker.run("UPDATE kept SET v = v + 1 WHERE id <= 2");
    talker.query("SELECT nothing FROM numbers");
    talker.packet(&["SELECT 1", "SELECT n FROM numbers WHERE n = 2", "SELECT 3"]);
    talker.call("CALL two_results()");
    // Its rows are those of the statements inside, by family.
    talker.last(|call| (call.rows_sent, call.rows_examined) = (None, None));
    talker.packet(&["UPDATE kept SET v = v + 1 WHERE id = 1", "SELECT 4"]);
    let prepared = talker.prepare("SELECT 5");
    talker.execute(&prepared, &[] as &[Value], "SELECT 5");
    talker.command(PING, |client| client.ping());
    talker.run("SELECT REPEAT('x', 200000)");
    talker.who.database = Some("abcd".to_owned());
    talker.command(INIT_DB, |client| client.init_db("abcd"));
    talker.run("SELECT DATABASE()");
    talker.who.database = Some("efgh".to_owned());
    talker.run("USE efgh");
    talker.run("SELECT SLEEP(0.05)");
    talker.run("SELECT 6");
}

/// What differs beside what the hidden field takes away; that must be absent, not another value.
fn unexpected(field: Field, expected: &Expected, seen: &Seen) -> Vec<String> {
    let is_lacking = |told: &String| {
        lacks(field).iter().any(|what| told.starts_with(&format!("{what}: ")))
            && ["captured None", "captured 0", "captured Command(0)"]
                .iter()
                .any(|end| told.ends_with(end))
    };
    expected.differences(seen).into_iter().filter(|told| !is_lacking(told)).collect()
}

/// The statements of one new session with a field hidden, against what its client noted.
fn hide(server: &Server, capture: &mut Capture, field: Field) -> Vec<String> {
    let log = Log::default();
    let login = Login {
        transport: Transport::Unix,
        account: Account::APP,
        database: Some("test"),
        host: "localhost".to_owned(),
        deprecate_eof: false,
    };
    let shown = capture.recognised.layout.clone();
    capture.show(shown.without(field));
    capture.attach();
    let mut talker = Talker::open(server, &login, &log).unwrap();
    script(&mut talker);
    let expected: Vec<Expected> = log.borrow_mut().remove(&talker.id()).unwrap();
    let expected: Vec<&Expected> =
        expected.iter().filter(|one| one.command.is_statement()).collect();
    let may_be = |seen: &Seen| seen.command == Command::SLEEP || seen.command.is_statement();
    let seen = capture.settled(expected.len(), may_be);
    let mut found = Vec::new();
    if seen.len() != expected.len() {
        let all: Vec<_> = seen.iter().map(Seen::brief).collect();
        found.push(format!("{} captured of {}: {all:#?}", seen.len(), expected.len()));
    }
    for (expected, seen) in expected.iter().zip(&seen) {
        let told = unexpected(field, expected, seen);
        if !told.is_empty() {
            found.push(format!("{}: {}", expected.brief(), told.join("; ")));
        }
    }
    if capture.losses().statements() > 0 {
        found.push(format!("{:?}", capture.losses()));
    }
    capture.tap.detach(server.pid());
    capture.show((*shown).clone());
    found.into_iter().map(|one| format!("without {}: {one}", field.name())).collect()
}

fn each_field_hidden_in_turn_costs_only_itself(version: Version) {
    let server = start(version, false, &[]);
    let log = Log::default();
    let login = Login {
        transport: Transport::Unix,
        account: Account::ROOT,
        database: Some("test"),
        host: "localhost".to_owned(),
        deprecate_eof: false,
    };
    let mut control = Talker::open(&server, &login, &log).unwrap();
    TABLES.iter().for_each(|sql| drop(control.run(sql)));
    let mut capture = Capture::of(&server);
    let found: Vec<String> =
        Field::ALL.into_iter().flat_map(|field| hide(&server, &mut capture, field)).collect();
    assert!(found.is_empty(), "{version}:\n{}", found.join("\n"));
}

on_each_build!(each_field_hidden_in_turn_costs_only_itself);
