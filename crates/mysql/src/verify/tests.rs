use std::collections::BTreeMap;

use waggle_model::{Command, Flavour, Identity, Loss, Reading, Statement};

use super::captured::DIGESTS_MAX;
use super::*;
use crate::counters::{ConnectionDifference, DigestDifference, DigestKey, Sums};

mod times;
mod unknown;

/// A server that counted these digests (schema `t`, text, calls), all as `statement/sql/select` but
/// for `prepared` executions.
pub(super) fn server(
    version: &str,
    digests: &[(&str, u64)],
    statements: u64,
    prepared: u64,
) -> Difference {
    let event = |name: &str, count| (name.to_owned(), Sums { count, ..Sums::default() });
    let flavour = match version.contains("MariaDB") {
        true => Flavour::Mariadb,
        false => Flavour::Mysql,
    };
    let digest = |(text, count): &(&str, u64)| DigestDifference {
        key: DigestKey { schema: Some("t".to_owned()), digest: Some((*text).to_owned()) },
        text: (*text).to_owned(),
        sums: Sums { count: *count, rows_sent: *count, ..Sums::default() },
        ..DigestDifference::default()
    };
    Difference {
        flavour,
        version: version.to_owned(),
        status: BTreeMap::new(),
        questions: Reading::Value(statements + prepared),
        quits: Reading::Value(0),
        own_connection: 1,
        running_before: 0,
        running_after: 0,
        events: Reading::Value(BTreeMap::from([
            event("statement/sql/select", statements),
            event("statement/com/Execute", prepared),
            event("statement/com/Quit", 3),
            event("statement/sp/stmt", 50),
        ])),
        connections: Reading::Value(BTreeMap::new()),
        digests: Reading::Value(digests.iter().map(digest).collect()),
        digests_lost: 0,
    }
}

/// A capture of these digests (text, prepared, calls), all of connection 5, a row each.
pub(super) fn captured(digests: &[(&str, bool, u64)]) -> Captured {
    let mut captured = Captured::default();
    for (text, prepared, calls) in digests {
        let key = CapturedKey {
            schema: Some("t".to_owned()),
            text: (*text).to_owned(),
            prepared: *prepared,
        };
        let calls_here = Calls { certain: *calls, at_edges: 0 };
        let digest = CapturedDigest {
            calls: calls_here,
            rows_sent: Some(*calls),
            ..CapturedDigest::empty()
        };
        captured.digests.insert(key, digest);
        let command = if *prepared { Command::EXECUTE } else { Command::QUERY };
        *captured.commands.entry(command).or_default() += calls;
        let connection = captured.connections.entry(5).or_default();
        *connection = connection.plus(calls_here);
    }
    captured
}

fn connection(server: &mut Difference, id: u64, one: ConnectionDifference) {
    let Reading::Value(connections) = &mut server.connections else { panic!("no connections") };
    connections.insert(id, one);
}

#[test]
fn equal_counts_pass_and_nested_statements_and_quits_do_not_matter() {
    let server = server("9.7.4", &[("SELECT ?", 10)], 10, 0);
    let report = verify(&captured(&[("SELECT ?", false, 10)]), &server);
    assert!(report.passed(), "{report:?}");
    assert_eq!((report.captured, report.server_counted), (10, Some(10)));
    assert_eq!((report.digests_compared, report.digests_differing), (1, 0));
    let fields = FieldSummary { compared: 1, equal: 1, differing: 0 };
    assert_eq!(report.fields[&Field::RowsSent], fields);
}

#[test]
fn what_is_missing_is_named_with_its_reason_and_what_came_twice_is_extra() {
    for (version, ours, lost, missing, extra, why) in [
        ("9.7.4", 9, Some(Loss::Injected), 1, 0, Some(Why::Lost)),
        // Nobody noticed.
        ("8.0.12", 8, None, 2, 0, None),
        ("9.7.4", 11, None, 0, 1, None),
        // Its connection was killed, and that was noticed.
        ("8.0.12", 9, Some(Loss::EndedUnseen), 0, 0, Some(Why::EndedUnseen)),
    ] {
        let server = server(version, &[("SELECT ?", 10), ("SELECT `a`", 4)], 14, 0);
        let mut captured = captured(&[("SELECT ?", false, ours), ("SELECT `a`", false, 4)]);
        captured.lost.add(lost.unwrap_or(Loss::Injected), u64::from(lost.is_some()));
        let report = verify(&captured, &server);
        assert_eq!((report.missing, report.extra), (missing, extra), "{report:?}");
        assert_eq!(report.passed(), missing == 0 && extra == 0, "{report:?}");
        assert_eq!(report.digests_differing, 1);
        let differing = &report.differing[0];
        assert_eq!((differing.digest_text.as_str(), differing.field), ("SELECT ?", Field::Calls));
        assert_eq!((differing.ours, differing.theirs, differing.why), (ours, 10, why));
    }
}

#[test]
fn connections_are_compared_one_by_one_and_those_that_ended_in_the_rest() {
    for (of_server, ours, missing, extra) in [
        // One missing in one is not made good by one extra in another.
        (&[(5, 11), (6, 9)][..], [(5, 10), (6, 10)], 1, 1),
        (&[(6, 8)], [(5, 12), (6, 8)], 0, 0),
    ] {
        let mut server = server("9.7.4", &[("SELECT ?", 20)], 20, 0);
        for (id, statements) in of_server {
            let ran = ConnectionDifference { statements: *statements, ..Default::default() };
            connection(&mut server, *id, ran);
        }
        let mut both = captured(&[("SELECT ?", false, 20)]);
        let calls = |(id, certain)| (id, Calls { certain, at_edges: 0 });
        both.connections = ours.map(calls).into();
        let report = verify(&both, &server);
        assert_eq!((report.missing, report.extra), (missing, extra));
        assert_eq!(report.passed(), missing == 0 && extra == 0);
    }
}

#[test]
fn statements_at_the_edges_are_in_flight_neither_missing_nor_extra() {
    for counted in 10..=13 {
        let server = server("9.7.4", &[("SELECT ?", counted)], counted, 0);
        let mut edgy = captured(&[("SELECT ?", false, 13)]);
        edgy.connections.insert(5, Calls { certain: 10, at_edges: 3 });
        edgy.digests.values_mut().for_each(|one| {
            one.calls = Calls { certain: 10, at_edges: 3 };
        });
        let report = verify(&edgy, &server);
        assert_eq!((report.missing, report.extra), (0, 0), "{counted}");
        assert_eq!(report.in_flight, 13 - counted, "{counted}");
        assert!(report.passed(), "{counted}");
    }
}

/// Ten statements between the readings and three while they were made, each of two rows.
#[test]
fn a_digest_may_differ_by_what_ended_while_it_was_read_and_by_no_more() {
    for (counted, rows, differing) in [
        (10, 20, None),
        (13, 26, None),
        (12, 24, None),
        (9, 18, Some(Field::Calls)),
        (14, 28, Some(Field::Calls)),
        (12, 27, Some(Field::RowsSent)),
        (12, 19, Some(Field::RowsSent)),
    ] {
        let mut server = server("9.7.4", &[("SELECT ?", counted)], counted, 0);
        let Reading::Value(digests) = &mut server.digests else { panic!("no digests") };
        digests[0].sums.rows_sent = rows;
        let identity = Identity { database: Some(b"t".to_vec()), ..Identity::default() };
        let statement = Statement {
            command: Some(Command::QUERY),
            connection_id: Some(5),
            rows_sent: Some(2),
            rows_affected: Some(0),
            rows_examined: Some(0),
            ..Statement::unread(0, &identity)
        };
        let mut busy = Captured::default();
        for at in 0..13 {
            let edge = if at < 10 { Edge::Inside } else { Edge::AtEdge };
            busy.add(&Ended::of(&statement, "SELECT ?"), edge);
        }
        let report = verify(&busy, &server);
        let found: Vec<Field> = report.differing.iter().map(|one| one.field).collect();
        assert_eq!(found, Vec::from_iter(differing), "{counted} {rows}");
        assert_eq!(report.digests_differing, u64::from(differing.is_some()));
        assert_eq!((report.in_doubt, report.share_in_doubt()), (3, Some(3.0 / 13.0)));
    }
}

/// A digest is told by what is nearest to the server's count: a row that misses three of a hundred, beside
/// ten in doubt, misses three.
#[test]
fn a_difference_begins_where_the_doubt_ends() {
    for (counted, ours, why) in [
        (97, 100, Some(Why::UnlockedRow)),
        (95, 100, None),
        (112, 110, Some(Why::Lost)),
        (113, 110, None),
    ] {
        let server = server("9.7.4", &[("SELECT ?", counted)], counted.max(100), 0);
        let mut busy = captured(&[("SELECT ?", false, 110)]);
        let calls = Calls { certain: 100, at_edges: 10 };
        busy.connections.insert(5, calls);
        busy.lost.add(Loss::Injected, 2);
        for one in busy.digests.values_mut() {
            one.calls = calls;
            let ten = CapturedDigest { rows_sent: Some(10), ..CapturedDigest::empty() };
            let calls = Calls { certain: 10, at_edges: 0 };
            one.at_edges = Some(Box::new(CapturedDigest { calls, ..ten }));
        }
        let report = verify(&busy, &server);
        let differing = &report.differing[0];
        assert_eq!((differing.ours, differing.theirs, differing.why), (ours, counted, why));
        assert_eq!((report.digests_differing, report.in_doubt), (1, 10));
    }
}

/// Which statements end at a reading is known by their times, whatever runs then.
#[test]
fn what_runs_at_a_reading_excuses_nothing_but_questions() {
    let mut server = server("9.7.4", &[("SELECT ?", 9)], 9, 0);
    (server.running_before, server.running_after) = (4, 4);
    connection(&mut server, 5, ConnectionDifference { statements: 9, ..Default::default() });
    let report = verify(&captured(&[("SELECT ?", false, 10)]), &server);
    assert_eq!((report.missing, report.extra, report.in_flight), (0, 1, 0));
    assert_eq!((report.digests_differing, report.in_doubt, report.passed()), (1, 0, false));

    // The server counts a question when it begins.
    server.events = Reading::absent("Performance Schema is off");
    server.questions = Reading::Value(14);
    let report = verify(&captured(&[("SELECT ?", false, 10)]), &server);
    assert_eq!((report.missing, report.extra, report.in_flight), (0, 0, 4));
}

#[test]
fn prepared_statements_join_where_the_server_files_them_and_are_named_where_not() {
    let both = captured(&[("SELECT ?", false, 4), ("SELECT ?", true, 6)]);
    let nine =
        server("9.7.4", &[("SELECT ?", 4), ("EXECUTE SELECT ?", 6), ("PREPARE SELECT ?", 1)], 4, 6);
    let report = verify(&both, &nine);
    assert!(report.passed(), "{report:?}");
    assert_eq!((report.digests_compared, report.digests_differing), (1, 0));

    for version in ["5.7.22", "8.0.12", "10.11.19-MariaDB"] {
        let report = verify(&both, &server(version, &[("SELECT ? ", 4)], 4, 6));
        assert!(report.passed(), "{version} {report:?}");
        assert_eq!((report.digests_compared, report.digests_differing), (1, 0), "{version}");
        let named = report.not_compared.iter().any(|why| why.contains("6 COM_STMT_EXECUTE"));
        assert!(named, "{version} {:?}", report.not_compared);
    }
}

#[test]
fn a_row_that_missed_some_is_the_servers_fault_only_while_the_totals_agree() {
    for (ours, theirs, why) in [
        (10, 9, Some(Why::UnlockedRow)),
        (10, 5, None),
        (20_000, 19_600, Some(Why::UnlockedRow)),
        (20_000, 19_599, None),
        (9, 10, None),
    ] {
        let server = server("8.0.12", &[("SELECT ?", theirs)], ours, 0);
        let report = verify(&captured(&[("SELECT ?", false, ours)]), &server);
        assert_eq!(report.differing[0].why, why, "{ours} {theirs}");
        assert_eq!(report.passed(), why.is_some());
        assert_eq!(report.digests_differing, 1);
    }
    let server = server("8.0.12", &[("SELECT ?", 10)], 10, 0);
    let report = verify(&captured(&[("SELECT ?", false, 11)]), &server);
    assert_eq!((report.differing[0].why, report.passed()), (None, false));
}

#[test]
fn what_one_row_misses_and_another_has_too_much_is_no_fault_of_the_server() {
    let digests = [("SELECT ?", 9), ("SELECT ? + ?", 11)];
    let server = server("8.0.12", &digests, 20, 0);
    let ours = captured(&[("SELECT ?", false, 10), ("SELECT ? + ?", false, 10)]);
    let report = verify(&ours, &server);
    assert!(report.differing.iter().all(|one| one.why.is_none()), "{report:?}");
    assert!(!report.passed());
}

#[test]
fn sql_execute_shows_the_inner_statement() {
    let server = server("8.0.12", &[("SELECT ?", 4), ("EXECUTE `x` USING @?", 3)], 7, 0);
    let report = verify(&captured(&[("SELECT ?", false, 7)]), &server);
    assert_eq!(report.differing[0].why, Some(Why::SqlExecute));
    assert!(report.passed(), "{report:?}");
}

#[test]
fn what_does_not_parse_has_no_digest_on_the_server() {
    let server = server("9.7.4", &[("SELECT ?", 4)], 5, 0);
    let mut failed = captured(&[("SELECT ?", false, 4), ("SELEC ?", false, 1)]);
    for (key, digest) in &mut failed.digests {
        if key.text == "SELEC ?" {
            (digest.unparsed, digest.errors) = (1, 1);
        }
    }
    let report = verify(&failed, &server);
    assert!(report.passed() && report.differing.is_empty(), "{report:?}");
}

#[test]
fn rows_that_differ_fail_but_not_those_of_a_call() {
    for (text, passes, why) in
        [("SELECT ?", false, None), ("CALL `p` ( )", true, Some(Why::CallSums))]
    {
        let server = server("9.7.4", &[(text, 4)], 4, 0);
        let mut more = captured(&[(text, false, 4)]);
        more.digests.values_mut().for_each(|one| one.rows_sent = Some(9));
        let report = verify(&more, &server);
        assert_eq!((report.passed(), report.differing[0].why), (passes, why), "{text}");
        assert_eq!((report.differing[0].ours, report.differing[0].theirs), (9, 4));
    }
}

#[test]
fn a_field_that_the_layout_does_not_give_is_not_compared() {
    let server = server("9.7.4", &[("SELECT ?", 4)], 4, 0);
    let mut blind = captured(&[("SELECT ?", false, 4)]);
    blind.digests.values_mut().for_each(|one| one.rows_examined = None);
    let report = verify(&blind, &server);
    assert!(report.passed());
    assert!(!report.fields.contains_key(&Field::RowsExamined));
}

#[test]
fn texts_that_the_server_cut_join_by_their_beginning() {
    let server = server("8.0.12", &[("SELECT `a` , ...", 5)], 5, 0);
    let long = [("SELECT `a` , `b` , `c`", false, 2), ("SELECT `a` , `d`", false, 3)];
    let report = verify(&captured(&long), &server);
    assert!(report.passed(), "{report:?}");
    assert_eq!((report.digests_compared, report.digests_differing), (1, 0));
}

#[test]
fn a_truncated_statement_explains_a_digest_that_only_the_server_has() {
    let server = server("9.7.4", &[("SELECT ? , ?", 1), ("SELECT ?", 4)], 5, 0);
    let mut captured = captured(&[("SELECT ?", false, 4), ("SELECT ? ,", false, 1)]);
    for (key, digest) in &mut captured.digests {
        digest.truncated = key.text.ends_with(',');
    }
    let report = verify(&captured, &server);
    assert_eq!(report.differing[0].why, Some(Why::Truncated));
    assert!(report.passed(), "{report:?}");
}

#[test]
fn without_performance_schema_questions_decide_and_the_report_says_so() {
    let mut server = server("9.7.4", &[], 0, 0);
    server.events = Reading::absent("Performance Schema is off");
    server.connections = Reading::absent("Performance Schema is off");
    server.digests = Reading::absent("Performance Schema is off");
    server.questions = Reading::Value(13);
    server.quits = Reading::Value(2);
    let mut captured = captured(&[("SELECT ?", false, 10)]);
    captured.commands.insert(Command(2), 1);
    let report = verify(&captured, &server);
    assert_eq!((report.source, report.server_counted), (Some(Source::QuestionsLessQuit), Some(10)));
    assert!(report.passed());
    assert!(report.not_compared.iter().any(|why| why.contains("digests: Performance Schema")));

    server.questions = Reading::absent("Questions was set back");
    let report = verify(&captured, &server);
    assert_eq!((report.server_counted, report.passed()), (None, false));
}

#[test]
fn rows_that_the_layout_does_not_give_are_not_compared_as_none() {
    let server = server("9.7.4", &[("SELECT ?", 1)], 1, 0);
    let identity = Identity { database: Some(b"t".to_vec()), ..Identity::default() };
    let statement = Statement {
        command: Some(Command::QUERY),
        rows_sent: Some(1),
        rows_affected: None,
        ..Statement::unread(0, &identity)
    };
    let mut captured = Captured::default();
    captured.add(&Ended::of(&statement, "SELECT ?"), Edge::Inside);
    let report = verify(&captured, &server);
    assert_eq!(report.fields[&Field::RowsSent].compared, 1);
    let compared = report.fields.get(&Field::RowsAffected).map_or(0, |field| field.compared);
    assert_eq!(compared, 0, "{report:?}");
}

#[test]
fn the_json_has_stable_keys_and_every_field() {
    let server = server("9.7.4", &[("SELECT ?", 10)], 10, 0);
    let report = verify(&captured(&[("SELECT ?", false, 9)]), &server);
    let json = serde_json::to_value(ReportJson::from(&report)).unwrap();
    let keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    for key in [
        "captured",
        "server_counted",
        "missing",
        "extra",
        "in_flight",
        "lost",
        "digests_compared",
        "digests_differing",
        "fields",
    ] {
        assert!(keys.contains(&key), "{key} is not in {keys:?}");
    }
    assert_eq!(json["missing"], 1);
    assert_eq!(json["fields"].as_object().unwrap().len(), Field::ALL.len());
    assert_eq!(json["lost"]["ring_full"], 0);
    assert_eq!(json["differing"][0]["field"], "calls");
    assert_eq!(json["differing"][0]["why"], serde_json::Value::Null);
}

#[test]
fn statements_of_digests_beyond_the_limit_are_counted_and_named() {
    let identity = Identity::default();
    let statement = Statement { command: Some(Command::QUERY), ..Statement::unread(2, &identity) };
    let mut many = Captured::default();
    for text in 0..=DIGESTS_MAX {
        many.add(&Ended::of(&statement, &text.to_string()), Edge::Inside);
    }
    assert_eq!((many.digests.len(), many.unkept), (DIGESTS_MAX, 1));
    assert_eq!(many.statements(), DIGESTS_MAX as u64 + 1);
    many.add(&Ended::of(&statement, "0"), Edge::Inside);
    assert_eq!(many.unkept, 1, "it is kept");

    let beyond = Captured { unkept: 3, ..captured(&[("SELECT ?", false, 10)]) };
    let beyond = Captured { commands: [(Command::QUERY, 13)].into(), ..beyond };
    let server = server("9.7.4", &[("SELECT ?", 10), ("DO ?", 3)], 13, 0);
    let report = verify(&beyond, &server);
    assert_eq!((report.missing, report.differing[0].why), (0, Some(Why::NotKept)));
    assert!(report.passed() && report.not_compared.iter().any(|why| why.contains("100,000")));
}

/// The total counts what ended between its reading and that of the connections; the connections
/// do not, where that happened at the first reading.
#[test]
fn what_ends_between_the_reading_of_two_tables_is_in_flight() {
    let mut server = server("9.7.4", &[("SELECT ?", 20)], 20, 0);
    let ran = |statements| ConnectionDifference { statements, ..ConnectionDifference::default() };
    connection(&mut server, 5, ran(17));
    let mut busy = captured(&[("SELECT ?", false, 20)]);
    busy.connections.insert(5, Calls { certain: 16, at_edges: 4 });
    let report = verify(&busy, &server);
    assert_eq!((report.missing, report.extra, report.in_flight), (0, 0, 6));
    let mut quiet = busy.clone();
    quiet.connections.insert(5, Calls { certain: 17, at_edges: 0 });
    quiet.commands.insert(Command::QUERY, 17);
    assert_eq!(verify(&quiet, &server).missing, 3, "nothing ended then");
}

/// Ten statements of a thread that was ending: Performance Schema had them in no table.
#[test]
fn questions_decide_where_they_agree_and_the_count_by_event_name_does_not() {
    let mut server = server("8.0.12", &[("SELECT ?", 20)], 10, 0);
    server.questions = Reading::Value(20);
    let report = verify(&captured(&[("SELECT ?", false, 20)]), &server);
    assert_eq!((report.missing, report.extra, report.passed()), (0, 0, true));
    assert_eq!((report.source, report.server_counted), (Some(Source::QuestionsLessQuit), Some(20)));
    assert!(report.not_compared.iter().any(|why| why.contains("threads ended")));
    server.questions = Reading::Value(19);
    let report = verify(&captured(&[("SELECT ?", false, 20)]), &server);
    assert_eq!((report.source, report.extra), (Some(Source::ByEventName), 10));

    // The thread of a connection that is there has ended nothing.
    server.questions = Reading::Value(20);
    connection(&mut server, 5, ConnectionDifference { statements: 10, ..Default::default() });
    let report = verify(&captured(&[("SELECT ?", false, 20)]), &server);
    assert_eq!((report.source, report.extra), (Some(Source::ByEventName), 10));
}
