//! What was asked of a run (`run.json`): enough to resume it and to report it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use waggle_instrumentation::profile::Profile;

use crate::error::LabError;
use crate::in_use::Confined;
use crate::lengths::Lengths;
use crate::run_info::{Host, NotRun, RunInfo, TakenUp};
use crate::schedule::Schedule;
use crate::suite::{Scale, Suite, SuiteError};
use crate::window::{Cell, Load};

/// What was asked of a run, and its circumstances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Name of the suite.
    pub suite: String,
    /// The text of the suite, so that a later waggle runs and reports what was asked.
    pub suite_text: String,
    /// The scenarios that are run.
    pub scenarios: Vec<String>,
    /// The text of each profile that they apply, by its name; empty in runs of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, String>,
    /// Its scale.
    pub scale: Scale,
    /// Lengths of windows.
    pub lengths: Lengths,
    /// The cells that are run.
    pub cells: Vec<Cell>,
    /// How often each arm is measured in each cell.
    pub blocks: u32,
    /// From which the order follows.
    pub seed: u64,
    /// How the server was named: `--server` or `--dsn`.
    pub server: String,
    /// What of the suite is run on a server in use; absent with private servers.
    #[serde(default, rename = "foreign", skip_serializing_if = "Option::is_none")]
    pub in_use: Option<Confined>,
    /// Settings of every server.
    pub settings: Vec<String>,
    /// Processors of the server, and of the load; empty where nothing is pinned.
    pub pinned: [Vec<usize>; 2],
    /// The circumstances.
    #[serde(rename = "facts")]
    pub info: RunInfo,
}

/// The beginning of the caveat of a run that ended early.
const OUT_OF_TIME: &str = "not run: budget: ";

impl Manifest {
    /// The suite as it was.
    ///
    /// # Errors
    /// This waggle does not understand it.
    pub fn suite(&self) -> Result<Suite, SuiteError> {
        let mut suite = Suite::parse(&self.suite, &self.suite_text)?;
        if let Some(confined) = &self.in_use {
            confined.confine(&mut suite);
        }
        suite.scenarios.retain(|scenario| self.scenarios.contains(&scenario.name));
        Ok(suite)
    }

    /// The same without the scenarios that are not run.
    ///
    /// # Errors
    /// As [`Manifest::suite`].
    pub fn suite_to_run(&self) -> Result<Suite, LabError> {
        let mut suite = self.suite()?;
        if let Some(confined) = &self.in_use {
            confined.run_only(&mut suite)?;
        }
        Ok(suite)
    }

    /// How many windows are missing, by the number of those that are there.
    pub fn missing(&self, windows: usize) -> usize {
        (self.info.run.windows_planned as usize).saturating_sub(windows)
    }

    /// Whether no window is missing.
    pub fn is_whole(&self, windows: usize) -> bool {
        self.missing(windows) == 0
    }

    /// A profile that sets something else in these texts than in those of the run.
    pub fn other_profile(&self, texts: &BTreeMap<String, String>) -> Option<&str> {
        let is_other = |(name, text): &(&String, &String)| {
            texts.get(*name).is_some_and(|other| !set_alike(text, other))
        };
        self.profiles.iter().find(is_other).map(|(name, _)| name.as_str())
    }

    /// Says in the report that a profile is told as it is now, which may not be what was set.
    pub(crate) fn say_changed_profile(&mut self, suite: &Suite) {
        let (now, by) = (suite.profile_texts(), &self.info.run.waggle_version);
        let caveat = match self.other_profile(&now) {
            Some(profile) => format!(
                "This waggle has profile {profile} otherwise than waggle {by} had, which made the windows: what each \
                 profile sets is told here as it is now. run.json has the text of each."
            ),
            None if self.profiles.is_empty() && !now.is_empty() => format!(
                "The texts of the profiles were not kept by waggle {by}, which made the windows: what each profile sets \
                 is told here as it is now."
            ),
            None => return,
        };
        self.info.caveats.push(caveat);
    }

    /// Leaves out cells whose share of the processors the baseline cannot use. That changes the schedule, so no window may
    /// have been measured before.
    pub fn leave_out(&mut self, suite: &Suite, beyond: &[Cell]) {
        self.cells.retain(|cell| !beyond.contains(cell));
        self.info.not_run.extend(beyond.iter().filter_map(too_much));
        let schedule = Schedule::new(suite, &self.cells, self.blocks, self.seed);
        self.info.run.windows_planned = schedule.slots.len() as u32;
    }

    /// Says in the report that nothing could be run. The cells stay, so that the run does not seem complete.
    pub fn say_out_of_reach(&mut self) {
        let caveat =
            "Nothing was measured: the baseline cannot use as much CPU as any rate asks for.";
        self.info.caveats.retain(|one| one != caveat);
        self.info.caveats.push(caveat.to_owned());
    }

    /// Says in the report that the time was over after some blocks.
    pub fn say_out_of_time(&mut self, blocks: u32) {
        self.info.caveats.push(format!(
            "{OUT_OF_TIME}the time was over when {blocks} of {} blocks were made; waggle lab resume makes \
             the others.",
            self.blocks
        ));
    }

    /// Notes that this computer and this version of waggle go on with the run, as part `part` of it.
    pub fn take_up(&mut self, part: u32, host: Host, waggle_version: &str) {
        self.info.run.resumed += 1;
        self.info.caveats.retain(|caveat| !caveat.starts_with(OUT_OF_TIME));
        // An earlier attempt at this part made no window: its computer measured nothing.
        self.info.taken_up.retain(|one| one.part < part);
        match part {
            0 => {
                self.info.host = host;
                self.info.run.waggle_version = waggle_version.to_owned();
            }
            _ => {
                let waggle_version = Some(waggle_version.to_owned());
                self.info.taken_up.push(TakenUp { part, host, waggle_version });
            }
        }
    }
}

/// Whether two texts of a profile set the same. Their words may differ.
fn set_alike(one: &str, other: &str) -> bool {
    let sets = |text| {
        let profile = Profile::parse("", text).ok()?;
        Some((profile.base, profile.instruments, profile.consumers, profile.metrics))
    };
    one == other || sets(one).is_some_and(|of_one| Some(of_one) == sets(other))
}

/// Why a cell is not run whose share of the processors the baseline cannot use; `None` in a closed load.
fn too_much(cell: &Cell) -> Option<NotRun> {
    let Load::Open { share } = cell.load else { return None };
    // Without what binary fractions add: 7 % and not 7.000000000000001 %.
    let percent = (share * 1e4).round() / 100.0;
    let why = format!("the baseline cannot use {percent} % of the CPUs");
    Some(NotRun { cell: cell.clone(), scenario: None, why })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A run by a version of waggle that stored one computer for all parts.
    fn kept() -> Value {
        let info = json!({
            "run": {
                "command": "waggle lab run rds", "waggle_version": "0.1.0",
                "begin": "2026-11-22T10:00:00Z", "end": null, "seed": 7, "scale": "tiny",
                "budget_s": null, "only": [], "blocks": 8, "windows_planned": 400, "window_s": 0.4,
                "settle_s": 0.3, "steal_limit": 0.05, "resumed": 1,
            },
            "host": {
                "name": "one", "system": null, "kernel": "6.1.0", "cpu_model": null,
                "processors": 2, "memory_bytes": 1024, "hypervisor": null, "pinned": null,
            },
            "server": {
                "version": "9.3.0", "program": null, "options": [], "is_foreign": false,
                "data_bytes": null, "buffer_pool_bytes": null,
            },
            "load": { "sysbench_version": "1.0.20", "tables": 10, "rows_per_table": 10_000 },
            "not_run": [],
            "caveats": [],
        });
        json!({
            "suite": "rds", "suite_text": "", "scenarios": [], "scale": Scale::Tiny,
            "lengths": Lengths::of(Scale::Tiny), "cells": [], "blocks": 8, "seed": 7,
            "server": "mysql-9", "settings": [], "pinned": [[], []], "facts": info,
        })
    }

    #[test]
    fn a_profile_is_another_one_where_it_sets_something_else_not_where_it_says_so_otherwise() {
        let text = |cost: &str, names: &str| {
            format!(
                "question = \"?\"\nexpected_cost = \"{cost}\"\nbase = \"off\"\n[[consumers]]\n\
                 names = [\"{names}\"]\nenabled = true\n"
            )
        };
        let mut manifest: Manifest = serde_json::from_value(kept()).unwrap();
        manifest.profiles.insert("everything".to_owned(), text("high", "%"));
        let now = |text: String| BTreeMap::from([("everything".to_owned(), text)]);
        assert_eq!(manifest.other_profile(&now(text("higher", "%"))), None);
        assert_eq!(manifest.other_profile(&now(text("high", "a%"))), Some("everything"));
        assert_eq!(manifest.other_profile(&BTreeMap::new()), None);
    }

    fn host(name: &str) -> Host {
        let host = kept()["facts"]["host"].clone();
        Host { name: name.to_owned(), ..serde_json::from_value(host).unwrap() }
    }

    #[test]
    fn a_run_that_an_earlier_waggle_wrote_is_read_and_tells_the_computers_from_then_on() {
        let mut manifest: Manifest = serde_json::from_value(kept()).unwrap();
        assert_eq!(serde_json::to_value(&manifest).unwrap(), kept(), "it is written as it was");
        manifest.take_up(2, host("two"), "0.1.0");
        manifest.take_up(3, host("three"), "0.2.0");
        let manifest: Manifest =
            serde_json::from_value(serde_json::to_value(&manifest).unwrap()).unwrap();
        let name = |part| manifest.info.host_of(part).map(|host| host.name.as_str());
        assert_eq!([0, 1, 2, 3].map(name), [Some("one"), None, Some("two"), Some("three")]);
        let waggle = |part| manifest.info.waggle_of(part);
        assert_eq!([0, 1, 3].map(waggle), [Some("0.1.0"), None, Some("0.2.0")]);
        assert_eq!(manifest.info.run.resumed, 3);
    }

    #[test]
    fn a_part_that_made_no_window_leaves_no_computer() {
        let mut manifest: Manifest = serde_json::from_value(kept()).unwrap();
        manifest.take_up(0, host("two"), "0.2.0");
        assert_eq!(manifest.info.waggle_of(0), Some("0.2.0"));
        assert_eq!((manifest.info.host.name.as_str(), manifest.info.taken_up.len()), ("two", 0));
        manifest.take_up(1, host("three"), "0.2.0");
        manifest.take_up(1, host("four"), "0.2.0");
        let waggle_version = Some("0.2.0".to_owned());
        assert_eq!(
            manifest.info.taken_up,
            [TakenUp { part: 1, host: host("four"), waggle_version }]
        );
    }
}
