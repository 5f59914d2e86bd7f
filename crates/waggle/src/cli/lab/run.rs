//! `waggle lab run` and `waggle lab resume`

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use jiff::Timestamp;
use waggle_lab::begun::Begun;
use waggle_lab::budget::{Choice, Lengths, choose};
use waggle_lab::engine::{Ended, Engine, Progress};
use waggle_lab::kept::{self, Kept};
use waggle_lab::load::Sysbench;
use waggle_lab::needs::Needs;
use waggle_lab::report::facts::{Facts, LoadFacts, NotRun, Run, Server};
use waggle_lab::schedule::Schedule;
use waggle_lab::suite::{Scale, Suite};
use waggle_lab::{Cell, LabError, gate, load, version_of};
use waggle_private_server::{Launcher, PrivateServer, Program, Template};

use super::super::{Failure, Outcome, duration, private_server, stop_on_signal};
use super::progress::Line;
use super::{asked, directory, failed, found, report, runs, server};

/// Run a suite, and report what it shows beside what was published.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: waggle lab run rds --server /usr/sbin/mysqld --scale tiny --time-budget 10m"
)]
pub(super) struct RunArgs {
    /// A name from `waggle lab suites`, or the path of a TOML file.
    suite: String,
    /// The server: the path of a mysqld or mariadbd, or a name in a list of servers.
    #[arg(long, value_name = "PATH|NAME")]
    server: String,
    /// The list of servers; unset: target/servers/servers.toml or /etc/waggle/servers.toml.
    #[arg(long, value_name = "FILE")]
    servers: Option<PathBuf>,
    /// How much data, and how long a window is.
    #[arg(long, value_enum, default_value_t = ScaleArg::Small)]
    scale: ScaleArg,
    /// Run only what fits into this time, such as 30m; what does not fit is listed.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time_budget: Option<Duration>,
    /// How often each arm is measured in each cell; unset: 8, or as often as the budget has room for.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    blocks: Option<u32>,
    /// Length of a window; unset: that of the scale.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    window: Option<Duration>,
    /// Only this workload, number of threads, scenario or order, or only closed or open loads. May be
    /// given more than once.
    #[arg(long, value_name = "WORD")]
    only: Vec<String>,
    /// Number from which the order of the windows follows; unset: the time.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Give half of the processors to the server and half to the load.
    #[arg(long)]
    pin: bool,
    /// Directory of the run; unset: one in the state directory, named by suite and time.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Go on with a run that was interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle lab resume rds-20260314T101500")]
pub(super) struct ResumeArgs {
    /// Its name as in `waggle lab list`, or its directory.
    run: PathBuf,
    /// The list of servers; unset: target/servers/servers.toml or /etc/waggle/servers.toml.
    #[arg(long, value_name = "FILE")]
    servers: Option<PathBuf>,
}

/// Scales, as on the command line.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ScaleArg {
    /// To see that everything works: little data, windows of 0.4 s.
    Tiny,
    /// For a first answer: windows of 2 s.
    Small,
    /// The size of the source: windows of 10 s.
    Full,
}

impl RunArgs {
    /// The directory of the run, which must not be there yet.
    fn place(&self, suite: &Suite, begin: Timestamp) -> Result<PathBuf, Failure> {
        let at = begin.strftime("%Y%m%dT%H%M%S");
        let named = || runs().join(format!("{}-{at}", suite.name));
        let place = self.output.clone().unwrap_or_else(named);
        if place.exists() {
            return Err(Failure::Cannot(anyhow!(
                "{} is there already: name another directory with --output, or go on with a run by \
                 waggle lab resume",
                place.display()
            )));
        }
        Ok(place)
    }

    fn facts(
        &self,
        suite: &Suite,
        choice: &Choice,
        lengths: Lengths,
        seed: u64,
        begin: Timestamp,
    ) -> Run {
        let schedule = Schedule::new(suite, &choice.cells, choice.blocks, seed);
        Run {
            command: std::env::args().collect::<Vec<_>>().join(" "),
            waggle_version: env!("CARGO_PKG_VERSION").to_owned(),
            begin,
            end: None,
            seed,
            scale: Scale::from(self.scale).name().to_owned(),
            budget_s: self.time_budget.map(|budget| budget.as_secs_f64()),
            only: self.only.clone(),
            blocks: choice.blocks,
            windows_planned: schedule.slots.len() as u32,
            window_s: lengths.window.as_secs_f64(),
            settle_s: lengths.settle.as_secs_f64(),
            steal_limit: gate::STEAL_MAX,
            resumed: 0,
        }
    }
}

impl From<ScaleArg> for Scale {
    fn from(scale: ScaleArg) -> Scale {
        match scale {
            ScaleArg::Tiny => Scale::Tiny,
            ScaleArg::Small => Scale::Small,
            ScaleArg::Full => Scale::Full,
        }
    }
}

pub(super) fn run(args: RunArgs) -> Result<Outcome, Failure> {
    let mut suite = Suite::find(&args.suite).map_err(|error| failed(error.into()))?;
    let cells = asked::confine(&mut suite, &args.only)?;
    let begin = Timestamp::now();
    let place = args.place(&suite, begin)?;
    let scale = Scale::from(args.scale);
    let mut lengths = Lengths::of(scale);
    lengths.window = args.window.unwrap_or(lengths.window);
    let choice = choose(&suite, &cells, scale, lengths, args.blocks, args.time_budget);
    let program = server::program(&args.server, args.servers.as_deref())?;
    let sysbench = sysbench()?;
    check(&suite, &choice, scale)?;
    announce(&suite, &choice, lengths);
    let pinned = if args.pin { halves() } else { [Vec::new(), Vec::new()] };
    let launchers = launchers(&pinned)?;
    let settings = suite.settings(scale);
    let task = Task {
        suite: &suite,
        scale,
        program: &program,
        launchers: &launchers,
        sysbench: &sysbench,
    };
    let made = task.make(&settings).map_err(failed)?;
    let seed = args.seed.unwrap_or_else(now_s);
    let facts = Facts {
        run: args.facts(&suite, &choice, lengths, seed, begin),
        host: found::host(pinned.clone()),
        server: task.server(&made, &settings),
        load: task.load(),
        not_run: not_run(&suite, &cells, &choice),
        caveats: Vec::new(),
    };
    let begun = Begun {
        suite: suite.name.clone(),
        suite_text: Suite::text(&args.suite).map_err(|error| failed(error.into()))?,
        scenarios: suite.scenarios.iter().map(|scenario| scenario.name.clone()).collect(),
        scale,
        lengths,
        cells: choice.cells,
        blocks: choice.blocks,
        seed,
        server: args.server,
        settings,
        pinned,
        facts,
    };
    let kept = Kept::create(&place, &begun).map_err(|error| failed(error.into()))?;
    task.measure(&begun, kept, &made)
}

pub(super) fn resume(args: ResumeArgs) -> Result<Outcome, Failure> {
    let place = directory(&args.run);
    let mut begun: Begun = kept::read_run(&place).map_err(|error| failed(error.into()))?;
    let kept = Kept::open(&place).map_err(|error| failed(error.into()))?;
    let suite = begun.suite().map_err(|error| failed(error.into()))?;
    let schedule = Schedule::new(&suite, &begun.cells, begun.blocks, begun.seed);
    if schedule.slots.len() as u32 != begun.facts.run.windows_planned {
        return Err(Failure::Config(anyhow!(
            "the run was begun by waggle {}, which has another schedule: go on with that one, or begin a \
             new run",
            begun.facts.run.waggle_version
        )));
    }
    let program = server::program(&begun.server, args.servers.as_deref())?;
    let sysbench = sysbench()?;
    let launchers = launchers(&begun.pinned)?;
    let task = Task {
        suite: &suite,
        scale: begun.scale,
        program: &program,
        launchers: &launchers,
        sysbench: &sysbench,
    };
    let made = task.make(&begun.settings).map_err(failed)?;
    if made.version != begun.facts.server.version {
        return Err(Failure::Config(anyhow!(
            "the run was begun with {} and {} is {}: windows of two versions cannot be compared; name \
             the one that it was begun with, or begin a new run",
            begun.facts.server.version,
            begun.server,
            made.version
        )));
    }
    begun.facts.run.resumed += 1;
    kept::write_json(&place.join(kept::RUN), &begun).map_err(|error| failed(error.into()))?;
    task.measure(&begun, kept, &made)
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

/// The first half of the processors, and the second.
fn halves() -> [Vec<usize>; 2] {
    let count = std::thread::available_parallelism().map_or(1, |count| count.get());
    let half = (count / 2).max(1);
    [(0..half).collect(), (half.min(count - 1)..count).collect()]
}

/// Data that was made.
struct Made {
    template: Template,
    version: String,
}

/// The program of the load.
fn sysbench() -> Result<Sysbench, Failure> {
    Sysbench::find(Path::new("sysbench")).map_err(|error| failed(error.into()))
}

/// The buffer pool of a server, bytes.
fn buffer_pool(suite: &Suite, scale: Scale) -> u64 {
    u64::from(suite.data.buffer_pool_mib.of(scale)) << 20
}

fn check(suite: &Suite, choice: &Choice, scale: Scale) -> Result<(), Failure> {
    let schedule = Schedule::new(suite, &choice.cells, 0, 0);
    let needs = Needs {
        servers: schedule.servers_at_once() as u64,
        rows: u64::from(suite.data.tables) * u64::from(suite.data.rows.of(scale)),
        redo_log: u64::from(suite.data.redo_log_mib.of(scale)) << 20,
        buffer_pool: buffer_pool(suite, scale),
        sessions: choice.cells.iter().map(|cell| u64::from(cell.threads)).max().unwrap_or(0),
    };
    needs.check(&std::env::temp_dir()).map_err(failed)
}

fn announce(suite: &Suite, choice: &Choice, lengths: Lengths) {
    let schedule = Schedule::new(suite, &choice.cells, choice.blocks, 0);
    eprintln!(
        "{}: {} cells, {} arms, {} blocks: {} windows of {:.1} s, about {:.0} min",
        suite.title,
        choice.cells.len(),
        schedule.arms.len(),
        choice.blocks,
        schedule.slots.len(),
        lengths.window.as_secs_f64(),
        (choice.seconds / 60.0).ceil()
    );
    if let Some(percent) = waggle_lab::budget::detectable_percent(choice.blocks) {
        eprintln!(
            "it will be able to detect {percent:.1} % of processor time per statement in a cell, where \
             pairs of windows differ by 2 %; the report says what it was"
        );
    }
    if !choice.left_out.is_empty() {
        eprintln!("not run, for want of time: {} cells", choice.left_out.len());
    }
}

/// The cells that are not run, those that nobody asked for and those for which there is no time.
fn not_run(suite: &Suite, asked: &[Cell], choice: &Choice) -> Vec<NotRun> {
    let all = suite.cells().into_iter().filter(|cell| !choice.cells.contains(cell));
    let why = |cell: &Cell| if asked.contains(cell) { NotRun::BUDGET } else { NotRun::NOT_ASKED };
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
}

impl Task<'_> {
    /// Makes the data.
    fn make(&self, settings: &[String]) -> Result<Made, LabError> {
        let (tables, rows) = (self.suite.data.tables, self.suite.data.rows.of(self.scale));
        eprintln!("data: {tables} tables of {rows} rows");
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let server = PrivateServer::start(self.program, &self.launchers.server, &settings)?;
        let version = version_of(&server)?;
        if let Some(workload) = self.suite.workloads.first() {
            load::prepare(&load::Request {
                sysbench: self.sysbench,
                launcher: &self.launchers.load,
                socket: &server.socket(),
                workload,
                threads: tables,
                tables,
                rows,
                seed: 1,
                directory: server.directory(),
            })?;
        }
        Ok(Made { template: Template::of(server)?, version })
    }

    /// What the report says of the server.
    fn server(&self, made: &Made, settings: &[String]) -> Server {
        Server {
            version: made.version.clone(),
            program: Some(self.program.path().display().to_string()),
            options: settings.to_vec(),
            is_foreign: false,
            data_bytes: Some(made.template.bytes()),
            buffer_pool_bytes: Some(buffer_pool(self.suite, self.scale)),
        }
    }

    /// What the report says of the load.
    fn load(&self) -> LoadFacts {
        LoadFacts {
            sysbench_version: self.sysbench.version().to_owned(),
            tables: self.suite.data.tables,
            rows_per_table: u64::from(self.suite.data.rows.of(self.scale)),
        }
    }

    /// Makes the windows that are missing, and writes the reports of those that are there.
    fn measure(&self, begun: &Begun, mut kept: Kept, made: &Made) -> Result<Outcome, Failure> {
        let stop = stop_on_signal()?;
        let place = kept.path().to_owned();
        let mut line = Line::new();
        let mut tell = |progress: &Progress<'_>| line.tell(progress);
        let mut engine = Engine {
            suite: self.suite,
            schedule: Schedule::new(self.suite, &begun.cells, begun.blocks, begun.seed),
            lengths: begun.lengths,
            rows: self.suite.data.rows.of(begun.scale),
            settings: begun.settings.clone(),
            seed: begun.seed,
            program: self.program,
            launcher: &self.launchers.server,
            load_launcher: &self.launchers.load,
            sysbench: self.sysbench,
            template: &made.template,
            stop: &stop,
            tell: &mut tell,
        };
        let ended = engine.run(&mut kept);
        drop(kept);
        line.end();
        let ended = ended.map_err(failed).inspect_err(|_| resume_with(&place))?;
        report::end(&place)?;
        match ended {
            Ended::Whole => Ok(Outcome::Done),
            Ended::Stopped => {
                resume_with(&place);
                Ok(Outcome::No)
            }
        }
    }
}

fn resume_with(place: &Path) {
    let place = fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
    eprintln!("what was measured is kept; go on with: waggle lab resume {}", place.display());
}
