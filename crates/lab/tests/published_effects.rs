//! Whether `docs/published_effects.md` says what the runs say that are kept, and their reports fit on a page.
#![cfg(test)]

mod kept_runs;
#[path = "kept_runs/page.rs"]
mod page;

use kept_runs::kept_runs;
use page::assert_written;
use waggle_lab::StoredRun;
use waggle_lab::report::effects_rules;

/// The answer, how to read the tables, and a section for each run with a figure of what was published.
fn sections() -> Vec<String> {
    let (mut answer, mut of_runs) = (String::new(), Vec::new());
    for path in kept_runs() {
        let (run, name) =
            (StoredRun::read(&path).unwrap(), path.file_name().unwrap().to_string_lossy());
        let has_figures =
            run.report().effects_in_a_sentence().filter(|_| run.suite.scenarios.len() > 1);
        let Some(said) = has_figures else { continue };
        let section = run.report().effects_without_rules();
        let (heading, rest) = section.split_once('\n').unwrap();
        answer += &format!("- {}: {said}\n", heading.trim_start_matches("## "));
        of_runs.push(format!("{heading}\n\nRun `bench/results/{name}`.\n{rest}"));
    }
    let rules = format!("## How to read the tables\n\n{}", effects_rules());
    let answer = format!("## Answer\n\n{answer}");
    [answer, rules].into_iter().chain(of_runs).collect()
}

#[test]
fn the_page_of_published_effects_is_what_the_runs_say_that_are_kept() {
    assert_written("docs/published_effects.md", "published_effects", &sections());
}

/// A character of a table has about 7 pixels on a page of 1,280, and 4.5 on one of A4: such a table fits on both.
const CHARACTERS_MAX: usize = 165;
const COLUMNS_MAX: usize = 7;

#[test]
fn no_table_of_a_kept_run_is_wider_than_the_page() {
    for path in kept_runs() {
        let run = StoredRun::read(&path).unwrap();
        let text = run.report().markdown() + &run.report().effects();
        let rows = text.lines().filter(|line| line.starts_with('|'));
        assert!(rows.clone().count() > 3, "{}", path.display());
        for row in rows {
            let (columns, characters) = (row.matches('|').count() - 1, row.chars().count());
            let is_narrow = columns <= COLUMNS_MAX && characters <= CHARACTERS_MAX;
            assert!(is_narrow, "{}, {characters} characters: {row}", path.display());
        }
    }
}
