//! From the text of a file to a suite.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use super::agree;
use super::check::{self, must};
use super::error::{Mistake, SuiteError};
use super::expect::Expect;
use super::published::{Entry, Figure, Published};
use super::tables::Sheet;
use super::{Order, Sequence, Suite};
use crate::metric::Metric;

/// The key of the effects that a run shall be able to show.
const DETECTABLE: &str = "detectable_percent";
/// The metric that a run is always judged by.
const JUDGED_BY: Metric = Metric::CpuPerStatement;

/// Cells that contradict something else in the source, known to whoever wrote the file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Contradiction {
    workload: String,
    threads: u32,
    scenarios: Vec<String>,
    /// The throughput where nothing is said.
    figure: Option<Figure>,
    why: String,
}

pub(super) fn parse(name: &str, text: &str) -> Result<Suite, SuiteError> {
    let suite: Suite = toml::from_str(text).map_err(|error| SuiteError::Shape {
        name: name.to_owned(),
        reason: error.to_string().trim_end().to_owned(),
    })?;
    complete(name, text, suite)
        .map_err(|mistake| SuiteError::Wrong { name: name.to_owned(), mistake })
}

/// Adds what follows from the text of a suite, and checks it.
fn complete(name: &str, text: &str, mut suite: Suite) -> Result<Suite, Mistake> {
    check::columns(&suite)?;
    let sheet = Sheet { text, columns: &suite.columns, baseline: &suite.baseline };
    suite.published = published(sheet.entries(&suite.tables)?, &suite)?;
    suite.detectable_percent = detectable(&suite.declared)?;
    (suite.tables, suite.contradictions) = (Vec::new(), Vec::new());
    let file_name = Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or(name);
    // That of a file without its ending; a name that was kept stays.
    file_name.strip_suffix(".toml").unwrap_or(file_name).clone_into(&mut suite.name);
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

/// The effects that a suite declares detectable, from the keys of their metrics.
fn detectable(declared: &BTreeMap<String, f64>) -> Result<BTreeMap<Metric, f64>, Mistake> {
    let mut all = BTreeMap::new();
    for (key, percent) in declared {
        let Some(metric) = Metric::ALL.into_iter().find(|metric| metric.key() == key) else {
            let keys = Metric::ALL.map(Metric::key).join(", ");
            let reason = format!("there is no metric {key}");
            return Err(Mistake::new(DETECTABLE, reason, format!("name one of {keys}")));
        };
        check::effect(&format!("{DETECTABLE}.{key}"), *percent)?;
        all.insert(metric, *percent);
    }
    let reason = format!("{} is missing, on which verdicts are", JUDGED_BY.key());
    let remedy = "give the effect on it that a run shall be able to show, %";
    must(all.contains_key(&JUDGED_BY), DETECTABLE, reason, remedy)?;
    Ok(all)
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
fn published(entries: Vec<Entry>, file: &Suite) -> Result<Vec<Published>, Mistake> {
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
        published.push(entry.clone().published(marked));
    }
    Ok(published)
}

/// What contradictions say of a cell.
fn marks(entry: &Entry, file: &Suite) -> BTreeMap<Figure, String> {
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
        must(!mark.why.trim().is_empty(), &key, "why is empty", "say what contradicts what")?;
        let has_some = !mark.scenarios.is_empty();
        must(has_some, &key, "scenarios is empty", "name the scenarios of the cells")?;
        if let Some(name) = mark.scenarios.iter().find(|name| !is_there(name)) {
            let reason = format!("no table has a cell of {name}");
            return Err(Mistake::new(key, reason, "name a cell of [[published]]"));
        }
    }
    let mut known = BTreeSet::new();
    for entry in entries {
        let is_new = known.insert((&entry.table, &entry.workload, entry.threads, &entry.scenario));
        let remedy = "keep one, or give the other table a name of its own";
        must(is_new, entry.key(), "it is there twice", remedy)?;
    }
    Ok(())
}
