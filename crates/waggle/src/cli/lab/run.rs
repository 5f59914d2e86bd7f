//! `waggle lab run`: a suite on private servers, and what other ways to a run have in common with that.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::slice::from_ref;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use jiff::Timestamp;
use waggle_lab::begun::Begun;
use waggle_lab::budget::{Choice, Reckoning};
use waggle_lab::engine::{Ended, Engine, Progress};
use waggle_lab::facts::{Facts, LoadFacts, NotRun, Server};
use waggle_lab::kept::{self, Kept};
use waggle_lab::load::{LoadError, Reach, Request, Sysbench};
use waggle_lab::needs::{Needs, check_kept};
use waggle_lab::schedule::Schedule;
use waggle_lab::suite::{Scale, Suite, SuiteError};
use waggle_lab::trial::try_scenarios;
use waggle_lab::{Cell, LabError, Origin, connect, load};
use waggle_private_server::{Launcher, PrivateServer, Program, Template};

use super::super::{Failure, Outcome, private_server, stop_on_signal};
use super::announce::{announce, count};
use super::arguments::{RunArgs, as_typed};
use super::progress::{Line, note};
use super::{failed, foreign, found, report, server};

pub(super) fn run(args: RunArgs) -> Result<Outcome, Failure> {
    match args.server.clone() {
        None => foreign::run(&args),
        // An argument that --server excludes is not demanded by another one.
        Some(_) if args.account.is_given() || args.yes || args.no_load => {
            Err(Failure::Usage(anyhow!(
                "an account, --yes and --no-load are for a server that runs already: give --dsn in place \
                 of --server, or leave them out"
            )))
        }
        Some(server) => run_private(&args, server),
    }
}

/// Runs a suite on private servers of a program.
fn run_private(args: &RunArgs, named: String) -> Result<Outcome, Failure> {
    let (mut suite, suite_text) = read_suite(args)?;
    let asked = suite.confine(&args.only).map_err(failed)?;
    let (begin, until) = (Timestamp::now(), args.until());
    let place = args.place(&suite, begin)?;
    let scale = Scale::from(args.scale);
    let lengths = args.lengths();
    let reckoning = Reckoning { suite: &suite, scale, lengths, is_foreign: false, has_load: true };
    let program = server::program(&named, args.servers.as_deref())?;
    let possible = with_memory(&suite, &asked, scale, &program.place());
    let choice = reckoning.choose(&possible, args.blocks, args.time_budget);
    let sysbench = sysbench(&suite)?;
    check(&suite, &choice.cells, scale, &program)?;
    check_kept(&place, choice.windows(&suite)).map_err(failed)?;
    announce(&reckoning, &choice, args.time_budget);
    if possible.len() < asked.len() {
        let cells = asked.len() - possible.len();
        note(format!("not run, {}: {}", NotRun::MEMORY, count(cells, "cell")));
    }
    if args.plan {
        tell_needs(&suite, &choice.cells, scale, &program.place());
        return Ok(Outcome::Done);
    }
    let pinned = if args.pin { found::halves()? } else { [Vec::new(), Vec::new()] };
    let launchers = launchers(&pinned)?;
    let settings = suite.settings(scale, program.flavour);
    let stop = stop_on_signal()?;
    let task = Task {
        suite: &suite,
        scale,
        program: &program,
        launchers: &launchers,
        sysbench: &sysbench,
        stop: &stop,
        resume_with: list(args.servers.as_deref()),
    };
    let Some(made) = task.make(&settings, &choice.cells).map_err(failed)? else {
        note("stopped before the first window; nothing is left of it");
        return Ok(Outcome::No);
    };
    let seed = args.seed.unwrap_or_else(now_s);
    let facts = Facts {
        run: args.facts(&suite, &choice, lengths, seed, begin),
        host: found::host(pinned.clone())?,
        taken_up: Vec::new(),
        server: task.server(&made, &settings),
        load: load_facts(&suite, scale, &sysbench),
        not_run: not_run(&suite, &asked, &possible, &choice),
        caveats: Vec::new(),
    };
    let begun = Begun {
        suite: suite.name.clone(),
        suite_text,
        scenarios: suite.scenarios.iter().map(|scenario| scenario.name.clone()).collect(),
        profiles: suite.profile_texts(),
        scale,
        lengths,
        cells: choice.cells,
        blocks: choice.blocks,
        seed,
        server: named,
        foreign: None,
        settings,
        pinned,
        facts,
    };
    let kept = Kept::create(&place, &begun).map_err(failed)?;
    task.measure(&begun, kept, &made, until)
}

/// Says what a run takes of the host at most.
fn tell_needs(suite: &Suite, cells: &[Cell], scale: Scale, place: &Path) {
    let needs = Needs::of(suite, cells, scale);
    let memory = most_memory(suite, cells, scale).map_or(0, |most| most.memory_bytes_with(place));
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    note(format!(
        "it takes up to {} on the disk of {} and {} of memory, for {} at once; nothing was started",
        gib(needs.disk_bytes()),
        place.display(),
        gib(memory),
        count(needs.servers as usize, "server")
    ));
}

/// The list of servers as an argument of `waggle lab resume`.
pub(super) fn list(servers: Option<&Path>) -> Vec<OsString> {
    servers.map_or_else(Vec::new, |path| vec!["--servers".into(), path.into()])
}

/// How servers, and how loads are started.
pub(super) struct Launchers {
    pub(super) server: Launcher,
    pub(super) load: Launcher,
}

pub(super) fn launchers([server, load]: &[Vec<usize>; 2]) -> Result<Launchers, Failure> {
    let launcher = private_server::launcher()?;
    Ok(Launchers {
        server: Launcher { processors: server.clone(), ..launcher.clone() },
        load: Launcher { processors: load.clone(), ..launcher },
    })
}

/// Data that was made.
pub(super) struct Made {
    template: Template,
    pub(super) version: String,
}

/// A path as it is from the directory in which waggle runs, where it lies below: reports that are kept with a project
/// name no place of one machine.
fn from_here(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let below = here.and_then(|here| path.strip_prefix(here).ok());
    below.unwrap_or(path).display().to_string()
}

/// The program of the load, which has what the workloads of a suite need.
pub(super) fn sysbench(suite: &Suite) -> Result<Sysbench, Failure> {
    let find = || {
        let sysbench = Sysbench::find(Path::new("sysbench"))?;
        suite.workloads.iter().try_for_each(|workload| sysbench.check(workload))?;
        Ok(sysbench)
    };
    find().map_err(|error: LoadError| failed(error))
}

/// The suite that was named, and its text.
pub(super) fn read_suite(args: &RunArgs) -> Result<(Suite, String), Failure> {
    let read = || {
        let text = Suite::text(&args.suite)?;
        Ok((Suite::parse(&args.suite, &text)?, text))
    };
    read().map_err(|error: SuiteError| failed(error))
}

/// The cells whose sessions the memory has room for; all of them where it has for none, since that is to be said.
fn with_memory(suite: &Suite, asked: &[Cell], scale: Scale, place: &Path) -> Vec<Cell> {
    let has_memory = |cell: &&Cell| Needs::of(suite, from_ref(*cell), scale).has_memory(place);
    let possible: Vec<Cell> = asked.iter().filter(has_memory).cloned().collect();
    if possible.is_empty() { asked.to_vec() } else { possible }
}

/// Whether the host has what a run of these cells takes.
pub(super) fn check(
    suite: &Suite,
    cells: &[Cell],
    scale: Scale,
    program: &Program,
) -> Result<(), Failure> {
    // What a killed run left takes room.
    program.sweep().map_err(failed)?;
    let needs = |cells: &[Cell]| Needs::of(suite, cells, scale);
    needs(cells).check_disk(&program.place()).map_err(failed)?;
    let most = most_memory(suite, cells, scale);
    most.map_or(Ok(()), |most| most.check_memory(&program.place())).map_err(failed)
}

/// What the cell takes that takes most of the memory. It need not be one of those that have most servers.
fn most_memory(suite: &Suite, cells: &[Cell], scale: Scale) -> Option<Needs> {
    let each = cells.iter().map(|cell| Needs::of(suite, from_ref(cell), scale));
    each.max_by_key(Needs::memory_bytes)
}

/// The cells that are not run: those that nobody asked for, and those for which there is no memory or no time.
fn not_run(suite: &Suite, asked: &[Cell], possible: &[Cell], choice: &Choice) -> Vec<NotRun> {
    let all = suite.cells().into_iter().filter(|cell| !choice.cells.contains(cell));
    let why = |cell: &Cell| match (asked.contains(cell), possible.contains(cell)) {
        (false, _) => NotRun::NOT_ASKED,
        (true, false) => NotRun::MEMORY,
        (true, true) => NotRun::BUDGET,
    };
    all.map(|cell| NotRun { why: why(&cell).to_owned(), scenario: None, cell }).collect()
}

/// The time, s.
pub(super) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs())
}

/// A suite, and what it is run with.
pub(super) struct Task<'a> {
    pub(super) suite: &'a Suite,
    pub(super) scale: Scale,
    pub(super) program: &'a Program,
    pub(super) launchers: &'a Launchers,
    pub(super) sysbench: &'a Sysbench,
    pub(super) stop: &'a AtomicBool,
    /// What `waggle lab resume` has to be told beside the run.
    pub(super) resume_with: Vec<OsString>,
}

impl Task<'_> {
    /// Makes the data, where servers take what these cells need. `None` where somebody stopped it.
    pub(super) fn make(
        &self,
        settings: &[String],
        cells: &[Cell],
    ) -> Result<Option<Made>, LabError> {
        let (tables, rows) = (self.suite.data.tables, self.suite.data.rows.of(self.scale));
        let (program, launcher) = (self.program, &self.launchers.server);
        let as_given: Vec<&str> = settings.iter().map(String::as_str).collect();
        let empty = Template::of(PrivateServer::start(program, launcher, &[])?)?;
        let origin = Origin::Private { program, launcher, template: &empty, settings };
        match try_scenarios(self.suite, cells, origin, self.stop) {
            Err(LabError::Stopped) => return Ok(None),
            tried => tried?,
        }
        let server = empty.start(program, launcher, &as_given)?;
        drop(empty);
        let version = connect(&server)?.server_identity().version.clone();
        note(format!("data: {tables} tables of {rows} rows"));
        if let Some(workload) = self.suite.workloads.first() {
            let request = Request {
                sysbench: self.sysbench,
                launcher: &self.launchers.load,
                reach: &Reach::private(&server.socket()),
                workload,
                threads: tables,
                tables,
                rows,
                seed: 1,
                directory: server.directory(),
            };
            if !load::prepare(&request, self.stop)? {
                return Ok(None);
            }
            if let Some(workload) = self.suite.ages_with()
                && !load::age(&Request { workload, ..request }, self.stop)?
            {
                return Ok(None);
            }
        }
        Ok(Some(Made { template: Template::of(server)?, version }))
    }

    /// What the report says of the server.
    fn server(&self, made: &Made, settings: &[String]) -> Server {
        Server {
            version: made.version.clone(),
            program: Some(from_here(self.program.path())),
            options: settings.to_vec(),
            is_foreign: false,
            data_bytes: Some(made.template.bytes()),
            buffer_pool_bytes: Some(self.suite.data.buffer_pool_bytes(self.scale)),
        }
    }

    /// Makes the windows that are missing, and writes the reports of those that are there.
    pub(super) fn measure(
        &self,
        begun: &Begun,
        kept: Kept,
        made: &Made,
        until: Option<Instant>,
    ) -> Result<Outcome, Failure> {
        let place = kept.path().to_owned();
        let windows = Windows {
            begun,
            suite: self.suite,
            origin: Origin::Private {
                program: self.program,
                launcher: &self.launchers.server,
                template: &made.template,
                settings: &begun.settings,
            },
            load_launcher: &self.launchers.load,
            sysbench: Some(self.sysbench),
            until,
            stop: self.stop,
        };
        finish(&place, &self.resume_with, windows.make(kept).map_err(failed))
    }
}

/// What the report says of a load of ours.
pub(super) fn load_facts(suite: &Suite, scale: Scale, sysbench: &Sysbench) -> LoadFacts {
    LoadFacts {
        sysbench_version: Some(sysbench.version().to_owned()),
        tables: Some(suite.data.tables),
        rows_per_table: Some(u64::from(suite.data.rows.of(scale))),
    }
}

/// The windows of a run, and what makes them.
pub(super) struct Windows<'a> {
    pub(super) begun: &'a Begun,
    pub(super) suite: &'a Suite,
    pub(super) origin: Origin<'a>,
    pub(super) load_launcher: &'a Launcher,
    pub(super) sysbench: Option<&'a Sysbench>,
    /// When no block is begun any more.
    pub(super) until: Option<Instant>,
    pub(super) stop: &'a AtomicBool,
}

impl Windows<'_> {
    /// Makes those that are missing.
    pub(super) fn make(&self, mut kept: Kept) -> Result<Ended, LabError> {
        let mut line = Line::new();
        let mut tell = |progress: &Progress<'_>| line.tell(progress);
        let mut begun = self.begun.clone();
        let beyond = match self.engine(&begun, &mut tell).beyond_reach(&mut kept) {
            Err(LabError::Stopped) => return Ok(Ended::Stopped),
            beyond => beyond?,
        };
        if !beyond.is_empty() && kept.count() == 0 {
            if beyond.len() == begun.cells.len() {
                begun.say_out_of_reach();
                kept::write_json(&kept.path().join(kept::RUN), &begun)?;
                return Ok(Ended::OutOfReach);
            }
            begun.leave_out(self.suite, &beyond);
            kept::write_json(&kept.path().join(kept::RUN), &begun)?;
            note(format!(
                "not run, since the baseline cannot use so much of the processors: {}",
                count(beyond.len(), "cell")
            ));
        }
        let ended = self.engine(&begun, &mut tell).run(&mut kept);
        line.end();
        if let Ok(Ended::OutOfTime { blocks }) = ended {
            begun.say_out_of_time(blocks);
            kept::write_json(&kept.path().join(kept::RUN), &begun)?;
        }
        ended
    }

    fn engine<'b>(&'b self, begun: &Begun, tell: &'b mut dyn FnMut(&Progress<'_>)) -> Engine<'b> {
        Engine {
            suite: self.suite,
            schedule: Schedule::new(self.suite, &begun.cells, begun.blocks, begun.seed),
            lengths: begun.lengths,
            scale: begun.scale,
            seed: begun.seed,
            origin: self.origin,
            load_launcher: self.load_launcher,
            sysbench: self.sysbench,
            until: self.until,
            stop: self.stop,
            tell,
        }
    }
}

/// Writes the reports of the windows that are there, and says how to go on: `further` is what to tell beside the run.
pub(super) fn finish(
    place: &Path,
    further: &[OsString],
    ended: Result<Ended, Failure>,
) -> Result<Outcome, Failure> {
    let ended = ended.inspect_err(|_| resume_with(place, further))?;
    if ended != Ended::OutOfReach {
        report::end(place)?;
    }
    match ended {
        Ended::Whole => Ok(Outcome::Done),
        Ended::OutOfReach => Err(Failure::Cannot(anyhow!(
            "nothing is left to run: the baseline cannot use as much of the processors as any rate asks for; choose closed \
             loads with --only closed"
        ))),
        Ended::Stopped => {
            resume_with(place, further);
            Ok(Outcome::No)
        }
        // It did what it was asked for.
        Ended::OutOfTime { blocks } => {
            let blocks = count(blocks as usize, "block");
            note(format!("the time is over after {blocks}"));
            resume_with(place, further);
            Ok(Outcome::Done)
        }
    }
}

/// Says how to go on with a run that was begun.
pub(super) fn resume_with(place: &Path, further: &[OsString]) {
    if let Ok(place) = fs::canonicalize(place) {
        let words =
            std::iter::once(place.as_os_str()).chain(further.iter().map(OsString::as_os_str));
        let further = as_typed(words);
        note(format!("what was measured is kept; go on with: waggle lab resume {further}"));
    }
}
