//! `cargo xtask fuzz`: many more inputs than the tests have. The same test runs small in
//! `cargo test -p waggle-sql`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use anyhow::Result;
use anyhow::ensure;
use serde_json::Value;

use crate::soak::RESULTS;
use crate::soak::today;

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    /// What is given the inputs.
    #[arg(value_enum)]
    what: Subject,
    /// How many inputs.
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    inputs: u64,
    /// Number from which every input follows.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of the first input, to run one again.
    #[arg(long, value_name = "N", default_value_t = 0)]
    first: u64,
    /// Threads.
    #[arg(long, value_name = "N", default_value_t = 2)]
    threads: u64,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Subject {
    /// Digests of every dialect, fingerprints, tables, layouts, masking and redaction.
    Sql,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let Subject::Sql = args.what;
    fs::create_dir_all(RESULTS).context("making bench/results")?;
    let directory = fs::canonicalize(RESULTS).context(RESULTS)?;
    let name = format!("{}-fuzz-sql", today()?);
    let json = directory.join(format!("{name}.json"));
    let ended = Command::new("cargo")
        .args(["test", "--package", "waggle-sql", "--test", "fuzz", "--", "--nocapture"])
        .env("WAGGLE_FUZZ_INPUTS", args.inputs.to_string())
        .env("WAGGLE_FUZZ_SEED", args.seed.to_string())
        .env("WAGGLE_FUZZ_FIRST", args.first.to_string())
        .env("WAGGLE_FUZZ_THREADS", args.threads.to_string())
        .env("WAGGLE_FUZZ_RESULTS", &json)
        .status()
        .context("cargo test")?;
    ensure!(ended.success(), "an input failed: see above, also for how to run it again");
    let text = fs::read_to_string(&json).with_context(|| json.display().to_string())?;
    let result: Value = serde_json::from_str(&text).context("the result is no JSON")?;
    let markdown = Path::new(RESULTS).join(format!("{name}.md"));
    fs::write(&markdown, page(&result)).with_context(|| markdown.display().to_string())?;
    println!("kept in {}", markdown.display());
    Ok(())
}

fn page(result: &Value) -> String {
    let mut page = "# Fuzzing of crates/sql\n\n\
         `cargo xtask fuzz sql`: mutated statements and random bytes through the digests of every \
         dialect (whole and cut at any byte), fingerprints, tables, layouts, masking and redaction. \
         Nothing panicked or hung, and every text was valid and bounded.\n\n| | |\n|---|---|\n"
        .to_owned();
    for (name, value) in result.as_object().into_iter().flatten() {
        page += &format!("| {} | {value} |\n", name.replace('_', " "));
    }
    page
}
