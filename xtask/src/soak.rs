//! `cargo xtask soak`: the exactness runs with a million statements per server, the bad days at full
//! size, half an hour under guard, and how soon a guardian has undone and a wait is shown. The same tests
//! run small in `cargo test -p waggle`.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use anyhow::ensure;
use serde_json::Value;

/// Where results are kept.
pub(crate) const RESULTS: &str = "bench/results";
/// The columns of the table of exactness runs: keys of the results.
const COLUMNS: [&str; 12] = [
    "test",
    "server",
    "transport",
    "mode",
    "captured",
    "server_counted",
    "missing",
    "extra",
    "in_flight",
    "lost",
    "digests_compared",
    "digests_differing",
];

/// The tests that have a long form.
const TESTS: [&str; 3] = ["it", "pfs", "locks"];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Statements per server.
    #[arg(long, default_value_t = 1_000_000)]
    statements: u64,
    /// Only the tests of this name (it, pfs, locks), or those whose name holds this.
    #[arg(default_value = "")]
    only: String,
}

pub(crate) fn run(args: Args) -> Result<()> {
    // Before the results change the files of the commit.
    let subject = subject();
    let chosen = if args.only.is_empty() { String::new() } else { format!("-{}", args.only) };
    let name = format!("{}-soak{}", today()?, chosen.replace("::", "-"));
    let json = fs::canonicalize(".")?.join(RESULTS).join(format!("{name}.jsonl"));
    fs::create_dir_all(RESULTS).context("making bench/results")?;
    if json.exists() {
        fs::remove_file(&json).with_context(|| format!("removing {}", json.display()))?;
    }
    let begin = Instant::now();
    let (tests, only) = match TESTS.contains(&args.only.as_str()) {
        true => (vec![args.only.as_str()], ""),
        false => (TESTS.to_vec(), args.only.as_str()),
    };
    let ended = Command::new("cargo")
        .args(["test", "--package", "waggle"])
        .args(tests.iter().flat_map(|test| ["--test", test]))
        .arg(only)
        // One server at a time: what is under test is exactness under its full load.
        .args(["--", "--nocapture", "--test-threads", "1"])
        .env("WAGGLE_SOAK_STATEMENTS", args.statements.to_string())
        .env("WAGGLE_SOAK_RESULTS", &json)
        .status()
        .context("cargo test")?;
    let results = read(&json)?;
    let command = format!("cargo xtask soak --statements {} {}", args.statements, args.only);
    let seconds = begin.elapsed().as_secs();
    let heading = format!("# Soak\n\n`{}`, {seconds} s; {subject}.\n", command.trim_end());
    let table = heading + &table(&results);
    let markdown: PathBuf = Path::new(RESULTS).join(format!("{name}.md"));
    fs::write(&markdown, &table).with_context(|| format!("writing {}", markdown.display()))?;
    println!("{table}kept in {}", markdown.display());
    ensure!(ended.success(), "a test of the soak failed: see above");
    Ok(())
}

fn read(path: &Path) -> Result<Vec<Value>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("no result in {}", path.display()))?;
    text.lines().map(|line| serde_json::from_str(line).context("a result is no JSON")).collect()
}

/// The runs that were verified as a table, the other results as they are.
fn table(results: &[Value]) -> String {
    let mut out = String::new();
    let (verified, others): (Vec<_>, Vec<_>) =
        results.iter().partition(|result| !result["missing"].is_null());
    if !verified.is_empty() {
        let line = "|---".repeat(COLUMNS.len() + 1);
        out.push_str(&format!("\n| {} | hook |\n{line}|\n", COLUMNS.join(" | ")));
    }
    for result in verified {
        let cell = |key: &&str| plain(&result[*key]);
        let cells: Vec<String> = COLUMNS.iter().map(cell).collect();
        let hook = result["hook"].as_str().unwrap_or("send");
        out.push_str(&format!("| {} | {hook} |\n", cells.join(" | ")));
    }
    let miscounts = results.iter().filter_map(|result| {
        let list = result["server_miscounts"].as_array().filter(|list| !list.is_empty())?;
        Some((plain(&result["server"]), list))
    });
    for (server, list) in miscounts {
        out.push_str(&format!("\n{server} differs from itself:\n\n"));
        for one in list {
            out.push_str(&format!(
                "- `{}`: {} captured, {} in its digest row: {}\n",
                plain(&one["digest_text"]),
                one["ours"],
                one["theirs"],
                plain(&one["why"])
            ));
        }
    }
    if !others.is_empty() {
        let lines: Vec<String> = others.iter().map(ToString::to_string).collect();
        out.push_str(&format!("\n```json\n{}\n```\n", lines.join("\n")));
    }
    out
}

/// What is tested and where, as part of a sentence. No host name: results are public.
fn subject() -> String {
    let commit = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let commit = commit.ok().filter(|output| output.status.success());
    let commit = commit.and_then(|output| String::from_utf8(output.stdout).ok());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").ok();
    let told =
        |text: Option<String>| text.map_or("unknown".to_owned(), |text| text.trim().to_owned());
    let processors = thread::available_parallelism().ok().map(|number| number.to_string());
    format!("commit {}, processors: {}, kernel {}", told(commit), told(processors), told(kernel))
}

/// A value without the quotes of JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The date in UTC, such as `2026-01-31`. From `date`, since xtask is built before all else and has
/// no crate for calendars; the bench has one.
pub(crate) fn today() -> Result<String> {
    let date = Command::new("date").args(["--utc", "+%F"]).output().context("date")?;
    Ok(String::from_utf8(date.stdout)?.trim().to_owned())
}
