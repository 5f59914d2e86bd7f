//! Whether a suite can be run.

use std::collections::BTreeSet;

use waggle_instrumentation::class::class_of;
use waggle_instrumentation::profile::{BUILTIN, builtin};

use crate::server_option::ServerOption;

use super::declared;
use super::error::Mistake;
use super::expect::CLASSES;
use super::only::{self, CLOSED, OPEN};
use super::{Data, Figure, Order, Scale, Scenario, Sequence, Servers, Suite, Workload};

/// More sessions than any server of ours can have.
const THREADS_MAX: u32 = 4096;
const TABLES_MAX: u32 = 1000;
/// The least that every server takes, MiB.
const POOL_MIN: u32 = 5;
const REDO_MIN: u32 = 16;
/// Options that are the lab's own: where a server is and who reaches it, and what `data` has; those that end with `-` are
/// beginnings.
const OWN_OPTIONS: [&str; 23] = [
    "basedir",
    "bind-address",
    "daemonize",
    "datadir",
    "defaults-extra-file",
    "defaults-file",
    "no-defaults",
    "pid-file",
    "port",
    "skip-networking",
    "socket",
    "tmpdir",
    "user",
    "init-file",
    "innodb-buffer-pool-size",
    "innodb-data-home-dir",
    "innodb-log-file-size",
    "innodb-log-files-in-group",
    "innodb-log-group-home-dir",
    "innodb-redo-log-capacity",
    "innodb-undo-directory",
    "log-error",
    "mysqlx-",
];
/// Arguments of sysbench that are the lab's own; those that end with `-` are beginnings.
const OWN_ARGUMENTS: [&str; 11] = [
    "config-file",
    "db-driver",
    "events",
    "mysql-",
    "pgsql-",
    "rand-seed",
    "rate",
    "table-size",
    "tables",
    "threads",
    "time",
];

type Checked = Result<(), Mistake>;

/// Everything but the columns of the tables.
pub(super) fn check(suite: &Suite) -> Checked {
    texts(suite)?;
    workloads(&suite.workloads)?;
    levels(suite)?;
    scenarios(&suite.scenarios)?;
    is_on(suite)?;
    if suite.servers == Servers::SideBySide {
        neighbours(&suite.scenarios)?;
    }
    let names: Vec<&str> = suite.scenarios.iter().map(|one| one.name.as_str()).collect();
    for order in &suite.orders {
        check_order(order, &suite.baseline, &names)?;
        sequence(order, suite.servers)?;
    }
    let orders: Vec<&str> = suite.orders.iter().map(|order| order.name.as_str()).collect();
    distinct("orders", orders.iter().copied())?;
    words(suite)?;
    if let Some(order) = &suite.open_order {
        known("open_order", order, &orders)?;
    }
    options("options", &suite.options, &OWN_OPTIONS)?;
    data(&suite.data)?;
    if let Some(workload) = &suite.data.age_with {
        let names: Vec<&str> = suite.workloads.iter().map(|one| one.name.as_str()).collect();
        known("data.age_with", workload, &names)?;
    }
    for feed in &suite.feeds {
        if !CLASSES.contains(&class_of(feed)) {
            let reason = format!("{feed} is of none of the classes that are looked at");
            let remedy = format!("name an instrument of one of {}", CLASSES.join(", "));
            return Err(Mistake::new("feeds", reason, remedy));
        }
    }
    suite.counters.iter().try_for_each(|counter| identifier("counters", counter))?;
    distinct("counters", suite.counters.iter().map(String::as_str))?;
    cells(suite)?;
    ranges(suite)
}

/// The baseline, and the columns of the tables: scenarios of the suite, the baseline among them.
pub(super) fn columns(
    columns: &[String],
    baseline: &str,
    scenarios: &[Scenario],
    are_used: bool,
) -> Checked {
    let names: Vec<&str> = scenarios.iter().map(|one| one.name.as_str()).collect();
    known("baseline", baseline, &names)?;
    for column in columns {
        known("columns", column, &names)?;
    }
    distinct("columns", columns.iter().map(String::as_str))?;
    if are_used || !columns.is_empty() {
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        known("baseline", baseline, &columns).map_err(|mistake| Mistake {
            remedy: "name the baseline among columns".to_owned(),
            ..mistake
        })?;
    }
    Ok(())
}

/// `--only` tells by its word alone what it confines a run to.
fn words(suite: &Suite) -> Checked {
    let workloads = suite.workloads.iter().map(|one| one.name.as_str());
    let scenarios = suite.scenarios.iter().map(|one| one.name.as_str());
    let mut seen = BTreeSet::new();
    for name in workloads.chain(scenarios).chain(only::orders(suite)) {
        let is_taken = [CLOSED, OPEN].contains(&name) || name.parse::<u32>().is_ok();
        if is_taken || !seen.insert(name) {
            let reason = format!("--only {name} could mean something else");
            let remedy = format!(
                "give each workload, scenario and order a name of its own, that is no number and neither {CLOSED} nor {OPEN}"
            );
            return Err(Mistake::new("name", reason, remedy));
        }
    }
    Ok(())
}

fn texts(suite: &Suite) -> Checked {
    let source = &suite.source;
    for (key, text) in [
        ("title", &suite.title),
        ("source.what", &source.what),
        ("source.server", &source.server),
        ("source.load", &source.load),
    ] {
        if text.trim().is_empty() {
            return Err(Mistake::new(key, "it is empty", "say it in a few words"));
        }
    }
    Ok(())
}

fn workloads(workloads: &[Workload]) -> Checked {
    some("workloads", workloads.len())?;
    distinct("workloads", workloads.iter().map(|workload| workload.name.as_str()))?;
    for Workload { name, script, arguments } in workloads {
        identifier("workloads", name)?;
        let key = format!("workloads.{name}.script");
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if script.is_empty() || !script.chars().all(is_name) {
            let reason = format!("`{script}` is no name of a script");
            let remedy =
                "name one that comes with sysbench, such as oltp_read_write, without a path";
            return Err(Mistake::new(key, reason, remedy));
        }
        options(&format!("workloads.{name}.arguments"), arguments, &OWN_ARGUMENTS)?;
    }
    Ok(())
}

/// Numbers of sessions, rates, and the effect that is of interest.
fn levels(suite: &Suite) -> Checked {
    some("threads", suite.threads.len())?;
    for (key, threads) in suite
        .threads
        .iter()
        .map(|threads| ("threads", *threads))
        .chain([("open_threads", suite.open_threads)])
    {
        if !(1..=THREADS_MAX).contains(&threads) {
            let reason = format!("{threads} sessions cannot be run");
            return Err(Mistake::new(key, reason, format!("give 1 to {THREADS_MAX}")));
        }
    }
    let names: Vec<String> = suite.threads.iter().map(u32::to_string).collect();
    distinct("threads", names.iter().map(String::as_str))?;
    for share in &suite.open_shares {
        if !(*share > 0.0 && *share < 1.0) {
            let reason = format!("{share} is no share of the processors that a rate can hold");
            return Err(Mistake::new("open_shares", reason, "give shares between 0 and 1"));
        }
    }
    let shares: Vec<String> = suite.open_shares.iter().map(f64::to_string).collect();
    distinct("open_shares", shares.iter().map(String::as_str))?;
    declared::effect("margin_percent", suite.margin_percent)
}

fn scenarios(scenarios: &[Scenario]) -> Checked {
    some("scenarios", scenarios.len())?;
    distinct("scenarios", scenarios.iter().map(|scenario| scenario.name.as_str()))?;
    for scenario in scenarios {
        identifier("scenarios", &scenario.name)?;
        scenario_alone(scenario)?;
    }
    Ok(())
}

fn scenario_alone(scenario: &Scenario) -> Checked {
    let key = |what: &str| format!("scenarios.{}.{what}", scenario.name);
    options(&key("start"), &scenario.start, &OWN_OPTIONS)?;
    if let Some(profile) = &scenario.profile {
        match builtin(profile) {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                let remedy = "mend the profile";
                return Err(Mistake::new(key("profile"), error.to_string(), remedy));
            }
            None => {
                let reason = format!("there is no built-in profile {profile}");
                let remedy = format!("name one of {}", BUILTIN.map(|(name, _)| name).join(", "));
                return Err(Mistake::new(key("profile"), reason, remedy));
            }
        }
    }
    for (name, value) in &scenario.variables {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let is_right = !name.is_empty() && name.chars().all(is_name);
        if !is_right || !is_literal(value) {
            let reason = format!("`{name} = {value}` cannot be set and read back");
            let remedy = "give the name of a global variable and its value: a number, a word such as ON, or 'text' in quotes";
            return Err(Mistake::new(key("variables"), reason, remedy));
        }
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

/// Where a scenario has a profile its server is not started without Performance Schema: what an option says last counts.
fn is_on(suite: &Suite) -> Checked {
    let sets = |option: &&String, value| ServerOption::of(option).sets("performance_schema", value);
    for scenario in suite.scenarios.iter().filter(|one| one.needs_performance_schema()) {
        let mut options = suite.options.iter().chain(&scenario.start);
        let last = options.rfind(|it| sets(it, "ON") || sets(it, "OFF"));
        if last.is_some_and(|last| sets(&last, "OFF")) {
            let reason = "its server is started without Performance Schema, and there is nothing to set then";
            let remedy = "leave out the one or the other";
            return Err(Mistake::new(
                format!("scenarios.{}.profile", scenario.name),
                reason,
                remedy,
            ));
        }
    }
    Ok(())
}

fn check_order(order: &Order, baseline: &str, scenarios: &[&str]) -> Checked {
    identifier("orders", &order.name)?;
    let key = |what: &str| format!("orders.{}.{what}", order.name);
    some(&key("scenarios"), order.scenarios.len())?;
    let lacks = |name: &str| !order.scenarios.iter().any(|own| own == name);
    if order.against == [baseline] && lacks(baseline) {
        let reason = format!("the baseline {baseline} is not among them");
        let remedy = "add it, or say with against what the others are compared with";
        return Err(Mistake::new(key("scenarios"), reason, remedy));
    }
    distinct(&key("scenarios"), order.scenarios.iter().map(String::as_str))?;
    distinct(&key("against"), order.against.iter().map(String::as_str))?;
    for name in &order.scenarios {
        known(&key("scenarios"), name, scenarios)?;
    }
    let own: Vec<&str> = order.scenarios.iter().map(String::as_str).collect();
    for name in &order.against {
        known(&key("against"), name, &own)?;
    }
    Ok(())
}

/// One after another, a server has all cells before the next one comes.
fn sequence(order: &Order, servers: Servers) -> Checked {
    let are_beside = servers == Servers::SideBySide && !order.restart;
    if are_beside || order.sequence == Sequence::Random {
        return Ok(());
    }
    let key = format!("orders.{}.sequence", order.name);
    let reason = "servers that come one after another come in a random order";
    let remedy = "write random, or have the servers side_by_side without a restart";
    Err(Mistake::new(key, reason, remedy))
}

fn data(data: &Data) -> Checked {
    if !(1..=TABLES_MAX).contains(&data.tables) {
        let reason = format!("{} tables cannot be made", data.tables);
        return Err(Mistake::new("data.tables", reason, format!("give 1 to {TABLES_MAX}")));
    }
    for (key, least, sizes) in [
        ("data.rows", 1, data.rows),
        ("data.buffer_pool_mib", POOL_MIN, data.buffer_pool_mib),
        ("data.redo_log_mib", REDO_MIN, data.redo_log_mib),
    ] {
        for scale in Scale::ALL {
            if sizes.of(scale) < least {
                let key = format!("{key}.{}", scale.name());
                let reason = format!("{} is too little", sizes.of(scale));
                return Err(Mistake::new(key, reason, format!("give {least} or more")));
            }
        }
    }
    Ok(())
}

/// The cells of the source are cells of the suite.
fn cells(suite: &Suite) -> Checked {
    for published in &suite.published {
        let key = format!("published, {}", published.table);
        let names: Vec<&str> = suite.workloads.iter().map(|one| one.name.as_str()).collect();
        known(&key, &published.workload, &names)?;
        if !suite.threads.contains(&published.threads) {
            let reason = format!("{} threads are none of the suite", published.threads);
            return Err(Mistake::new(key, reason, "name them under threads as well"));
        }
    }
    Ok(())
}

/// What the source says without figures is a change of a scenario of the suite.
fn ranges(suite: &Suite) -> Checked {
    let workloads: Vec<&str> = suite.workloads.iter().map(|one| one.name.as_str()).collect();
    let scenarios: Vec<&str> = suite.scenarios.iter().map(|one| one.name.as_str()).collect();
    for range in &suite.published_ranges {
        let key = format!("published_ranges, {}", range.scenario);
        known(&key, &range.workload, &workloads)?;
        known(&key, &range.scenario, &scenarios)?;
        let (low, high) = (range.low_percent, range.high_percent);
        if range.scenario == suite.baseline {
            let reason = "it is the baseline, against which changes are";
            return Err(Mistake::new(key, reason, "name another scenario"));
        }
        if range.figure == Figure::Memory {
            let reason = "memory is printed as an amount, not as a change";
            return Err(Mistake::new(key, reason, "name qps, tps, latency or cpu"));
        }
        if !(-100.0..=high).contains(&low) || !high.is_finite() {
            let reason = format!("{low} to {high} % is no range of a change");
            return Err(Mistake::new(key, reason, "give the lower end, from -100, and the upper"));
        }
        if range.says.trim().is_empty() {
            return Err(Mistake::new(key, "says is empty", "say it in a sentence"));
        }
    }
    Ok(())
}

fn some(key: &str, count: usize) -> Checked {
    match count {
        0 => Err(Mistake::new(key, "it is empty", "give one at least")),
        _ => Ok(()),
    }
}

fn known(key: &str, name: &str, names: &[&str]) -> Checked {
    if names.contains(&name) {
        return Ok(());
    }
    let reason = format!("there is no {name}");
    Err(Mistake::new(key, reason, format!("name one of {}", names.join(", "))))
}

fn distinct<'a>(key: &str, names: impl Iterator<Item = &'a str>) -> Checked {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            let reason = format!("{name} is there twice");
            return Err(Mistake::new(key, reason, "keep one of them"));
        }
    }
    Ok(())
}

/// A name that can be part of the name of a file.
fn identifier(key: &str, name: &str) -> Checked {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.is_empty() && name.chars().all(is_part) {
        return Ok(());
    }
    let reason = format!("`{name}` is no name");
    Err(Mistake::new(key, reason, "use letters, digits, - and _"))
}

/// Options as on a command line, none of which is the lab's own.
fn options(key: &str, options: &[String], own: &[&str]) -> Checked {
    for option in options {
        let name = ServerOption::of(option).name.replace('_', "-");
        if !option.starts_with("--") || name.is_empty() || option.chars().any(char::is_control) {
            let reason = format!("`{option}` is no option");
            return Err(Mistake::new(key, reason, "write it as --name=value"));
        }
        let is_own = |own: &&str| name == *own || own.ends_with('-') && name.starts_with(*own);
        if own.iter().any(is_own) {
            let reason = format!("--{name} is set by the lab itself");
            return Err(Mistake::new(key, reason, "take it out"));
        }
    }
    Ok(())
}
