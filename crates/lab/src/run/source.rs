//! Where the servers of a run come from, and what depends on that before the first window.

use std::path::Path;
use std::slice::from_ref;

use waggle_instrumentation::server_start::ServerStart;
use waggle_mysql::{Connection, Options};
use waggle_private_server::{Launcher, Program};

use super::plural;
use crate::error::LabError;
use crate::in_use::{Confined, SCHEMA, Survey, check_rights, preview};
use crate::manifest::Manifest;
use crate::measured_server::check_counters;
use crate::needs::Needs;
use crate::run_info::{NotRun, Server};
use crate::suite::{Scale, Suite};
use crate::window::Cell;

/// Where the servers of a run come from.
pub enum Source {
    /// Each is started for the run, from this program.
    Private(Program),
    /// One that runs already.
    InUse(Box<ServerInUse>),
}

/// How a server in use was reached.
pub struct Login {
    /// A connection for changes.
    pub connection: Connection,
    /// From which it was opened.
    pub options: Options,
    /// The process of the server, where that is on this host.
    pub pid: Option<u32>,
    /// How what that process names is looked at.
    pub launcher: Launcher,
}

/// A server that runs already, before a run changes anything on it.
pub struct ServerInUse {
    pub(super) login: Login,
    survey: Survey,
    confined: Confined,
}

/// What is said of a run before it begins, and in its report.
pub(super) struct About {
    /// What a user has to know before, a line each.
    pub(super) notes: Vec<String>,
    /// What it takes of the host at most, in words; empty on a server in use.
    pub(super) needs: String,
    /// What every server is told at its start.
    pub(super) settings: Vec<String>,
    /// The server. Version and size of the data of private servers are not known yet.
    pub(super) server: Server,
    /// What a reader of the report has to know.
    pub(super) caveats: Vec<String>,
}

impl ServerInUse {
    /// A server for a new run of a suite. `has_load` is whether the load is ours.
    ///
    /// # Errors
    /// The connection is broken, or no scenario can be measured on this server.
    pub fn new(mut login: Login, suite: &Suite, has_load: bool) -> Result<ServerInUse, LabError> {
        let survey = Survey::of(&mut login.connection)?;
        let name = ServerStart::of(&mut login.connection)?.server;
        let confined = Confined::of(suite, &survey, name, has_load)?;
        Ok(ServerInUse { login, survey, confined })
    }

    /// The server of a run that is to go on.
    ///
    /// # Errors
    /// The connection is broken, or it is another server, or it runs in another way than before.
    pub fn again(
        mut login: Login,
        manifest: &Manifest,
        confined: &Confined,
    ) -> Result<ServerInUse, LabError> {
        let survey = Survey::of(&mut login.connection)?;
        let then = &manifest.info.server.version;
        if login.connection.server_identity().version != *then
            || ServerStart::of(&mut login.connection)?.server != confined.server
        {
            return Err(LabError::DoesNotFit(format!(
                "the run was begun on another server, or on another version of this one ({then}): windows of two \
                 servers cannot be compared; name that server in the option file, or begin a new run"
            )));
        }
        let suite = manifest.suite()?;
        let run = suite.scenarios.iter().filter(|one| !confined.not_run.contains_key(&one.name));
        for scenario in run {
            if let Some(why) = survey.why_not(scenario) {
                return Err(LabError::DoesNotFit(format!(
                    "scenario {} was measured on this server before, and now it {why}: start the server as \
                     it was, or begin a new run",
                    scenario.name
                )));
            }
        }
        Ok(ServerInUse { login, survey, confined: confined.clone() })
    }

    /// Whether its disk has room for the tables of the load; a note where nobody can tell.
    fn check_tables(&self, needs: &Needs) -> Result<Option<String>, LabError> {
        let unknown = |why: &str| {
            format!("whether the disk of the server has room for the tables is not known: {why}")
        };
        let (Some(pid), Some(name)) = (self.login.pid, self.survey.data_directory()) else {
            return Ok(Some(unknown("its process was not found on this host")));
        };
        match self.login.launcher.free_bytes(pid, Path::new(name)) {
            Ok(free) => needs.check_tables(free, name).map(|()| None),
            Err(error) => Ok(Some(unknown(&error.to_string()))),
        }
    }

    /// What will be changed on it, and what is not run, a line each.
    fn describe(&mut self, suite: &Suite, to_run: &Suite) -> Result<Vec<String>, LabError> {
        let previews = preview(&mut self.login.connection, to_run)?;
        let identity = self.login.connection.server_identity();
        let mut lines =
            vec![format!("on the server {} as {}:", identity.version, identity.account)];
        lines.extend(previews);
        for scenario in &suite.scenarios {
            if let Some(why) = self.confined.not_run.get(&scenario.name) {
                lines.push(format!("  {:<28} not run: {why}", scenario.name));
            }
        }
        lines.push(match self.confined.others {
            None => format!(
                "the load is sysbench in schema {SCHEMA}, which is made and dropped; what it writes goes to \
                 the binary log and to replicas, where there are any"
            ),
            Some(sessions) => format!("the load is that of the {sessions} sessions of others"),
        });
        lines.push(
            "each change is in a journal before, and undone at the end, on Ctrl-C, and by a guardian where \
             waggle is killed"
                .to_owned(),
        );
        Ok(lines)
    }

    /// What a reader of the report has to know. `baseline` is that of the suite.
    fn caveats(&self, suite: &Suite, baseline: &str) -> Vec<String> {
        let mut caveats = self.confined.caveats(baseline, self.login.pid.is_some());
        let otherwise = self.survey.otherwise(&suite.options);
        if !otherwise.is_empty() {
            let otherwise = otherwise.join(", ");
            caveats.push(format!(
                "Settings that the suite has otherwise were left as they are: {otherwise}."
            ));
        }
        caveats
    }
}

impl Source {
    /// What of a suite can be run; `None` where all of it can.
    pub(super) fn confined(&self) -> Option<&Confined> {
        match self {
            Source::Private(_) => None,
            Source::InUse(server) => Some(&server.confined),
        }
    }

    /// Why a cell cannot be run; `None` where it can.
    pub(super) fn why_not(&self, suite: &Suite, scale: Scale, cell: &Cell) -> Option<&'static str> {
        match self {
            Source::Private(program) => {
                let needs = Needs::of(suite, from_ref(cell), scale);
                needs.check_memory(&program.place()).err().map(|_| NotRun::MEMORY)
            }
            Source::InUse(server) => {
                let room = server.survey.sessions_max(suite.data.tables);
                server.confined.why_not(suite, cell, room)
            }
        }
    }

    /// Whether there is room for a run of these cells; a note where nobody can tell.
    pub(super) fn check_room(
        &self,
        suite: &Suite,
        cells: &[Cell],
        scale: Scale,
    ) -> Result<Option<String>, LabError> {
        let needs = Needs::of(suite, cells, scale);
        match self {
            Source::Private(program) => {
                // What a killed run left takes room.
                program.sweep()?;
                needs.check_disk(&program.place())?;
                let most = Needs::most_memory(suite, cells, scale);
                most.map_or(Ok(()), |most| most.check_memory(&program.place())).map(|()| None)
            }
            Source::InUse(server) if server.confined.others.is_none() => {
                server.check_tables(&needs)
            }
            Source::InUse(_) => Ok(None),
        }
    }

    /// Why none of these cells can be run.
    pub(super) fn nothing_fits(&self, suite: &Suite, cells: &[Cell], scale: Scale) -> LabError {
        if let Source::Private(_) = self
            && let Err(error) = self.check_room(suite, cells, scale)
        {
            return error;
        }
        let why = cells.iter().find_map(|cell| self.why_not(suite, scale, cell));
        LabError::DoesNotFit(format!(
            "nothing of suite {} can be run on this server: {}; choose other cells with --only, or run it \
             on private servers with --server",
            suite.name,
            why.unwrap_or_default()
        ))
    }

    /// What is said of a run of these cells. `baseline` is that of the suite.
    pub(super) fn about(
        &mut self,
        suite: &Suite,
        to_run: &Suite,
        cells: &[Cell],
        scale: Scale,
        baseline: &str,
    ) -> Result<About, LabError> {
        let server = match self {
            Source::Private(program) => {
                let settings = suite.settings(scale, program.flavour);
                let server = Server {
                    version: String::new(),
                    program: Some(from_here(program.path())),
                    options: settings.clone(),
                    is_foreign: false,
                    data_bytes: None,
                    buffer_pool_bytes: Some(suite.data.buffer_pool_bytes(scale)),
                };
                let needs = needs_in_words(program, to_run, cells, scale);
                let (notes, caveats) = (Vec::new(), Vec::new());
                return Ok(About { notes, needs, settings, server, caveats });
            }
            Source::InUse(server) => server,
        };
        Ok(About {
            notes: server.describe(suite, to_run)?,
            needs: String::new(),
            settings: Vec::new(),
            server: Server {
                version: server.login.connection.server_identity().version.clone(),
                program: None,
                options: Vec::new(),
                is_foreign: true,
                data_bytes: None,
                buffer_pool_bytes: server.survey.number("innodb_buffer_pool_size"),
            },
            caveats: server.caveats(suite, baseline),
        })
    }

    /// The connection over which a server in use is changed, if the account may do what the suite wants; `None` with
    /// private servers.
    pub(super) fn connection_to_change(
        &mut self,
        suite: &Suite,
    ) -> Result<Option<&mut Connection>, LabError> {
        let Source::InUse(server) = self else { return Ok(None) };
        check_rights(&mut server.login.connection, suite)?;
        check_counters(&mut server.login.connection, &suite.counters)?;
        Ok(Some(&mut server.login.connection))
    }
}

/// What a run takes of the host at most, in words.
fn needs_in_words(program: &Program, suite: &Suite, cells: &[Cell], scale: Scale) -> String {
    let (needs, place) = (Needs::of(suite, cells, scale), program.place());
    let most = Needs::most_memory(suite, cells, scale);
    let memory = most.map_or(0, |most| most.memory_bytes_with(&place));
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    format!(
        "it takes up to {} on the disk of {} and {} of memory, for {} at once; nothing was started",
        gib(needs.disk_bytes()),
        place.display(),
        gib(memory),
        plural(needs.servers as usize, "server")
    )
}

/// A path from the working directory, if it lies below: reports that are kept with a project name no place of one
/// machine.
fn from_here(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let below = here.and_then(|here| path.strip_prefix(here).ok());
    below.unwrap_or(path).display().to_string()
}
