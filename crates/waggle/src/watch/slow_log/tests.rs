use std::fs;

use waggle_model::{Command, Identity, Parts, Text, TimeClass, Usage};

use super::*;

fn log(folder: &Path, above: Duration, redact: bool) -> SlowLog {
    let path = folder.join("slow.log");
    SlowLog::open(SlowLogOptions { path, above, redact }).unwrap()
}

fn written(above: Duration, redact: bool, statements: &[Statement<'_>]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut log = log(folder.path(), above, redact);
    log.entries.clocks = Clocks::at(5_000_000_000, "2026-01-02T03:04:05.5Z".parse().unwrap());
    statements.iter().for_each(|statement| log.ended(statement));
    assert_eq!(log.close(), [] as [String; 0]);
    fs::read_to_string(folder.path().join("slow.log")).unwrap()
}

fn statement<'a>(text: &'a str, identity: &'a Identity) -> Statement<'a> {
    Statement {
        connection_id: Some(8),
        command: Some(Command::QUERY),
        latency_ns: Some(1_500_000),
        text: Some(Text { bytes: text.as_bytes(), length: text.len() as u64 }),
        lock_ns: Some(2_000),
        rows_sent: Some(1),
        rows_examined: Some(43),
        error: Some(0),
        ..Statement::unread(4_000_000_000, identity)
    }
}

fn identity() -> Identity {
    let bytes = |text: &str| Some(text.as_bytes().to_vec());
    Identity { user: bytes("app"), host: bytes("web 1"), database: bytes("shop") }
}

#[test]
fn an_entry_has_the_lines_that_readers_of_slow_logs_know() {
    let identity = identity();
    let text = written(Duration::ZERO, true, &[statement("SELECT 'x' FROM t;", &identity)]);
    let expected = "# Time: 2026-01-02T03:04:04.500000Z\n\
                    # User@Host: app[app] @ web<U+0020>1 []\n\
                    # Query_time: 0.001500  Lock_time: 0.000002  Rows_sent: 1  Rows_examined: 43  \
                    Thread_id: 8  Schema: shop  Last_errno: 0\n\
                    SET timestamp=1767323044;\n\
                    SELECT ? FROM t;\n";
    assert_eq!(text, expected);
}

/// One class of `pt-query-digest`, of an entry as MySQL writes it and one with all that is measured.
#[test]
fn pt_query_digest_reads_where_the_time_went_as_attributes() {
    let identity = identity();
    let mut parts = Parts::default();
    for (class, ns) in [(TimeClass::Cpu, 300_000), (TimeClass::RowLock, 1_200_000)] {
        parts.add(class, ns);
    }
    let usage = Usage { read_bytes: 16_384, ..Usage::default() };
    let plain = statement("SELECT a FROM t", &identity);
    let measured = Statement { parts: Some(parts), usage: Some(usage), ..plain.clone() };
    let text = written(Duration::ZERO, true, &[measured, plain]);
    let line = "  Cpu_time: 0.000300  Row_lock_time: 0.001200  Queue_before_start_time: 0.000000  \
                Read_bytes: 16384  Written_bytes: 0  Major_faults: 0  Minor_faults: 0  \
                Voluntary_switches: 0  Involuntary_switches: 0\n";
    assert_eq!(text.matches(line).count(), 1, "{text}");
    assert_eq!(text.matches("Cpu_time").count(), 1, "what was not measured is left out: {text}");

    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("slow.log");
    fs::write(&log, text).unwrap();
    let output = std::process::Command::new("pt-query-digest")
        .args(["--output", "json"])
        .arg(&log)
        .output()
        .expect("pt-query-digest of the package percona-toolkit (cargo xtask setup)");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let class = &report["classes"][0];
    assert_eq!(class["query_count"], 2);
    let sum =
        |metric: &str| class["metrics"][metric]["sum"].as_str().unwrap().parse::<f64>().unwrap();
    assert_eq!((sum("Cpu_time"), sum("Row_lock_time")), (0.0003, 0.0012));
    assert_eq!((sum("Read_bytes"), sum("Query_time")), (16_384.0, 0.003));
}

#[test]
fn quick_statements_and_commands_are_left_out_and_literals_are_kept_on_request() {
    let identity = identity();
    let quick = statement("SELECT 1", &identity);
    let slow = Statement { latency_ns: Some(2_000_000), ..statement("SELECT 'é'", &identity) };
    let ping = Statement { command: Some(Command(14)), ..slow };
    let text = written(Duration::from_millis(2), false, &[quick, slow, ping]);
    assert_eq!(text.matches("# Time").count(), 1, "{text}");
    assert!(text.ends_with("\nSELECT 'é';\n"), "{text}");
}

#[test]
fn what_took_nobody_knows_how_long_is_left_out_only_above_a_time_and_counted() {
    let identity = identity();
    let unknown = Statement { latency_ns: None, ..statement("SELECT 1", &identity) };
    let all = written(Duration::ZERO, true, std::slice::from_ref(&unknown));
    assert!(all.contains("SELECT ?") && !all.contains("Query_time"), "{all}");

    let folder = tempfile::tempdir().unwrap();
    let mut log = log(folder.path(), Duration::from_millis(1), true);
    (0..2).for_each(|_| log.ended(&unknown));
    log.ended(&statement("SELECT 2", &identity));
    let told = log.complaint().unwrap();
    assert!(told.contains("not known; --slowlog-above leaves them out"), "{told}");
    assert_eq!(log.complaint(), None, "once");
    let lacks = log.close();
    assert!(lacks.len() == 1 && lacks[0].starts_with("2 statements are not in "), "{lacks:?}");
    let text = fs::read_to_string(folder.path().join("slow.log")).unwrap();
    assert_eq!(text.matches("# Time").count(), 1, "{text}");
}

#[test]
fn no_text_can_look_like_an_entry_and_no_secret_is_written() {
    let identity = identity();
    let forged = statement("SELECT '\n# Time: 1\n# Query_time: 9'", &identity);
    let secret = statement("CREATE USER a IDENTIFIED BY 'tell nobody'", &identity);
    let text = written(Duration::ZERO, false, &[forged, secret]);
    let heads = text.lines().filter(|line| line.starts_with("# Time")).count();
    assert_eq!(heads, 2, "{text}");
    assert!(!text.contains("tell nobody"), "{text}");
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let options = SlowLogOptions { path: "/dev/full".into(), above: Duration::ZERO, redact: true };
    let mut log = SlowLog::open(options).unwrap();
    (0..3).for_each(|_| log.ended(&statement("SELECT 1", &identity())));
    log.hand_on();
    let error = loop {
        if let Some(error) = log.complaint() {
            break error;
        }
        std::thread::yield_now();
    };
    let why = "--slowlog /dev/full cannot be written: No space left on device (os error 28); ";
    assert_eq!(error, format!("{why}it has ended, all else goes on"));
    assert_eq!((log.complaint(), log.standing()), (None, Standing::Ended));
    assert_eq!(log.close(), [format!("{why}3 statements are not in it")]);
    let missing =
        SlowLogOptions { path: "/nowhere/slow.log".into(), above: Duration::ZERO, redact: true };
    let error = SlowLog::open(missing).err().unwrap().to_string();
    assert!(error.contains("--slowlog /nowhere/slow.log"), "{error}");
}
