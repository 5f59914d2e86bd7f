//! `waggle lab run --dsn`: a suite on a server that somebody else started.

use std::path::Path;
use std::time::Instant;

use anyhow::anyhow;
use jiff::Timestamp;
use waggle_instrumentation::Table;
use waggle_instrumentation::life::Life;
use waggle_lab::begun::Begun;
use waggle_lab::budget::{Choice, Reckoning};
use waggle_lab::engine::Ended;
use waggle_lab::facts::{Facts, LoadFacts, NotRun, Server};
use waggle_lab::foreign::{Confined, Foreign, SCHEMA, Survey, check_rights, preview};
use waggle_lab::kept::{self, Kept};
use waggle_lab::load::{Reach, Sysbench, prepare};
use waggle_lab::needs::{Needs, check_kept};
use waggle_lab::suite::{Scale, Scenario, Suite};
use waggle_lab::{Cell, LabError, Origin, check_counters, load};
use waggle_mysql::{Connection, Options};

use super::super::account::AccountArgs;
use super::super::pfs::history::{self, recover};
use super::super::pfs::hold::begin;
use super::super::pfs::open;
use super::super::pfs::process::process_of;
use super::super::pfs::rights::Rights;
use super::super::{Failure, Outcome, VERSION, private_server, stop_on_signal};
use super::announce::announce;
use super::arguments::{ResumeArgs, RunArgs};
use super::progress::note;
use super::resume::{goes_on_as_begun, loads_as_begun};
use super::run::{Windows, finish, load_facts, now_s, read_suite, sysbench};
use super::{failed, found};

/// A server that runs, before anything is changed on it.
struct There {
    account: AccountArgs,
    options: Options,
    connection: Connection,
    survey: Survey,
    /// Its process, where it is on this host.
    pid: Option<u32>,
}

pub(super) fn run(args: &RunArgs) -> Result<Outcome, Failure> {
    let (begin, until) = (Timestamp::now(), args.until());
    let (mut suite, suite_text) = read_suite(args)?;
    let place = args.place(&suite, begin)?;
    let sysbench = (!args.no_load).then(|| sysbench(&suite)).transpose()?;
    let mut there = There::log_in(&args.account)?;
    let (source_baseline, server) = (suite.baseline.clone(), there.name()?);
    let confined = Confined::of(&suite, &there.survey, server, sysbench.is_some());
    let confined = confined.map_err(failed)?;
    confined.confine(&mut suite);
    let asked = suite.confine(&args.only).map_err(failed)?;
    let mut to_run = suite.clone();
    confined.run_only(&mut to_run).map_err(failed)?;
    let room = there.survey.sessions_max(suite.data.tables);
    let cells = possible(&confined, &suite, &asked, room)?;
    let (scale, lengths) = (Scale::from(args.scale), args.lengths());
    let has_load = sysbench.is_some();
    let reckoning = Reckoning { suite: &to_run, scale, lengths, is_foreign: true, has_load };
    let choice = reckoning.choose(&cells, args.blocks, args.time_budget);
    announce(&reckoning, &choice, args.time_budget);
    if confined.baseline != source_baseline {
        note(format!("compared with {}, since {source_baseline} is not run", confined.baseline));
    }
    there.describe(&confined, &suite, &to_run)?;
    if sysbench.is_some() {
        there.check_room(&Needs::of(&to_run, &choice.cells, scale))?;
    }
    check_kept(&place, choice.windows(&to_run)).map_err(failed)?;
    demand(args.yes)?;
    let seed = args.seed.unwrap_or_else(now_s);
    let facts = Facts {
        run: args.facts(&to_run, &choice, lengths, seed, begin),
        host: found::host([Vec::new(), Vec::new()])?,
        taken_up: Vec::new(),
        server: there.facts(),
        load: sysbench.as_ref().map_or_else(others, |it| load_facts(&suite, scale, it)),
        not_run: not_run(&confined, &suite, &asked, &choice, room),
        caveats: caveats(&confined, &there, &suite, &source_baseline),
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
        server: "--dsn".to_owned(),
        foreign: Some(confined),
        settings: Vec::new(),
        pinned: [Vec::new(), Vec::new()],
        facts,
    };
    let kept = || Kept::create(&place, &begun).map_err(failed);
    there.measure(&begun, sysbench.as_ref(), &place, until, kept)
}

pub(super) fn resume(
    args: &ResumeArgs,
    confined: &Confined,
    mut begun: Begun,
    kept: Kept,
) -> Result<Outcome, Failure> {
    let mut there = There::log_in(&args.account)?;
    let version = &there.connection.server_identity().version;
    if *version != begun.facts.server.version || there.name()? != confined.server {
        return Err(Failure::Config(anyhow!(
            "the run was begun on another server, or on another version of this one ({}): windows of two \
             servers cannot be compared; name that server in the option file, or begin a new run",
            begun.facts.server.version
        )));
    }
    let suite = begun.suite().map_err(failed)?;
    let is_run = |one: &&Scenario| !confined.not_run.contains_key(&one.name);
    for scenario in suite.scenarios.iter().filter(is_run) {
        if let Some(why) = there.survey.why_not(scenario) {
            return Err(Failure::Config(anyhow!(
                "scenario {} was measured on this server before, and now it {why}: start the server as \
                 it was, or begin a new run",
                scenario.name
            )));
        }
    }
    let to_run = begun.suite_to_run().map_err(failed)?;
    goes_on_as_begun(&begun, &to_run, kept.path())?;
    there.describe(confined, &suite, &to_run)?;
    let sysbench = confined.others.is_none().then(|| sysbench(&suite)).transpose()?;
    sysbench.iter().try_for_each(|sysbench| loads_as_begun(&begun, sysbench))?;
    if sysbench.is_some() && !begun.is_whole(kept.count()) {
        there.check_room(&Needs::of(&to_run, &begun.cells, begun.scale))?;
    }
    let place = kept.path().to_owned();
    check_kept(&place, begun.missing(kept.count())).map_err(failed)?;
    demand(args.yes)?;
    begun.take_up(kept.part(), found::host([Vec::new(), Vec::new()])?, VERSION);
    kept::write_json(&place.join(kept::RUN), &begun).map_err(failed)?;
    there.measure(&begun, sysbench.as_ref(), &place, None, || Ok(kept))
}

/// What a reader has to know of such a server.
fn caveats(confined: &Confined, there: &There, suite: &Suite, baseline: &str) -> Vec<String> {
    let mut caveats = confined.caveats(baseline, there.pid.is_some());
    let otherwise = there.survey.otherwise(&suite.options);
    if !otherwise.is_empty() {
        let otherwise = otherwise.join(", ");
        caveats.push(format!(
            "Settings that the suite has otherwise were left as they are: {otherwise}."
        ));
    }
    caveats
}

/// Nothing was changed so far; from here on it is.
fn demand(yes: bool) -> Result<(), Failure> {
    match yes {
        true => Ok(()),
        false => Err(Failure::Usage(anyhow!("nothing was changed: give --yes to run it"))),
    }
}

/// The cells that can be run.
fn possible(
    confined: &Confined,
    suite: &Suite,
    asked: &[Cell],
    room: u32,
) -> Result<Vec<Cell>, Failure> {
    let why_not = |cell: &Cell| confined.why_not(suite, cell, room);
    let cells: Vec<Cell> = asked.iter().filter(|cell| why_not(cell).is_none()).cloned().collect();
    if !cells.is_empty() {
        return Ok(cells);
    }
    let why = asked.iter().find_map(why_not).unwrap_or_default();
    Err(Failure::Config(anyhow!(
        "nothing of suite {} can be run on this server: {why}; choose other cells with --only, or run it \
         on private servers with --server",
        suite.name
    )))
}

/// What is not run, and why: cells, and scenarios in the cells that are.
fn not_run(
    confined: &Confined,
    suite: &Suite,
    asked: &[Cell],
    choice: &Choice,
    room: u32,
) -> Vec<NotRun> {
    let mut left_out = Vec::new();
    for cell in suite.cells() {
        if choice.cells.contains(&cell) {
            let of_cell = suite.scenarios.iter().filter(|one| suite.has(&cell, &one.name));
            left_out.extend(of_cell.filter_map(|one| {
                let why = confined.not_run.get(&one.name)?.clone();
                Some(NotRun { cell: cell.clone(), scenario: Some(one.name.clone()), why })
            }));
        } else {
            let why = match asked.contains(&cell) {
                true => confined.why_not(suite, &cell, room).unwrap_or(NotRun::BUDGET),
                false => NotRun::NOT_ASKED,
            };
            left_out.push(NotRun { why: why.to_owned(), scenario: None, cell });
        }
    }
    left_out
}

fn others() -> LoadFacts {
    LoadFacts { sysbench_version: None, tables: None, rows_per_table: None }
}

impl There {
    fn log_in(account: &AccountArgs) -> Result<There, Failure> {
        let options = account.clone().read()?;
        let mut connection = open(&options)?;
        let survey = Survey::of(&mut connection).map_err(failed)?;
        let pid = process_of(&mut connection).map_err(Failure::Cannot)?;
        Ok(There { account: account.clone(), options, connection, survey, pid })
    }

    /// How the server identifies itself.
    fn name(&mut self) -> Result<String, Failure> {
        let life = Life::of(&mut self.connection);
        Ok(life.map_err(|error| Failure::Cannot(error.into()))?.server)
    }

    /// What the report says of it.
    fn facts(&self) -> Server {
        Server {
            version: self.connection.server_identity().version.clone(),
            program: None,
            options: Vec::new(),
            is_foreign: true,
            data_bytes: None,
            buffer_pool_bytes: self.survey.number("innodb_buffer_pool_size"),
        }
    }

    /// Whether its disk has room for the tables of the load, where that can be told: it is the disk of a server in use.
    fn check_room(&self, needs: &Needs) -> Result<(), Failure> {
        let (Some(pid), Some(name)) = (self.pid, self.survey.data_directory()) else {
            note(
                "whether the disk of the server has room for the tables is not known: its process was not found on this host",
            );
            return Ok(());
        };
        // It may have a root directory of its own.
        let place = Path::new("/proc").join(pid.to_string()).join("root");
        match needs.check_tables(&place.join(name.trim_start_matches('/')), name) {
            Err(error @ LabError::TooLittle { .. }) => Err(failed(error)),
            Err(error) => {
                note(format!(
                    "whether the disk of the server has room for the tables is not known: {error}"
                ));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Says what is going to be changed, and what is not run.
    fn describe(
        &mut self,
        confined: &Confined,
        suite: &Suite,
        to_run: &Suite,
    ) -> Result<(), Failure> {
        let previews = preview(&mut self.connection, to_run).map_err(failed)?;
        let identity = self.connection.server_identity();
        note(format!("on the server {} as {}:", identity.version, identity.account));
        for one in previews {
            let (rows, statements) = (one.rows, one.statements);
            note(format!("  {:<28} {rows} rows by {statements} statements or more", one.scenario));
        }
        for scenario in &suite.scenarios {
            if let Some(why) = confined.not_run.get(&scenario.name) {
                note(format!("  {:<28} not run: {why}", scenario.name));
            }
        }
        match confined.others {
            None => note(format!(
                "the load is sysbench in schema {SCHEMA}, which is made and dropped; what it writes goes to \
                 the binary log and to replicas, where there are any"
            )),
            Some(sessions) => {
                note(format!("the load is that of the {sessions} sessions of others"))
            }
        }
        note(
            "each change is in a journal before, and undone at the end, on Ctrl-C, and by a guardian where \
             waggle is killed",
        );
        Ok(())
    }

    /// Makes the windows that are missing, leaves the server as it was, and writes the reports.
    fn measure(
        self,
        begun: &Begun,
        sysbench: Option<&Sysbench>,
        place: &Path,
        until: Option<Instant>,
        kept: impl FnOnce() -> Result<Kept, Failure>,
    ) -> Result<Outcome, Failure> {
        let There { account, options, mut connection, pid, .. } = self;
        let mut further = account.arguments();
        further.push("--yes".into());
        let stop = stop_on_signal()?;
        let suite = begun.suite_to_run().map_err(failed)?;
        let launcher = private_server::launcher()?;
        check_rights(&mut connection, &suite).map_err(failed)?;
        check_counters(&mut connection, &suite.counters).map_err(failed)?;
        recover(&mut connection, &stop)?;
        let rights = Rights::to_change([Table::Metrics], &connection);
        let command = format!("lab run {}", begun.suite);
        let reach = sysbench.map(|_| Reach::of(&options, SCHEMA)).transpose();
        let reach = reach.map_err(failed)?;
        let hold = begin(&mut connection, &account, &command)?;
        let server = Foreign::new(connection, hold, options, reach, pid, place).map_err(failed)?;
        let windows = Windows {
            begun,
            suite: &suite,
            origin: Origin::Foreign(&server),
            load_launcher: &launcher,
            sysbench,
            until,
            stop: &stop,
        };
        let ended = make(&windows, &server, place, kept, &rights);
        let is_as_before = end(server);
        let outcome = finish(place, &further, ended)?;
        Ok(if is_as_before { outcome } else { Outcome::No })
    }
}

/// Makes the data of a load of ours, then the windows.
fn make(
    windows: &Windows<'_>,
    server: &Foreign,
    place: &Path,
    kept: impl FnOnce() -> Result<Kept, Failure>,
    rights: &Rights,
) -> Result<Ended, Failure> {
    let Windows { begun, suite, load_launcher: launcher, sysbench, .. } = *windows;
    if sysbench.is_some() {
        let run = std::path::absolute(place)?;
        if let Some(killed) = server.make_schema(&run).map_err(failed)? {
            note(format!("schema {SCHEMA} of {killed}, which was killed, was dropped"));
        }
    }
    let kept = kept()?;
    if let (Some(sysbench), Some(reach), Some(workload)) =
        (sysbench, server.reach(), suite.workloads.first())
        && !begun.is_whole(kept.count())
    {
        let (tables, rows) = (suite.data.tables, suite.data.rows.of(begun.scale));
        note(format!("data: {tables} tables of {rows} rows"));
        let request = load::Request {
            sysbench,
            launcher,
            reach,
            workload,
            threads: tables,
            tables,
            rows,
            seed: 1,
            directory: place,
        };
        if !prepare(&request, windows.stop).map_err(failed)? {
            return Ok(Ended::Stopped);
        }
    }
    windows.make(kept).map_err(|error| match error {
        LabError::Hold(error) => Failure::Cannot(rights.explain(error)),
        error => failed(error),
    })
}

/// Leaves a server as it was. Whether all is.
fn end(server: Foreign) -> bool {
    match server.end() {
        Ok(restored) => history::tell_rest(&restored),
        Err(error) => {
            note(format!(
                "not everything is as before: {error}; run waggle pfs rollback, and drop schema {SCHEMA} where \
                 it is left"
            ));
            false
        }
    }
}
