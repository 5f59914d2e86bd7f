//! `waggle lab suites`, `list` and `show`

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde::Serialize;
use waggle_lab::manifest::Manifest;
use waggle_lab::report::cell_in_words;
use waggle_lab::run_dir::{self, RunDirError};
use waggle_lab::suite::Suite;
use waggle_model::visible::{in_json, on_a_line};

use super::super::{Failure, Outcome};
use super::progress::note;
use super::{directory, failed, runs};
use crate::streams::stdout;

/// List the suites, or print one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle lab suites rds > mine.toml")]
pub(super) struct SuitesArgs {
    /// Print this one as the TOML file that it is; unset: list them all.
    #[arg(conflicts_with = "json")]
    suite: Option<String>,
    /// One JSON array.
    #[arg(long)]
    json: bool,
}

/// List the runs that are kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle lab list --json")]
pub(super) struct ListArgs {
    /// One JSON array.
    #[arg(long)]
    json: bool,
}

/// Show what was asked of a run and how far it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle lab show rds-20260314T101500")]
pub(super) struct ShowArgs {
    /// Its name as in `waggle lab list`, or its directory.
    run: PathBuf,
    /// Print it as it is kept (run.json).
    #[arg(long)]
    json: bool,
}

/// A suite in a list.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SuiteLine {
    /// Its name.
    name: String,
    /// What it is.
    title: String,
    /// The published source.
    source: String,
    /// Arms, without the second one of the baseline.
    scenarios: usize,
    /// Cells.
    cells: usize,
}

pub(super) fn suites(args: SuitesArgs) -> Result<Outcome, Failure> {
    let mut out = stdout();
    if let Some(name) = &args.suite {
        let text = Suite::text(name).map_err(failed)?;
        write!(out, "{text}")?;
        return Ok(Outcome::Done);
    }
    let mut lines = Vec::new();
    for (name, _) in Suite::builtin() {
        let suite = Suite::find(name).map_err(failed)?;
        lines.push(SuiteLine {
            name: suite.name.clone(),
            title: suite.title.clone(),
            source: suite.source.what.clone(),
            scenarios: suite.scenarios.len(),
            cells: suite.cells().len(),
        });
    }
    if args.json {
        return print_json(&mut out, &lines);
    }
    for line in lines {
        let SuiteLine { name, title, source, scenarios, cells } = line;
        writeln!(out, "{name:<6} {title}\n       {scenarios} scenarios, {cells} cells; {source}")?;
    }
    Ok(Outcome::Done)
}

/// A run in a list.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RunLine {
    /// Its name.
    name: String,
    /// Its suite.
    suite: String,
    /// What the server says of its version.
    server: String,
    /// Its scale.
    scale: String,
    /// When it began.
    begin: String,
    /// Windows that were made.
    windows: usize,
    /// Windows in all.
    of: u32,
    /// Windows that do not count.
    void: usize,
}

/// Run directories; none if nothing was kept yet.
fn kept_in(place: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error| Failure::Cannot(anyhow!("reading {}: {error}", place.display()));
    let entries = match fs::read_dir(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let places: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut places = places.map_err(failed)?;
    // What has no such file is no run.
    places.retain(|place| place.join(run_dir::RUN).exists());
    Ok(places)
}

fn line(place: &Path) -> Result<RunLine, RunDirError> {
    let manifest: Manifest = run_dir::read_run(place)?;
    let windows = run_dir::read_windows(place)?;
    Ok(RunLine {
        name: place.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        suite: manifest.suite,
        server: manifest.info.server.version,
        scale: manifest.info.run.scale,
        begin: manifest.info.run.begin.to_string(),
        windows: windows.len(),
        of: manifest.info.run.windows_planned,
        void: windows.iter().filter(|window| window.void.is_some()).count(),
    })
}

pub(super) fn list(args: ListArgs) -> Result<Outcome, Failure> {
    let mut lines: Vec<RunLine> = Vec::new();
    for place in kept_in(&runs())? {
        match line(&place) {
            Ok(line) => lines.push(line),
            Err(error) => note(format!("not listed: {error}")),
        }
    }
    lines.sort_by(|one, other| one.begin.cmp(&other.begin));
    let mut out = stdout();
    if args.json {
        return print_json(&mut out, &lines);
    }
    if lines.is_empty() {
        writeln!(out, "no run is kept in {}", runs().display())?;
    }
    for line in lines {
        let state = match line.windows as u32 >= line.of {
            true => format!("whole, {} void", line.void),
            false => format!("{} of {} windows, {} void", line.windows, line.of, line.void),
        };
        writeln!(
            out,
            "{:<28} {:<6} {:<20} {:<6} {state}",
            line.name,
            line.suite,
            on_a_line(&line.server),
            line.scale
        )?;
    }
    Ok(Outcome::Done)
}

pub(super) fn show(args: ShowArgs) -> Result<Outcome, Failure> {
    let place = directory(&args.run);
    let manifest: Manifest = run_dir::read_run(&place).map_err(failed)?;
    let mut out = stdout();
    if args.json {
        return print_json(&mut out, &manifest);
    }
    let windows = run_dir::read_windows(&place).map_err(failed)?;
    let info = &manifest.info;
    writeln!(out, "{}", place.display())?;
    writeln!(out, "  command   {}", on_a_line(&info.run.command))?;
    let server = format!("{}, {}", info.server.version, manifest.server);
    writeln!(out, "  server    {}", on_a_line(&server))?;
    writeln!(out, "  settings  {}", on_a_line(&manifest.settings.join(" ")))?;
    writeln!(out, "  began     {}, resumed {} times", info.run.begin, info.run.resumed)?;
    writeln!(out, "  seed      {}", manifest.seed)?;
    writeln!(out, "  cells     {}, not run {}", manifest.cells.len(), info.not_run.len())?;
    writeln!(out, "  windows   {} of {}", windows.len(), info.run.windows_planned)?;
    for window in windows.iter().filter(|window| window.void.is_some()) {
        let why = on_a_line(window.void.as_deref().unwrap_or_default());
        writeln!(
            out,
            "  void      window {}: {}, {}: {why}",
            window.number,
            cell_in_words(&window.cell),
            window.arm
        )?;
    }
    Ok(Outcome::Done)
}

fn print_json(out: &mut impl Write, value: &impl Serialize) -> Result<Outcome, Failure> {
    let json = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
    writeln!(out, "{}", in_json(&json))?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use schemars::schema_for;
    use waggle_lab::report;

    use super::*;
    use crate::schema::assert_explained;

    #[test]
    fn every_key_of_the_json_of_the_lab_is_explained() {
        assert_explained("lab", &schema_for!(Vec<SuiteLine>), 4);
        assert_explained("lab", &schema_for!(Vec<RunLine>), 7);
        assert_explained("lab", &report::schema(), 100);
        assert_explained("lab", &report::differences_schema(), 15);
    }
}
