//! One server, and every arm on it.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use tempfile::TempDir;
use waggle_lab::load::{Driver, Pace, Reach, Request, Sysbench, prepare};
use waggle_lab::meter::Meter;
use waggle_lab::schedule::Schedule;
use waggle_lab::suite::{Scale, Suite};
use waggle_lab::{Measured, Window};
use waggle_private_server::Launcher;
use waggle_testkit::Server;

use crate::injection::Injection;
use crate::settings::Settings;

/// Until the caches are warm.
const WARM_UP: Duration = Duration::from_secs(2);

/// A server under load, with the program that makes it slower.
pub(crate) struct Subject<'a> {
    suite: &'a Suite,
    settings: &'a Settings,
    injection: Injection,
    meter: Meter,
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
        let injection = Injection::attach(server.pid())?;
        load.go(Pace::Closed)?;
        sleep(WARM_UP);
        Ok(Subject {
            suite,
            settings,
            injection,
            meter,
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
            windows.push(Window {
                number: slot.number,
                block: slot.block,
                cell: cells.get(slot.cell).context("a cell")?.clone(),
                arm: arm.name.to_owned(),
                life: repetition,
                session: 0,
                rate: None,
                begin: Timestamp::now(),
                measured: Some(self.window()?),
                void: None,
            });
        }
        Ok(windows)
    }

    /// A point select is one statement.
    fn window(&mut self) -> Result<Measured> {
        let before = (self.load.count()?, self.meter.read()?);
        sleep(self.settings.window());
        let count = self.load.count()?.since(&before.0);
        let used = self.meter.read()?.since(&before.1);
        Ok(Measured::of(used.seconds, count.transactions, Some(&count), Some(&used)))
    }
}

/// What an arm injects, ns: its name is the number of µs with the unit.
pub(crate) fn busy_ns(arm: &str) -> u32 {
    let micros = arm.strip_suffix("us").and_then(|number| number.parse::<u32>().ok());
    micros.map_or(0, |micros| micros * 1000)
}
