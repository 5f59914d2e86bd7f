//! `waggle lab report` and `waggle lab compare`

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use waggle_lab::analysis::{Analysis, analyse_all, compare_runs};
use waggle_lab::begun::Begun;
use waggle_lab::report::facts::Facts;
use waggle_lab::suite::Suite;
use waggle_lab::{Window, kept, report as written};

use super::super::{Failure, Outcome};
use super::progress::note;
use super::{directory, failed};

/// Print the report of a run, from the windows that it kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle lab report rds-20260314T101500 --format effects")]
pub(super) struct ReportArgs {
    /// Its name as in `waggle lab list`, or its directory.
    run: PathBuf,
    /// How.
    #[arg(long, value_enum, default_value_t = Format::Markdown)]
    format: Format,
    /// Write every form of it, and each chart as SVG, into this directory, as a run does into its own.
    #[arg(long, value_name = "DIR", conflicts_with = "format")]
    output: Option<PathBuf>,
}

/// Say whether two runs of a suite differ.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle lab compare rds-20260314T101500 rds-20260315T091200")]
pub(super) struct CompareArgs {
    /// A run: its name as in `waggle lab list`, or its directory.
    one: PathBuf,
    /// The other.
    other: PathBuf,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text for people.
    Markdown,
    /// One page with charts.
    Html,
    /// A line for each comparison.
    Csv,
    /// A line for each window.
    Windows,
    /// For programs.
    Json,
    /// Direction and size of every published effect beside ours, as text for people.
    Effects,
}

/// The files of a report, in the directory of its run.
const FILES: [(Format, &str); 6] = [
    (Format::Html, "report.html"),
    (Format::Markdown, "report.md"),
    (Format::Effects, "effects.md"),
    (Format::Csv, "report.csv"),
    (Format::Windows, "windows.csv"),
    (Format::Json, "report.json"),
];

/// The directory of its charts.
const CHARTS: &str = "charts";

/// A run as it was kept, and what follows from it.
struct Reported {
    suite: Suite,
    suite_text: String,
    facts: Facts,
    windows: Vec<Window>,
    analysis: Analysis,
}

impl Reported {
    fn read(place: &Path) -> Result<Reported, Failure> {
        let begun: Begun = kept::read_run(place).map_err(|error| failed(error.into()))?;
        let windows = kept::read_windows(place).map_err(|error| failed(error.into()))?;
        let suite = begun.suite().map_err(|error| failed(error.into()))?;
        let (mut facts, suite_text) = (begun.facts, begun.suite_text);
        let is_whole = windows.len() as u32 >= facts.run.windows_planned;
        facts.run.end = windows.iter().map(|window| window.end).max().filter(|_| is_whole);
        let analysis = analyse_all(&suite, &windows);
        Ok(Reported { suite, suite_text, facts, windows, analysis })
    }

    fn text(&self, format: Format) -> String {
        let Reported { suite, facts, windows, analysis, .. } = self;
        match format {
            Format::Html => written::html(suite, facts, windows, analysis),
            Format::Markdown => written::markdown(suite, facts, windows, analysis),
            Format::Csv => written::csv(suite, facts, windows, analysis),
            Format::Windows => written::windows_csv(windows),
            Format::Json => written::json(suite, facts, windows, analysis) + "\n",
            Format::Effects => written::effects(suite, facts, windows, analysis),
        }
    }

    /// Writes every form of the report, and its charts.
    fn write(&self, place: &Path) -> Result<(), Failure> {
        for (format, name) in FILES {
            write(&place.join(name), &self.text(format))?;
        }
        let Reported { suite, facts, windows, analysis, .. } = self;
        for chart in written::charts(suite, facts, windows, analysis) {
            write(&place.join(CHARTS).join(chart.name).with_extension("svg"), &chart.svg)?;
        }
        Ok(())
    }
}

/// Writes a file, and makes the directory that it is in.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    let written = made.and_then(|()| fs::write(path, text));
    written.with_context(|| format!("writing {}", path.display())).map_err(Failure::Cannot)
}

/// Writes every form of the report of a run beside its windows, and prints the most telling of it.
pub(super) fn end(place: &Path) -> Result<(), Failure> {
    let reported = Reported::read(place)?;
    reported.write(place)?;
    let Reported { suite, facts, windows, analysis, .. } = &reported;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", written::summary(suite, facts, windows, analysis))?;
    writeln!(out, "the whole report: {}", place.join(FILES[0].1).display())?;
    Ok(())
}

pub(super) fn report(args: ReportArgs) -> Result<Outcome, Failure> {
    let reported = Reported::read(&directory(&args.run))?;
    if let Some(place) = args.output {
        reported.write(&place)?;
        return Ok(Outcome::Done);
    }
    io::stdout().lock().write_all(reported.text(args.format).as_bytes())?;
    Ok(Outcome::Done)
}

pub(super) fn compare(args: CompareArgs) -> Result<Outcome, Failure> {
    let read = |run: &Path| Reported::read(&directory(run));
    let (one, other) = (read(&args.one)?, read(&args.other)?);
    if one.suite.name != other.suite.name {
        return Err(Failure::Config(anyhow!(
            "{} is a run of {} and {} of {}: only runs of one suite can be compared",
            args.one.display(),
            one.suite.name,
            args.other.display(),
            other.suite.name
        )));
    }
    if one.suite.baseline != other.suite.baseline {
        return Err(Failure::Config(anyhow!(
            "{} compares with {} and {} with {}: effects against two baselines are two questions; make a run with \
             the other baseline",
            args.one.display(),
            one.suite.baseline,
            args.other.display(),
            other.suite.baseline
        )));
    }
    if one.suite_text != other.suite_text {
        note(
            "the suite was changed between the two runs: what is named alike may be set otherwise",
        );
    }
    let differences = compare_runs(&one.suite, &one.windows, &other.windows);
    if differences.found.is_empty() {
        return Err(Failure::Cannot(anyhow!(
            "no effect was measured in both runs: name two that have cells in common, with 6 blocks or more"
        )));
    }
    let mut out = io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", written::differences_json(&differences))?,
        false => write!(out, "{}", written::differences(&one.facts, &other.facts, &differences))?,
    }
    Ok(if differences.is_any() { Outcome::No } else { Outcome::Done })
}
