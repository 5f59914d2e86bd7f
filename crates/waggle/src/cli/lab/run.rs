//! `waggle lab run` and `waggle lab resume`

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
use waggle_lab::{Cell, LabError, Origin, check_counters, check_variables, connect, load};
use waggle_private_server::{Launcher, PrivateServer, Program, Template};

use super::super::{Failure, Outcome, VERSION, private_server, stop_on_signal};
use super::announce::{announce, count};
use super::arguments::{ResumeArgs, RunArgs, as_typed};
use super::progress::{Line, note};
use super::{directory, failed, foreign, found, report, server};

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
    let possible = with_memory(&suite, &asked, scale);
    let choice = reckoning.choose(&possible, args.blocks, args.time_budget);
    let program = server::program(&named, args.servers.as_deref())?;
    let sysbench = sysbench(&suite)?;
    check(&suite, &choice.cells, scale, &program)?;
    check_kept(&place, choice.windows(&suite)).map_err(failed)?;
    announce(&reckoning, &choice, args.time_budget);
    if possible.len() < asked.len() {
        let cells = asked.len() - possible.len();
        note(format!("not run, {}: {}", NotRun::MEMORY, count(cells, "cell")));
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
    let Some(made) = task.make(&settings).map_err(failed)? else {
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

pub(super) fn resume(args: ResumeArgs) -> Result<Outcome, Failure> {
    let place = directory(&args.run);
    let (kept, mut begun): (Kept, Begun) = kept::take_up(&place).map_err(failed)?;
    // Also where nothing is missing: one that was killed left its schema there.
    if let Some(confined) = begun.foreign.clone() {
        return foreign::resume(&args, &confined, begun, kept);
    }
    if args.account.is_given() || args.yes {
        return Err(Failure::Usage(anyhow!(
            "an account and --yes are for a run on a server that runs already, and this one is on private servers: leave \
             them out"
        )));
    }
    if begun.is_whole(kept.count()) {
        note("every window is there: nothing is left to be made");
        report::end(&place)?;
        return Ok(Outcome::Done);
    }
    let suite = begun.suite().map_err(failed)?;
    goes_on_as_begun(&begun, &suite, &place)?;
    is_where_it_was(&begun.server)?;
    let program = server::program(&begun.server, args.servers.as_deref())?;
    let sysbench = sysbench(&suite)?;
    loads_as_begun(&begun, &sysbench)?;
    check(&suite, &begun.cells, begun.scale, &program)?;
    check_kept(&place, begun.missing(kept.count())).map_err(failed)?;
    let launchers = launchers(&begun.pinned)?;
    let stop = stop_on_signal()?;
    let task = Task {
        suite: &suite,
        scale: begun.scale,
        program: &program,
        launchers: &launchers,
        sysbench: &sysbench,
        stop: &stop,
        resume_with: list(args.servers.as_deref()),
    };
    let Some(made) = task.make(&begun.settings).map_err(failed)? else {
        resume_with(&place, &task.resume_with);
        return Ok(Outcome::No);
    };
    if made.version != begun.facts.server.version {
        return Err(Failure::Config(anyhow!(
            "the run was begun with {} and {} is {}: windows of two versions cannot be compared; name \
             the one that it was begun with, or begin a new run",
            begun.facts.server.version,
            begun.server,
            made.version
        )));
    }
    let host = found::host(begun.pinned.clone())?;
    begun.take_up(kept.part(), host, VERSION);
    kept::write_json(&place.join(kept::RUN), &begun).map_err(failed)?;
    task.measure(&begun, kept, &made, None)
}

/// Whether the program that a run was begun with can be found by the path that was given then.
fn is_where_it_was(server: &str) -> Result<(), Failure> {
    if !server.contains('/') || Path::new(server).exists() {
        return Ok(());
    }
    Err(Failure::Config(anyhow!(
        "the run was begun with --server {server}, where no program is now: put it back, or go on from the directory in \
         which the run was begun"
    )))
}

/// The list of servers as an argument of `waggle lab resume`.
fn list(servers: Option<&Path>) -> Vec<OsString> {
    servers.map_or_else(Vec::new, |path| vec!["--servers".into(), path.into()])
}

/// Whether this waggle goes on as the run was begun: with the same profiles, and with the windows that are kept in the
/// places that it gives them.
pub(super) fn goes_on_as_begun(begun: &Begun, suite: &Suite, place: &Path) -> Result<(), Failure> {
    if let Some(profile) = begun.other_profile(&suite.profile_texts()) {
        return Err(Failure::Config(anyhow!(
            "the run was begun by waggle {}, whose profile {profile} sets something else: go on with that one, \
             or begin a new run",
            begun.facts.run.waggle_version
        )));
    }
    let schedule = Schedule::new(suite, &begun.cells, begun.blocks, begun.seed);
    let windows = kept::read_windows(place).map_err(failed)?;
    let is_another = schedule.slots.len() as u32 != begun.facts.run.windows_planned;
    if is_another || !windows.iter().all(|window| schedule.has(window)) {
        return Err(Failure::Config(anyhow!(
            "the run was begun by waggle {}, which has another schedule: go on with that one, or begin a \
             new run",
            begun.facts.run.waggle_version
        )));
    }
    Ok(())
}

/// Whether a sysbench is of the version with which the run was begun.
pub(super) fn loads_as_begun(begun: &Begun, sysbench: &Sysbench) -> Result<(), Failure> {
    let (then, now) = (begun.facts.load.sysbench_version.as_deref(), sysbench.version());
    if then.is_none_or(|then| then == now) {
        return Ok(());
    }
    Err(Failure::Config(anyhow!(
        "the run was begun with {}, and the sysbench that is found is {now}: windows under two loads cannot be compared; put \
         the one that it was begun with first in PATH, or begin a new run",
        then.unwrap_or_default()
    )))
}

/// How servers, and how loads are started.
struct Launchers {
    server: Launcher,
    load: Launcher,
}

fn launchers([server, load]: &[Vec<usize>; 2]) -> Result<Launchers, Failure> {
    let launcher = private_server::launcher()?;
    Ok(Launchers {
        server: Launcher { processors: server.clone(), ..launcher.clone() },
        load: Launcher { processors: load.clone(), ..launcher },
    })
}

/// Data that was made.
struct Made {
    template: Template,
    version: String,
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
fn with_memory(suite: &Suite, asked: &[Cell], scale: Scale) -> Vec<Cell> {
    let has_memory = |cell: &&Cell| Needs::of(suite, from_ref(*cell), scale).has_memory();
    let possible: Vec<Cell> = asked.iter().filter(has_memory).cloned().collect();
    if possible.is_empty() { asked.to_vec() } else { possible }
}

/// Whether the host has what a run of these cells takes.
fn check(suite: &Suite, cells: &[Cell], scale: Scale, program: &Program) -> Result<(), Failure> {
    // What a killed run left takes room.
    program.sweep().map_err(failed)?;
    let needs = |cells: &[Cell]| Needs::of(suite, cells, scale);
    needs(cells).check_disk(&program.place()).map_err(failed)?;
    // Those that take most of it need not be those that have most servers.
    let each = cells.iter().map(|cell| needs(from_ref(cell)));
    let most = each.max_by_key(Needs::memory_bytes);
    most.map_or(Ok(()), |most| most.check_memory(&program.place())).map_err(failed)
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
struct Task<'a> {
    suite: &'a Suite,
    scale: Scale,
    program: &'a Program,
    launchers: &'a Launchers,
    sysbench: &'a Sysbench,
    stop: &'a AtomicBool,
    /// What `waggle lab resume` has to be told beside the run.
    resume_with: Vec<OsString>,
}

impl Task<'_> {
    /// Makes the data. `None` where somebody stopped it.
    fn make(&self, settings: &[String]) -> Result<Option<Made>, LabError> {
        let (tables, rows) = (self.suite.data.tables, self.suite.data.rows.of(self.scale));
        note(format!("data: {tables} tables of {rows} rows"));
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let server = PrivateServer::start(self.program, &self.launchers.server, &settings)?;
        let mut connection = connect(&server)?;
        let version = connection.server_identity().version.clone();
        check_counters(&mut connection, &self.suite.counters)?;
        check_variables(&mut connection, self.suite)?;
        drop(connection);
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
    fn measure(
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
            begun.leave_out(self.suite, &beyond);
            kept::write_json(&kept.path().join(kept::RUN), &begun)?;
            note(format!(
                "not run, since the baseline cannot use so much of the processors: {}",
                count(beyond.len(), "cell")
            ));
        }
        if begun.cells.is_empty() {
            return Ok(Ended::OutOfReach);
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
fn resume_with(place: &Path, further: &[OsString]) {
    if let Ok(place) = fs::canonicalize(place) {
        let words =
            std::iter::once(place.as_os_str()).chain(further.iter().map(OsString::as_os_str));
        let further = as_typed(words);
        note(format!("what was measured is kept; go on with: waggle lab resume {further}"));
    }
}
