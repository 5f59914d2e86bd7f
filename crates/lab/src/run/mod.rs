//! A run from its plan to its end.
//!
//! [`Plan::new`] looks at everything that can be known before anything is started; [`Plan::resumed`] does so for a run
//! that is to go on. [`Plan::measure`] makes the data and the windows. What depends on where the servers come from is in
//! [`Source`].

mod measure;
mod source;

use std::path::{Path, PathBuf};
use std::time::Duration;

use waggle_mysql::Connection;

use crate::budget::{Choice, TimeEstimate};
use crate::error::LabError;
use crate::lengths::Lengths;
use crate::load::{LoadError, Sysbench, SysbenchError};
use crate::manifest::Manifest;
use crate::needs::check_kept;
use crate::run_dir::{self, RunDir};
use crate::run_info::{Host, LoadInfo, NotRun, Run, RunInfo};
use crate::schedule::Schedule;
use crate::suite::{Scale, Suite};
use crate::window::Cell;

pub use measure::{Finished, RunContext, RunEvent};
pub use source::{Login, ServerInUse, Source};

/// Windows that a schedule may have: each has an entry in memory before the first one is made.
const WINDOWS_MAX: u64 = 1 << 20;

/// What is asked of a new run.
pub struct RunRequest {
    /// The suite.
    pub suite: Suite,
    /// Its text.
    pub suite_text: String,
    /// How the server was named: the value of `--server`, or `--dsn`.
    pub server: String,
    /// How much data there is.
    pub scale: Scale,
    /// How long things take.
    pub lengths: Lengths,
    /// How often each arm is measured in each cell, where somebody says it.
    pub blocks: Option<u32>,
    /// The time that it may take, where there is a limit.
    pub budget: Option<Duration>,
    /// Whether the load is ours, and not that of others.
    pub has_load: bool,
    /// Its directory, which is not there yet.
    pub place: PathBuf,
    /// What the report says of it. Blocks and windows are not known yet.
    pub run: Run,
    /// This computer.
    pub host: Host,
    /// Processors of the server, and of the load; empty where nothing is pinned.
    pub pinned: [Vec<usize>; 2],
}

/// A run that can begin, or go on.
pub struct Plan {
    source: Source,
    task: Task,
    /// What a user has to know before it begins, a line each.
    pub notes: Vec<String>,
    /// What it takes of the host at most, in words; empty on a server in use.
    pub needs: String,
}

/// What is to be measured.
struct Task {
    /// The suite without what is not run.
    suite: Suite,
    manifest: Manifest,
    sysbench: Option<Sysbench>,
    place: PathBuf,
    /// The directory of a run that goes on.
    run_dir: Option<RunDir>,
}

impl Plan {
    /// Plans a new run, and tells which cells it has.
    ///
    /// # Errors
    /// Nothing is left to run, sysbench is missing, or the host or the server has no room for it.
    pub fn new(request: RunRequest, mut source: Source) -> Result<(Plan, Choice), LabError> {
        let (mut suite, scale, has_load) = (request.suite.clone(), request.scale, request.has_load);
        let is_in_use = source.confined().is_some();
        if let Some(confined) = source.confined() {
            confined.confine(&mut suite);
        }
        let cells = suite.confine(&request.run.only)?;
        let mut to_run = suite.clone();
        if let Some(confined) = source.confined() {
            confined.run_only(&mut to_run)?;
        }
        let sysbench = has_load.then(|| sysbench(&suite)).transpose()?;
        let is_possible = |cell: &&Cell| source.why_not(&suite, scale, cell).is_none();
        let possible: Vec<Cell> = cells.iter().filter(is_possible).cloned().collect();
        if possible.is_empty() {
            return Err(source.nothing_fits(&suite, &cells, scale));
        }
        let lengths = request.lengths;
        let estimate = TimeEstimate { suite: &to_run, scale, lengths, is_in_use, has_load };
        let choice = estimate.choose(&possible, request.blocks, request.budget);
        let unknown_room = source.check_room(&to_run, &choice.cells, scale)?;
        let windows = choice.windows(&to_run);
        check_kept(&request.place, windows)?;
        let mut notes = Vec::new();
        if !is_in_use && possible.len() < cells.len() {
            let left_out = plural(cells.len() - possible.len(), "cell");
            notes.push(format!("not run, {}: {left_out}", NotRun::MEMORY));
        }
        if suite.baseline != request.suite.baseline {
            let (now, before) = (&suite.baseline, &request.suite.baseline);
            notes.push(format!("compared with {now}, since {before} is not run"));
        }
        let source_baseline = &request.suite.baseline;
        let about = source.about(&suite, &to_run, &choice.cells, scale, source_baseline)?;
        notes.extend(about.notes);
        notes.extend(unknown_room);
        let info = RunInfo {
            run: Run { blocks: choice.blocks, windows_planned: windows as u32, ..request.run },
            host: request.host,
            taken_up: Vec::new(),
            server: about.server,
            load: load_info(&suite, scale, sysbench.as_ref()),
            not_run: not_run(&source, &suite, scale, &cells, &choice),
            caveats: about.caveats,
        };
        let manifest = Manifest {
            scenarios: suite.scenarios.iter().map(|scenario| scenario.name.clone()).collect(),
            profiles: suite.profile_texts(),
            suite: suite.name,
            suite_text: request.suite_text,
            scale,
            lengths,
            cells: choice.cells.clone(),
            blocks: choice.blocks,
            seed: info.run.seed,
            server: request.server,
            in_use: source.confined().cloned(),
            settings: about.settings,
            pinned: request.pinned,
            info,
        };
        let place = request.place;
        let task = Task { suite: to_run, manifest, sysbench, place, run_dir: None };
        Ok((Plan { source, task, notes, needs: about.needs }, choice))
    }

    /// Plans the rest of a run on this computer, with this version of waggle.
    ///
    /// # Errors
    /// Profiles, schedule or sysbench are others than before, or the host or the server has no room for it.
    pub fn resumed(
        run_dir: RunDir,
        mut manifest: Manifest,
        mut source: Source,
        host: Host,
        waggle_version: &str,
    ) -> Result<Plan, LabError> {
        let (suite, place) = (manifest.suite_to_run()?, run_dir.path().to_owned());
        must_match(&manifest, &suite, &place)?;
        let (whole, cells, scale) = (manifest.suite()?, &manifest.cells, manifest.scale);
        let about = source.about(&whole, &suite, cells, scale, &suite.baseline)?;
        let mut notes = about.notes;
        let has_load = source.confined().is_none_or(|confined| confined.others.is_none());
        let sysbench = has_load.then(|| sysbench(&suite)).transpose()?;
        if let Some(sysbench) = &sysbench {
            must_be_of_run(&manifest, sysbench)?;
        }
        if !manifest.is_whole(run_dir.count()) {
            notes.extend(source.check_room(&suite, cells, scale)?);
        }
        check_kept(&place, manifest.missing(run_dir.count()))?;
        manifest.take_up(run_dir.part(), host, waggle_version);
        let task = Task { suite, manifest, sysbench, place, run_dir: Some(run_dir) };
        Ok(Plan { source, task, notes, needs: about.needs })
    }

    /// From what the time of the run is estimated.
    pub fn estimate(&self) -> TimeEstimate<'_> {
        let Task { suite, manifest: Manifest { scale, lengths, .. }, sysbench, .. } = &self.task;
        let (scale, lengths, has_load) = (*scale, *lengths, sysbench.is_some());
        TimeEstimate { suite, scale, lengths, is_in_use: self.is_in_use(), has_load }
    }

    /// Whether the run changes a server in use.
    pub fn is_in_use(&self) -> bool {
        self.source.confined().is_some()
    }

    /// The directory of the run.
    pub fn place(&self) -> &Path {
        &self.task.place
    }

    /// Name of its suite.
    pub fn suite(&self) -> &str {
        &self.task.suite.name
    }

    /// The connection over which a server in use is changed; `None` with private servers.
    ///
    /// # Errors
    /// The account may not do what the suite wants; then with the `GRANT` to run.
    pub fn connection_to_change(&mut self) -> Result<Option<&mut Connection>, LabError> {
        self.source.connection_to_change(&self.task.suite)
    }
}

/// So many of them, in words.
pub fn plural(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The sysbench of `PATH`, if it has what the workloads of a suite need.
fn sysbench(suite: &Suite) -> Result<Sysbench, LabError> {
    let find = || {
        let sysbench = Sysbench::find(Path::new("sysbench"))?;
        suite.workloads.iter().try_for_each(|one| sysbench.check(&one.script, &one.arguments))?;
        Ok(sysbench)
    };
    find().map_err(|error: SysbenchError| LoadError::from(error).into())
}

/// What the report says of the load; nothing where it is that of others.
fn load_info(suite: &Suite, scale: Scale, sysbench: Option<&Sysbench>) -> LoadInfo {
    LoadInfo {
        sysbench_version: sysbench.map(|sysbench| sysbench.version().to_owned()),
        tables: sysbench.map(|_| suite.data.tables),
        rows_per_table: sysbench.map(|_| u64::from(suite.data.rows.of(scale))),
    }
}

/// What is not run, and why: cells, and scenarios in the cells that are run.
fn not_run(
    source: &Source,
    suite: &Suite,
    scale: Scale,
    asked: &[Cell],
    choice: &Choice,
) -> Vec<NotRun> {
    let mut all = Vec::new();
    for cell in suite.cells() {
        if choice.cells.contains(&cell) {
            let scenarios = source.confined().into_iter().flat_map(|confined| &confined.not_run);
            let of_cell = scenarios.filter(|(name, _)| suite.has(&cell, name));
            all.extend(of_cell.map(|(name, why)| NotRun {
                cell: cell.clone(),
                scenario: Some(name.clone()),
                why: why.clone(),
            }));
        } else {
            let why = match asked.contains(&cell) {
                true => source.why_not(suite, scale, &cell).unwrap_or(NotRun::BUDGET),
                false => NotRun::NOT_ASKED,
            };
            all.push(NotRun { why: why.to_owned(), scenario: None, cell });
        }
    }
    all
}

/// Whether this waggle goes on as the run was begun: with the same profiles and the same schedule.
fn must_match(manifest: &Manifest, suite: &Suite, place: &Path) -> Result<(), LabError> {
    let otherwise = |what: String| {
        let version = &manifest.info.run.waggle_version;
        LabError::DoesNotFit(format!(
            "the run was begun by waggle {version}, {what}: go on with that one, or begin a new run"
        ))
    };
    if let Some(profile) = manifest.other_profile(&suite.profile_texts()) {
        return Err(otherwise(format!("whose profile {profile} sets something else")));
    }
    let another = || otherwise("which has another schedule".to_owned());
    // Before it is made: run.json may state any number.
    let of_blocks = |blocks| Schedule::new(suite, &manifest.cells, blocks, manifest.seed);
    let windows = of_blocks(1).slots.len() as u64 * u64::from(manifest.blocks);
    if windows > WINDOWS_MAX || windows != u64::from(manifest.info.run.windows_planned) {
        return Err(another());
    }
    let schedule = of_blocks(manifest.blocks);
    let windows = run_dir::read_windows(place)?;
    if !windows.iter().all(|window| schedule.has(window)) {
        return Err(another());
    }
    Ok(())
}

/// Whether a sysbench is of the version with which the run was begun.
fn must_be_of_run(manifest: &Manifest, sysbench: &Sysbench) -> Result<(), LabError> {
    let now = sysbench.version();
    match manifest.info.load.sysbench_version.as_deref() {
        Some(then) if then != now => Err(LabError::DoesNotFit(format!(
            "the run was begun with sysbench {then}, and the one that is found is {now}: windows under two loads cannot be \
             compared; put the one that it was begun with first in PATH, or begin a new run"
        ))),
        _ => Ok(()),
    }
}
