//! Whether `docs/published_effects.md` says what the runs say that are kept.
#![allow(clippy::unwrap_used, reason = "clippy sees tests in #[test] functions only")]

mod kept_runs;
#[path = "kept_runs/page.rs"]
mod page;

use kept_runs::kept_runs;
use page::assert_written;
use waggle_lab::KeptRun;

/// A section for each run of a suite with published figures that has more than the baseline.
fn sections() -> Vec<String> {
    let runs = kept_runs();
    let runs = runs.iter().map(|run| KeptRun::read(run).unwrap());
    runs.filter(|run| !run.suite.published.is_empty() && run.suite.scenarios.len() > 1)
        .map(|run| run.report().effects())
        .collect()
}

#[test]
fn the_page_of_published_effects_is_what_the_runs_say_that_are_kept() {
    assert_written("docs/published_effects.md", "published_effects", &sections());
}
