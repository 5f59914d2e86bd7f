//! From the text of a file to a suite.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use super::agree;
use super::check;
use super::declared;
use super::error::{Mistake, SuiteError};
use super::expect::Expect;
use super::published::{Entry, Figure, Published, PublishedRange};
use super::tables::{Sheet, Table};
use super::{Data, Order, Scenario, Sequence, Servers, Source, SourceMetric, Suite, Workload};

/// A suite as its file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    source: Source,
    baseline: String,
    metric: SourceMetric,
    workloads: Vec<Workload>,
    threads: Vec<u32>,
    open_shares: Vec<f64>,
    open_threads: u32,
    open_order: Option<String>,
    scenarios: Vec<Scenario>,
    #[serde(default)]
    orders: Vec<Order>,
    servers: Servers,
    #[serde(default)]
    options: Vec<String>,
    data: Data,
    #[serde(default)]
    feeds: Vec<String>,
    #[serde(default)]
    counters: Vec<String>,
    margin_percent: f64,
    /// By the keys of metrics.
    #[serde(default)]
    detectable_percent: BTreeMap<String, f64>,
    /// Columns of the tables: scenarios.
    #[serde(default)]
    columns: Vec<String>,
    #[serde(default)]
    published: Vec<Table>,
    #[serde(default)]
    contradictions: Vec<Contradiction>,
    #[serde(default)]
    published_ranges: Vec<PublishedRange>,
}

/// Cells that contradict something else in the source, known to whoever wrote the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contradiction {
    workload: String,
    threads: u32,
    scenarios: Vec<String>,
    /// The throughput where nothing is said.
    figure: Option<Figure>,
    why: String,
}

pub(super) fn parse(name: &str, text: &str) -> Result<Suite, SuiteError> {
    let file: File = toml::from_str(text).map_err(|error| SuiteError::Shape {
        name: name.to_owned(),
        reason: error.to_string().trim_end().to_owned(),
    })?;
    suite(name, text, file).map_err(|mistake| SuiteError::Wrong { name: name.to_owned(), mistake })
}

fn suite(name: &str, text: &str, file: File) -> Result<Suite, Mistake> {
    let are_used = !file.published.is_empty();
    check::columns(&file.columns, &file.baseline, &file.scenarios, are_used)?;
    let sheet = Sheet { text, columns: &file.columns, baseline: &file.baseline };
    let entries = sheet.entries(&file.published)?;
    let published = published(entries, &file)?;
    let detectable_percent = declared::detectable(&file.detectable_percent)?;
    let file_name = Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or(name);
    let mut suite = Suite {
        // That of a file without its ending; a name that was kept stays.
        name: file_name.strip_suffix(".toml").unwrap_or(file_name).to_owned(),
        title: file.title,
        source: file.source,
        baseline: file.baseline,
        metric: file.metric,
        workloads: file.workloads,
        threads: file.threads,
        open_shares: file.open_shares,
        open_threads: file.open_threads,
        open_order: file.open_order,
        scenarios: file.scenarios,
        orders: file.orders,
        servers: file.servers,
        starts_differ: false,
        options: file.options,
        data: file.data,
        feeds: file.feeds,
        counters: file.counters,
        margin_percent: file.margin_percent,
        detectable_percent,
        published,
        published_ranges: file.published_ranges,
    };
    suite.starts_differ = suite.starts().len() > 1;
    complete_orders(&mut suite);
    check::check(&suite)?;
    let Suite { scenarios, feeds, .. } = &mut suite;
    for scenario in scenarios {
        let profile = scenario.profile();
        scenario.expects = profile.map_or(Vec::new(), |profile| Expect::of(&profile, feeds));
    }
    Ok(suite)
}

/// What is not said of orders: one of all scenarios, each compared with the baseline, and with the first of those
/// that share a server, where some do: what differs between two servers takes no part in that.
fn complete_orders(suite: &mut Suite) {
    if suite.orders.is_empty() {
        let shared = suite.also_alone().map(|scenario| scenario.name.clone());
        suite.orders.push(Order {
            name: "random".to_owned(),
            title: "every scenario, in a random order in each block".to_owned(),
            sequence: Sequence::Random,
            restart: false,
            scenarios: suite.scenarios.iter().map(|scenario| scenario.name.clone()).collect(),
            against: std::iter::once(suite.baseline.clone()).chain(shared).collect(),
        });
    }
    for order in &mut suite.orders {
        if order.against.is_empty() {
            order.against.push(suite.baseline.clone());
        }
    }
}

/// The cells of the source, each with what is wrong with it. What contradicts itself without a word
/// is a mistake, and so is a word about what agrees.
fn published(entries: Vec<Entry>, file: &File) -> Result<Vec<Published>, Mistake> {
    check_marks(&entries, &file.contradictions)?;
    let mut published = Vec::new();
    for entry in &entries {
        let marked = marks(entry, file);
        let found = agree::contradictions(entry, &entries, &file.baseline);
        for (figure, why) in &found {
            if !marked.contains_key(figure) {
                let remedy = "mend the number, or name the cell under [[contradictions]]";
                return Err(Mistake::new(entry.key(), why, remedy));
            }
        }
        if let Some(figure) = marked.keys().find(|figure| !found.contains_key(*figure)) {
            let reason = format!("{figure:?} agrees with all else, and contradictions names it");
            return Err(Mistake::new(entry.key(), reason, "take it out of [[contradictions]]"));
        }
        published.push(entry.clone().published(file.metric, &marked));
    }
    Ok(published)
}

/// What contradictions say of a cell.
fn marks(entry: &Entry, file: &File) -> BTreeMap<Figure, String> {
    let of_entry = |mark: &&Contradiction| {
        mark.scenarios.iter().any(|name| entry.is_of(&mark.workload, mark.threads, name))
    };
    let figure = |mark: &Contradiction| mark.figure.unwrap_or(file.metric.figure());
    let marks = file.contradictions.iter().filter(of_entry);
    marks.map(|mark| (figure(mark), mark.why.clone())).collect()
}

/// That every contradiction is one of a cell that is there, and that no row is there twice.
fn check_marks(entries: &[Entry], contradictions: &[Contradiction]) -> Result<(), Mistake> {
    for mark in contradictions {
        let is_there = |name: &String| {
            entries.iter().any(|entry| entry.is_of(&mark.workload, mark.threads, name))
        };
        let key = format!("contradictions: {}, {} threads", mark.workload, mark.threads);
        if mark.why.trim().is_empty() {
            return Err(Mistake::new(key, "why is empty", "say what contradicts what"));
        }
        if mark.scenarios.is_empty() {
            return Err(Mistake::new(key, "scenarios is empty", "name the scenarios of the cells"));
        }
        if let Some(name) = mark.scenarios.iter().find(|name| !is_there(name)) {
            let reason = format!("no table has a cell of {name}");
            return Err(Mistake::new(key, reason, "name a cell of [[published]]"));
        }
    }
    let mut known = BTreeSet::new();
    for entry in entries {
        if !known.insert((&entry.table, &entry.workload, entry.threads, &entry.scenario)) {
            let remedy = "keep one, or give the other table a name of its own";
            return Err(Mistake::new(entry.key(), "it is there twice", remedy));
        }
    }
    Ok(())
}
