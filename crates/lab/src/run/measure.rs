//! The data of a run, and its windows.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use waggle_instrumentation::hold::Hold;
use waggle_instrumentation::undo::Restored;
use waggle_private_server::{Launcher, PrivateServer, Program, Template};

use super::{Login, Plan, ServerInUse, Source, Task, plural};
use crate::engine::{Ended, Engine, Progress};
use crate::error::LabError;
use crate::in_use::{HeldServer, SCHEMA};
use crate::load::{self, Reach, Request};
use crate::measured_server::{Origin, connect};
use crate::run_dir::{self, RunDir};
use crate::schedule::Schedule;
use crate::trial::try_scenarios;

/// What a run needs beside its plan.
pub struct RunContext<'a> {
    /// How servers and loads are started.
    pub launcher: Launcher,
    /// When no block is begun any more.
    pub until: Option<Instant>,
    /// Set to stop as soon as can be.
    pub stop: &'a AtomicBool,
    /// RunEvent what happens.
    pub tell: &'a mut dyn FnMut(RunEvent<'_>),
}

/// What happens in a run.
pub enum RunEvent<'a> {
    /// Something that a user should know.
    Note(String),
    /// How far it is.
    Progress(&'a Progress<'a>),
}

/// How a run ended.
pub struct Finished {
    /// How, or why it failed.
    pub ended: Result<Ended, LabError>,
    /// What became of the changes on a server in use.
    pub restored: Option<Result<Restored, LabError>>,
}

/// A server in use, or the data on which private servers start.
enum Ready {
    Private { program: Box<Program>, launcher: Launcher, template: Template, settings: Vec<String> },
    InUse(Box<HeldServer>),
}

impl RunContext<'_> {
    fn note(&mut self, text: String) {
        (self.tell)(RunEvent::Note(text));
    }

    /// The launcher for some processors; all of them where none are named.
    fn launcher_on(&self, processors: &[usize]) -> Launcher {
        Launcher { processors: processors.to_vec(), ..self.launcher.clone() }
    }
}

impl Plan {
    /// Makes the windows that are missing. A server in use is changed under `hold`, and left as it was.
    pub fn measure(self, hold: Option<Hold>, with: &mut RunContext<'_>) -> Finished {
        let Plan { source, mut task, .. } = self;
        let ready = match source {
            Source::Private(program) => task.make_data(program, with),
            Source::InUse(server) => task.take_over(*server, hold).map(Some),
        };
        match ready {
            Ok(Some(ready)) => {
                let ended = task.measure(&ready, with);
                let restored = match ready {
                    Ready::Private { .. } => None,
                    Ready::InUse(server) => Some(server.end()),
                };
                Finished { ended, restored }
            }
            Ok(None) => Finished { ended: Ok(Ended::NotBegun), restored: None },
            Err(error) => Finished { ended: Err(error), restored: None },
        }
    }
}

impl Task {
    /// Makes the data of private servers that take what the suite wants. `None` where somebody stopped it.
    fn make_data(
        &mut self,
        program: Program,
        with: &mut RunContext<'_>,
    ) -> Result<Option<Ready>, LabError> {
        let launcher = with.launcher_on(&self.manifest.pinned[0]);
        let settings: Vec<&str> = self.manifest.settings.iter().map(String::as_str).collect();
        let empty = Template::of(PrivateServer::start(&program, &launcher, &[])?)?;
        let origin = Origin::Private {
            program: &program,
            launcher: &launcher,
            template: &empty,
            settings: &self.manifest.settings,
        };
        match try_scenarios(&self.suite, &self.manifest.cells, origin, with.stop) {
            Err(LabError::Stopped) => return Ok(None),
            tried => tried?,
        }
        let server = empty.start(&program, &launcher, &settings)?;
        drop(empty);
        let version = connect(&server)?.server_identity().version.clone();
        if !self.fill_tables(&Reach::private(&server.socket())?, server.directory(), true, with)? {
            return Ok(None);
        }
        let template = Template::of(server)?;
        if self.run_dir.is_none() {
            self.manifest.info.server.version = version;
            self.manifest.info.server.data_bytes = Some(template.bytes());
        } else if version != self.manifest.info.server.version {
            return Err(LabError::DoesNotFit(format!(
                "the run was begun with {} and {} is {version}: windows of two versions cannot be compared; name \
                 the one that it was begun with, or begin a new run",
                self.manifest.info.server.version, self.manifest.server
            )));
        }
        let settings = self.manifest.settings.clone();
        let program = Box::new(program);
        Ok(Some(Ready::Private { program, launcher, template, settings }))
    }

    /// Takes over the changes of a server in use. Nothing is changed yet.
    fn take_over(&self, server: ServerInUse, hold: Option<Hold>) -> Result<Ready, LabError> {
        let Login { connection, options, pid, .. } = server.login;
        let hold = hold.ok_or_else(|| {
            LabError::Cannot("nothing would take back what is changed on this server".to_owned())
        })?;
        let reach = self.sysbench.as_ref().map(|_| Reach::of(&options, SCHEMA)).transpose()?;
        let held = HeldServer::new(connection, hold, options, reach, pid, &self.place)?;
        Ok(Ready::InUse(Box::new(held)))
    }

    /// Makes the directory of the run, where it is not there, and the windows that are missing.
    fn measure(&mut self, ready: &Ready, with: &mut RunContext<'_>) -> Result<Ended, LabError> {
        if let (Ready::InUse(server), true) = (ready, self.sysbench.is_some()) {
            let run = std::path::absolute(&self.place).unwrap_or_else(|_| self.place.clone());
            if let Some(killed) = server.make_schema(&run)? {
                with.note(format!("schema {SCHEMA} of {killed}, which was killed, was dropped"));
            }
        }
        let mut run_dir = match self.run_dir.take() {
            None => RunDir::create(&self.place, &self.manifest)?,
            Some(run_dir) => {
                self.write_manifest()?;
                run_dir
            }
        };
        if let Ready::InUse(server) = ready
            && let Some(reach) = &server.reach
            && !self.manifest.is_whole(run_dir.count())
            && !self.fill_tables(reach, &self.place, false, with)?
        {
            return Ok(Ended::Stopped);
        }
        let origin = match ready {
            Ready::Private { program, launcher, template, settings } => {
                Origin::Private { program, launcher, template, settings }
            }
            Ready::InUse(server) => Origin::InUse(server),
        };
        self.make_windows(&mut run_dir, origin, with)
    }

    /// Makes the tables of the load, and ages them where the suite says so and they are copied. `false` where somebody
    /// stopped it.
    fn fill_tables(
        &self,
        reach: &Reach,
        directory: &Path,
        are_copied: bool,
        with: &mut RunContext<'_>,
    ) -> Result<bool, LabError> {
        let (Some(sysbench), Some(workload)) = (&self.sysbench, self.suite.workloads.first())
        else {
            return Ok(true);
        };
        let (tables, rows) = (self.suite.data.tables, self.suite.data.rows.of(self.manifest.scale));
        with.note(format!("data: {tables} tables of {rows} rows"));
        let request = Request {
            sysbench,
            launcher: &with.launcher_on(&self.manifest.pinned[1]),
            reach,
            workload,
            threads: tables,
            tables,
            rows,
            seed: 1,
            directory,
        };
        if !load::prepare(&request, with.stop)? {
            return Ok(false);
        }
        match self.suite.ages_with().filter(|_| are_copied) {
            Some(workload) => Ok(load::age(&Request { workload, ..request }, with.stop)?),
            None => Ok(true),
        }
    }

    fn make_windows(
        &mut self,
        run_dir: &mut RunDir,
        origin: Origin<'_>,
        with: &mut RunContext<'_>,
    ) -> Result<Ended, LabError> {
        let launcher = with.launcher_on(&self.manifest.pinned[1]);
        let mut progress = |progress: &Progress<'_>| (with.tell)(RunEvent::Progress(progress));
        let beyond = match self
            .engine(origin, &launcher, with.until, with.stop, &mut progress)
            .beyond_reach(run_dir)
        {
            Err(LabError::Stopped) => return Ok(Ended::Stopped),
            beyond => beyond?,
        };
        if !beyond.is_empty() && run_dir.count() == 0 {
            if beyond.len() == self.manifest.cells.len() {
                self.manifest.say_out_of_reach();
                self.write_manifest()?;
                return Ok(Ended::OutOfReach);
            }
            self.manifest.leave_out(&self.suite, &beyond);
            self.write_manifest()?;
            with.note(format!(
                "not run, since the baseline cannot use so much CPU: {}",
                plural(beyond.len(), "cell")
            ));
        }
        let mut progress = |progress: &Progress<'_>| (with.tell)(RunEvent::Progress(progress));
        let ended =
            self.engine(origin, &launcher, with.until, with.stop, &mut progress).run(run_dir)?;
        if let Ended::OutOfTime { blocks } = ended {
            self.manifest.say_out_of_time(blocks);
            self.write_manifest()?;
        }
        Ok(ended)
    }

    fn engine<'a>(
        &'a self,
        origin: Origin<'a>,
        load_launcher: &'a Launcher,
        until: Option<Instant>,
        stop: &'a AtomicBool,
        tell: &'a mut dyn FnMut(&Progress<'_>),
    ) -> Engine<'a> {
        let Task { suite, manifest, .. } = self;
        Engine {
            suite,
            schedule: Schedule::new(suite, &manifest.cells, manifest.blocks, manifest.seed),
            manifest,
            origin,
            load_launcher,
            sysbench: self.sysbench.as_ref(),
            until,
            stop,
            tell,
        }
    }

    fn write_manifest(&self) -> Result<(), LabError> {
        Ok(run_dir::write_json(&self.place.join(run_dir::RUN), &self.manifest)?)
    }
}
