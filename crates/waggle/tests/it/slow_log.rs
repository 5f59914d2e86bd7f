//! The slow log that waggle writes, read by the tool that most people read one with.

use std::collections::BTreeMap;
use std::process::Command;
use std::thread;

use serde_json::{Value, json};
use waggle_sql::{Dialect, Normaliser};
use waggle_testkit::sysbench::{Length, Sysbench};
use waggle_testkit::{Server, Version, wait_until};

use crate::verified::Verified;
use crate::watching::Waggle;
use crate::{load, size, watched};

/// The server's threads add to a digest row without a lock, to each of its columns by itself: of this many
/// calls or rows one may be missed (15 of 5,020 rows examined were seen). `waggle verify` allows as much
/// for calls, by the evidence of the server's totals, and less for sums.
const RACED_ONE_IN: u64 = 50;

/// What is compared of a class of statements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Class {
    calls: u64,
    rows_sent: u64,
    rows_examined: u64,
    microseconds: f64,
}

/// A number of the report, which has sums as text.
fn sum(class: &Value, metric: &str) -> f64 {
    class["metrics"][metric]["sum"].as_str().unwrap().parse().unwrap()
}

/// The classes of pt-query-digest by the digest text of their example.
fn classes(log: &str) -> BTreeMap<String, Class> {
    let arguments = ["--output", "json", "--limit", "100", log];
    let output = Command::new("pt-query-digest").args(arguments).output();
    let output = output.unwrap_or_else(|error| {
        panic!("pt-query-digest cannot be run: {error}; install percona-toolkit")
    });
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut normaliser = Normaliser::new(Dialect::Mysql9);
    let class = |class: &Value| {
        let example = class["example"]["query"].as_str().unwrap();
        let text = normaliser.digest(example.as_bytes()).text().to_owned();
        let one = Class {
            calls: class["query_count"].as_u64().unwrap(),
            rows_sent: sum(class, "Rows_sent") as u64,
            rows_examined: sum(class, "Rows_examined") as u64,
            microseconds: sum(class, "Query_time") * 1e6,
        };
        (text, one)
    };
    report["classes"].as_array().unwrap().iter().map(class).collect()
}

/// The server's own numbers, and the latency as `watch --json` has it.
fn digests(server: &Server, lines: &[Value]) -> BTreeMap<String, Class> {
    let mut client = load::session(server);
    let sql = "SELECT DIGEST_TEXT, COUNT_STAR, SUM_ROWS_SENT, SUM_ROWS_EXAMINED \
               FROM performance_schema.events_statements_summary_by_digest \
               WHERE SCHEMA_NAME = 'test' AND DIGEST_TEXT REGEXP 'sbtest|^BEGIN|^COMMIT'";
    let rows = client.run(sql).unwrap().remove(0);
    let number = |row, column| rows.text(row, column).unwrap().parse::<u64>().unwrap();
    let of_row = |row| {
        let class = Class {
            calls: number(row, 1),
            rows_sent: number(row, 2),
            rows_examined: number(row, 3),
            microseconds: 0.0,
        };
        (rows.text(row, 0).unwrap(), class)
    };
    let mut digests: BTreeMap<String, Class> = (0..rows.rows.len()).map(of_row).collect();
    for digest in lines.iter().flat_map(|line| line["digests"].as_array().unwrap()) {
        let known = digests.get_mut(digest["digest_text"].as_str().unwrap_or_default());
        if let (Some(class), Some(sum)) = (known, digest["latency_us"]["sum"].as_f64()) {
            class.microseconds += sum;
        }
    }
    digests
}

#[test]
fn pt_query_digest_reads_what_the_server_counted() {
    let server = Server::start(Version::Mysql9).unwrap();
    let mut sysbench = Sysbench::new("oltp_read_write");
    // Tables whose names differ in digits are one class for pt-query-digest.
    (sysbench.tables, sysbench.threads) = (1, 4);
    sysbench.length = Length::Events(size::choose(500, 20_000));
    sysbench.prepare(&server).unwrap();
    let forget = "TRUNCATE performance_schema.events_statements_summary_by_digest";
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("slow.log");
    let log = log.to_str().unwrap();
    let mut waggle = Waggle::watch(&server, &["--slowlog", log, "--limit", "100"]);
    let verified = Verified::around(&server, &[], |_| {
        let mut client = load::session(&server);
        client.run("USE mysql").unwrap();
        client.run(forget).unwrap();
        client.quit().unwrap();
        sysbench.run(&server).unwrap();
    });
    waggle.wait_for_lines(2);
    let ended = waggle.interrupt();
    assert_eq!(ended.code, Some(0), "{}", ended.err);

    let theirs = digests(&server, &ended.lines());
    let classes = classes(log);
    let of_sysbench = classes.iter().filter(|(text, _)| theirs.contains_key(*text));
    let mut compared = 0;
    for (text, read) in of_sysbench {
        let counted = theirs[text];
        compared += 1;
        for (ours, theirs) in [
            (read.calls, counted.calls),
            (read.rows_sent, counted.rows_sent),
            (read.rows_examined, counted.rows_examined),
        ] {
            let missed = ours.checked_sub(theirs);
            assert!(
                missed.is_some_and(|missed| missed <= ours.div_ceil(RACED_ONE_IN)),
                "{text}: {read:?}, the server {counted:?}"
            );
        }
        // Each entry is rounded to a microsecond, each sum of an interval down to one.
        let slack = read.calls as f64 + 100.0;
        assert!(
            (read.microseconds - counted.microseconds).abs() <= slack,
            "{text}: {read:?}, {counted:?}"
        );
    }
    let unread: Vec<_> = theirs.keys().filter(|text| !classes.contains_key(*text)).collect();
    assert_eq!((compared, &unread), (11, &Vec::new()), "BEGIN, COMMIT and nine statements");
    size::keep(&json!({
        "test": "slow_log", "server": server.version_string(), "classes": compared,
        "captured_by_verify": verified.report["captured"],
    }));
}

#[test]
fn a_slow_log_that_cannot_be_written_stops_alone_and_what_it_lacks_is_counted() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let pid = server.pid().to_string();
    let refused = Waggle::start(&["watch", "--json", "--pid", &pid, "--slowlog", "/nowhere/x"]);
    let refused = refused.end();
    assert_eq!(refused.code, Some(3), "{}", refused.err);
    assert!(refused.err.contains("--slowlog /nowhere/x"), "{}", refused.err);
    let mut full = Waggle::watch(&server, &["--slowlog", "/dev/full", "--interval", "300ms"]);
    let mut client = load::session(&server);
    client.run("SELECT 1").unwrap();
    full.wait_for("the complaint", |full| {
        full.err().contains("--slowlog /dev/full cannot be written: No space left")
            && full.err().contains("all else goes on")
    });
    client.run("SELECT 'after', 2").unwrap();
    full.wait_for("what came after it", |full| full.printed().contains("SELECT ?, ..."));
    let full = full.interrupt();
    assert_eq!(full.code, Some(4), "{}", full.err);
    let captured = watched::sum(&full.lines(), "/statements");
    let last = full.err.lines().last().unwrap();
    let counted = format!("; {captured} statements are not in it");
    assert!(captured >= 2 && last.ends_with(&counted), "{captured}: {}", full.err);
    assert_eq!(full.err.matches("No space left").count(), 2, "{}", full.err);
}

/// Without a start, nobody knows how long a statement took that began before the tap.
#[test]
fn a_slow_log_without_the_statements_of_unknown_latency_lacks_them() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("slow.log");
    let log = log.to_str().unwrap();
    let hidden = ["--hide-field", "start_time", "--interval", "300ms"];
    let options = ["--slowlog", log, "--slowlog-above", "10ms"];
    let (mut early, mut root) = (load::session(&server), server.root().unwrap());
    let ended = thread::scope(|scope| {
        let lock = "SELECT GET_LOCK('slow log', 1000)";
        root.run(lock).unwrap();
        let waits = scope.spawn(move || early.run(lock).unwrap());
        let of_others =
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'";
        wait_until("a session waits", || {
            root.run(of_others).unwrap()[0].text(0, 0).unwrap() == "1"
        });
        let mut waggle = Waggle::watch(&server, &[&hidden[..], &options].concat());
        root.run("DO RELEASE_LOCK('slow log')").unwrap();
        waits.join().unwrap();
        waggle.wait_for("the complaint", |waggle| waggle.err().contains("--slowlog-above leaves"));
        waggle.interrupt()
    });
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    let last = ended.err.lines().last().unwrap();
    let lack = format!("1 statement is not in --slowlog {log}: the time it took is not known");
    assert!(last.ends_with(&lack), "{}", ended.err);
}

#[test]
fn csv_has_a_line_for_each_digest_with_the_columns_of_its_head() {
    let server = Server::start(Version::Mariadb114).unwrap();
    let pid = server.pid().to_string();
    let mut waggle = Waggle::start(&["watch", "--csv", "--pid", &pid, "--interval", "500ms"]);
    waggle.wait_for("a digest", |waggle| {
        load::session(&server).run("SELECT 'a,\"b', 1 AS `x,y`").unwrap();
        waggle.printed().contains("`x,y`")
    });
    let ended = waggle.interrupt();
    let mut lines = csv::Reader::from_reader(ended.out.as_bytes());
    let columns: Vec<String> = lines.headers().unwrap().iter().map(str::to_owned).collect();
    let reference = include_str!("../../../../docs/reference/watch-csv.md");
    for column in &columns {
        assert!(reference.contains(&format!("`{column}`")), "not in the reference: {column}");
    }
    let at = |name: &str| columns.iter().position(|column| column == name).unwrap();
    let rows: Vec<csv::StringRecord> = lines.records().map(Result::unwrap).collect();
    let ours = rows.iter().find(|row| row[at("digest_text")].contains("`x,y`")).unwrap();
    assert_eq!((&ours[at("pid")], &ours[at("schema")]), (pid.as_str(), "test"));
    assert!(ours[at("calls")].parse::<u64>().unwrap() >= 1);
}
