//! `cargo xtask soak`: the large forms of tests that `make test` runs small: exactness with a million
//! statements per server, the bad days at full size, half an hour under guard, how soon a guardian has
//! undone and a wait is shown, 300 hostile processes beside a server, calibration on every server, two
//! thousand random waits whose blockers are named, ten thousand simulated lab runs, every character of every
//! character set as a name, and where the time of 600,000 statements per server went.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{fs, thread};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Where results are kept.
pub(crate) const RESULTS: &str = "bench/results";
/// The columns of the table of exactness runs: keys of the results.
const COLUMNS: [&str; 13] = [
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
    "in_doubt",
];

/// Tests that have a long form.
struct Long {
    package: &'static str,
    test: &'static str,
    /// What the names of those tests begin with, where others of the same program have none; else empty.
    within: &'static str,
}

const fn whole(package: &'static str, test: &'static str) -> Long {
    Long { package, test, within: "" }
}

const TESTS: [Long; 7] = [
    whole("waggle", "it"),
    whole("waggle", "clock"),
    whole("waggle", "pfs"),
    whole("waggle", "locks"),
    whole("waggle-lab", "coverage"),
    whole("waggle-sql", "digests"),
    Long { package: "waggle-probes", test: "it", within: "waits::" },
];

impl Long {
    /// Which of its tests are asked for, as cargo is told: `None` if none is.
    fn chosen(&self, only: &str) -> Option<String> {
        let told = match self.within {
            "" if self.is_named(only) => self.part(only).unwrap_or(""),
            "" => only,
            within if only.starts_with(within) => only,
            within => within,
        };
        let is_other_named = || TESTS.iter().any(|long| long.is_named(only));
        // Without a name all are meant; of some programs no others are told by what their names hold.
        let is_chosen =
            self.is_named(only) || only.is_empty() || (self.within.is_empty() && !is_other_named());
        is_chosen.then(|| told.to_owned())
    }

    /// What is asked for of this program: `locks::mix` is `mix` of `locks`.
    fn part<'a>(&self, only: &'a str) -> Option<&'a str> {
        only.strip_prefix(self.test)?.strip_prefix("::")
    }

    /// Whether these tests, or some of them by what their names begin with, and no others are meant.
    fn is_named(&self, only: &str) -> bool {
        match self.within {
            "" => only == self.test || self.part(only).is_some(),
            within => within.strip_suffix("::") == Some(only) || only.starts_with(within),
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Statements per server.
    #[arg(long, default_value_t = 1_000_000)]
    statements: u64,
    /// Only the tests of this name (it, clock, pfs, locks, coverage, digests, waits), or some of one (locks::mix), or
    /// those whose name holds this.
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
    // Not every test keeps a result.
    fs::write(&json, "").with_context(|| format!("writing {}", json.display()))?;
    let begin = Instant::now();
    let mut are_passed = true;
    for long in &TESTS {
        let Some(only) = long.chosen(&args.only) else { continue };
        let ended = Command::new("cargo")
            .args(["test", "--package", long.package, "--test", long.test, &only])
            // One server at a time: what is under test is exactness under its full load.
            .args(["--", "--nocapture", "--test-threads", "1"])
            .env("WAGGLE_SOAK_STATEMENTS", args.statements.to_string())
            .env("WAGGLE_SOAK_RESULTS", &json)
            .status()
            .context("cargo test")?;
        are_passed &= ended.success();
    }
    let results = read(&json)?;
    let command = format!("cargo xtask soak --statements {} {}", args.statements, args.only);
    let seconds = begin.elapsed().as_secs();
    let heading = format!("# Soak\n\n`{}`, {seconds} s; {subject}.\n", command.trim_end());
    let table = heading + &table(&results);
    let markdown: PathBuf = Path::new(RESULTS).join(format!("{name}.md"));
    fs::write(&markdown, &table).with_context(|| format!("writing {}", markdown.display()))?;
    println!("{table}kept in {}", markdown.display());
    ensure!(are_passed, "a test of the soak failed: see above");
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
    let kernel = waggle_host::kernel_release();
    let told =
        |text: Option<String>| text.map_or("unknown".to_owned(), |text| text.trim().to_owned());
    let processors = thread::available_parallelism().ok().map(|number| number.to_string());
    format!("commit {}, processors: {}, kernel {kernel}", told(commit), told(processors))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(only: &str) -> Vec<String> {
        let of =
            |long: &Long| Some(format!("{} {} {}", long.package, long.test, long.chosen(only)?));
        TESTS.iter().filter_map(of).collect()
    }

    #[test]
    fn a_name_chooses_the_tests_of_that_name_else_those_that_hold_it() {
        assert_eq!(chosen("it"), ["waggle it "]);
        assert_eq!(chosen("coverage"), ["waggle-lab coverage "]);
        assert_eq!(chosen("waits"), ["waggle-probes it waits::"]);
        assert_eq!(chosen("waits::sums"), ["waggle-probes it waits::sums"]);
        assert_eq!(chosen("locks::mix"), ["waggle locks mix"]);
        let all = chosen("");
        assert_eq!((all.len(), all[6].as_str()), (7, "waggle-probes it waits::"));
        let by_name = chosen("exactness");
        assert_eq!(by_name.len(), 6);
        assert!(by_name.iter().all(|one| one.ends_with(" exactness")));
    }
}
