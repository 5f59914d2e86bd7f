//! What the sources list, and what they say of it.

use waggle_testkit::{Account, Version};

use super::{
    Audit, PFS, READY, TAP, builder, missing, session, session_of, start, statements, text, try_all,
};

/// Users of sessions that come and go.
const PASSING: [&str; 2] = ["ddl_ann", "ddl_bob"];

#[test]
fn of_a_session_at_work_only_the_drop_is_listed() {
    Version::each(|version| {
        let server = start(version);
        let mut client = session(&server);
        client.run("CREATE TABLE test.test (a INT)").unwrap();
        client.run("CREATE TABLE test.test_bak (a INT, b CHAR(9))").unwrap();
        let sources = [TAP, PFS].map(|source| (source, Audit::tail(&server, source, &[])));
        for statement in [
            "USE test",
            "SHOW TABLES",
            "SELECT COUNT(*) FROM test",
            "INSERT INTO test_bak VALUES (5, 'jack')",
            "SHOW CREATE TABLE test_bak",
            "DROP TABLE test_bak",
        ] {
            client.run(statement).unwrap();
        }
        for (source, mut audit) in sources {
            audit.wait_for_statements(1);
            let lines = audit.end();
            let listed = statements(&lines);
            assert_eq!(listed.len(), 1, "{version} {source}: {listed:#?}");
            let line = listed[0];
            assert_eq!(text(line, "kind"), "drop_table", "{version} {source}");
            assert_eq!(text(line, "text"), "DROP TABLE test_bak", "{version} {source}");
            assert_eq!(line["objects"][0]["schema"], "test", "{version} {source}");
            assert_eq!(line["objects"][0]["name"], "test_bak", "{version} {source}");
            assert_eq!(line["connection_id"], client.connection_id(), "{version} {source}");
            assert_eq!((text(line, "user"), text(line, "host")), ("root", "localhost"));
            assert_eq!(line["error"], 0, "{version} {source}");
            assert_eq!(missing(&lines), 0, "{version} {source}: {lines:#?}");
        }
    });
}

#[test]
fn what_is_not_shown_is_said() {
    Version::each(|version| {
        let server = start(version);
        let (mut client, left_out) = (session(&server), session(&server));
        for sql in [
            "INSERT INTO performance_schema.setup_actors VALUES ('%', 'nobody', '%', 'NO', 'NO')",
            &format!(
                "UPDATE performance_schema.threads SET INSTRUMENTED = 'NO' \
                 WHERE PROCESSLIST_ID = {}",
                left_out.connection_id()
            ),
        ] {
            client.run(sql).unwrap();
        }
        let mut audit = Audit::tail(&server, PFS, &[]);
        let statement = client.prepare("CREATE TABLE test.prepared (a INT)").unwrap();
        client.execute(&statement, &[], false).unwrap();
        client.run("DROP TABLE test.prepared").unwrap();
        let is_prepared_shown = version == Version::Mysql9;
        let expected = &["create_table", "drop_table"][usize::from(!is_prepared_shown)..];
        audit.wait_for_statements(expected.len());
        audit.stop();
        let (lines, said) = (audit.lines(), audit.err());
        let kinds: Vec<&str> =
            statements(&lines).into_iter().map(|line| text(line, "kind")).collect();
        assert_eq!(kinds, expected, "{version}: {lines:#?}");
        let limits = lines.iter().find(|line| line["type"] == "limits").unwrap();
        for (words, is_said) in [
            ("statements that a client prepared", !is_prepared_shown),
            (" of the sessions that are connected", true),
            ("who logs in under 1 of the rules", true),
        ] {
            let limits = limits["not_shown"].to_string();
            assert_eq!(limits.contains(words), is_said, "{version}: {limits}");
            assert_eq!(said.contains(words), is_said, "{version}: {said}");
        }
        assert!(said.contains("none is missing of what Performance Schema shows"), "{said}");
    });
}

#[test]
fn who_is_left_out_later_is_told_when_that_is_noticed() {
    let server = start(Version::Mysql9);
    let mut audit = Audit::tail(&server, PFS, &[]);
    let mut client = session(&server);
    let own = "UPDATE performance_schema.threads SET INSTRUMENTED = 'NO' WHERE PROCESSLIST_ID = \
               CONNECTION_ID()";
    client.run(own).unwrap();
    audit.wait_for("who is left out", |audit| {
        let limits = audit.lines().into_iter().filter(|line| line["type"] == "limits");
        let words: Vec<String> = limits.map(|line| line["not_shown"].to_string()).collect();
        words.iter().any(|words| words.contains("1 of the sessions that are connected"))
    });
    audit.stop();
}

#[test]
fn the_time_of_a_statement_is_the_same_in_both_sources() {
    let server = start(Version::Mysql80);
    let sources = [TAP, PFS].map(|source| Audit::tail(&server, source, &[]));
    let mut client = session(&server);
    let begin = jiff::Timestamp::now();
    client.run("CREATE TABLE test.timed (a INT)").unwrap();
    let end = jiff::Timestamp::now();
    for mut audit in sources {
        audit.wait_for_statements(1);
        let lines = audit.end();
        let time: jiff::Timestamp = text(statements(&lines)[0], "time").parse().unwrap();
        // Two clocks are read one after the other, and the processor may be taken away between: a fault is of seconds or hours.
        let slack = jiff::SignedDuration::from_millis(500);
        assert!(begin - slack <= time && time <= end + slack, "{begin} {time} {end}");
    }
}

#[test]
fn what_is_chosen_is_listed_and_nothing_else() {
    let server = start(Version::Mysql9);
    let mut client = session(&server);
    client.run("CREATE DATABASE other").unwrap();
    client.run(format!("CREATE USER {0}@localhost", PASSING[0])).unwrap();
    client.run(format!("GRANT ALL ON *.* TO {0}@localhost", PASSING[0])).unwrap();
    let choices: [(&[&str], &[&str]); 5] = [
        (&["--schema", "other"], &["create_table other.a", "drop_table other.a"]),
        (&["--user", "ddl_%"], &["create_table test.c"]),
        (
            &["--object", "other.a", "--object", "b"],
            &[
                "create_table other.a",
                "create_table test.b",
                "drop_table other.a",
                "truncate test.b",
            ],
        ),
        (
            &["--kind", "create_%", "--kind", "truncate"],
            &[
                "create_table other.a",
                "create_table test.b",
                "create_table test.c",
                "truncate test.b",
            ],
        ),
        (&["--kind", "drop_table", "--schema", "other"], &["drop_table other.a"]),
    ];
    let everything = Audit::tail(&server, TAP, &[]);
    let mut audits = Vec::new();
    for (words, expected) in choices {
        let mut audit = Audit::spawn(&server, TAP, &[&["tail", "--json"], words].concat());
        audit.wait_for("the tap", |audit| audit.err().contains("Ctrl-C ends"));
        audits.push((audit, words.join(" "), expected));
    }
    // Only one may set a profile at a time.
    let pfs = Audit::tail(&server, PFS, &["--object", READY, "--object", "other.%"]);
    audits.push((pfs, "pfs".to_owned(), &["create_table other.a", "drop_table other.a"]));
    try_all(&mut client, &["CREATE TABLE other.a (a INT)", "CREATE TABLE b (a INT)"]);
    let mut other = session_of(&server, Account { user: PASSING[0], password: "" });
    other.run("CREATE TABLE c (a INT)").unwrap();
    try_all(&mut client, &["TRUNCATE b", "DROP TABLE other.a"]);
    for (mut audit, words, expected) in audits {
        audit.wait_for_statements(expected.len());
        let lines = audit.end();
        let mut listed: Vec<String> = statements(&lines).into_iter().map(in_words).collect();
        listed.sort();
        assert_eq!(listed, expected, "{words}");
    }
    assert_eq!(statements(&everything.end()).len(), 5);
}

fn in_words(line: &serde_json::Value) -> String {
    let object = &line["objects"][0];
    format!("{} {}.{}", text(line, "kind"), text(object, "schema"), text(object, "name"))
}

#[test]
fn a_session_that_has_gone_is_named_by_its_account() {
    Version::each(|version| {
        let server = start(version);
        let mut admin = session(&server);
        for user in PASSING {
            admin.run(format!("CREATE USER {user}@localhost")).unwrap();
            admin.run(format!("GRANT ALL ON *.* TO {user}@localhost")).unwrap();
        }
        let mut audit = Audit::tail(&server, PFS, &["--every", "3s"]);
        // What made it ready has gone, too: it is not to come in one poll with those below.
        let mark = format!("{READY}_and_listed");
        admin.run(format!("CREATE TABLE test.{mark} (a INT)")).unwrap();
        audit.wait_for("the mark", |audit| audit.printed().contains(&mark));
        let run = |user: &'static str, statement: &str| {
            let mut client = session_of(&server, Account { user, password: "" });
            client.run(statement).unwrap();
            client.quit().unwrap();
        };
        run(PASSING[0], "CREATE TABLE test.gone (a INT)");
        run(PASSING[1], "DROP TABLE test.gone");
        audit.wait_for_statements(2);
        let lines = audit.end();
        let listed = statements(&lines);
        let who = listed.iter().map(|line| (text(line, "kind"), text(line, "user")));
        let who: Vec<_> = who.collect();
        let expected = [("create_table", PASSING[0]), ("drop_table", PASSING[1])];
        assert_eq!(who, expected, "{version}: {listed:#?}");
    });
}

#[test]
fn what_the_ring_lost_is_counted() {
    const RUN: u64 = 60;
    Version::each(|version| {
        let server = builder(version)
            .arg("--performance-schema-events-statements-history-long-size=20")
            .start()
            .unwrap();
        let mut audit = Audit::tail(&server, PFS, &["--every", "2s"]);
        let mut client = session(&server);
        // What it took until it was ready may have filled the ring: that is told before the second.
        for mark in ["mark_1", "mark_2"] {
            client.run(format!("CREATE TABLE test.{mark} (a INT)")).unwrap();
            audit.wait_for("the mark", |audit| audit.printed().contains(mark));
        }
        let before = missing(&audit.lines());
        for number in 0..RUN {
            client.run(format!("DROP TABLE IF EXISTS test.nosuch_{number}")).unwrap();
        }
        let seen = |lines: &[serde_json::Value]| {
            let listed = statements(lines).len() as u64 - 2;
            (listed, missing(lines) - before)
        };
        audit.wait_for("the gap", |audit| {
            let (listed, missing) = seen(&audit.lines());
            listed + missing >= RUN
        });
        let lines = audit.end();
        let (listed, missing) = seen(&lines);
        assert_eq!(listed + missing, RUN, "{version}: {lines:#?}");
        assert!(listed < RUN && listed > 0, "{version}: {listed} were listed");
        let gap = lines.iter().rfind(|line| line["type"] == "gap").unwrap();
        assert_eq!(gap["by"].as_object().unwrap().len(), 1, "{version}: {gap}");
        assert!(gap["by"]["statement/sql/drop_table"].as_u64().unwrap() > 0, "{version}: {gap}");
    });
}

#[test]
fn a_server_that_is_killed_ends_the_one_source_and_not_the_other() {
    let mut server = start(Version::Mariadb114);
    let mut tap = Audit::tail(&server, TAP, &[]);
    let mut pfs = Audit::tail(&server, PFS, &[]);
    session(&server).run("CREATE TABLE test.last (a INT)").unwrap();
    tap.wait_for_statements(1);
    pfs.wait_for_statements(1);
    server.kill9().unwrap();
    assert_eq!(pfs.wait_for_end(), Some(4), "{}", pfs.err());
    assert!(pfs.err().contains("the connection broke"), "{}", pfs.err());
    assert_eq!(statements(&pfs.lines()).len(), 1);
    tap.wait_for("the news", |audit| audit.err().contains("the server has ended"));
    assert_eq!(statements(&tap.end()).len(), 1);
}

#[test]
fn what_is_set_is_undone_and_a_switch_by_somebody_else_is_told() {
    let server = start(Version::Mysql9);
    let mut client = session(&server);
    let mut setting = || {
        let sql = "SELECT GROUP_CONCAT(NAME, ENABLED ORDER BY NAME) FROM \
                   performance_schema.setup_consumers";
        client.run(sql).unwrap()[0].text(0, 0).unwrap()
    };
    let before = setting();
    let audit = Audit::tail(&server, PFS, &[]);
    assert_ne!(setting(), before);
    audit.end();
    assert_eq!(setting(), before);

    for (set, what) in [
        ("consumers SET ENABLED = 'NO'", "events_statements_history_long"),
        ("instruments SET ENABLED = 'NO'", "statement/abstract/Query"),
        ("instruments SET ENABLED = 'NO'", "statement/sql/drop_table"),
        ("instruments SET TIMED = 'NO'", "statement/com/Execute"),
    ] {
        // What ended before is not yet polled when it is switched off.
        let mut audit = Audit::tail(&server, PFS, &["--every", "3s"]);
        let sql = format!("UPDATE performance_schema.setup_{set} WHERE NAME = '{what}'");
        let mut other = session(&server);
        other.run("DROP TABLE IF EXISTS test.before_the_switch").unwrap();
        other.run(sql).unwrap();
        assert_eq!(audit.wait_for_end(), Some(4), "{}", audit.err());
        let said = audit.err();
        assert!(said.contains(&format!("{what} was switched off")), "{said}");
        assert!(audit.printed().contains("before_the_switch"), "{what}: {}", audit.printed());
        let is_timing = said.contains("the timing of ");
        assert_eq!(is_timing, set.contains("TIMED"), "{said}");
    }
}
