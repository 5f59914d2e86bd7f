//! What is said before a run begins: how much is measured, how long it takes, and what it will be able to show.

use std::time::Duration;

use waggle_lab::Metric;
use waggle_lab::analysis::{Foreseen, NEIGHBOURS_DIFFER_BY_PERCENT, PAIRS_MIN};
use waggle_lab::budget::{Choice, TimeEstimate};
use waggle_lab::report::{cells_in_words, duration_in_words};
use waggle_lab::run::plural;
use waggle_lab::schedule::Schedule;
use waggle_lab::window::Cell;

use super::progress::note;

/// Says it on standard error.
pub(super) fn announce(estimate: &TimeEstimate<'_>, choice: &Choice, budget: Option<Duration>) {
    lines(estimate, choice, budget).into_iter().for_each(note);
}

fn lines(estimate: &TimeEstimate<'_>, choice: &Choice, budget: Option<Duration>) -> Vec<String> {
    let suite = estimate.suite;
    let schedule = Schedule::new(suite, &choice.cells, choice.blocks, 0);
    let mut lines = vec![format!(
        "{}: {}, {} in {}, {}: {} of {:.1} s, about {}",
        suite.title,
        plural(choice.cells.len(), "cell"),
        plural(suite.scenarios.len(), "scenario"),
        plural(schedule.arms.len(), "arm"),
        plural(choice.blocks as usize, "block"),
        plural(schedule.slots.len(), "window"),
        estimate.lengths.window.as_secs_f64(),
        duration_in_words((choice.seconds / 60.0).ceil() * 60.0)
    )];
    if let Some(budget) = budget.filter(|budget| choice.seconds > budget.as_secs_f64()) {
        lines.push(format!(
            "That is longer than the time budget of {}. The run ends after the block in which the time is over. A cell \
             with fewer than {PAIRS_MIN} blocks shows no effect. --only and a smaller --scale make the run shorter.",
            duration_in_words(budget.as_secs_f64())
        ));
    }
    let declared = suite.declared_percent(Metric::CpuPerStatement);
    lines.extend(shown(estimate.foreseen(&choice.cells, choice.blocks).as_ref(), declared));
    if !choice.left_out.is_empty() {
        let named = |what: &str, cells: &[Cell]| -> Vec<String> {
            cells_in_words(suite, cells).iter().map(|it| format!("{what}: {it}")).collect()
        };
        lines.extend(named("runs", &choice.cells));
        lines.extend(named("does not run, for lack of time", &choice.left_out));
    }
    lines
}

/// What it will show, and whether the noise is more than the suite has `declared`, %: half of the 95 % interval of
/// arms that are set alike, as in the report.
fn shown(foreseen: Option<&Foreseen>, declared: Option<f64>) -> Vec<String> {
    const REMEDY: &str = "Use more --blocks or a longer time.";
    let Some(foreseen) = foreseen else {
        return vec![format!("Detects no effect: an interval needs {PAIRS_MIN} blocks. {REMEDY}")];
    };
    let mut lines = vec![detected(foreseen)];
    let half_width = foreseen.half_width_percent;
    if let Some(declared) = declared.filter(|declared| half_width > *declared) {
        lines.push(format!(
            "Expected noise: ± {half_width:.1} %. The suite wants at most {declared} %. {REMEDY}"
        ));
    }
    lines
}

fn detected(foreseen: &Foreseen) -> String {
    let where_turns = |turns: u32| match turns {
        1 => "arms take no turns".to_owned(),
        _ => format!("arms take {turns} turns"),
    };
    let [(most, percent), (fewest, of_fewest)] = foreseen.detectable_percent;
    let fewer = match most == fewest {
        true => String::new(),
        false => format!(", {of_fewest:.1} % where {}", where_turns(fewest)),
    };
    format!(
        "Detects (in 4 of 5 runs; {}) a change of CPU time per statement of {percent:.1} % in a cell where {}{fewer}. \
         Assumes that neighbours in time differ by {NEIGHBOURS_DIFFER_BY_PERCENT} %; the report says what was reached.",
        plural(foreseen.comparisons, "comparison"),
        where_turns(most)
    )
}

#[cfg(test)]
mod tests {
    use waggle_lab::lengths::Lengths;
    use waggle_lab::suite::{Scale, Suite};

    use super::*;

    /// What is said of a built-in suite with this many blocks of all its cells.
    fn said(name: &str, blocks: u32) -> Vec<String> {
        let (suite, scale) = (Suite::find(name).unwrap(), Scale::Tiny);
        let lengths = Lengths::of(scale);
        let estimate =
            TimeEstimate { suite: &suite, scale, lengths, is_in_use: false, has_load: true };
        lines(&estimate, &estimate.choose(&suite.cells(), Some(blocks), None), None)
    }

    #[test]
    fn what_can_be_detected_is_told_where_arms_take_turns_and_where_they_take_none() {
        let rds = said("rds", 8);
        let head = "42 cells, 6 scenarios in 8 arms, 8 blocks: 2688 windows of 0.4 s, about 2 h ";
        assert!(rds[0].contains(head), "{rds:?}");
        for part in
            ["; 210 comparisons)", "where arms take 8 turns, ", " % where arms take no turns. "]
        {
            assert!(rds[1].contains(part), "{part}: {rds:?}");
        }
        let line = said("line", 8);
        assert!(!line[1].contains(" turns, "), "{line:?}");
        assert!(line[1].contains("in a cell where arms take no turns. "), "{line:?}");
    }

    #[test]
    fn a_budget_that_is_too_short_for_an_answer_is_told() {
        let suite = Suite::find("line").unwrap();
        let (scale, lengths) = (Scale::Full, Lengths::of(Scale::Full));
        let estimate =
            TimeEstimate { suite: &suite, scale, lengths, is_in_use: false, has_load: true };
        let said = |seconds: u64| {
            let budget = Some(Duration::from_secs(seconds));
            lines(&estimate, &estimate.choose(&suite.cells(), None, budget), budget).concat()
        };
        let [shorter, short, long] = [10, 120, 600_000].map(said);
        assert!(shorter.contains("longer than the time budget of 10 s."), "{shorter}");
        assert!(short.contains("longer than the time budget of 2 min."), "{short}");
        assert!(!long.contains("longer than"), "{long}");
    }

    #[test]
    fn a_budget_names_the_cells_that_run_and_those_that_do_not() {
        let suite = Suite::find("rds").unwrap();
        let (scale, lengths) = (Scale::Tiny, Lengths::of(Scale::Tiny));
        let estimate =
            TimeEstimate { suite: &suite, scale, lengths, is_in_use: false, has_load: true };
        let budget = Some(Duration::from_secs(600));
        let choice = estimate.choose(&suite.cells(), None, budget);
        let said = lines(&estimate, &choice, budget);
        let named = |what: &str| -> usize {
            let of_kind = said.iter().filter(|line| line.starts_with(what));
            let cells =
                of_kind.map(|line| line.rsplit(['(', ' ']).nth(1).unwrap().parse::<usize>());
            cells.map(Result::unwrap).sum()
        };
        assert_eq!(named("runs: "), choice.cells.len(), "{said:#?}");
        assert_eq!(named("does not run, "), choice.left_out.len(), "{said:#?}");
        assert!(!choice.left_out.is_empty());
    }

    #[test]
    fn a_run_that_shows_less_than_its_suite_is_made_for_is_told_of_it() {
        let [few, many] = [8, 40].map(|blocks| said("line", blocks));
        assert!(
            few[2].starts_with("Expected noise: ± 8.1 %. The suite wants at most 5 %."),
            "{few:?}"
        );
        assert_eq!(many.len(), 2, "{many:?}");
        // Two pairs have no interval.
        let two = said("line", 2);
        assert!(two[1].contains("no effect: an interval needs 6 blocks"), "{two:?}");
        assert_eq!(two.len(), 2, "{two:?}");
        assert_eq!(shown(None, None).len(), 1);
    }
}
