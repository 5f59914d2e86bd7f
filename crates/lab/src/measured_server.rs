//! A server while it is measured, and what is set on it: one start of a private server, or a server in use.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use waggle_instrumentation::activity::{self, Events};
use waggle_instrumentation::filter::Filter;
use waggle_instrumentation::metrics::{self, Counter};
use waggle_instrumentation::profile::Profile;
use waggle_instrumentation::state::Settings;
use waggle_instrumentation::statements::batches;
use waggle_instrumentation::written::Written;
use waggle_instrumentation::{Change, Plan, State, Table, Wanted, difference};
use waggle_model::{Reading, ServerVersion};
use waggle_mysql::connection::{MARK, Row, absent_or, text};
use waggle_mysql::{Connection, Options};
use waggle_private_server::{Launcher, PrivateServer, Program, Template};

use crate::buffer_pool;
use crate::error::LabError;
use crate::in_use::HeldServer;
use crate::load::{self, Reach};
use crate::meter::{Meter, Sample};
use crate::redo;
use crate::server_option::is_same;
use crate::started::first_difference;
use crate::suite::Scenario;

/// Rows in one statement at most. Nobody waits for a private server.
const ROWS_MAX: usize = 10_000;
/// What profiles set. Other tables are never written to.
const SET: [Table; 3] = [Table::Instruments, Table::Consumers, Table::Metrics];

/// Where the servers of a run come from.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// Each is started for the run, on a copy of the same data.
    Private {
        /// The server.
        program: &'a Program,
        /// How it is started.
        launcher: &'a Launcher,
        /// The data.
        template: &'a Template,
        /// Settings of every server.
        settings: &'a [String],
    },
    /// One that runs already.
    InUse(&'a HeldServer),
}

/// A server that is measured.
pub(crate) struct MeasuredServer<'a> {
    /// Its number in the run.
    pub(crate) number: u32,
    server: Server<'a>,
    /// `None` where its process is not on this host.
    meter: Option<Meter>,
    pub(crate) connection: Connection,
    version: ServerVersion,
    /// What was set before the first scenario.
    first: State,
    /// What each scenario sets, by its name, as far as it was set before.
    wanted: BTreeMap<String, State>,
}

/// What Performance Schema has lost, by the name of the status variable.
pub(crate) type Lost = BTreeMap<String, u64>;

/// Where the server comes from.
enum Server<'a> {
    Private(Box<Private>),
    InUse(&'a HeldServer),
}

/// A private server, and how a load reaches it.
struct Private {
    server: PrivateServer,
    reach: Reach,
}

/// The account of ours and of the load: on a private server `root` has no password.
const USER: &str = "root";

/// How to reach a private server.
pub(crate) fn options(socket: &Path) -> Options {
    let (user, socket) = (Some(USER.to_owned()), Some(socket.to_owned()));
    Options { user, socket, private: true, ..Options::default() }
}

/// A connection to a private server.
///
/// # Errors
/// It cannot be reached.
pub(crate) fn connect(server: &PrivateServer) -> Result<Connection, LabError> {
    Ok(Connection::open(&options(&server.socket()))?)
}

/// Checks that a server has the counters of InnoDB that a suite reads.
///
/// # Errors
/// It lacks one, or they may not be read.
pub fn check_counters(connection: &mut Connection, names: &[String]) -> Result<(), LabError> {
    if names.is_empty() {
        return Ok(());
    }
    let there = all_counters(connection)?;
    let is_there = |name: &&String| there.iter().any(|counter| counter.name == **name);
    match names.iter().find(|name| !is_there(name)) {
        Some(name) => Err(LabError::DoesNotFit(format!(
            "counters: the server has no counter {name} of InnoDB, so it would prove nothing; \
             information_schema.INNODB_METRICS lists what it has"
        ))),
        None => Ok(()),
    }
}

/// The counters of InnoDB.
fn all_counters(connection: &mut Connection) -> Result<Vec<Counter>, LabError> {
    match metrics::read(connection)? {
        Reading::Value(counters) => Ok(counters),
        Reading::Absent(why) => Err(LabError::unreadable("the counters of InnoDB", why)),
    }
}

/// A number among the status variables of a server, which every server has.
pub(crate) fn status(connection: &mut Connection, name: &str) -> Result<u64, LabError> {
    let number = connection.global_status(name)?;
    number.ok_or_else(|| LabError::unreadable(name, "the server does not say"))
}

impl<'a> Origin<'a> {
    /// Starts a server as a scenario wants it, and reads and writes what a server that has run for long has in its caches.
    pub(crate) fn start_warm(
        self,
        scenario: &Scenario,
        number: u32,
    ) -> Result<MeasuredServer<'a>, LabError> {
        let mut server = self.start(scenario, number)?;
        if let Server::Private(_) = server.server {
            redo::write_through(&mut server.connection)?;
            buffer_pool::fill(&mut server.connection, load::SCHEMA)?;
        }
        Ok(server)
    }

    /// Starts a server as a scenario wants it.
    pub(crate) fn start(
        self,
        scenario: &Scenario,
        number: u32,
    ) -> Result<MeasuredServer<'a>, LabError> {
        match self {
            Origin::Private { program, launcher, template, settings } => {
                let settings: Vec<&str> =
                    settings.iter().chain(&scenario.start).map(String::as_str).collect();
                let server = template.start(program, launcher, &settings)?;
                let (socket, meter) = (server.socket(), Meter::of(server.pid())?);
                let mut connection = Connection::open_for_changes(&options(&socket))?;
                if let Some(reason) = first_difference(&mut connection, &settings)? {
                    return Err(LabError::Scenario { scenario: scenario.name.clone(), reason });
                }
                let first = State::read(&mut connection)?;
                let private = Private { server, reach: Reach::private(&socket)? };
                let server = Server::Private(Box::new(private));
                Ok(MeasuredServer::of(server, Some(meter), connection, first, number))
            }
            Origin::InUse(server) => {
                let connection = Connection::open_for_changes(&server.options)?;
                let meter = server.pid.map(Meter::of).transpose()?;
                let first = server.first.clone();
                Ok(MeasuredServer::of(Server::InUse(server), meter, connection, first, number))
            }
        }
    }
}

/// What a profile changes where `first` was set before.
pub(crate) fn plan(
    scenario: &Scenario,
    first: &State,
    version: ServerVersion,
) -> Result<Vec<Change>, LabError> {
    let Some(name) = &scenario.profile else { return Ok(Vec::new()) };
    let profile = Profile::find(name).map_err(|error| LabError::Scenario {
        scenario: scenario.name.clone(),
        reason: error.to_string(),
    })?;
    let filter = Filter::default();
    let wanted = Wanted { profile: &profile, filter: &filter, sessions: &[], version };
    Ok(Plan::new(first, &wanted).map_err(LabError::plan(&scenario.name))?.changes)
}

/// What of [`SET`] differs from what is wanted.
fn changes(connection: &mut Connection, wanted: &State) -> Result<Vec<Change>, LabError> {
    let now = State::read_of(connection, SET)?;
    let mut changes = difference(&now, wanted);
    changes.retain(|change| SET.contains(&change.table));
    Ok(changes)
}

impl<'a> MeasuredServer<'a> {
    fn of(
        server: Server<'a>,
        meter: Option<Meter>,
        connection: Connection,
        first: State,
        number: u32,
    ) -> MeasuredServer<'a> {
        let version = connection.server_identity().server_version();
        MeasuredServer {
            number,
            server,
            meter,
            connection,
            version,
            first,
            wanted: BTreeMap::new(),
        }
    }

    /// Sets what a scenario sets while the server runs, and nothing of other scenarios.
    pub(crate) fn set(&mut self, scenario: &Scenario) -> Result<(), LabError> {
        for (name, value) in &scenario.variables {
            self.connection.rows(&format!("SET GLOBAL {name} = {value}"))?;
        }
        let changes = self.changes(scenario)?;
        self.make(&changes)
    }

    /// Sets everything as it was before the first scenario.
    pub(crate) fn set_as_before(&mut self) -> Result<(), LabError> {
        let changes = changes(&mut self.connection, &self.first)?;
        self.make(&changes)
    }

    fn make(&mut self, changes: &[Change]) -> Result<(), LabError> {
        match &self.server {
            Server::Private(_) => {
                for sql in batches(changes, ROWS_MAX).filter_map(|batch| batch.sql()) {
                    self.connection.rows(&sql)?;
                }
                Ok(())
            }
            Server::InUse(server) => server.make(changes),
        }
    }

    /// Reads back what a scenario has set, and returns the first difference. After a measurement that also tells whether
    /// somebody else changed it.
    pub(crate) fn misread(&mut self, scenario: &Scenario) -> Result<Option<String>, LabError> {
        for (name, value) in &scenario.variables {
            let rows = self.connection.rows(&format!("SELECT @@GLOBAL.{name} AS {MARK}"))?;
            let found = rows.first().map(|row| text(row, 0)).unwrap_or_default();
            if !is_same(value.trim().trim_matches(['\'', '"']), &found) {
                return Ok(Some(format!("{name} reads as {found}, not as {value}")));
            }
        }
        let left = self.changes(scenario)?;
        Ok(left.first().map(|Change { table, key, before, after }| {
            let settings = |row: &Option<Settings>| {
                let values = row.iter().flatten().map(|it| it.as_deref().unwrap_or("NULL"));
                values.collect::<Vec<_>>().join(" ")
            };
            format!(
                "{} rows do not read as they were set: in {} {} reads as {}, not as {}",
                left.len(),
                table.name(),
                key.join(" "),
                settings(before),
                settings(after)
            )
        }))
    }

    /// What came into the tables of consumers so far. Nothing is known of a server in use: its sessions may be left out of
    /// the histories.
    pub(crate) fn written(&mut self) -> Result<Written, LabError> {
        match self.server {
            Server::Private(_) => Ok(Written::read(&mut self.connection, &self.first)?),
            Server::InUse(_) => Ok(Written::default()),
        }
    }

    /// Why the consumers cannot be set as a scenario has them: what came into their tables since `before` does not fit
    /// this number of transactions or more. `None` where it fits.
    pub(crate) fn miswritten(
        &mut self,
        scenario: &Scenario,
        before: &Written,
        transactions: u64,
    ) -> Result<Option<String>, LabError> {
        let now = self.written()?;
        let Some(state) = self.wanted.get(&scenario.name) else { return Ok(None) };
        Ok(before.disproof(&now, state, transactions, |instruments| scenario.is_fed(instruments)))
    }

    /// What is to be changed so that a scenario is set and nothing else.
    fn changes(&mut self, scenario: &Scenario) -> Result<Vec<Change>, LabError> {
        let wanted = match self.wanted.entry(scenario.name.clone()) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(_)
                if scenario.needs_performance_schema()
                    && !self.connection.server_identity().performance_schema =>
            {
                let reason = "it has a profile, and Performance Schema is off: add --performance-schema=ON to its start";
                let (scenario, reason) = (scenario.name.clone(), reason.to_owned());
                return Err(LabError::Scenario { scenario, reason });
            }
            Entry::Vacant(free) => {
                free.insert(self.first.with(&plan(scenario, &self.first, self.version)?))
            }
        };
        changes(&mut self.connection, wanted)
    }

    /// How a load of ours reaches it, where there is one.
    pub(crate) fn reach(&self) -> Option<&Reach> {
        match &self.server {
            Server::Private(private) => Some(&private.reach),
            Server::InUse(server) => server.reach.as_ref(),
        }
    }

    /// Where there is room for files of ours.
    pub(crate) fn directory(&self) -> &Path {
        match &self.server {
            Server::Private(private) => private.server.directory(),
            Server::InUse(server) => &server.directory,
        }
    }

    /// What the server and its host have used so far; `None` if it runs on another host.
    pub(crate) fn used(&self) -> Result<Option<Sample>, LabError> {
        Ok(self.meter.as_ref().map(Meter::read).transpose()?)
    }

    /// Sessions of the server, those of others among them, and what Performance Schema has lost so far.
    pub(crate) fn sessions_and_lost(&mut self) -> Result<(u32, Lost), LabError> {
        let rows = self.connection.rows(
            "SHOW GLOBAL STATUS WHERE Variable_name = 'Threads_connected' OR \
             Variable_name LIKE 'Performance\\_schema\\_%lost'",
        )?;
        let number = |row: &Row| {
            let (name, value) = (text(row, 0), text(row, 1));
            match value.parse() {
                Ok(number) => Ok((name, number)),
                Err(_) => Err(LabError::unreadable(&name, format!("it reads as {value}"))),
            }
        };
        let all: Lost = rows.iter().map(number).collect::<Result<_, _>>()?;
        let (sessions, lost): (Lost, Lost) =
            all.into_iter().partition(|(name, _)| name == "Threads_connected");
        Ok((sessions.into_values().sum::<u64>() as u32, lost))
    }

    /// Statements that the server counted so far, without ours.
    pub(crate) fn statements(&mut self) -> Result<u64, LabError> {
        let questions = status(&mut self.connection, "Questions")?;
        Ok(questions.saturating_sub(self.connection.statements()))
    }

    /// Events by instrument so far; `None` where Performance Schema is off.
    pub(crate) fn events(&mut self) -> Result<Option<Events>, LabError> {
        match activity::read(&mut self.connection)? {
            Reading::Value(events) => Ok(Some(events)),
            Reading::Absent(why) if self.connection.server_identity().performance_schema => {
                Err(LabError::unreadable("the events of Performance Schema", why))
            }
            Reading::Absent(_) => Ok(None),
        }
    }

    /// Counters of InnoDB by their names ([`check_counters`]).
    pub(crate) fn counters(&mut self, names: &[String]) -> Result<Vec<Counter>, LabError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut counters = all_counters(&mut self.connection)?;
        counters.retain(|counter| names.contains(&counter.name));
        Ok(counters)
    }

    /// The memory that Performance Schema says it uses, bytes: 0 where it is off; `None` where the
    /// server does not tell.
    pub(crate) fn performance_schema_bytes(&mut self) -> Result<Option<u64>, LabError> {
        // If it is off it has no buffers, and not every server has the rows, or the engine.
        if !self.connection.server_identity().performance_schema {
            return Ok(Some(0));
        }
        let rows = self.connection.rows("SHOW ENGINE PERFORMANCE_SCHEMA STATUS");
        let Reading::Value(rows) = absent_or(&self.connection, "the engine status", rows)? else {
            return Ok(None);
        };
        let is_total = |row: &&Row| text(row, 1) == "performance_schema.memory";
        Ok(rows.iter().find(is_total).and_then(|row| text(row, 2).parse().ok()))
    }
}
