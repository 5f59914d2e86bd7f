//! `waggle pfs plan` and `waggle pfs persist`

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;
use waggle_instrumentation::apply::{statements, what};
use waggle_instrumentation::cost::Forecast;
use waggle_instrumentation::cost::proven::Proven;
use waggle_instrumentation::filter::{self, Account, Filter, Object, ThreadName};
use waggle_instrumentation::full::full;
use waggle_instrumentation::plan::PlanError;
use waggle_instrumentation::profile::{Profile, ProfileError};
use waggle_instrumentation::unseen::unseen;
use waggle_instrumentation::{Change, Plan, State, Table, Wanted, sessions};
use waggle_model::ServerVersion;
use waggle_model::visible::on_a_line;
use waggle_mysql::Connection;

use super::super::account::AccountArgs;
use super::super::{Failure, Outcome, pause, print};
use super::connect;
use super::cost::{Here, proven};

/// Names in one printed statement, unless all are asked for.
const NAMES_PRINTED: usize = 3;

/// Show what a profile would change, how, and at what cost, without changing anything.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle pfs plan waits -v --defaults-file /etc/mysql/waggle.cnf")]
pub(super) struct Args {
    /// A name from `waggle pfs profiles`, or the path of a TOML file.
    profile: String,
    /// Count events for this time.
    #[arg(long, value_name = "TIME", value_parser = pause, default_value = "1s")]
    interval: Duration,
    #[command(flatten)]
    filter: FilterArgs,
    /// Every name.
    #[arg(short, long)]
    verbose: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    account: AccountArgs,
}

/// What of the server is recorded; everything where nothing is named.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Record only")]
pub(super) struct FilterArgs {
    /// Sessions of this account: new ones and those that are there. May be given more than once.
    #[arg(long = "account", value_name = "USER@HOST")]
    accounts: Vec<Account>,
    /// Tables and stored programs of this schema. Statements are not filtered by it.
    #[arg(long = "schema", value_name = "NAME", value_parser = filter::name)]
    schemas: Vec<String>,
    /// This object; TYPE is EVENT, FUNCTION, PROCEDURE, TABLE or TRIGGER.
    #[arg(long = "object", value_name = "TYPE:SCHEMA.NAME")]
    objects: Vec<Object>,
    /// This thread: its number in performance_schema.threads, or a name such as
    /// thread/sql/one_connection, in which % stands for any characters.
    #[arg(long = "thread", value_name = "ID|NAME")]
    threads: Vec<ThreadName>,
}

impl From<FilterArgs> for Filter {
    fn from(args: FilterArgs) -> Filter {
        let FilterArgs { accounts, schemas, objects, threads } = args;
        Filter { accounts, schemas, objects, threads }
    }
}

/// The plan for this server as it is now.
pub(in crate::cli) fn plan(
    connection: &mut Connection,
    profile: &Profile,
    filter: &Filter,
) -> Result<Plan, Failure> {
    let state = state(connection)?;
    plan_from(&state, connection, profile, filter)
}

/// What is set now.
pub(super) fn state(connection: &mut Connection) -> Result<State, Failure> {
    if !connection.server_identity().performance_schema {
        return Err(waggle_instrumentation::status::StatusError::Off.into());
    }
    let state = State::read(connection)?;
    if let Some(why) = state.why_absent(Table::Instruments) {
        return Err(Failure::Cannot(anyhow::anyhow!("{why}")));
    }
    Ok(state)
}

/// The plan for this server as if `state` were set.
pub(super) fn plan_from(
    state: &State,
    connection: &mut Connection,
    profile: &Profile,
    filter: &Filter,
) -> Result<Plan, Failure> {
    let version = version(connection);
    let sessions = sessions::read(connection)?;
    let wanted = Wanted { profile, filter, sessions: &sessions, version };
    let unseen = unseen(connection, filter, &sessions)?;
    let mut plan = Plan { unseen, ..Plan::new(state, &wanted).map_err(not_planned)? };
    plan.impossible.extend(full(connection, state, &plan.changes)?);
    Ok(plan)
}

/// Whose mistake it is that there is no plan.
pub(in crate::cli) fn not_planned(error: PlanError) -> Failure {
    match error {
        PlanError::Filter(_) | PlanError::Metrics(_) => Failure::Usage(error.into()),
        PlanError::Profile(_) => Failure::Config(error.into()),
        PlanError::Absent(_) => error.into(),
    }
}

pub(super) fn version(connection: &Connection) -> ServerVersion {
    connection.server_identity().server_version()
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let profile = find(&args.profile)?;
    let mut connection = connect(args.account)?;
    let filter = args.filter.into();
    let plan = plan(&mut connection, &profile, &filter)?;
    let here = Here::read(&mut connection, &plan, args.interval)?;
    let mut proven = proven::of_server(here.pid)?;
    proven.retain(|one| one.what == format!("pfs {}", args.profile));
    print(args.json, &PlanJson::of(&profile, &plan, &here, &proven), || {
        let Profile { question, expected_cost, .. } = &profile;
        let (cost, not_in_it) = (here.in_words(), not_in_it(&plan, &filter));
        let changes = in_words(&plan, args.verbose);
        let measured = proven::in_words(&proven);
        format!(
            "{question}\nexpected cost: {expected_cost}\n\n{cost}{not_in_it}{measured}\n{changes}"
        )
    })?;
    Ok(Outcome::Done)
}

/// What the expected cost does not know of.
fn not_in_it(plan: &Plan, filter: &Filter) -> String {
    let mut text = String::new();
    if *filter != Filter::default() {
        text.push_str("not in it: that only a part is recorded, which costs less\n");
    }
    if plan.changes.iter().any(|change| change.table == Table::Metrics) {
        text.push_str("not in it: the counters of InnoDB, which are not measured\n");
    }
    text
}

pub(in crate::cli) fn find(name: &str) -> Result<Profile, Failure> {
    Profile::find(name).map_err(|error| match error {
        ProfileError::NeedsRestart => error.into(),
        ProfileError::Unknown { .. } => Failure::Usage(error.into()),
        _ => Failure::Config(error.into()),
    })
}

#[derive(Serialize)]
struct PlanJson<'a> {
    question: &'a str,
    expected_cost: &'a str,
    changes: &'a [Change],
    added: &'a [(String, String)],
    impossible: &'a [(String, String)],
    later: &'a [String],
    unseen: &'a [String],
    statements: Vec<String>,
    cost: Option<&'a Forecast>,
    cost_missing: Option<&'a str>,
    proven: &'a [Proven],
}

impl<'a> PlanJson<'a> {
    fn of(profile: &'a Profile, plan: &'a Plan, here: &'a Here, proven: &'a [Proven]) -> Self {
        let Plan { changes, added, impossible, later, unseen, .. } = plan;
        let statements = statements(changes).filter_map(|batch| batch.sql()).collect();
        Self {
            question: &profile.question,
            expected_cost: &profile.expected_cost,
            changes,
            added,
            impossible,
            later,
            unseen,
            statements,
            cost: here.cost.value(),
            cost_missing: here.cost.why(),
            proven,
        }
    }
}

/// How many rows of what change, and how; then the statements that do it.
pub(in super::super) fn in_words(plan: &Plan, verbose: bool) -> String {
    let mut text = rows_in_words(plan, verbose);
    if !plan.changes.is_empty() {
        text.push('\n');
    }
    let names = if verbose { usize::MAX } else { NAMES_PRINTED };
    // A counter of InnoDB takes a statement of its own.
    let of_counters = plan.changes.partition_point(|change| change.table != Table::Metrics);
    let (rows, counters) = plan.changes.split_at(of_counters);
    for sql in statements(rows).filter_map(|batch| batch.shortened(names)) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{};", on_a_line(&sql));
    }
    let switches: Vec<_> = statements(counters).filter_map(|batch| batch.sql()).collect();
    for sql in switches.iter().take(names) {
        let _ = writeln!(text, "{};", on_a_line(sql));
    }
    if switches.len() > names {
        let _ = writeln!(text, "/* and {} more */", switches.len() - names);
    }
    text
}

/// How many rows of what change, and how.
pub(in super::super) fn rows_in_words(plan: &Plan, verbose: bool) -> String {
    let mut text = String::new();
    if plan.changes.is_empty() {
        text.push_str("nothing to change\n");
    }
    let mut counts: BTreeMap<(&str, String), Vec<&Change>> = BTreeMap::new();
    for change in &plan.changes {
        counts.entry((what(change), direction(change))).or_default().push(change);
    }
    for ((what, direction), changes) in &counts {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:>6}  {what:<20} {direction}", changes.len());
        for change in changes.iter().filter(|_| verbose) {
            let _ = writeln!(text, "        {}", on_a_line(&change.key.join(" ")));
        }
    }
    for (name, by) in &plan.added {
        let _ = writeln!(text, "added: {}, needed by {}", on_a_line(name), on_a_line(by));
    }
    for (name, why) in &plan.impossible {
        let _ = writeln!(text, "cannot be changed: {}: {}", on_a_line(name), on_a_line(why));
    }
    for unseen in &plan.unseen {
        let _ = writeln!(text, "look again: {}", on_a_line(unseen));
    }
    for later in &plan.later {
        let _ = writeln!(text, "not at once: {}", on_a_line(later));
    }
    text
}

/// Such as `NO NO -> YES YES`.
fn direction(change: &Change) -> String {
    let side = |settings: &Option<Vec<Option<String>>>| match settings {
        None => "none".to_owned(),
        Some(settings) => settings
            .iter()
            .map(|setting| setting.as_deref().unwrap_or("-"))
            .collect::<Vec<_>>()
            .join(" "),
    };
    format!("{} -> {}", side(&change.before), side(&change.after))
}
