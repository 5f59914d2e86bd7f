//! Builds that do not show one field: `verify` finds the capture exact in what is left.

use waggle_testkit::{PerformanceSchema, Server, Version, on_each_build};

use crate::exactness::unexplained;
use crate::verified::Verified;
use crate::watching::Waggle;
use crate::{load, size, watched};

/// All fields in a soak; else those without which statements are told apart in another way.
const ALL: [&str; 23] = [
    "start_time",
    "diagnostics",
    "connection_id",
    "command",
    "query_text",
    "diagnostics_status",
    "server_status",
    "query_length",
    "database",
    "database_length",
    "lock_time",
    "rows_sent",
    "rows_examined",
    "state",
    "sql_mode",
    "character_set_client",
    "security_context",
    "is_sent",
    "rows_affected",
    "error_number",
    "user",
    "host",
    "address",
];

fn each_hidden_field_leaves_the_count_of_statements_exact(version: Version) {
    let builder = Server::builder(version).performance_schema(PerformanceSchema::Statements);
    let server = builder.start().unwrap();
    let sysbench = load::read_write(&server);
    let statements = size::choose(1_000, 5_000);
    for field in &ALL[..size::choose(4, ALL.len())] {
        let mut sent = 0;
        let verified = Verified::around(&server, &["--hide-field", field], |_| {
            sent = load::mixed(&server, &sysbench, statements);
        });
        let what = format!("{version} without {field}");
        verified.assert_exact(&what, sent);
        assert_eq!(unexplained(&verified.report), 0, "{what}: {:#}", verified.report);
        assert!(
            verified.err.contains(&format!("{field} is not known")),
            "{what}: {}",
            verified.err
        );
        let mut row = verified.row("hidden", &server, "tcp+unix+tls", "text+prepared");
        row["hidden"] = (*field).into();
        size::keep(&row);
    }
}

on_each_build!(each_hidden_field_leaves_the_count_of_statements_exact);

#[test]
fn without_a_start_latencies_run_from_the_request_and_say_so() {
    let server = Server::start(Version::Mariadb118).unwrap();
    for hook in ["send", "syscall"] {
        let hidden = ["--hide-field", "start_time", "--hook", hook, "--interval", "500ms"];
        let mut waggle = Waggle::watch_pid(server.pid(), &hidden);
        load::session(&server).query("SELECT SLEEP(0.3)").unwrap();
        waggle.wait_for_lines(2);
        let lines = waggle.interrupt().lines();
        assert!(lines.iter().all(|line| line["latency_from"] == "request"), "{lines:#?}");
        let slept = watched::digests(&lines, "SELECT `SLEEP` (?)");
        let slept: Vec<_> = slept.iter().filter(|one| one["calls"] == 1).collect();
        let max = slept.first().and_then(|one| one["latency_us"]["max"].as_f64());
        let max = max.unwrap_or_else(|| panic!("{hook}: no latency in {lines:#?}"));
        assert!((300_000.0..600_000.0).contains(&max), "{hook}: {max} us");
    }
}
