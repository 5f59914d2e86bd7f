//! A run: what every bench is told, and what it keeps.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{CONFIDENCE, in_words, machine};

/// What every bench is told.
#[derive(Clone, Debug, PartialEq, clap::Args, Serialize, Deserialize)]
pub struct Options {
    /// A small form for tests: it shows that everything works, not what anything costs.
    #[arg(long)]
    pub quick: bool,
    /// Number from which the order of everything follows.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Last part of the name of the directory of results; the name of the bench without it.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Where directories of results are made.
    #[arg(long, value_name = "DIR", default_value = "bench/results")]
    pub output: PathBuf,
    /// Where directories of raw data are made.
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    pub raw: PathBuf,
}

/// A run that has begun.
pub struct Run {
    begin: Instant,
    options: Options,
    name: String,
    /// On what it is measured: see [`machine`].
    pub machine: Value,
}

impl Run {
    /// Begins one of a bench.
    pub fn begin(bench: &str, options: &Options) -> Run {
        let name = options.name.clone().unwrap_or_else(|| bench.to_owned());
        Run { begin: Instant::now(), options: options.clone(), name, machine: machine() }
    }

    /// Says on standard error how far it is.
    ///
    /// # Errors
    /// Standard error is closed.
    pub fn say(&self, what: &str) -> Result<()> {
        Ok(writeln!(io::stderr(), "{:5.0} s  {what}", self.seconds())?)
    }

    /// How long it has taken so far, s.
    pub fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// The begin of its page: the title with the date, and in a sentence on what and with what it was measured.
    pub fn head(&self, title: &str, with: &str) -> String {
        let quick =
            if self.options.quick { " The small form: it says nothing of the price." } else { "" };
        format!(
            "# {title}, {}\n\n{}; {with}; seed {}; {:.0} s.{quick}\n\n",
            self.machine["date"].as_str().unwrap_or("unknown"),
            in_words(&self.machine),
            self.options.seed,
            self.seconds(),
        )
    }

    /// Makes a directory for what it finds: its date and its name, with a number where there is one.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new_directory(&self) -> Result<PathBuf> {
        new_directory(&self.options.output, &self.name, &self.machine)
    }

    /// Keeps what was found: a summary for programs and a page for people, in a new directory that it names on standard
    /// output. On what it was measured, how long it took and what every bench is told are added to the summary.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn keep(&self, settings: Value, found: Value, page: &str) -> Result<()> {
        let Options { quick, seed, .. } = &self.options;
        let common = json!({ "quick": quick, "seed": seed, "confidence": CONFIDENCE });
        let summary = both(
            found,
            json!({
                "machine": self.machine,
                "seconds": self.seconds(),
                "settings": both(settings, common),
            }),
        );
        let directory = self.new_directory()?;
        write(&directory, &summary, page)?;
        writeln!(io::stdout(), "{}", directory.join("README.md").display())?;
        Ok(())
    }
}

/// An object with what two have.
fn both(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.into_iter().chain(other).collect::<serde_json::Map<_, _>>().into()
        }
        (one, _) => one,
    }
}

/// Writes the summary and the page.
///
/// # Errors
/// One of them cannot be written.
pub fn write(directory: &Path, summary: &Value, page: &str) -> Result<()> {
    for (name, text) in [("summary.json", format!("{summary:#}\n")), ("README.md", page.to_owned())]
    {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Tells how a bench ended.
pub fn ended(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing can be done where standard error is closed.
            let _ = writeln!(io::stderr(), "bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// `DATE-NAME` in `output`, with a number where there is one.
fn new_directory(output: &Path, name: &str, machine: &Value) -> Result<PathBuf> {
    let date = machine["date"].as_str().unwrap_or_default();
    fs::create_dir_all(output).with_context(|| output.display().to_string())?;
    for number in 1.. {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let directory = output.join(format!("{date}-{name}{number}"));
        match fs::create_dir(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).context(directory.display().to_string()),
        }
    }
    unreachable!("a number is free")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_second_run_of_a_day_has_a_number() {
        let place = tempfile::TempDir::new().unwrap();
        let machine = json!({ "date": "2026-11-22" });
        let output = place.path().join("results");
        let made = [(); 3].map(|()| new_directory(&output, "tap", &machine).unwrap());
        let names = made.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
        assert_eq!(names, ["2026-11-22-tap", "2026-11-22-tap-2", "2026-11-22-tap-3"]);
        fs::write(place.path().join("file"), "").unwrap();
        let error = new_directory(&place.path().join("file"), "tap", &machine).unwrap_err();
        assert!(error.to_string().contains("file"), "{error}");
    }
}
