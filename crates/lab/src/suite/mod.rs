//! What is compared, under which load, and what its source published.
//!
//! A suite is a TOML file. Those that come with waggle are in `suites/`; a user's own is named by its
//! path. Reading one checks that it can be run and that what it quotes does not contradict itself:
//! see `agree`.

mod agree;
mod check;
mod data;
mod error;
mod expect;
#[cfg(test)]
mod file_tests;
mod only;
mod parse;
mod published;
mod scenario;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use waggle_instrumentation::profile::{BUILTIN, Base, Profile};
use waggle_model::Flavour;

use crate::metric::Metric;
use crate::server_option::ServerOption;
use crate::window::{Cell, Load, Window};

use parse::Contradiction;
use tables::Table;

pub use data::{ByScale, Data, Scale};
pub use error::{Mistake, SuiteError};
pub use expect::{Expect, Must, Under, counter_disproof};
pub use published::{Figure, Published, PublishedRange};
pub use scenario::Scenario;
pub(crate) use scenario::{DEFAULT, default_profile};

/// Whether a commit is on the disk when it is told.
const DURABLE: &str = "innodb_flush_log_at_trx_commit";
/// From this size on a buffer pool has several instances by default, MiB.
const POOL_OF_SEVERAL: u32 = 1024;

/// A published experiment, or one of the user's own.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Its name: that of its file.
    #[serde(skip)]
    pub name: String,
    /// What it asks, in a line.
    pub title: String,
    /// Where its figures come from.
    pub source: Source,
    /// The scenario that the others are compared with.
    pub baseline: String,
    /// What the source printed.
    pub metric: SourceMetric,
    /// The loads.
    pub workloads: Vec<Workload>,
    /// Numbers of sessions of the closed loads.
    pub threads: Vec<u32>,
    /// Shares of the processors that are in use with the baseline under the open loads, 0 to 1.
    pub open_shares: Vec<f64>,
    /// Number of sessions of the open loads.
    pub open_threads: u32,
    /// Name of the order of the open loads; the last one where nothing is said.
    pub open_order: Option<String>,
    /// What is compared.
    pub scenarios: Vec<Scenario>,
    /// In which orders, and what is read from each.
    #[serde(default)]
    pub orders: Vec<Order>,
    /// How the servers of a block run.
    pub servers: Servers,
    /// Whether scenarios differ in how they start the server, also those that a run leaves out.
    #[serde(skip)]
    pub starts_differ: bool,
    /// What every server is told at its start, as on its command line.
    #[serde(default)]
    pub options: Vec<String>,
    /// The data.
    pub data: Data,
    /// Instruments that every workload feeds with events, on every server where they are on.
    #[serde(default)]
    pub feeds: Vec<String>,
    /// Counters of InnoDB (`NAME` in `INNODB_METRICS`) that every workload moves where they are on.
    #[serde(default)]
    pub counters: Vec<String>,
    /// Smaller effects are of no interest, %.
    pub margin_percent: f64,
    /// The effects that a run shall be able to show, by metric, %; the processor time per statement is
    /// always among them.
    #[serde(skip)]
    pub detectable_percent: BTreeMap<Metric, f64>,
    /// What the source printed, cell by cell.
    #[serde(skip)]
    pub published: Vec<Published>,
    /// What it says without figures.
    #[serde(default)]
    pub published_ranges: Vec<PublishedRange>,
    /// The effects as the file has them, by the keys of metrics.
    #[serde(default, rename = "detectable_percent")]
    declared: BTreeMap<String, f64>,
    /// The scenarios that the columns of the tables are of.
    #[serde(default)]
    columns: Vec<String>,
    /// The tables of the source until they are read.
    #[serde(default, rename = "published")]
    tables: Vec<Table>,
    /// Cells that contradict something else in the source, until the tables are read.
    #[serde(default)]
    contradictions: Vec<Contradiction>,
}

/// Where the figures of a suite come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Who published what, and when where that is known.
    pub what: String,
    /// The server and its hardware.
    pub server: String,
    /// The load.
    pub load: String,
    /// What a reader of its figures has to know.
    pub caveats: Vec<String>,
}

/// The throughput that a source printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceMetric {
    /// Statements per second.
    Qps,
    /// Transactions per second.
    Tps,
}

/// A load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// A script that comes with sysbench, without its extension.
    pub script: String,
    /// What the script is told beside sessions, tables and rows.
    #[serde(default)]
    pub arguments: Vec<String>,
}

/// An order in which scenarios are measured, and what is read from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Its name.
    pub name: String,
    /// What it answers, in a line.
    pub title: String,
    /// Whether a block has the scenarios as listed.
    pub sequence: Sequence,
    /// Whether every scenario has a restart, also where servers are side by side: a server that runs
    /// gives no memory back, so that only one that was just started tells what a scenario takes.
    #[serde(default)]
    pub restart: bool,
    /// The scenarios.
    pub scenarios: Vec<String>,
    /// Those of them that each is compared with; the baseline where nothing is said.
    #[serde(default)]
    pub against: Vec<String>,
}

/// How the scenarios of a block follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sequence {
    /// As listed, in every block.
    AsListed,
    /// In a random order, another one in each block.
    Random,
}

/// How the servers of a block run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Servers {
    /// Those that differ in their start run at the same time, and only one of them is at work.
    SideBySide,
    /// One after another: every arm has a restart.
    OneAfterAnother,
}

impl Suite {
    /// Name and text of every built-in suite, in the order in which they are listed.
    pub fn builtin() -> [(&'static str, &'static str); 3] {
        [
            ("rds", include_str!("../../../../suites/rds.toml")),
            ("line", include_str!("../../../../suites/line.toml")),
            ("modb", include_str!("../../../../suites/modb.toml")),
        ]
    }

    /// A built-in suite by its name, or one from a file by its path.
    ///
    /// # Errors
    /// There is none of that name, or the file is no suite.
    pub fn find(name: &str) -> Result<Suite, SuiteError> {
        Suite::parse(name, &Suite::text(name)?)
    }

    /// The text of a built-in suite, or that of a file.
    ///
    /// # Errors
    /// There is none of that name, or the file cannot be read.
    pub fn text(name: &str) -> Result<String, SuiteError> {
        if let Some((_, text)) = Suite::builtin().iter().find(|(known, _)| *known == name) {
            return Ok((*text).to_owned());
        }
        if !name.contains('/') && !name.ends_with(".toml") {
            return Err(SuiteError::Unknown { name: name.to_owned() });
        }
        let failed = |error| SuiteError::File { name: name.to_owned(), error };
        std::fs::read_to_string(name).map_err(failed)
    }

    /// Reads a suite from TOML. `name` is its name or its path.
    ///
    /// # Errors
    /// It is no TOML, or no suite, or it contradicts itself.
    pub fn parse(name: &str, text: &str) -> Result<Suite, SuiteError> {
        parse::parse(name, text)
    }

    /// The effect on a metric that a run shall be able to show, %; `None` where nothing is declared of
    /// the metric.
    pub fn declared_percent(&self, metric: Metric) -> Option<f64> {
        self.detectable_percent.get(&metric).copied()
    }

    /// What a run measures at most: every workload with every number of sessions as fast as it goes, in
    /// every order, then every workload at every fixed rate, in the order for that.
    pub fn cells(&self) -> Vec<Cell> {
        let orders: Vec<Option<String>> = match self.orders.as_slice() {
            [] | [_] => vec![None],
            several => several.iter().map(|order| Some(order.name.clone())).collect(),
        };
        let mut cells = Vec::new();
        let mut add = |workload: &Workload, threads, load, order: &Option<String>| {
            let (workload, order) = (workload.name.clone(), order.clone());
            cells.push(Cell { workload, threads, load, order });
        };
        for workload in &self.workloads {
            for order in &orders {
                self.threads
                    .iter()
                    .for_each(|threads| add(workload, *threads, Load::Closed, order));
            }
        }
        let is_named = |order: &&Option<String>| order.is_some() && **order == self.open_order;
        let open = orders.iter().find(is_named).or(orders.last()).cloned().flatten();
        for workload in &self.workloads {
            for share in &self.open_shares {
                add(workload, self.open_threads, Load::Open { share: *share }, &open);
            }
        }
        cells
    }

    /// The order in which scenarios follow each other in a cell; `None` where all of them do, at random.
    pub fn order(&self, cell: &Cell) -> Option<&Order> {
        match &cell.order {
            Some(name) => self.orders.iter().find(|order| order.name == *name),
            None => self.orders.first(),
        }
    }

    /// The baseline, then the other scenarios that orders compare with, each once.
    pub fn compared_with(&self) -> Vec<&str> {
        let mut all = vec![self.baseline.as_str()];
        for other in self.orders.iter().flat_map(|order| &order.against) {
            if !all.contains(&other.as_str()) {
                all.push(other);
            }
        }
        all
    }

    /// Whether an arm is measured in a cell.
    pub fn has(&self, cell: &Cell, arm: &str) -> bool {
        let has = |order: &Order| order.scenarios.iter().any(|scenario| scenario == arm);
        match arm {
            Window::AGAIN => self.has(cell, &self.baseline),
            Window::ALONE => self.keeps_servers(cell),
            _ => self.order(cell).is_none_or(has),
        }
    }

    /// The profiles that the scenarios apply, each once, by their names; that of the default stands before the first that
    /// begins with it.
    pub(crate) fn profiles(&self) -> Vec<(&str, Profile)> {
        let mut profiles: Vec<(&str, Profile)> = Vec::new();
        let mut add = |name, profile: Option<Profile>| {
            if !profiles.iter().any(|(known, _)| *known == name) {
                profiles.extend(profile.map(|profile| (name, profile)));
            }
        };
        for scenario in &self.scenarios {
            let (Some(name), Some(profile)) = (&scenario.profile, scenario.profile()) else {
                continue;
            };
            if profile.base == Base::Default {
                add(DEFAULT, default_profile());
            }
            add(name, Some(profile));
        }
        profiles
    }

    /// The texts of these, by their names.
    pub fn profile_texts(&self) -> BTreeMap<String, String> {
        let used = self.profiles();
        let is_used = |name: &str| used.iter().any(|(used, _)| *used == name);
        let texts = BUILTIN.iter().filter(|(name, _)| is_used(name));
        texts.map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    /// The workload that ages the tables.
    pub fn ages_with(&self) -> Option<&Workload> {
        let name = self.data.age_with.as_ref()?;
        self.workloads.iter().find(|workload| workload.name == *name)
    }

    /// Whether the servers of a cell are side by side, and stay until the end of a block. Else every arm
    /// has a restart.
    pub fn keeps_servers(&self, cell: &Cell) -> bool {
        self.servers == Servers::SideBySide && !self.order(cell).is_some_and(|order| order.restart)
    }

    /// Whether the scenarios of a cell follow each other as listed.
    pub fn is_as_listed(&self, cell: &Cell) -> bool {
        self.order(cell).is_some_and(|order| order.sequence == Sequence::AsListed)
    }

    /// The scenario that has a second arm alone on a server ([`Window::ALONE`]): the first that shares
    /// one, and not with the baseline, and that every order has whose servers stay. `None` where there
    /// is none: then all arms have servers of one kind, or the second arm of the baseline tells.
    pub fn also_alone(&self) -> Option<&Scenario> {
        let baseline = self.scenarios.iter().find(|one| one.name == self.baseline)?;
        let is_shared = |one: &&Scenario| {
            let alike = self.scenarios.iter().filter(|other| other.start == one.start).count();
            one.start != baseline.start && alike > 1
        };
        let is_everywhere = |one: &&Scenario| {
            let mut orders = self.orders.iter().filter(|order| !order.restart);
            orders.all(|order| order.scenarios.contains(&one.name))
        };
        let are_beside = self.servers == Servers::SideBySide;
        let mut found = self.scenarios.iter().filter(is_shared).filter(is_everywhere);
        found.next().filter(|_| are_beside)
    }

    /// The name of the scenario that an arm sets.
    pub(crate) fn set_by<'a>(&'a self, arm: &'a str) -> &'a str {
        match arm {
            Window::AGAIN => &self.baseline,
            Window::ALONE => self.also_alone().map_or(arm, |one| &one.name),
            scenario => scenario,
        }
    }

    /// The arms that set what a scenario does: the one of its name and, where it is [`Suite::also_alone`],
    /// [`Window::ALONE`].
    pub fn arms_of<'a>(&self, scenario: &'a Scenario) -> impl Iterator<Item = &'a str> + use<'a> {
        let is_also_alone = self.also_alone().is_some_and(|one| one.name == scenario.name);
        std::iter::once(scenario.name.as_str()).chain(is_also_alone.then_some(Window::ALONE))
    }

    /// The different ways in which a server is started, in the order of the scenarios.
    pub fn starts(&self) -> Vec<&[String]> {
        let mut starts: Vec<&[String]> = Vec::new();
        for scenario in &self.scenarios {
            if !starts.contains(&scenario.start.as_slice()) {
                starts.push(&scenario.start);
            }
        }
        starts
    }

    /// Whether a scenario is set on a server that others share, while their sessions are there.
    pub(crate) fn shares_server(&self, scenario: &Scenario) -> bool {
        self.shares_server_in(&self.cells(), scenario)
    }

    fn shares_server_in(&self, cells: &[Cell], scenario: &Scenario) -> bool {
        let is_like = |other: &&Scenario| other.start == scenario.start;
        let is_kept = |cell: &Cell| self.keeps_servers(cell) && self.has(cell, &scenario.name);
        self.scenarios.iter().filter(is_like).count() > 1 && cells.iter().any(is_kept)
    }

    /// The scenarios of two suites that share a server in one of them only, in these cells.
    pub fn served_otherwise<'a>(&'a self, other: &Suite, cells: &[Cell]) -> Vec<&'a str> {
        let is_otherwise = |one: &&Scenario| {
            let there = other.scenarios.iter().find(|it| it.name == one.name);
            there.is_some_and(|it| {
                other.shares_server_in(cells, it) != self.shares_server_in(cells, one)
            })
        };
        self.scenarios.iter().filter(is_otherwise).map(|one| one.name.as_str()).collect()
    }

    /// What every server of a family is told at its start, with what depends on the scale.
    pub fn settings(&self, scale: Scale, family: Flavour) -> Vec<String> {
        let pool = self.data.buffer_pool_mib.of(scale);
        let redo = self.data.redo_log_mib.of(scale);
        // As servers have it by default until MySQL 8.4, where it began to depend on the processors, and a pool is rounded up
        // to a multiple of it (MySQL 8.4 manual, innodb_buffer_pool_instances). MariaDB has one.
        let instances = if pool < POOL_OF_SEVERAL { 1 } else { 8 };
        let mut settings = vec![format!("--loose-innodb-buffer-pool-instances={instances}")];
        // Private servers that serve for something else need not be durable; what servers have by default is measured here.
        let is_said = |option: &String| ServerOption::of(option).name == DURABLE;
        if !self.options.iter().any(is_said) {
            settings.push(format!("--{DURABLE}=1"));
        }
        settings.extend(self.options.iter().cloned());
        settings.push(format!("--innodb-buffer-pool-size={pool}M"));
        // The log of MariaDB is one file (since 10.5), that of MySQL before 8.0.30 has two.
        let files = if family == Flavour::Mariadb { 1 } else { 2 };
        settings.push(format!("--loose-innodb-redo-log-capacity={redo}M"));
        settings.push(format!("--loose-innodb-log-file-size={}M", redo / files));
        settings
    }

    /// What the source printed of a scenario in a cell. No source has an open load.
    pub fn published(&self, cell: &Cell, scenario: &str) -> Option<&Published> {
        self.published.iter().find(|published| {
            !cell.load.is_open()
                && published.workload == cell.workload
                && published.threads == cell.threads
                && published.scenario == scenario
        })
    }
}
