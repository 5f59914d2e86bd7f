//! What was asked of a run, as `run.json` keeps it: enough to resume it and to report it.

use serde::{Deserialize, Serialize};

use crate::budget::Lengths;
use crate::error::LabError;
use crate::foreign::Confined;
use crate::report::facts::{Facts, NotRun};
use crate::schedule::Schedule;
use crate::suite::{Scale, Suite, SuiteError};
use crate::window::{Cell, Load};

/// A run that was begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// Name of the suite.
    pub suite: String,
    /// The text of the suite, so that a later waggle runs and reports what was asked.
    pub suite_text: String,
    /// The scenarios that are run.
    pub scenarios: Vec<String>,
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
    /// What of the suite is run on a server that somebody else started; absent on private ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<Confined>,
    /// Settings of every server.
    pub settings: Vec<String>,
    /// Processors of the server, and of the load; empty where nothing is pinned.
    pub pinned: [Vec<usize>; 2],
    /// The circumstances.
    pub facts: Facts,
}

/// How that begins which the report says where the time was over too early.
const OUT_OF_TIME: &str = "not run: budget: ";

impl Begun {
    /// The suite as it was.
    ///
    /// # Errors
    /// This waggle does not understand it.
    pub fn suite(&self) -> Result<Suite, SuiteError> {
        let mut suite = Suite::parse(&self.suite, &self.suite_text)?;
        if let Some(confined) = &self.foreign {
            confined.confine(&mut suite);
        }
        suite.scenarios.retain(|scenario| self.scenarios.contains(&scenario.name));
        Ok(suite)
    }

    /// Leaves out cells whose share of the processors the baseline cannot use. The schedule is another
    /// one then, so no window may have been made before.
    pub fn leave_out(&mut self, suite: &Suite, beyond: &[Cell]) {
        self.cells.retain(|cell| !beyond.contains(cell));
        self.facts.not_run.extend(beyond.iter().filter_map(too_much));
        let schedule = Schedule::new(suite, &self.cells, self.blocks, self.seed);
        self.facts.run.windows_planned = schedule.slots.len() as u32;
    }

    /// Says in the report that the time was over when so many blocks were whole.
    pub fn say_out_of_time(&mut self, blocks: u32) {
        self.facts.caveats.push(format!(
            "{OUT_OF_TIME}the time was over when {blocks} of {} blocks were made; waggle lab resume makes \
             the others.",
            self.blocks
        ));
    }

    /// Goes on with the run: what was left out for want of time is made now.
    pub fn take_up(&mut self) {
        self.facts.run.resumed += 1;
        self.facts.caveats.retain(|caveat| !caveat.starts_with(OUT_OF_TIME));
    }

    /// The same without the scenarios that are not run.
    ///
    /// # Errors
    /// As [`Begun::suite`].
    pub fn suite_to_run(&self) -> Result<Suite, LabError> {
        let mut suite = self.suite()?;
        if let Some(confined) = &self.foreign {
            confined.run_only(&mut suite)?;
        }
        Ok(suite)
    }
}

/// Why a cell is not run whose share of the processors the baseline cannot use; `None` in a closed load.
fn too_much(cell: &Cell) -> Option<NotRun> {
    let Load::Open { share } = cell.load else { return None };
    // Without what binary fractions add: 7 % and not 7.000000000000001 %.
    let percent = (share * 1e4).round() / 100.0;
    let why = format!("the baseline cannot use {percent} % of the processors");
    Some(NotRun { cell: cell.clone(), scenario: None, why })
}
