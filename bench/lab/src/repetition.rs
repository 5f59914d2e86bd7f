//! One server, and every arm on it.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use tempfile::TempDir;
use waggle_lab::gate::{self, Asked};
use waggle_lab::load::{Count, Driver, Pace, Reach, Request, Sysbench, prepare};
use waggle_lab::meter::{Meter, Sample};
use waggle_lab::schedule::Schedule;
use waggle_lab::suite::{Scale, Suite};
use waggle_lab::{Measured, Window};
use waggle_private_server::Launcher;
use waggle_testkit::Server;

use crate::injection::{Injection, disproof};
use crate::settings::Settings;

/// Until the caches are warm.
const WARM_UP: Duration = Duration::from_secs(2);

/// A server under load, with the program that makes it slower.
pub(crate) struct Subject<'a> {
    suite: &'a Suite,
    settings: &'a Settings,
    injection: Injection,
    meter: Meter,
    load_meter: Meter,
    load: Driver,
    _directory: TempDir,
    _server: Server,
}

impl<'a> Subject<'a> {
    pub(crate) fn start(suite: &'a Suite, settings: &'a Settings) -> Result<Subject<'a>> {
        let server = Server::start(settings.server)?;
        let directory = TempDir::new()?;
        let sysbench = Sysbench::find("sysbench".as_ref())?;
        let launcher = Launcher {
            program: "/bin/sh".into(),
            // What the load is told begins behind `--`; the bench is not killed while it runs.
            arguments: ["-c", "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"", "sh"]
                .map(str::to_owned)
                .to_vec(),
            processors: Vec::new(),
        };
        let reach = Reach::private(&server.socket());
        let request = Request {
            sysbench: &sysbench,
            launcher: &launcher,
            reach: &reach,
            workload: suite.workloads.first().context("the suite has no workload")?,
            threads: suite.threads.first().copied().unwrap_or(2),
            tables: suite.data.tables,
            rows: suite.data.rows.of(Scale::Tiny),
            seed: settings.seed,
            directory: directory.path(),
        };
        prepare(&request)?;
        let mut load = Driver::start(&request)?;
        let meter = Meter::of(server.pid())?;
        let load_meter = Meter::of(load.pid())?;
        let injection = Injection::attach(server.pid())?;
        load.go(Pace::Closed)?;
        sleep(WARM_UP);
        Ok(Subject {
            suite,
            settings,
            injection,
            meter,
            load_meter,
            load,
            _directory: directory,
            _server: server,
        })
    }

    /// Measures every arm in every block. The load goes on all the time.
    pub(crate) fn measure(&mut self, repetition: u32) -> Result<Vec<Window>> {
        let seed = self.settings.seed.wrapping_add(u64::from(repetition));
        let cells = self.suite.cells();
        let schedule = Schedule::new(self.suite, &cells, self.settings.blocks, seed);
        let mut windows = Vec::new();
        for slot in &schedule.slots {
            let arm = schedule.arms.get(slot.arm).context("an arm")?;
            self.injection.set(busy_ns(&arm.scenario.name))?;
            sleep(self.settings.settle());
            let mut begin = Timestamp::now();
            let (mut measured, mut void) = self.window()?;
            let mut stolen = Vec::new();
            while let Some(share) =
                gate::stolen(&measured).filter(|_| stolen.len() < gate::ANEW_MAX)
            {
                stolen.push(share);
                begin = Timestamp::now();
                (measured, void) = self.window()?;
            }
            windows.push(Window {
                number: slot.number,
                block: slot.block,
                cell: cells.get(slot.cell).context("a cell")?.clone(),
                arm: arm.name.to_owned(),
                life: repetition,
                session: 0,
                rate: None,
                stolen,
                begin,
                measured: Some(measured),
                void,
            });
        }
        Ok(windows)
    }

    /// What happens in one window, and why it does not count. A point select is one statement.
    fn window(&mut self) -> Result<(Measured, Option<String>)> {
        let length = self.settings.window();
        let before = self.look()?;
        sleep(length);
        let after = self.look()?;
        let (count, used) = (after.count.since(&before.count), after.used.since(&before.used));
        let measured = Measured {
            load_cpu_ns: Some(after.of_load.since(&before.of_load).server_cpu_ns),
            ..Measured::of(used.seconds, count.transactions, Some(&count), Some(&used))
        };
        let runs = after.runs_since(&before);
        let asked = Asked { seconds: length.as_secs_f64(), turns: 1, rate: None };
        let void = disproof(runs, measured.statements).or_else(|| gate::judge(&measured, &asked));
        Ok((measured, void))
    }

    fn look(&mut self) -> Result<Look> {
        let before = self.injection.runs()?;
        let count = self.load.count()?;
        // Beside each other: one is divided by the other.
        let (used, of_load) = (self.meter.read()?, self.load_meter.read()?);
        Ok(Look { runs: [before, self.injection.runs()?], count, used, of_load })
    }
}

/// What was done so far.
struct Look {
    /// Runs of the program, before and after all else was read.
    runs: [u64; 2],
    count: Count,
    used: Sample,
    of_load: Sample,
}

impl Look {
    /// The fewest and the most runs that there may have been since an earlier look.
    fn runs_since(&self, earlier: &Look) -> [u64; 2] {
        let since = |at: usize, before: usize| self.runs[at].saturating_sub(earlier.runs[before]);
        [since(0, 1), since(1, 0)]
    }
}

/// What an arm injects, ns: its name is the number of µs with the unit.
pub(crate) fn busy_ns(arm: &str) -> u32 {
    let micros = arm.strip_suffix("us").and_then(|number| number.parse::<u32>().ok());
    micros.map_or(0, |micros| micros * 1000)
}
