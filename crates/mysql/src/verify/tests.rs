use std::collections::BTreeMap;

use waggle_model::{Command, Flavour, Histogram, Identity, Loss, Reading, Statement};

use super::captured::DIGESTS_MAX;
use super::*;
use crate::counters::{Bucket, ConnectionDifference, DigestDifference, DigestKey, Sums};

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
fn a_dropped_statement_is_missing_and_its_digest_is_named() {
    let server = server("9.7.4", &[("SELECT ?", 10), ("SELECT `a`", 4)], 14, 0);
    let mut short = captured(&[("SELECT ?", false, 9), ("SELECT `a`", false, 4)]);
    short.lost.add(Loss::Injected, 1);
    let report = verify(&short, &server);
    assert!(!report.passed());
    assert_eq!((report.missing, report.extra), (1, 0));
    assert_eq!(report.digests_differing, 1);
    let differing = &report.differing[0];
    assert_eq!((differing.digest_text.as_str(), differing.field), ("SELECT ?", Field::Calls));
    assert_eq!((differing.ours, differing.theirs, differing.why), (9, 10, Some(Why::Lost)));
}

#[test]
fn a_loss_that_nobody_noticed_has_no_reason_and_fails() {
    let server = server("8.0.12", &[("SELECT ?", 10)], 10, 0);
    let report = verify(&captured(&[("SELECT ?", false, 8)]), &server);
    assert_eq!((report.missing, report.differing[0].why), (2, None));
    assert!(!report.passed());
}

#[test]
fn what_was_captured_twice_is_extra() {
    let server = server("9.7.4", &[("SELECT ?", 10)], 10, 0);
    let report = verify(&captured(&[("SELECT ?", false, 11)]), &server);
    assert_eq!((report.missing, report.extra, report.passed()), (0, 1, false));
}

#[test]
fn one_missing_in_a_connection_is_not_made_good_by_one_extra_in_another() {
    let mut server = server("9.7.4", &[("SELECT ?", 20)], 20, 0);
    let ran = |statements| ConnectionDifference { statements, ..ConnectionDifference::default() };
    connection(&mut server, 5, ran(11));
    connection(&mut server, 6, ran(9));
    let mut both = captured(&[("SELECT ?", false, 20)]);
    both.connections.insert(5, Calls { certain: 10, at_edges: 0 });
    both.connections.insert(6, Calls { certain: 10, at_edges: 0 });
    let report = verify(&both, &server);
    assert_eq!((report.missing, report.extra, report.passed()), (1, 1, false));
}

#[test]
fn a_connection_that_ended_is_compared_in_the_rest() {
    let mut server = server("9.7.4", &[("SELECT ?", 20)], 20, 0);
    let ran = |statements| ConnectionDifference { statements, ..ConnectionDifference::default() };
    connection(&mut server, 6, ran(8));
    let mut both = captured(&[("SELECT ?", false, 20)]);
    both.connections = BTreeMap::from([
        (5, Calls { certain: 12, at_edges: 0 }),
        (6, Calls { certain: 8, at_edges: 0 }),
    ]);
    let report = verify(&both, &server);
    assert_eq!((report.missing, report.extra, report.passed()), (0, 0, true));
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

#[test]
fn a_statement_that_runs_at_the_second_reading_may_be_captured_first() {
    let mut server = server("9.7.4", &[("SELECT ?", 9)], 9, 0);
    server.running_after = 1;
    let running = ConnectionDifference { statements: 9, running_after: true, ..Default::default() };
    connection(&mut server, 5, running);
    let report = verify(&captured(&[("SELECT ?", false, 10)]), &server);
    assert_eq!((report.missing, report.extra, report.in_flight), (0, 0, 1));
    assert!(report.passed(), "{report:?}");
}

#[test]
fn killed_connections_that_were_noticed_are_not_missing() {
    let server = server("8.0.12", &[("SELECT ?", 10)], 10, 0);
    let mut killed = captured(&[("SELECT ?", false, 9)]);
    killed.lost.add(Loss::EndedUnseen, 1);
    let report = verify(&killed, &server);
    assert_eq!((report.missing, report.differing[0].why), (0, Some(Why::EndedUnseen)));
    assert!(report.passed());
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
fn where_the_end_of_the_work_is_known_the_times_of_the_server_lie_before_it() {
    for (replied, done, theirs, within, why) in [
        (10_000, 40_000, 39_000, true, None),
        (10_000, 40_000, 25_000, false, Some(Why::TimedBetween)),
        (10_000, 40_000, 50_000, false, None),
        (20_000, 40_000, 10_000, false, None),
    ] {
        let mut server = server("9.7.4", &[("SELECT ?", 1)], 1, 0);
        let Reading::Value(digests) = &mut server.digests else { panic!("no digests") };
        digests[0].sums.timer_wait_ps = theirs * 1000;
        let mut timed = captured(&[("SELECT ?", false, 1)]);
        for one in timed.digests.values_mut() {
            one.latency_ns.record(replied);
            one.duration_ns.record(done);
        }
        let report = verify(&timed, &server);
        assert_eq!(report.differing.is_empty(), within, "{theirs}");
        assert_eq!(report.differing.first().and_then(|one| one.why), why);
    }
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
fn times_have_a_tolerance_and_do_not_decide() {
    for (ours_ns, theirs_ns, within, why) in [
        (1_000_000, 1_029_000, true, None),
        (10_000, 12_900, true, None),
        (10_000, 40_000, false, Some(Why::TimedLonger)),
        (40_000, 10_000, false, None),
        (1_000_000, 9_000_000, false, None),
    ] {
        let mut server = server("9.7.4", &[("SELECT ?", 1)], 1, 0);
        let Reading::Value(digests) = &mut server.digests else { panic!("no digests") };
        digests[0].sums.timer_wait_ps = theirs_ns * 1000;
        let mut timed = captured(&[("SELECT ?", false, 1)]);
        timed.digests.values_mut().for_each(|one| one.latency_ns.record(ours_ns));
        let report = verify(&timed, &server);
        assert!(report.passed());
        assert_eq!(report.differing.is_empty(), within, "{ours_ns} {theirs_ns}");
        assert_eq!(report.differing.first().and_then(|one| one.why), why);
        assert_eq!(report.times_passed(), within || why.is_some());
    }
}

#[test]
fn percentiles_lie_within_one_bucket() {
    let mut histogram = Histogram::default();
    (0..990).for_each(|_| histogram.record(1_000_000));
    (0..10).for_each(|_| histogram.record(200_000_000));
    let bucket = |low_us: u64, high_us: u64, count| Bucket {
        low_ps: low_us * 1_000_000,
        high_ps: high_us * 1_000_000,
        count,
    };
    for (buckets, within) in [
        ([bucket(990, 1050, 990), bucket(199_000, 205_000, 10)], true),
        ([bucket(1050, 1110, 990), bucket(199_000, 205_000, 10)], true),
        ([bucket(1110, 1170, 990), bucket(199_000, 205_000, 10)], false),
        ([bucket(990, 1050, 980), bucket(199_000, 205_000, 20)], false),
    ] {
        let mut server = server("9.7.4", &[("SELECT ?", 1000)], 1000, 0);
        let Reading::Value(digests) = &mut server.digests else { panic!("no digests") };
        digests[0].histogram = buckets.to_vec();
        digests[0].sums.timer_wait_ps = histogram.sum() * 1000;
        let mut timed = captured(&[("SELECT ?", false, 1000)]);
        timed.digests.values_mut().for_each(|one| one.latency_ns = histogram.clone());
        let report = verify(&timed, &server);
        assert_eq!(report.fields[&Field::LatencyPercentiles].equal == 1, within, "{buckets:?}");
    }
}

#[test]
fn lock_time_is_compared_only_where_it_means_the_same() {
    let both = captured(&[("SELECT ?", false, 4)]);
    for (version, compared) in [("9.7.4", true), ("8.0.12", false), ("11.4.5-MariaDB", false)] {
        let report = verify(&both, &server(version, &[("SELECT ?", 4)], 4, 0));
        assert_eq!(report.fields.contains_key(&Field::LockTime), compared, "{version}");
        let named = report.not_compared.iter().any(|why| why.starts_with("lock_time"));
        assert_eq!(named, !compared, "{version}");
    }
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
    captured.record(&statement, "SELECT ?", Edge::Inside);
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
        many.record(&statement, &text.to_string(), Edge::Inside);
    }
    assert_eq!((many.digests.len(), many.unkept), (DIGESTS_MAX, 1));
    assert_eq!(many.statements(), DIGESTS_MAX as u64 + 1);
    assert_eq!(many.record(&statement, "0", Edge::Inside).unwrap().text, "0", "it is kept");

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
}
