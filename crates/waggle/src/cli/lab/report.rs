//! `waggle lab report` and `waggle lab compare`

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use waggle_lab::StoredRun;
use waggle_lab::analysis::{PAIRS_MIN, compare_runs};
use waggle_lab::report::{self as written, CHARTS, Report};

use super::super::{Failure, Outcome};
use super::progress::note;
use super::{directory, failed};
use crate::streams::stdout;

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
    /// The summary that a run prints at its end.
    Summary,
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

fn text(report: Report<'_>, format: Format) -> String {
    match format {
        Format::Html => report.html(),
        Format::Markdown => report.markdown(),
        Format::Csv => report.csv(),
        Format::Windows => report.windows_csv(),
        Format::Json => report.json() + "\n",
        Format::Effects => report.effects(),
        Format::Summary => report.summary(),
    }
}

/// Writes every form of a report, and its charts.
fn write_all(report: Report<'_>, place: &Path) -> Result<(), Failure> {
    for (format, name) in FILES {
        write(&place.join(name), &text(report, format))?;
    }
    for chart in report.charts() {
        write(&place.join(CHARTS).join(chart.name).with_extension("svg"), &chart.svg)?;
    }
    Ok(())
}

/// Writes a file, and makes the directory that it is in.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    let written = made.and_then(|()| fs::write(path, text));
    written.with_context(|| format!("writing {}", path.display())).map_err(Failure::Cannot)
}

/// Writes every form of the report of a run next to its windows, and prints the summary.
pub(super) fn end(place: &Path) -> Result<(), Failure> {
    let run = StoredRun::read(place).map_err(failed)?;
    write_all(run.report(), place)?;
    let mut out = stdout();
    writeln!(out, "{}", text(run.report(), Format::Summary))?;
    writeln!(out, "the whole report: {}", place.join(FILES[0].1).display())?;
    Ok(())
}

pub(super) fn report(args: ReportArgs) -> Result<Outcome, Failure> {
    let run = StoredRun::read(&directory(&args.run)).map_err(failed)?;
    if let Some(place) = args.output {
        write_all(run.report(), &place)?;
        return Ok(Outcome::Done);
    }
    stdout().write_all(text(run.report(), args.format).as_bytes())?;
    Ok(Outcome::Done)
}

pub(super) fn compare(args: CompareArgs) -> Result<Outcome, Failure> {
    let read = |run: &Path| StoredRun::read(&directory(run)).map_err(failed);
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
    if one.manifest.suite_text != other.manifest.suite_text {
        note(
            "the suite was changed between the two runs: what is named alike may be set otherwise",
        );
    }
    if let Some(profile) = one.manifest.other_profile(&other.manifest.profiles) {
        note(format!("profile {profile} sets something else in the second run than in the first"));
    }
    let mut common = one.manifest.cells.clone();
    common.retain(|cell| other.manifest.cells.contains(cell));
    let otherwise = one.suite.served_otherwise(&other.suite, &common);
    if !otherwise.is_empty() {
        note(format!(
            "in one of the runs a server is shared with others, in the other not, and what differs may be that: {}",
            otherwise.join(", ")
        ));
    }
    let differences = compare_runs([&one.suite, &other.suite], &one.windows, &other.windows);
    if differences.found.is_empty() {
        return Err(Failure::Cannot(anyhow!(
            "no effect was measured in both runs: name two that have cells in common, with {PAIRS_MIN} blocks or more"
        )));
    }
    let mut out = stdout();
    match args.json {
        true => writeln!(out, "{}", written::differences_json(&differences))?,
        false => write!(
            out,
            "{}",
            written::differences(&one.manifest.info, &other.manifest.info, &differences)
        )?,
    }
    Ok(if differences.is_any() { Outcome::No } else { Outcome::Done })
}
