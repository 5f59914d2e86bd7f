//! What is kept of a run.

mod json;
mod markdown;
mod verdict;

use anyhow::Result;
use waggle_bench_frame::Run;

use crate::agent::Agent;
use crate::coin::Priced;
use crate::foreign::Foreign;
use crate::settings::Settings;
use crate::subject::Refused;
use crate::windows::Tried;

/// All that was measured in one run.
pub(crate) struct Outcome {
    pub(crate) settings: Settings,
    pub(crate) server: String,
    pub(crate) build: String,
    pub(crate) refused: Vec<Refused>,
    pub(crate) prices: Vec<Priced>,
    pub(crate) tried: Vec<Tried>,
    pub(crate) foreign: Vec<Foreign>,
    /// `None` where it was not asked for.
    pub(crate) agent: Option<Agent>,
}

impl Outcome {
    /// Keeps the result.
    ///
    /// # Errors
    ///
    /// Where something cannot be written.
    pub(crate) fn keep(&self, run: &Run) -> Result<()> {
        let page = markdown::page(self, run);
        run.keep(json::settings(&self.settings), json::found(self), &page)
    }
}
