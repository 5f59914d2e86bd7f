//! Only what was chosen is recorded.

use waggle_mysql::Connection;
use waggle_mysql::connection::text;
use waggle_testkit::{Account, Client, Transport, Version, wait_for};

use super::holding::{assert_as_before, without_threads};
use super::{Scene, assert_ended, stderr};

fn connect(scene: &Scene, account: Account) -> Client {
    Client::connect(&scene.server, Transport::Unix, account).unwrap()
}

/// Selections that Performance Schema has counted of a session.
fn selections(connection: &mut Connection, client: &mut Client) -> u64 {
    // A statement is counted after its reply: the next reply shows that it was.
    client.ping().unwrap();
    let rows = connection.rows(&format!(
        "SELECT SUM(COUNT_STAR) FROM performance_schema\
         .events_statements_summary_by_thread_by_event_name s JOIN performance_schema.threads t \
         USING (THREAD_ID) WHERE EVENT_NAME = 'statement/sql/select' AND t.PROCESSLIST_ID = {}",
        client.connection_id()
    ));
    text(&rows.unwrap()[0], 0).parse().unwrap_or(0)
}

/// Whether a session has a history.
fn history(connection: &mut Connection, client: &Client) -> bool {
    let rows = connection.rows(&format!(
        "SELECT HISTORY FROM performance_schema.threads WHERE PROCESSLIST_ID = {}",
        client.connection_id()
    ));
    text(&rows.unwrap()[0], 0) == "YES"
}

/// How often a table was read or written; a table that is not recorded has no row.
fn table_io(connection: &mut Connection, schema: &str, table: &str) -> u64 {
    let rows = connection.rows(&format!(
        "SELECT SUM(COUNT_STAR) FROM performance_schema.table_io_waits_summary_by_table \
         WHERE OBJECT_SCHEMA = '{schema}' AND OBJECT_NAME LIKE '{table}'"
    ));
    text(&rows.unwrap()[0], 0).parse().unwrap_or(0)
}

fn held(scene: &Scene, words: &[&str], check: impl FnOnce()) {
    let holding = scene.hold(words);
    check();
    assert_ended(&holding.end(), 0, &[], "");
}

#[test]
fn an_account_is_recorded_alone() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let (mut chosen, mut other) =
            (connect(&scene, Account::APP), connect(&scene, Account::ROOT));
        let account = format!("{}@%", Account::APP.user);
        let mut watcher = scene.connect();
        let had_history = history(&mut watcher, &other);
        let mut came = None;
        held(&scene, &["apply", "statements", "--account", &account], || {
            let mut new_chosen = connect(&scene, Account::APP);
            let mut new_other = connect(&scene, Account::ROOT);
            for (client, is_chosen) in [
                (&mut chosen, true),
                (&mut other, false),
                (&mut new_chosen, true),
                (&mut new_other, false),
            ] {
                assert_eq!(history(&mut watcher, client), is_chosen, "{version}: HISTORY");
                let before = selections(&mut watcher, client);
                (0..5).for_each(|_| drop(client.query("SELECT 1").unwrap()));
                let counted = selections(&mut watcher, client) - before;
                assert_eq!(counted, if is_chosen { 5 } else { 0 }, "{version}");
            }
            came = Some(new_other);
        });
        // Excluded while it held, the one that was there before and the one that came.
        for client in [&mut other, came.as_mut().unwrap()] {
            assert_eq!(history(&mut watcher, client), had_history, "{version}: HISTORY after");
            let before = selections(&mut watcher, client);
            client.query("SELECT 1").unwrap();
            let counted = selections(&mut watcher, client) - before;
            assert_eq!(counted, 1, "{version}: after the rollback");
        }
    }
}

#[test]
fn a_schema_and_an_object_are_recorded_alone() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut client = connect(&scene, Account::ROOT);
        for sql in [
            "CREATE DATABASE one",
            "CREATE DATABASE two",
            "CREATE TABLE one.a (x INT)",
            "CREATE TABLE two.a (x INT)",
            "CREATE TABLE two.b (x INT)",
        ] {
            client.run(sql).unwrap();
        }
        let mut watcher = scene.connect();
        let mut counts = |words: &[&str]| {
            let mut counted = Vec::new();
            held(&scene, words, || {
                let mut new = connect(&scene, Account::ROOT);
                for (schema, table) in [("one", "a"), ("two", "a"), ("two", "b")] {
                    // A session that was there before, and one that came while it holds.
                    let by_each = [&mut client, &mut new].map(|client| {
                        let before = table_io(&mut watcher, schema, table);
                        client.run(format!("INSERT INTO {schema}.{table} VALUES (1)")).unwrap();
                        table_io(&mut watcher, schema, table).saturating_sub(before)
                    });
                    counted.push(by_each);
                }
            });
            counted
        };
        let schema = counts(&["apply", "default", "--schema", "one"]);
        assert_eq!(schema, [[1, 1], [0, 0], [0, 0]], "{version}: --schema");
        let object = counts(&["apply", "default", "--object", "TABLE:two.b"]);
        assert_eq!(object, [[0, 0], [0, 0], [1, 1]], "{version}: --object");
    }
}

/// Runs once, at once, and leaves a row; one that is dropped loses its counts.
const EVENT: &str = "CREATE EVENT %.e# ON SCHEDULE AT CURRENT_TIMESTAMP ON COMPLETION PRESERVE DO \
                     BEGIN INSERT INTO %.ran# VALUES (1); DO SLEEP(0); END";
/// Each kind of program, its name, and what runs it: `%` is the schema, `#` what a name ends with. What
/// makes an event runs it.
const PROGRAMS: [(&str, &str, &str); 4] = [
    ("PROCEDURE", "p", "CALL %.p#()"),
    ("FUNCTION", "f", "SELECT %.f#()"),
    ("TRIGGER", "g", "INSERT INTO %.t# VALUES (1)"),
    ("EVENT", "e", EVENT),
];
/// What makes the others.
const MADE: [&str; 5] = [
    "CREATE TABLE %.t# (x INT)",
    "CREATE TABLE %.ran# (x INT)",
    "CREATE PROCEDURE %.p#() BEGIN DECLARE a INT; SELECT 1 INTO a; END",
    "CREATE FUNCTION %.f#() RETURNS INT DETERMINISTIC \
     BEGIN DECLARE a INT; SELECT 1 INTO a; RETURN a; END",
    "CREATE TRIGGER %.g# BEFORE INSERT ON %.t# FOR EACH ROW SET @x = (SELECT 1)",
];
/// The schema and the end of the name: the chosen program, another one of its schema, and one of its name in
/// another schema.
const WHICH: [(&str, &str); 3] = [("one", ""), ("one", "2"), ("two", "")];

/// A statement for one of them.
fn named(sql: &str, (schema, end): (&str, &str)) -> String {
    sql.replace('%', schema).replace('#', end)
}

/// Whether the event has run and its thread is gone.
fn has_run(client: &mut Client, which: (&str, &str)) -> Option<()> {
    let mut rows = |sql: &str| client.run(sql).unwrap()[0].rows.len();
    let running = "SELECT 1 FROM performance_schema.threads WHERE NAME LIKE '%event_worker'";
    (rows(&named("SELECT 1 FROM %.ran#", which)) > 0 && rows(running) == 0).then_some(())
}

/// Runs a program, and gives how many statements of it were counted. They are where the server has a table
/// for that (MySQL and MariaDB alike).
fn counted(
    watcher: &mut Connection,
    client: &mut Client,
    (kind, name, run): (&str, &str, &str),
    which: (&str, &str),
) -> u64 {
    let (schema, end) = which;
    let sql = format!(
        "SELECT SUM(COUNT_STAR) FROM performance_schema.events_statements_summary_by_program \
         WHERE OBJECT_TYPE = '{kind}' AND OBJECT_SCHEMA = '{schema}' AND OBJECT_NAME = '{name}{end}'"
    );
    let mut read = || text(&watcher.rows(&sql).unwrap()[0], 0).parse::<u64>().unwrap_or(0);
    let before = read();
    client.run(named(run, which)).unwrap();
    if kind == "EVENT" {
        wait_for("the event", || has_run(client, which));
    }
    read() - before
}

#[test]
fn each_kind_of_program_is_recorded_alone_and_so_are_those_of_a_schema() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let mut client = connect(&scene, Account::ROOT);
        for schema in ["one", "two"] {
            client.run(format!("CREATE DATABASE {schema}")).unwrap();
        }
        for (which, sql) in WHICH.iter().flat_map(|which| MADE.map(|sql| (*which, sql))) {
            client.run(named(sql, which)).unwrap();
        }
        client.run("SET GLOBAL event_scheduler = ON").unwrap();
        let mut watcher = scene.connect();
        for program in PROGRAMS {
            let (kind, name, _) = program;
            let object = format!("{kind}:one.{name}");
            held(&scene, &["apply", "default", "--object", &object], || {
                let mut new = connect(&scene, Account::ROOT);
                // An event runs in a session of its own, always a new one.
                let sessions = if kind == "EVENT" { 1 } else { 2 };
                for client in [&mut client, &mut new].into_iter().take(sessions) {
                    let counts = WHICH.map(|which| counted(&mut watcher, client, program, which));
                    let is_alone = counts[0] > 0 && counts[1..] == [0, 0];
                    assert!(is_alone, "{version} {object}: {counts:?} of {WHICH:?}");
                }
            });
        }
        held(&scene, &["apply", "default", "--schema", "one"], || {
            for program in PROGRAMS.into_iter().filter(|(kind, ..)| *kind != "EVENT") {
                let counts = WHICH.map(|which| counted(&mut watcher, &mut client, program, which));
                let are_of_it = counts[0] > 0 && counts[1] > 0 && counts[2] == 0;
                assert!(are_of_it, "{version} {}: {counts:?} of {WHICH:?}", program.0);
            }
        });
    }
}

#[test]
fn a_thread_is_recorded_alone_by_number_and_by_name() {
    for version in Version::ALL {
        let scene = Scene::of(version);
        let (mut chosen, mut other) =
            (connect(&scene, Account::APP), connect(&scene, Account::APP));
        let mut watcher = scene.connect();
        let thread = watcher.rows(&format!(
            "SELECT THREAD_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = {}",
            chosen.connection_id()
        ));
        let thread = text(&thread.unwrap()[0], 0);
        let mut count = |client: &mut Client| {
            let before = selections(&mut watcher, client);
            client.query("SELECT 1").unwrap();
            selections(&mut watcher, client) - before
        };
        for (thread, expected) in [
            (thread.as_str(), (1, 0, 0)),
            ("thread/sql/main", (0, 0, 0)),
            ("thread/sql/one_connection", (1, 1, 1)),
        ] {
            held(&scene, &["apply", "statements", "--thread", thread], || {
                let mut new = connect(&scene, Account::APP);
                let counted = (count(&mut chosen), count(&mut other), count(&mut new));
                assert_eq!(counted, expected, "{version} {thread}");
            });
        }
        let mut later = connect(&scene, Account::APP);
        assert_eq!(count(&mut later), 1, "{version}: after the rollback");
    }
}

#[test]
fn what_is_not_there_is_told_and_what_no_rule_can_hold_is_refused() {
    let there = ["--account", "root@localhost", "--schema", "test", "--object", "TABLE:test.t"];
    let missing = [
        ("--account", "nobody@%", "account nobody@%"),
        ("--schema", "tset", "schema tset"),
        ("--object", "TABLE:test.u", "table test.u"),
        ("--object", "EVENT:test.t", "event test.t"),
        ("--object", "TRIGGER:test.t", "trigger test.t"),
        ("--object", "FUNCTION:test.t", "function test.t"),
        ("--object", "PROCEDURE:test.t", "procedure test.t"),
    ];
    for version in Version::ALL {
        let scene = Scene::of(version);
        connect(&scene, Account::ROOT).run("CREATE TABLE test.t (x INT)").unwrap();
        let plan = |filter: &[&str]| {
            scene.run(&[&["plan", "io", "--interval", "10ms"][..], filter].concat())
        };
        let seen = String::from_utf8(plan(&there).stdout).unwrap();
        assert!(!seen.contains("look again"), "{version}: {seen}");
        for (option, name, what) in missing {
            let planned = plan(&[option, name]);
            let said = String::from_utf8(planned.stdout).unwrap();
            assert!(said.contains("look again") && said.contains(what), "{version}: {said}");
        }
        for (option, name, why) in [
            ("--account", "'app'@'%'", "without quotes"),
            ("--account", "app@10.0.%", "a whole name"),
            ("--schema", "shop%", "a whole name"),
            ("--schema", "", "missing"),
            ("--object", "TABLE:%.orders", "needs its schema"),
            ("--thread", "thread/sql/nosuch", "none of this name to come"),
        ] {
            assert_ended(&plan(&[option, name]), 2, &[why], format_args!("{version} {name}"));
        }
    }
}

#[test]
fn a_table_that_is_full_names_the_variable_to_raise() {
    for version in Version::ALL {
        let options = ["=ON", "-setup-actors-size=1", "-setup-objects-size=20"];
        let options = options.map(|option| format!("--performance-schema{option}"));
        let scene = Scene::with(version, options);
        let before = without_threads(&scene.read());
        let plan = |words: &[&str]| {
            let planned =
                scene.run(&[&["plan", "minimal", "--interval", "10ms"][..], words].concat());
            assert_eq!(planned.status.code(), Some(0), "{version}: {}", stderr(&planned));
            String::from_utf8(planned.stdout).unwrap()
        };
        // It takes the place of the row for everybody.
        let enough = plan(&["--account", "a@%"]);
        assert!(!enough.contains("performance_schema_setup_"), "{version}: {enough}");
        for (words, variable) in [
            (["--account", "a@%", "--account", "b@%"], "performance_schema_setup_actors_size"),
            (
                ["--object", "TABLE:a.b", "--object", "TABLE:c.d"],
                "performance_schema_setup_objects_size",
            ),
        ] {
            let planned = plan(&words);
            let is_told =
                |line: &str| line.starts_with("cannot be changed: ") && line.contains(variable);
            assert!(planned.lines().any(is_told), "{version}: {variable}: {planned}");
            let refused = scene.run(&[&["apply", "minimal", "--for", "1s"][..], &words].concat());
            let said = stderr(&refused);
            assert_eq!(refused.status.code(), Some(4), "{version}: {said}");
            let is_full = |line: &str| line.contains(" is full: ") && line.contains(variable);
            assert!(said.lines().any(is_full), "{version}: {variable}: {said}");
            assert_as_before(&scene, &before, version.name());
        }
    }
}
