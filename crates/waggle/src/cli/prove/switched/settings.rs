//! Settings of a server: a profile of Performance Schema, counters of InnoDB.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::atomic::AtomicBool;

use anyhow::anyhow;
use serde::Serialize;
use waggle_instrumentation::activity;
use waggle_instrumentation::apply::{Made, refused};
use waggle_instrumentation::filter::Filter;
use waggle_instrumentation::hold::{Hold, HoldError};
use waggle_instrumentation::metrics::{self, Counter};
use waggle_instrumentation::plan::Plan;
use waggle_instrumentation::variables::{self, Switched, VARIABLES, Variable, VariableError};
use waggle_instrumentation::{Change, State, Table};
use waggle_model::Reading;
use waggle_mysql::connection::{MARK, text};
use waggle_mysql::{Connection, ConnectionError};

use super::super::super::account::AccountArgs;
use super::super::super::pfs::history::{recover, row, tell_rest};
use super::super::super::pfs::hold::{begin, failed, left_to_the_guardian, tell_locked};
use super::super::super::pfs::plan::{find, plan, rows_in_words};
use super::super::super::{Failure, Outcome, innodb, pfs, stop_on_signal, write_json};
use super::{Asked, Count, Switch, WindowArgs, show, take, watch};
use crate::streams::{stderr, stdout, tell};

/// Beside each help.
const UNDONE: &str = "\
Every change is written to a journal before it is made. It is undone at the end, within two seconds of waggle's death, and by \
`waggle pfs rollback`.

Exit code 1 where there is no price or it ended early, 4 where the server, a right or a kernel feature is missing.";

fn after_help(example: &str) -> String {
    format!("{UNDONE}\n\nExample: {example} --defaults-file /etc/mysql/waggle.cnf")
}

/// Price a profile of Performance Schema: it is set and undone again and again, in short windows.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("waggle prove pfs waits --for 30s"))]
pub(in super::super) struct PfsArgs {
    /// A name from `waggle pfs profiles`, or the path of a TOML file.
    profile: String,
    #[command(flatten)]
    windows: WindowArgs,
    #[command(flatten)]
    account: AccountArgs,
}

/// Price counters of InnoDB: they are turned on and off again and again, in short windows.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("waggle prove innodb-metrics all"))]
pub(in super::super) struct InnodbArgs {
    /// Counters, modules (module_lock), subsystems (lock), patterns in which % stands for any
    /// characters, or `all`.
    #[arg(required = true, value_name = "WHAT")]
    words: Vec<String>,
    #[command(flatten)]
    windows: WindowArgs,
    #[command(flatten)]
    account: AccountArgs,
}

/// Price a global variable: it is set to two values in turn, again and again, in short windows.
///
/// Windows with the first value are compared with windows with the second. Without a name it lists the variables that may be
/// switched.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("waggle prove variable general_log OFF ON"))]
pub(in super::super) struct VariableArgs {
    /// The variable.
    #[arg(requires = "second")]
    name: Option<String>,
    /// A value to compare with.
    first: Option<String>,
    /// The value that is priced.
    second: Option<String>,
    #[command(flatten)]
    windows: WindowArgs,
    #[command(flatten)]
    account: AccountArgs,
}

pub(in super::super) fn run_variable(args: VariableArgs) -> Result<Outcome, Failure> {
    let VariableArgs { name: Some(name), first: Some(first), second: Some(second), .. } = &args
    else {
        return list(args.windows.json);
    };
    let what = format!("variable {name} {first} {second}");
    run(&args.windows, &args.account, &what, |connection| {
        let switched = variables::switched(connection, name, [first, second]);
        let Switched { first: before, second } = switched.map_err(not_switched)?;
        let plan = Plan { changes: vec![second], ..Plan::default() };
        let without = format!("with {name} = {first}");
        Ok(Planned { before: before.into_iter().collect(), without, plan })
    })
}

fn not_switched(error: VariableError) -> Failure {
    match error {
        VariableError::Connection(_) | VariableError::Absent(_) => Failure::Cannot(error.into()),
        _ => Failure::Usage(error.into()),
    }
}

#[derive(Serialize)]
struct VariableJson {
    name: &'static str,
    values: String,
    does: &'static str,
}

/// Prints the variables that may be switched.
fn list(is_json: bool) -> Result<Outcome, Failure> {
    let mut out = stdout();
    for variable in &VARIABLES {
        let Variable { name, does, .. } = variable;
        match is_json {
            true => write_json(&mut out, &VariableJson { name, values: variable.may(), does })?,
            false => writeln!(out, "{name:<30} {:<24} {does}", variable.may())?,
        }
    }
    Ok(Outcome::Done)
}

/// What is to be switched.
struct Planned {
    /// What leads there from what is set; it is undone at the end.
    before: Vec<Change>,
    /// With what it is compared.
    without: String,
    plan: Plan,
}

impl From<Plan> for Planned {
    fn from(plan: Plan) -> Planned {
        Planned { before: Vec::new(), without: "without it".to_owned(), plan }
    }
}

pub(in super::super) fn run_pfs(args: PfsArgs) -> Result<Outcome, Failure> {
    let profile = find(&args.profile)?;
    run(&args.windows, &args.account, &format!("pfs {}", args.profile), |connection| {
        plan(connection, &profile, &Filter::default()).map(Planned::from)
    })
}

pub(in super::super) fn run_innodb(args: InnodbArgs) -> Result<Outcome, Failure> {
    let what = format!("innodb-metrics {}", args.words.join(" "));
    run(&args.windows, &args.account, &what, |connection| {
        innodb::plan(connection, &args.words, true).map(Planned::from)
    })
}

/// Tries what a plan changes.
fn run(
    args: &WindowArgs,
    account: &AccountArgs,
    what: &str,
    planned: impl Fn(&mut Connection) -> Result<Planned, Failure>,
) -> Result<Outcome, Failure> {
    let stop = stop_on_signal()?;
    let options = account.clone().read()?;
    let mut connection = pfs::open(&options)?;
    recover(&mut connection, &stop)?;
    let (capture, server, tosses) = watch(args, &mut connection, &stop)?;
    let Planned { before, without, plan } = planned(&mut connection)?;
    write!(stderr(), "{}", rows_in_words(&plan, false))?;
    if plan.changes.is_empty() {
        tell!("waggle: all of it is set already, so that there is nothing to compare");
        return Ok(Outcome::No);
    }
    let command = format!("prove {what}");
    if plan.changes.iter().any(|change| change.before.is_none() || change.after.is_none()) {
        return Err(Failure::Usage(anyhow!(
            "`{what}` adds or removes rules for accounts or objects, which cannot be switched back and forth"
        )));
    }
    let mut hold = begin(&mut connection, account, &command)?;
    let broken = format!("`{command}` failed");
    let first = hold
        .add(&mut connection, &before, &mut |made| tell_refused(made))
        .and_then(|()| Ok(counts(&mut connection, &plan)?));
    let counts = match first {
        Ok(counts) => counts,
        Err(error) => return Err(failed(error, hold, &mut connection, broken)),
    };
    let mut settings = Settings::new(connection, hold, plan, counts);
    let asked = Asked { server, what: what.to_owned(), without, tosses, args };
    let (report, ended) = take(asked, &mut settings, &stop);
    drop(capture);
    let Settings { mut connection, hold, plan, .. } = settings;
    if let Err(error) = ended {
        let failure = failed(error, hold, &mut connection, broken);
        if report.switched.blocks > 0 {
            show(&report, args.json)?;
        }
        return Err(failure);
    }
    let changes = plan.changes.len();
    let restored = hold.end(&mut connection, &mut tell_locked).map_err(left_to_the_guardian)?;
    let is_whole = tell_rest(&restored);
    if is_whole {
        tell!("undone: {changes} of {changes} rows are as before");
    }
    Ok(match show(&report, args.json)? {
        Outcome::Done if is_whole => Outcome::Done,
        _ => Outcome::No,
    })
}

/// What counts only while it is set, and only while it is not: names of instruments or counters.
type Counts = [BTreeSet<String>; 2];

/// The counters of a plan that say something on this server.
fn counts(connection: &mut Connection, plan: &Plan) -> Result<Counts, ConnectionError> {
    let counting = |on: bool| {
        let counts = plan.changes.iter().filter(|change| turns(change) == Some(on));
        counts.filter_map(|change| counted_by(change).map(str::to_owned)).collect()
    };
    let counts: Counts = [counting(true), counting(false)];
    let is_of_variables = plan.changes.iter().any(|change| change.table == Table::Variables);
    if !is_of_variables || counts.iter().all(BTreeSet::is_empty) || logs_count(connection, &counts)?
    {
        return Ok(counts);
    }
    Ok(Counts::default())
}

/// Whether the server counts what it writes to a log: it writes files, and all is on that counts.
fn logs_count(connection: &mut Connection, counts: &Counts) -> Result<bool, ConnectionError> {
    let output = connection.rows(&format!("SELECT @@GLOBAL.log_output AS {MARK}"))?;
    let is_file = output.first().is_some_and(|row| text(row, 0).contains("FILE"));
    let state = State::read_of(connection, [Table::Instruments, Table::Consumers])?;
    let is_on = |table, name: &str| {
        let row = state.row(table, &vec![name.to_owned()]);
        row.is_some_and(|row| row.first() == Some(&Some("YES".to_owned())))
    };
    let consumers = ["global_instrumentation", "thread_instrumentation"];
    let mut names = counts.iter().flatten();
    Ok(is_file
        && consumers.iter().all(|name| is_on(Table::Consumers, name))
        && names.all(|name| is_on(Table::Instruments, name)))
}

/// Settings that are switched.
struct Settings {
    connection: Connection,
    hold: Hold,
    plan: Plan,
    /// What takes the plan back, in the opposite order.
    back: Vec<Change>,
    counts: Counts,
    /// How often they were taken back, and set.
    turned: [u32; 2],
    /// Whether the server did not take some.
    is_refused: bool,
}

impl Settings {
    fn new(connection: Connection, hold: Hold, plan: Plan, counts: Counts) -> Settings {
        let back = plan.changes.iter().rev().map(Change::inverse).collect();
        Settings { connection, hold, plan, back, counts, turned: [0; 2], is_refused: false }
    }

    /// Sets or takes back what was set and taken back before, unless somebody else has changed it meanwhile.
    fn switch(&mut self, on: bool) -> Result<(), HoldError> {
        let Settings { connection, hold, plan, back, is_refused, .. } = self;
        let (now, to) = if on { (&*back, &plan.changes) } else { (&plan.changes, &*back) };
        let others = if *is_refused { Vec::new() } else { refused(connection, now)? };
        match others.first() {
            Some(change) => Err(HoldError::Changed { row: row(change) }),
            None => hold.switch(connection, to),
        }
    }

    /// What each instrument or counter that is switched has counted so far.
    fn counted(&mut self) -> Result<Option<BTreeMap<String, u64>>, HoldError> {
        let is_metrics = self.plan.changes.iter().any(|change| change.table == Table::Metrics);
        if !is_metrics {
            return Ok(match activity::read(&mut self.connection)? {
                Reading::Value(events) => Some(events),
                Reading::Absent(_) => None,
            });
        }
        let count = |counter: Counter| (counter.name, counter.count.unsigned_abs());
        Ok(match metrics::read(&mut self.connection)? {
            Reading::Value(all) => Some(all.into_iter().map(count).collect()),
            Reading::Absent(_) => None,
        })
    }
}

impl Switch for Settings {
    type Error = HoldError;

    fn turn(&mut self, on: bool) -> Result<(), HoldError> {
        let Settings { connection, hold, plan, back, turned, is_refused, .. } = self;
        let mut tell = |made: &Made| {
            *is_refused |= !made.refused.is_empty();
            tell_refused(made);
        };
        turned[usize::from(on)] += 1;
        match (turned[usize::from(on)], on) {
            // It comes to its end: what is taken back is in the journal as it was found.
            (1, true) => hold.make(connection, plan, &AtomicBool::new(false), &mut tell).map(drop),
            (1, false) => hold.add(connection, back, &mut tell),
            _ => self.switch(on),
        }
    }

    fn count(&mut self) -> Result<Option<Count>, HoldError> {
        if self.counts.iter().all(BTreeSet::is_empty) {
            return Ok(None);
        }
        let Some(counted) = self.counted()? else { return Ok(None) };
        let of = |names: &BTreeSet<String>| {
            names.iter().map(|name| counted.get(name).copied().unwrap_or_default()).collect()
        };
        let [when_on, when_off] = self.counts.each_ref().map(of);
        Ok(Some(Count { when_on, when_off }))
    }

    fn shown_by(&self) -> Option<&'static str> {
        let shown_by = "nothing counts what it does; its rows read back as they were set";
        (!self.is_refused).then_some(shown_by)
    }
}

fn tell_refused(made: &Made) {
    for change in &made.refused {
        tell!("the server did not take it: {}", row(change));
    }
}

/// The instrument or counter that counts what a change turns on.
fn counted_by(change: &Change) -> Option<&str> {
    let name = change.key.last()?;
    match change.table {
        Table::Instruments | Table::Metrics => Some(name),
        Table::Variables => Variable::of_name(name)?.counted_by,
        _ => None,
    }
}

/// Whether a change turns something on, or off; `None` where it does neither.
fn turns(change: &Change) -> Option<bool> {
    let is_on = |row: &Option<Vec<Option<String>>>| {
        let value = row.as_ref()?.first()?.as_deref()?;
        Some(["YES", "ON"].contains(&value))
    };
    let (before, after) = (is_on(&change.before)?, is_on(&change.after)?);
    (before != after).then_some(after)
}
