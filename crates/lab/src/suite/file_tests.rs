//! Files of users: read by their path, and refused with a reason.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use waggle_instrumentation::profile::builtin;

use super::{Figure, Suite, SuiteError};
use crate::window::{Cell, Load};

/// A suite as short as one can be.
const SHORT: &str = r#"
title = "a title"
baseline = "off"
metric = "qps"
threads = [1, 8]
open_shares = [0.3]
open_threads = 8
servers = "side_by_side"
margin_percent = 2.0
feeds = ["statement/com/Execute"]
options = ["--max-connections=100"]
columns = ["off", "on"]

[detectable_percent]
cpu_per_statement = 5.0

[source]
what = "somebody"
server = "a server"
load = "a load"
caveats = []

[data]
tables = 1
rows = { tiny = 10, small = 100, full = 1000 }
buffer_pool_mib = { tiny = 64, small = 64, full = 64 }
redo_log_mib = { tiny = 16, small = 16, full = 16 }

[[workloads]]
name = "reads"
script = "oltp_read_only"
arguments = ["--rand-type=uniform"]

[[scenarios]]
name = "off"
title = "nothing"
start = ["--performance-schema=OFF"]

[[scenarios]]
name = "on"
title = "something"
start = ["--performance-schema=ON"]
profile = "basic"
variables = { long_query_time = "10" }

[[published]]
table = "results"
workload = "reads"
rows = [{ threads = 8, qps = [1000, 900], qps_change = [-10.0] }]

[[published_ranges]]
workload = "reads"
scenario = "on"
figure = "qps"
low_percent = -5.0
high_percent = -2.5
says = "a loss of 2.5 to 5 %"
"#;

/// The keys of a table and of those in it, joined by points.
fn keys(table: &toml::Table) -> BTreeSet<String> {
    let below = |key: &String, value: &toml::Value| -> BTreeSet<String> {
        let tables: Vec<&toml::Table> = match value {
            toml::Value::Table(table) => vec![table],
            toml::Value::Array(items) => items.iter().filter_map(toml::Value::as_table).collect(),
            _ => Vec::new(),
        };
        if tables.is_empty() {
            return [key.clone()].into();
        }
        let item = if value.is_array() { "[]." } else { "" };
        tables.into_iter().flat_map(keys).map(|inner| format!("{key}.{item}{inner}")).collect()
    };
    table.iter().flat_map(|(key, value)| below(key, value)).collect()
}

#[test]
fn every_key_of_a_suite_is_in_the_reference_and_no_other() {
    let texts = Suite::builtin().map(|(_, text)| text).into_iter().chain([SHORT]);
    let used: BTreeSet<String> =
        texts.flat_map(|text| keys(&text.parse::<toml::Table>().unwrap())).collect();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/lab-suite.md");
    let page = std::fs::read_to_string(page).unwrap();
    let documented: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(key, _)| key)
        .collect();
    let is = |documented: &str, key: &str| match documented.strip_suffix('*') {
        Some(begin) => key.starts_with(begin),
        None => key == documented,
    };
    for key in &used {
        assert!(documented.iter().any(|one| is(one, key)), "{key} is not documented");
    }
    for one in documented {
        assert!(used.iter().any(|key| is(one, key)), "{one} is documented, and in no suite");
    }
}

#[test]
fn a_suite_of_the_users_own_is_found_by_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.toml");
    std::fs::write(&path, SHORT).unwrap();
    let suite = Suite::find(path.to_str().unwrap()).unwrap();
    assert_eq!(suite.name, "mine");
    assert_eq!(suite.cells().len(), 3);
    assert_eq!(suite.orders[0].scenarios, ["off", "on"]);
    assert_eq!(suite.orders[0].against, ["off"]);
    assert!(builtin(suite.scenarios[1].profile.as_deref().unwrap()).is_some());
    // A name that was kept is not shortened again.
    for name in ["some/where/mine.v2.toml", "mine.v2", "some/where/mine.v2"] {
        assert_eq!(Suite::parse(name, SHORT).unwrap().name, "mine.v2", "{name}");
    }
    let error = Suite::find("./nosuch.toml").unwrap_err();
    assert!(matches!(error, SuiteError::File { .. }), "{error}");
    let error = Suite::find("nosuch").unwrap_err().to_string();
    assert!(error.contains("nosuch") && error.contains("rds, line, modb"), "{error}");
}

/// What is changed in a short suite, into what, and what the message says of it.
const WRONG: [(&str, &str, &[&str]); 74] = [
    // Of the wrong shape: with the line.
    ("metric = \"qps\"", "metric = \"qpm\"", &["line 4", "unknown variant"]),
    ("metric = \"qps\"", "metrics = \"qps\"", &["line 4", "unknown field"]),
    ("title = \"a title\"", "", &["missing field `title`"]),
    ("threads = [1, 8]", "threads = [1, -8]", &["line 5", "-8"]),
    ("threads = [1, 8]", "threads = [1, 8", &["line"]),
    ("script = \"oltp", "path = \"oltp", &["unknown field `path`"]),
    ("threads = 8, qps", "thread = 8, qps", &["unknown field `thread`"]),
    ("rows = { tiny = 10,", "rows = { small = 10,", &["duplicate key"]),
    // Empty.
    ("title = \"a title\"", "title = \" \"", &["title", "empty"]),
    ("threads = [1, 8]", "threads = []", &["threads", "empty"]),
    ("what = \"somebody\"", "what = \"\"", &["source.what", "empty"]),
    // Sessions and rates.
    ("threads = [1, 8]", "threads = [0, 8]", &["threads: 0 sessions", "1 to 4096"]),
    ("threads = [1, 8]", "threads = [8, 5000]", &["threads: 5000 sessions"]),
    ("threads = [1, 8]", "threads = [8, 8]", &["threads: 8 is there twice"]),
    ("open_threads = 8", "open_threads = 0", &["open_threads: 0 sessions"]),
    (
        "open_threads = 8",
        "open_order = \"up\"\nopen_threads = 8",
        &["open_order", "there is no up", "random"],
    ),
    ("[data]", "[data]\nage_with = \"writes\"", &["data.age_with", "there is no writes", "reads"]),
    ("open_shares = [0.3]", "open_shares = [1.0]", &["open_shares: 1 is no share"]),
    ("open_shares = [0.3]", "open_shares = [nan]", &["open_shares"]),
    ("open_shares = [0.3]", "open_shares = [0.3, 0.3]", &["open_shares: 0.3 is there twice"]),
    // Effects.
    ("margin_percent = 2.0", "", &["missing field `margin_percent`"]),
    ("percent = 2.0", "percent = -2.0", &["margin_percent: -2 %", "more than 0, at most 100"]),
    ("percent = 2.0", "percent = inf", &["margin_percent: inf %"]),
    ("statement = 5.0", "statement = 0.0", &["detectable_percent.cpu_per_statement: 0 %"]),
    ("statement = 5.0", "statement = nan", &["detectable_percent.cpu_per_statement: NaN %"]),
    (
        "statement = 5.0",
        "statement = 5.0\ncpu = 5.0",
        &[
            "detectable_percent: there is no metric cpu;",
            "name one of cpu_per_statement, load_cpu_per_statement, qps",
        ],
    ),
    (
        "cpu_per_statement = 5.0",
        "qps = 5.0",
        &["detectable_percent: cpu_per_statement is missing", "shall be able to show"],
    ),
    ("[detectable_percent]", "[detectable]", &["unknown field `detectable`"]),
    // Names.
    ("baseline = \"off\"", "baseline = \"of\"", &["baseline", "there is no of", "off, on"]),
    ("name = \"on\"", "name = \"off\"", &["there is no on", "off, off"]),
    ("columns = [\"off\", \"on\"]", "columns = [\"on\", \"on\"]", &["columns: on is there twice"]),
    ("columns = [\"off\", \"on\"]", "columns = [\"on\"]", &["baseline", "among columns"]),
    ("name = \"reads\"", "name = \"re/ads\"", &["workloads: `re/ads` is no name"]),
    ("name = \"reads\"", "name = \"on\"", &["name: --only on could mean something else"]),
    ("name = \"reads\"", "name = \"open\"", &["--only open could", "neither closed nor open"]),
    (
        "profile = \"basic\"",
        "profile = \"basics\"",
        &["scenarios.on.profile", "basics", "ddl-audit"],
    ),
    (
        "=OFF\"]",
        "=OFF\"]\nprofile = \"off\"",
        &["scenarios.off.profile", "started without Performance Schema"],
    ),
    (
        "start = [\"--performance-schema=ON\"]",
        "start = [\"--performance-schema=ON\", \"--skip-performance-schema\"]",
        &["scenarios.on.profile", "started without Performance Schema"],
    ),
    (
        "[[scenarios]]\nname = \"off\"",
        "[[orders]]\nname = \"one\"\ntitle = \"one\"\nsequence = \"random\"\nscenarios = [\"on\"]\n\n\
         [[scenarios]]\nname = \"off\"",
        &["orders.one.scenarios: the baseline off is not among them", "against"],
    ),
    ("\"statement/com/Execute\"", "\"error\"", &["feeds: error", "wait/io/table"]),
    ("feeds =", "counters = [\"x y\"]\nfeeds =", &["counters: `x y` is no name"]),
    ("feeds =", "counters = [\"x\", \"x\"]\nfeeds =", &["counters: x is there twice"]),
    // Scripts, options and variables.
    ("oltp_read_only", "/usr/x/oltp_read_only", &["workloads.reads.script", "without a path"]),
    ("oltp_read_only", "oltp.lua", &["`oltp.lua` is no name of a script"]),
    ("--rand-type=uniform", "--table_size=5", &["workloads.reads.arguments", "--table-size"]),
    ("--rand-type=uniform", "rand-type", &["`rand-type` is no option"]),
    ("--max-connections=100", "--loose-datadir=/x", &["options: --datadir is set by the lab"]),
    ("schema=ON\"]", "schema=ON\", \"--socket=x\"]", &["scenarios.on.start: --socket"]),
    (
        "--max-connections=100",
        "--innodb_buffer_pool_size=1G",
        &["options: --innodb-buffer-pool-size is set by the lab"],
    ),
    ("--rand-type=uniform", "--config-file=/x", &["workloads.reads.arguments", "--config-file"]),
    ("--max-connections=100", "--init-file=/x", &["options: --init-file is set by the lab"]),
    ("--max-connections=100", "--mysqlx-port=1", &["options: --mysqlx-port is set by the lab"]),
    ("long_query_time = \"10\"", "x = \"1; DROP\"", &["scenarios.on.variables", "1; DROP"]),
    ("long_query_time = \"10\"", "x = \"1024*1024\"", &["scenarios.on.variables", "a number"]),
    ("long_query_time = \"10\"", "x = \"1, GLOBAL y = 2\"", &["scenarios.on.variables"]),
    ("long_query_time = \"10\"", "x = \"'a' + 'b'\"", &["scenarios.on.variables"]),
    ("long_query_time = \"10\"", "x = \"Default\"", &["scenarios.on.variables"]),
    (
        "start = [\"--performance-schema=OFF\"]",
        "start = [\"--performance-schema=ON\"]",
        &["scenarios.on: it shares a server with off", "same variables"],
    ),
    // Data.
    ("tables = 1\n", "tables = 0\n", &["data.tables: 0 tables"]),
    ("{ tiny = 10,", "{ tiny = 0,", &["data.rows.tiny: 0 is too little"]),
    // What the source printed.
    ("qps = [1000, 900]", "qps = [1000]", &["reads, 8 threads: qps: 1 numbers for 2 columns"]),
    ("[-10.0]", "[0.0, -10.0]", &["qps_change: 2 numbers for 1 columns"]),
    ("[-10.0]", "[-11.0]", &["8 threads, on", "-11 %", "-10.00 %", "[[contradictions]]"]),
    ("qps = [1000, 900]", "qps = [1000, -900]", &["qps: -900 cannot have been printed"]),
    ("workload = \"reads\"", "workload = \"writes\"", &["published, results: there is no writes"]),
    ("threads = 8, qps", "threads = 9, qps", &["9 threads are none of the suite"]),
    (
        "-10.0] }]",
        "-10.0] }, { threads = 8, qps = [1, 1] }]",
        &["8 threads, off: it is there twice"],
    ),
    // What it said without figures.
    ("reads\"\nscenario", "writes\"\nscenario", &["published_ranges, on: there is no writes"]),
    ("scenario = \"on\"", "scenario = \"of\"", &["published_ranges, of: there is no of"]),
    ("scenario = \"on\"", "scenario = \"off\"", &["published_ranges, off: it is the baseline"]),
    ("figure = \"qps\"", "figure = \"memory\"", &["published_ranges, on: memory is printed"]),
    ("low_percent = -5.0", "low_percent = -2.0", &["-2 to -2.5 % is no range"]),
    ("high_percent = -2.5", "high_percent = inf", &["-5 to inf % is no range"]),
    ("says = \"a loss of 2.5 to 5 %\"", "says = \" \"", &["published_ranges, on: says is empty"]),
];

#[test]
fn a_wrong_file_is_named_with_the_place_the_reason_and_the_remedy() {
    for (from, to, said) in WRONG {
        assert!(SHORT.contains(from), "{from}");
        let error = Suite::parse("mine.toml", &SHORT.replacen(from, to, 1));
        let error = error.err().unwrap_or_else(|| panic!("{to} was taken")).to_string();
        assert!(error.starts_with("suite mine.toml: "), "{error}");
        for part in said {
            assert!(error.contains(part), "{part} is not in: {error}");
        }
    }
}

#[test]
fn servers_that_come_one_after_another_have_no_listed_order() {
    let order = "[[orders]]\nname = \"up\"\ntitle = \"t\"\nscenarios = [\"off\", \"on\"]\n";
    let read = |servers: &str, sequence: &str| {
        let text = SHORT.replacen("side_by_side", servers, 1);
        Suite::parse("mine.toml", &format!("{text}\n{order}sequence = \"{sequence}\"\n"))
    };
    assert!(read("side_by_side", "as_listed").is_ok());
    assert!(read("one_after_another", "random").is_ok());
    assert!(read("side_by_side", "random\"\nrestart = true #\"").is_ok());
    let error = read("side_by_side", "as_listed\"\nrestart = true #\"").unwrap_err().to_string();
    assert!(error.contains("orders.up.sequence") && error.contains("restart"), "{error}");
    let error = read("one_after_another", "as_listed").unwrap_err().to_string();
    assert!(error.contains("orders.up.sequence") && error.contains("side_by_side"), "{error}");
}

#[test]
fn a_mark_needs_a_cell_that_is_there_and_is_wrong() {
    let marked = |mark: &str| {
        let text = format!("{SHORT}\n[[contradictions]]\nworkload = \"reads\"\n{mark}");
        Suite::parse("mine.toml", &text).unwrap_err().to_string()
    };
    for (mark, said) in [
        ("threads = 9\nscenarios = [\"on\"]\nwhy = \"w\"", "no table has a cell of on"),
        ("threads = 8\nscenarios = []\nwhy = \"w\"", "scenarios is empty"),
        ("threads = 8\nscenarios = [\"on\"]\nwhy = \" \"", "why is empty"),
        ("threads = 8\nscenarios = [\"on\"]\nwhy = \"w\"", "Qps agrees with all else"),
        (
            "threads = 8\nscenarios = [\"on\"]\nfigure = \"latency\"\nwhy = \"w\"",
            "Latency agrees with all else",
        ),
    ] {
        let error = marked(mark);
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn what_a_source_left_out_is_absent_and_not_zero() {
    let text = SHORT.replacen("[1000, 900], qps_change = [-10.0]", "[1000, nan]", 1);
    let suite = Suite::parse("mine.toml", &text).unwrap();
    let cell = Cell { workload: "reads".to_owned(), threads: 8, load: Load::Closed, order: None };
    let [off, on] = ["off", "on"].map(|scenario| suite.published(&cell, scenario).unwrap());
    assert_eq!(off.figures, [(Figure::Qps, 1000.0)].into());
    assert!(on.figures.is_empty() && on.changes.is_empty());
    assert_eq!(on.recomputed_percent(off, Figure::Qps), None);
}

#[test]
fn the_suite_that_the_reference_shows_is_one() {
    let page = include_str!("../../../../docs/reference/lab-suite.md");
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let suites: Vec<&str> = blocks.filter(|text| text.contains("[[scenarios]]")).collect();
    assert_eq!(suites.len(), 1);
    let suite = Suite::parse("mine.toml", suites[0]).unwrap();
    assert!(suite.scenarios.len() > 1);
}

proptest! {
    #[test]
    fn no_change_of_a_suite_makes_its_reader_panic(
        which in 0..4_usize,
        edits in proptest::collection::vec(
            (any::<prop::sample::Index>(), 0..40_usize, "[-+.0-9a-z_=%\\[\\]{}\"#,\n é]{0,12}"),
            1..4,
        ),
    ) {
        let builtin = Suite::builtin();
        let text = builtin.get(which).map_or(SHORT, |(_, text)| *text);
        let mut chars: Vec<char> = text.chars().collect();
        for (at, gone, put) in edits {
            let from = at.index(chars.len() + 1);
            let to = (from + gone).min(chars.len());
            chars.splice(from..to, put.chars());
        }
        let text: String = chars.into_iter().collect();
        let _ = Suite::parse("mine.toml", &text);
    }
}
