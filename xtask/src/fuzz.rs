//! `cargo xtask fuzz`: runs the fuzzing tests with many more inputs. Their small forms are part of `make test`.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::soak::{RESULTS, today};

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    /// What is given the inputs.
    #[arg(value_enum)]
    what: Chosen,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Chosen {
    All,
    Elf,
    Layout,
    Reader,
    Options,
    Journal,
    Packets,
    Run,
    Sql,
}

/// A fuzzing test.
struct Subject {
    chosen: Chosen,
    name: &'static str,
    package: &'static str,
    /// Where its test is, as `cargo test` wants it.
    test: &'static [&'static str],
    /// What its inputs are, and what is done with them.
    what: &'static str,
}

const SUBJECTS: [Subject; 8] = [
    Subject {
        chosen: Chosen::Elf,
        name: "elf",
        package: "waggle-probes",
        test: &["--lib", "servers::elf::fuzz"],
        what: "small programs with the symbols and functions of real servers, and libraries that describe their frames, whose \
               headers, tables, strings and descriptions are changed, through all that is asked of a file",
    },
    Subject {
        chosen: Chosen::Layout,
        name: "layout",
        package: "waggle-probes",
        test: &["--lib", "servers::layout::fuzz"],
        what: "functions of real servers with changed machine code, and random bytes as functions, through the decoder, \
               the layout, its check, and the plan of the tap",
    },
    Subject {
        chosen: Chosen::Reader,
        name: "reader",
        package: "waggle-probes",
        test: &["--lib", "capture::fuzz"],
        what: "records as the programs in the kernel write them, by the layouts of real servers, and sessions in \
               memory, both changed, through the readers of the tap and of the sessions",
    },
    Subject {
        chosen: Chosen::Options,
        name: "options",
        package: "waggle-mysql",
        test: &["--lib", "options::fuzz"],
        what: "option files that include each other, and login path files, changed, through the reader of options",
    },
    Subject {
        chosen: Chosen::Journal,
        name: "journal",
        package: "waggle-instrumentation",
        test: &["--lib", "journal::fuzz"],
        what: "journals with changed lines, through their reader, and what of them can be read through the statements \
               that undo it",
    },
    Subject {
        chosen: Chosen::Packets,
        name: "packets",
        package: "waggle-mysql",
        test: &["--lib", "connection::fuzz"],
        what: "whole conversations of a server over a unix socket, changed, through login and answers",
    },
    Subject {
        chosen: Chosen::Run,
        name: "run",
        package: "waggle-lab",
        test: &["--lib", "stored_run::fuzz"],
        what: "the files of a run of the lab with other values and other bytes, through their readers, the analysis and \
               every form of the report",
    },
    Subject {
        chosen: Chosen::Sql,
        name: "sql",
        package: "waggle-sql",
        test: &["--test", "fuzz"],
        what: "changed statements and random bytes through the digests of every dialect (whole and cut at any byte), \
               fingerprints, tables, layouts, masking and redaction",
    },
];

pub(crate) fn run(args: &Args) -> Result<()> {
    let is_chosen = |one: &&Subject| [one.chosen, Chosen::All].contains(&args.what);
    SUBJECTS.iter().filter(is_chosen).try_for_each(|subject| subject.run(args))
}

impl Subject {
    fn run(&self, args: &Args) -> Result<()> {
        fs::create_dir_all(RESULTS).context("making bench/results")?;
        let directory = fs::canonicalize(RESULTS).context(RESULTS)?;
        let name = format!("{}-fuzz-{}", today()?, self.name);
        let json = directory.join(format!("{name}.json"));
        let ended = Command::new("cargo")
            .args(["test", "--package", self.package])
            .args(self.test)
            .args(["--", "--nocapture"])
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
        fs::write(&markdown, self.page(&result)).with_context(|| markdown.display().to_string())?;
        println!("kept in {}", markdown.display());
        Ok(())
    }

    fn page(&self, result: &Value) -> String {
        let Subject { name, what, .. } = self;
        let mut page = format!(
            "# Fuzzing: {name}\n\n`cargo xtask fuzz {name}`: {what}. Nothing panicked or hung, and memory stayed \
             within its limit.\n\n| | |\n|---|---|\n"
        );
        for (name, value) in result.as_object().into_iter().flatten() {
            // Writing to a `String` cannot fail.
            let _ = writeln!(page, "| {} | {value} |", name.replace('_', " "));
        }
        page
    }
}
