//! Whether a suite can be run.

use std::collections::BTreeSet;
use std::fmt::Display;

use waggle_instrumentation::class::class_of;
use waggle_instrumentation::profile::{BUILTIN, builtin};

use crate::server_option::ServerOption;

use super::error::Mistake;
use super::expect::CLASSES;
use super::only::{self, CLOSED, OPEN};
use super::published::PublishedRange;
use super::{Data, Figure, Order, Scale, Scenario, Sequence, Servers, Source, Suite, Workload};

/// More sessions than any server of ours can have.
const THREADS_MAX: u32 = 4096;
const TABLES_MAX: u32 = 1000;
/// The least that every server takes, MiB.
const POOL_MIN: u32 = 5;
const REDO_MIN: u32 = 16;
/// Options that are the lab's own: where a server is and who reaches it, and what `data` has; those that end with `-` are
/// beginnings.
const OWN_OPTIONS: &str = "\
    basedir bind-address daemonize datadir defaults-extra-file defaults-file no-defaults pid-file port \
    skip-networking socket tmpdir user init-file innodb-buffer-pool-size innodb-data-home-dir \
    innodb-log-file-size innodb-log-files-in-group innodb-log-group-home-dir innodb-redo-log-capacity \
    innodb-undo-directory log-error mysqlx-";
/// Arguments of sysbench that are the lab's own; those that end with `-` are beginnings.
const OWN_ARGUMENTS: &str = "\
    config-file db-driver events mysql- pgsql- rand-seed rate table-size tables threads time";

type Checked = Result<(), Mistake>;

/// Everything but the columns of the tables.
pub(super) fn check(suite: &Suite) -> Checked {
    texts(suite)?;
    workloads(&suite.workloads)?;
    levels(suite)?;
    scenarios(suite)?;
    let scenario_names = names(&suite.scenarios, |one| &one.name);
    for order in &suite.orders {
        check_order(order, &suite.baseline, &scenario_names)?;
        sequence(order, suite.servers)?;
    }
    let orders = names(&suite.orders, |order| &order.name);
    distinct("orders", &orders)?;
    words(suite)?;
    if let Some(order) = &suite.open_order {
        known("open_order", order, &orders)?;
    }
    options("options", &suite.options, OWN_OPTIONS)?;
    data(&suite.data)?;
    let workload_names = names(&suite.workloads, |one| &one.name);
    if let Some(workload) = &suite.data.age_with {
        known("data.age_with", workload, &workload_names)?;
    }
    for feed in &suite.feeds {
        let reason = format!("{feed} is of none of the classes that are looked at");
        let remedy = format!("name an instrument of one of {}", CLASSES.join(", "));
        must(CLASSES.contains(&class_of(feed)), "feeds", reason, remedy)?;
    }
    suite.counters.iter().try_for_each(|counter| identifier("counters", counter))?;
    distinct("counters", &suite.counters)?;
    // The cells of the source are cells of the suite.
    for published in &suite.published {
        let key = format!("published, {}", published.table);
        known(&key, &published.workload, &workload_names)?;
        let reason = format!("{} threads are none of the suite", published.threads);
        let is_of_suite = suite.threads.contains(&published.threads);
        must(is_of_suite, key, reason, "name them under threads as well")?;
    }
    suite
        .published_ranges
        .iter()
        .try_for_each(|it| range(it, suite, &workload_names, &scenario_names))
}

/// The baseline, and the columns of the tables: scenarios of the suite, the baseline among them.
pub(super) fn columns(suite: &Suite) -> Checked {
    let (baseline, columns) = (&suite.baseline, &suite.columns);
    let scenarios = names(&suite.scenarios, |one| &one.name);
    known("baseline", baseline, &scenarios)?;
    columns.iter().try_for_each(|column| known("columns", column, &scenarios))?;
    distinct("columns", columns)?;
    let are_used = !suite.tables.is_empty() || !columns.is_empty();
    let reason = format!("there is no {baseline}");
    let is_there = !are_used || columns.contains(baseline);
    must(is_there, "baseline", reason, "name the baseline among columns")
}

/// `--only` tells by its word alone what it confines a run to.
fn words(suite: &Suite) -> Checked {
    let workloads = suite.workloads.iter().map(|one| one.name.as_str());
    let scenarios = suite.scenarios.iter().map(|one| one.name.as_str());
    let mut seen = BTreeSet::new();
    for name in workloads.chain(scenarios).chain(only::orders(suite)) {
        let is_taken = [CLOSED, OPEN].contains(&name) || name.parse::<u32>().is_ok();
        let reason = format!("--only {name} could mean something else");
        let remedy = format!(
            "give each workload, scenario and order a name of its own, that is no number and neither {CLOSED} nor {OPEN}"
        );
        must(!is_taken && seen.insert(name), "name", reason, remedy)?;
    }
    Ok(())
}

fn texts(suite: &Suite) -> Checked {
    let Source { what, server, load, .. } = &suite.source;
    let texts = [
        ("title", &suite.title),
        ("source.what", what),
        ("source.server", server),
        ("source.load", load),
    ];
    texts.into_iter().try_for_each(|(key, text)| {
        must(!text.trim().is_empty(), key, "it is empty", "say it in a few words")
    })
}

fn workloads(workloads: &[Workload]) -> Checked {
    some("workloads", workloads)?;
    distinct("workloads", &names(workloads, |workload| &workload.name))?;
    for Workload { name, script, arguments } in workloads {
        identifier("workloads", name)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_script = !script.is_empty() && script.chars().all(is_name);
        let reason = format!("`{script}` is no name of a script");
        let remedy = "name one that comes with sysbench, such as oltp_read_write, without a path";
        must(is_script, format!("workloads.{name}.script"), reason, remedy)?;
        options(&format!("workloads.{name}.arguments"), arguments, OWN_ARGUMENTS)?;
    }
    Ok(())
}

/// Numbers of sessions, rates, and the effect that is of interest.
fn levels(suite: &Suite) -> Checked {
    some("threads", &suite.threads)?;
    let closed = suite.threads.iter().map(|threads| ("threads", *threads));
    for (key, threads) in closed.chain([("open_threads", suite.open_threads)]) {
        let reason = format!("{threads} sessions cannot be run");
        let remedy = format!("give 1 to {THREADS_MAX}");
        must((1..=THREADS_MAX).contains(&threads), key, reason, remedy)?;
    }
    distinct("threads", &suite.threads)?;
    for share in &suite.open_shares {
        let reason = format!("{share} is no share of the CPUs that a rate can hold");
        let is_share = *share > 0.0 && *share < 1.0;
        must(is_share, "open_shares", reason, "give shares between 0 and 1")?;
    }
    let shares: Vec<String> = suite.open_shares.iter().map(f64::to_string).collect();
    distinct("open_shares", &shares)?;
    effect("margin_percent", suite.margin_percent)
}

/// That an effect in % can be looked for.
pub(super) fn effect(key: &str, percent: f64) -> Checked {
    let reason = format!("{percent} % is no effect that can be looked for");
    must(percent > 0.0 && percent <= 100.0, key, reason, "give more than 0, at most 100")
}

fn scenarios(suite: &Suite) -> Checked {
    let scenarios = &suite.scenarios;
    some("scenarios", scenarios)?;
    distinct("scenarios", &names(scenarios, |scenario| &scenario.name))?;
    for scenario in scenarios {
        identifier("scenarios", &scenario.name)?;
        scenario_alone(scenario)?;
    }
    scenarios.iter().try_for_each(|scenario| has_performance_schema(suite, scenario))?;
    if suite.servers == Servers::SideBySide {
        neighbours(scenarios)?;
    }
    Ok(())
}

fn scenario_alone(scenario: &Scenario) -> Checked {
    let key = |what: &str| format!("scenarios.{}.{what}", scenario.name);
    options(&key("start"), &scenario.start, OWN_OPTIONS)?;
    if let Some(profile) = &scenario.profile {
        let Some(read) = builtin(profile) else {
            let reason = format!("there is no built-in profile {profile}");
            let remedy = format!("name one of {}", BUILTIN.map(|(name, _)| name).join(", "));
            return Err(Mistake::new(key("profile"), reason, remedy));
        };
        read.map_err(|error| Mistake::new(key("profile"), error.to_string(), "mend the profile"))?;
    }
    for (name, value) in &scenario.variables {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let is_name = !name.is_empty() && name.chars().all(is_part);
        let reason = format!("`{name} = {value}` cannot be set and read back");
        let remedy = "give the name of a global variable and its value: a number, a word such as ON, or 'text' in quotes";
        must(is_name && is_literal(value), key("variables"), reason, remedy)?;
    }
    Ok(())
}

/// Whether a value of a variable is one literal of SQL: a number, a word, or text in quotes without any inside.
/// `DEFAULT` is none: it reads as something else.
fn is_literal(value: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let inner =
        ['\'', '"'].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    match inner {
        Some(text) => !text.chars().any(|c| c.is_control() || matches!(c, '\'' | '"' | '\\')),
        None => {
            let is_number = value.parse::<f64>().is_ok_and(f64::is_finite);
            let is_name = !value.is_empty() && value.chars().all(is_word);
            is_number || is_name && !value.eq_ignore_ascii_case("default")
        }
    }
}

/// Scenarios that share a server set the same things on it: nothing else takes back what the one before
/// has set.
fn neighbours(scenarios: &[Scenario]) -> Checked {
    let sets = |one: &Scenario| -> (bool, Vec<String>) {
        (one.profile.is_some(), one.variables.keys().cloned().collect())
    };
    for (at, scenario) in scenarios.iter().enumerate() {
        let mut before = scenarios[..at].iter();
        let is_other = |one: &&Scenario| one.start == scenario.start && sets(one) != sets(scenario);
        if let Some(other) = before.find(is_other) {
            let key = format!("scenarios.{}", scenario.name);
            let reason = format!("it shares a server with {} and sets other things", other.name);
            let remedy = "give both a profile or none, and the same variables";
            return Err(Mistake::new(key, reason, remedy));
        }
    }
    Ok(())
}

/// Where a scenario has a profile its server is not started without Performance Schema: the last option counts.
fn has_performance_schema(suite: &Suite, scenario: &Scenario) -> Checked {
    let sets = |option: &&String, value| ServerOption::of(option).sets("performance_schema", value);
    let mut options = suite.options.iter().chain(&scenario.start);
    let last = options.rfind(|it| sets(it, "ON") || sets(it, "OFF"));
    let is_off = last.is_some_and(|last| sets(&last, "OFF"));
    let key = format!("scenarios.{}.profile", scenario.name);
    let reason =
        "its server is started without Performance Schema, and there is nothing to set then";
    let is_right = !is_off || !scenario.needs_performance_schema();
    must(is_right, key, reason, "leave out the one or the other")
}

fn check_order(order: &Order, baseline: &str, scenarios: &[&str]) -> Checked {
    identifier("orders", &order.name)?;
    let of_scenarios = format!("orders.{}.scenarios", order.name);
    let of_against = format!("orders.{}.against", order.name);
    let own = names(&order.scenarios, |name| name);
    some(&of_scenarios, &own)?;
    let has_baseline = order.against != [baseline] || own.contains(&baseline);
    let reason = format!("the baseline {baseline} is not among them");
    let remedy = "add it, or say with against what the others are compared with";
    must(has_baseline, &of_scenarios, reason, remedy)?;
    distinct(&of_scenarios, &own)?;
    distinct(&of_against, &order.against)?;
    own.iter().try_for_each(|name| known(&of_scenarios, name, scenarios))?;
    order.against.iter().try_for_each(|name| known(&of_against, name, &own))
}

/// One after another, a server has all cells before the next one comes.
fn sequence(order: &Order, servers: Servers) -> Checked {
    let are_beside = servers == Servers::SideBySide && !order.restart;
    let key = format!("orders.{}.sequence", order.name);
    let reason = "servers that come one after another come in a random order";
    let remedy = "write random, or have the servers side_by_side without a restart";
    must(are_beside || order.sequence == Sequence::Random, key, reason, remedy)
}

fn data(data: &Data) -> Checked {
    let reason = format!("{} tables cannot be made", data.tables);
    let can_be = (1..=TABLES_MAX).contains(&data.tables);
    must(can_be, "data.tables", reason, format!("give 1 to {TABLES_MAX}"))?;
    for (key, least, sizes) in [
        ("data.rows", 1, data.rows),
        ("data.buffer_pool_mib", POOL_MIN, data.buffer_pool_mib),
        ("data.redo_log_mib", REDO_MIN, data.redo_log_mib),
    ] {
        for scale in Scale::ALL {
            let (key, size) = (format!("{key}.{}", scale.name()), sizes.of(scale));
            let reason = format!("{size} is too little");
            must(size >= least, key, reason, format!("give {least} or more"))?;
        }
    }
    Ok(())
}

/// What the source says without figures is a change of a scenario of the suite.
fn range(range: &PublishedRange, suite: &Suite, workloads: &[&str], scenarios: &[&str]) -> Checked {
    let key = format!("published_ranges, {}", range.scenario);
    known(&key, &range.workload, workloads)?;
    known(&key, &range.scenario, scenarios)?;
    let (low, high) = (range.low_percent, range.high_percent);
    let is_other = range.scenario != suite.baseline;
    let reason = "it is the baseline, against which changes are";
    must(is_other, &key, reason, "name another scenario")?;
    let reason = "memory is printed as an amount, not as a change";
    must(range.figure != Figure::Memory, &key, reason, "name qps, tps, latency or cpu")?;
    let is_range = (-100.0..=high).contains(&low) && high.is_finite();
    let reason = format!("{low} to {high} % is no range of a change");
    must(is_range, &key, reason, "give the lower end, from -100, and the upper")?;
    must(!range.says.trim().is_empty(), &key, "says is empty", "say it in a sentence")
}

/// A mistake where something does not hold.
pub(super) fn must(
    holds: bool,
    key: impl Into<String>,
    reason: impl Into<String>,
    remedy: impl Into<String>,
) -> Checked {
    if holds { Ok(()) } else { Err(Mistake::new(key, reason, remedy)) }
}

fn names<T>(all: &[T], name: impl Fn(&T) -> &String) -> Vec<&str> {
    all.iter().map(|one| name(one).as_str()).collect()
}

fn some<T>(key: &str, all: &[T]) -> Checked {
    must(!all.is_empty(), key, "it is empty", "give one at least")
}

fn known(key: &str, name: &str, names: &[&str]) -> Checked {
    let remedy = format!("name one of {}", names.join(", "));
    must(names.contains(&name), key, format!("there is no {name}"), remedy)
}

fn distinct<T: Ord + Display>(key: &str, all: &[T]) -> Checked {
    let mut seen = BTreeSet::new();
    all.iter().try_for_each(|one| {
        must(seen.insert(one), key, format!("{one} is there twice"), "keep one of them")
    })
}

/// A name that can be part of the name of a file.
fn identifier(key: &str, name: &str) -> Checked {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_name = !name.is_empty() && name.chars().all(is_part);
    must(is_name, key, format!("`{name}` is no name"), "use letters, digits, - and _")
}

/// Options as on a command line, none of which is the lab's own.
fn options(key: &str, options: &[String], own: &str) -> Checked {
    for option in options {
        let name = ServerOption::of(option).name.replace('_', "-");
        let has_name = option.starts_with("--") && !name.is_empty();
        let is_option = has_name && !option.chars().any(char::is_control);
        must(is_option, key, format!("`{option}` is no option"), "write it as --name=value")?;
        let is_own = |own: &str| name == own || own.ends_with('-') && name.starts_with(own);
        let reason = format!("--{name} is set by the lab itself");
        must(!own.split(' ').any(is_own), key, reason, "take it out")?;
    }
    Ok(())
}
