//! Whether `docs/published_effects.md` says what the runs say that are kept.
#![allow(clippy::unwrap_used, reason = "clippy sees tests in #[test] functions only")]

mod kept_runs;
#[path = "kept_runs/page.rs"]
mod page;

use kept_runs::kept_runs;
use page::assert_written;
use waggle_lab::KeptRun;
use waggle_lab::report::effects_rules;

/// How to read the tables, a section for each run with a figure of what was published, and which runs have none. That of the
/// baseline alone has nothing to be put beside.
fn sections() -> Vec<String> {
    let (mut sections, mut without) =
        (vec![format!("## How to read the tables\n\n{}", effects_rules())], Vec::new());
    for path in kept_runs() {
        let (run, name) =
            (KeptRun::read(&path).unwrap(), path.file_name().unwrap().to_string_lossy());
        let section = run.report().effects_without_rules();
        let (heading, rest) = section.split_once('\n').unwrap();
        match run.suite.scenarios.len() > 1 && rest.contains("\n| ") {
            true => sections.push(format!("{heading}\n\nRun `bench/results/{name}`.\n{rest}")),
            false => without.push(format!("`{name}`")),
        }
    }
    if !without.is_empty() {
        let without = without.join(", ");
        sections.push(format!(
            "## Without published figures\n\nRuns of the baseline alone, or of loads that no source has: {without}.\n"
        ));
    }
    sections
}

#[test]
fn the_page_of_published_effects_is_what_the_runs_say_that_are_kept() {
    assert_written("docs/published_effects.md", "published_effects", &sections());
}
