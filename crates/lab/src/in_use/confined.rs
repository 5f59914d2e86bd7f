//! What of a suite is run on a server in use.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{SCHEMA, Survey};
use crate::error::LabError;
use crate::suite::{Figure, Must, Scenario, Servers, Suite, Workload};
use crate::window::Cell;

/// The workload where others make the load.
const OTHERS: &str = "load-of-others";
/// Why a cell is not run.
const FIXED_RATE: &str = "a fixed rate needs a private server";
const NO_ROOM: &str = "the server has no room for so many sessions";
const NO_BASELINE: &str = "its order lacks the baseline";
const RESTART: &str = "its order starts the server anew for every scenario";

/// What of a suite is run on a server in use, and on which one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confined {
    /// Which server, as it identifies itself.
    pub server: String,
    /// What the other scenarios are compared with.
    pub baseline: String,
    /// The scenarios that are not run, with the reason.
    pub not_run: BTreeMap<String, String>,
    /// Sessions of others, where the load is theirs; absent where it is ours.
    pub others: Option<u32>,
}

impl Confined {
    /// What can be run on a server as it is. The baseline is that of the suite or, where that cannot be
    /// run, the first scenario that can and that every order has.
    ///
    /// # Errors
    /// No scenario can be run.
    pub fn of(
        suite: &Suite,
        survey: &Survey,
        server: String,
        is_load_ours: bool,
    ) -> Result<Confined, LabError> {
        let why = |one: &Scenario| Some((one.name.clone(), survey.why_not(one)?.to_owned()));
        let not_run: BTreeMap<String, String> = suite.scenarios.iter().filter_map(why).collect();
        let names = suite.scenarios.iter().map(|one| &one.name);
        let can: Vec<&String> = names.filter(|name| !not_run.contains_key(*name)).collect();
        let is_in_all =
            |name: &&&String| suite.orders.iter().all(|order| order.scenarios.contains(**name));
        let chosen = can.iter().find(|name| ***name == suite.baseline);
        let chosen = chosen.or_else(|| can.iter().find(is_in_all)).or(can.first());
        let Some(baseline) = chosen.map(|name| (*name).clone()) else {
            return Err(LabError::Cannot(format!(
                "no scenario of suite {} can be measured on this server as it is: {}; run it on private \
                 servers with --server",
                suite.name,
                in_words(&not_run)
            )));
        };
        let others = (!is_load_ours).then(|| survey.sessions().saturating_sub(1).max(1));
        Ok(Confined { server, baseline, not_run, others })
    }

    /// Adapts a suite to such a server. The scenarios that are not run stay, so that the report can say why.
    pub fn confine(&self, suite: &mut Suite) {
        if suite.baseline != self.baseline {
            // What the source printed is a change against another scenario.
            for published in &mut suite.published {
                published.changes.clear();
                published.figures.remove(&Figure::Memory);
            }
            suite.published_ranges.clear();
        }
        suite.baseline.clone_from(&self.baseline);
        suite.servers = Servers::SideBySide;
        for order in &mut suite.orders {
            order.against.retain(|name| !self.not_run.contains_key(name));
            if order.against.is_empty() {
                order.against.push(self.baseline.clone());
            }
        }
        if let Some(sessions) = self.others {
            leave_load_to_others(suite, sessions);
        }
    }

    /// Takes out of a suite what is not run. What is left shares the one server.
    ///
    /// # Errors
    /// Nothing is left that can be compared.
    pub fn run_only(&self, suite: &mut Suite) -> Result<(), LabError> {
        let asked = suite.scenarios.len();
        suite.scenarios.retain(|one| !self.not_run.contains_key(&one.name));
        suite.scenarios.iter_mut().for_each(|one| one.start.clear());
        suite.starts_differ = false;
        if suite.scenarios.len() > 1 || suite.scenarios.len() == asked {
            return Ok(());
        }
        Err(LabError::Cannot(format!(
            "of suite {} only {} is left that can be measured on this server as it is, and nothing to \
             compare it with: {}; name other scenarios with --only, or run it on private servers with \
             --server",
            suite.name,
            self.baseline,
            in_words(&self.not_run)
        )))
    }

    /// Why a cell is not run; `None` where it is.
    pub fn why_not(&self, suite: &Suite, cell: &Cell, sessions_max: u32) -> Option<&'static str> {
        if cell.load.is_open() {
            return Some(FIXED_RATE);
        }
        if !suite.keeps_servers(cell) {
            return Some(RESTART);
        }
        if self.others.is_none() && cell.threads > sessions_max {
            return Some(NO_ROOM);
        }
        (!suite.has(cell, &self.baseline)).then_some(NO_BASELINE)
    }

    /// What a reader has to know. `baseline` is that of the suite; `is_here` says whether the process of
    /// the server is on this host.
    pub fn caveats(&self, baseline: &str, is_here: bool) -> Vec<String> {
        let mut caveats = vec![
            "The server was not started for this run and had other work: statements, throughput and \
             CPU time are those of all its sessions."
                .to_owned(),
        ];
        caveats.push(match self.others {
            None => format!(
                "Transactions and their times are those of sysbench in schema {SCHEMA}, beside what others \
                 wanted of the server; what it wrote is in the binary log, where there is one."
            ),
            Some(_) => "No load was made: what others wanted of the server differs from window to window. \
                        Transactions and their times were not measured."
                .to_owned(),
        });
        if baseline != self.baseline {
            caveats.push(format!(
                "The baseline of the suite, {baseline}, was not run: everything is compared with {}, the \
                 published figures too.",
                self.baseline
            ));
        }
        if !is_here {
            caveats.push(
                "The process of the server was not found on this host: its CPU time, memory and \
                 storage were not measured, and the host that is named is that of the load."
                    .to_owned(),
            );
        }
        caveats
    }
}

/// Scenarios, each with its reason.
fn in_words(not_run: &BTreeMap<String, String>) -> String {
    let one = |(name, why): (&String, &String)| format!("{name} {why}");
    not_run.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// One workload without published figures and without known events.
fn leave_load_to_others(suite: &mut Suite, sessions: u32) {
    let name = OTHERS.to_owned();
    suite.workloads = vec![Workload { script: name.clone(), name, arguments: Vec::new() }];
    suite.threads = vec![sessions];
    suite.open_shares.clear();
    suite.published.clear();
    suite.published_ranges.clear();
    suite.counters.clear();
    for scenario in &mut suite.scenarios {
        scenario.expects.retain(|expect| expect.must == Must::StandStill);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::arms;

    /// A server on which the baseline is this one, and these scenarios are not run.
    fn server(baseline: &str, not_run: &[&str], others: Option<u32>) -> Confined {
        let reason = |name: &&str| ((*name).to_owned(), "needs a restart".to_owned());
        Confined {
            server: "s".to_owned(),
            baseline: baseline.to_owned(),
            not_run: not_run.iter().map(reason).collect(),
            others,
        }
    }

    fn confined(suite: &Suite, not_run: &[&str], baseline: &str, others: Option<u32>) -> Suite {
        let mut suite = suite.clone();
        server(baseline, not_run, others).confine(&mut suite);
        suite
    }

    #[test]
    fn orders_that_want_a_new_server_for_every_scenario_are_not_run() {
        let modb = Suite::find("modb").unwrap();
        let confined = server(&modb.baseline, &[], None);
        let mut suite = modb.clone();
        confined.confine(&mut suite);
        let (mut run, mut restarting) = (0, 0);
        for cell in suite.cells().iter().filter(|cell| !cell.load.is_open()) {
            let wants_new = modb.order(cell).is_some_and(|order| order.restart);
            assert_eq!(
                confined.why_not(&suite, cell, 1000),
                wants_new.then_some(RESTART),
                "{cell:?}"
            );
            *if wants_new { &mut restarting } else { &mut run } += 1;
        }
        assert!(run > 0 && restarting > 0);
    }

    #[test]
    fn another_baseline_is_compared_with_figures_and_not_with_printed_changes() {
        let rds = Suite::find("rds").unwrap();
        let suite = confined(&rds, &["pfsoff"], "pfson_conoff_insoff", None);
        assert_eq!(suite.scenarios.len(), rds.scenarios.len());
        let mut published = suite.published.iter();
        assert!(
            published.all(|one| one.changes.is_empty() && one.figures.contains_key(&Figure::Qps))
        );
        assert_eq!(suite.orders[0].against, ["pfson_conoff_insoff"]);
        let same = confined(&rds, &[], "pfsoff", None);
        assert_eq!(same.published, rds.published);
    }

    #[test]
    fn a_suite_with_restarts_in_every_arm_has_one_server_and_orders_compare_with_what_is_run() {
        let line = confined(&Suite::find("line").unwrap(), &[], "default", None);
        assert_eq!(line.servers, Servers::SideBySide);
        let modb = confined(&Suite::find("modb").unwrap(), &["off"], "basic", None);
        for order in &modb.orders {
            assert!(!order.against.contains(&"off".to_owned()), "{order:?}");
            assert!(!order.against.is_empty(), "{order:?}");
        }
    }

    #[test]
    fn of_a_load_of_others_nothing_is_known_but_what_has_to_stand_still() {
        let rds = Suite::find("rds").unwrap();
        let suite = confined(&rds, &["pfsoff"], "pfson_conoff_insoff", Some(7));
        let cells = suite.cells();
        assert_eq!((cells.len(), cells[0].threads), (1, 7));
        assert!(suite.published.is_empty());
        let expects = suite.scenarios.iter().flat_map(|one| &one.expects);
        assert!(expects.clone().count() > 0);
        assert!(expects.clone().all(|expect| expect.must == Must::StandStill));
        // Nor which counters of InnoDB it moves.
        let line = Suite::find("line").unwrap();
        assert!(!line.counters.is_empty());
        assert!(confined(&line, &[], "default", Some(7)).counters.is_empty());
    }

    #[test]
    fn a_scenario_alone_has_nothing_to_be_compared_with() {
        let rds = Suite::find("rds").unwrap();
        let off = |names: &[&str]| server("pfsoff", names, None);
        let on: Vec<&str> = rds.scenarios[1..].iter().map(|one| one.name.as_str()).collect();
        let said = off(&on).run_only(&mut rds.clone()).unwrap_err().to_string();
        assert!(said.contains("pfsoff") && said.contains("--server"), "{said}");
        let mut suite = rds.clone();
        off(&on[1..]).run_only(&mut suite).unwrap();
        assert_eq!(suite.scenarios.len(), 2);
        assert!(arms(&suite).iter().all(|arm| arm.server == 0), "{:?}", arms(&suite));
        // Nobody asked for more.
        suite.scenarios.truncate(1);
        off(&[]).run_only(&mut suite).unwrap();
    }
}
