//! What is said of a run before it begins: how much is measured, how long that takes, what it will show.

use std::time::Duration;

use waggle_lab::Metric;
use waggle_lab::analysis::{Foreseen, NEIGHBOURS_DIFFER_BY_PERCENT, PAIRS_MIN};
use waggle_lab::budget::{Choice, Reckoning};
use waggle_lab::schedule::Schedule;

use super::progress::note;

/// Says it.
pub(super) fn announce(reckoning: &Reckoning<'_>, choice: &Choice, budget: Option<Duration>) {
    lines(reckoning, choice, budget).into_iter().for_each(note);
}

fn lines(reckoning: &Reckoning<'_>, choice: &Choice, budget: Option<Duration>) -> Vec<String> {
    let suite = reckoning.suite;
    let schedule = Schedule::new(suite, &choice.cells, choice.blocks, 0);
    let mut lines = vec![format!(
        "{}: {}, {}, {}: {} of {:.1} s, about {:.0} min",
        suite.title,
        count(choice.cells.len(), "cell"),
        count(schedule.arms.len(), "arm"),
        count(choice.blocks as usize, "block"),
        count(schedule.slots.len(), "window"),
        reckoning.lengths.window.as_secs_f64(),
        (choice.seconds / 60.0).ceil()
    )];
    if let Some(budget) = budget.filter(|budget| choice.seconds > budget.as_secs_f64()) {
        lines.push(format!(
            "that is more than the {:.0} min that it may take: it ends after the block in which they are over, and \
             shows no effect of a cell with fewer than {PAIRS_MIN} blocks; --only and a smaller --scale make it shorter",
            (budget.as_secs_f64() / 60.0).ceil()
        ));
    }
    let declared = suite.declared_percent(Metric::CpuPerStatement);
    lines.extend(shown(reckoning.foreseen(&choice.cells, choice.blocks).as_ref(), declared));
    if !choice.left_out.is_empty() {
        lines.push(format!("not run, for want of time: {}", count(choice.left_out.len(), "cell")));
    }
    lines
}

/// So many of them.
pub(super) fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// What it will show, and whether that is what the suite has `declared`, %: of the half-width of arms that
/// are set alike, as in the report.
fn shown(foreseen: Option<&Foreseen>, declared: Option<f64>) -> Vec<String> {
    let too_little = |declared: f64| {
        format!(
            "that is not the {declared} % that the suite is made for: give it more time, or more --blocks"
        )
    };
    let Some(foreseen) = foreseen else {
        let nothing = format!(
            "it will not be able to detect an effect of any size: an interval needs {PAIRS_MIN} blocks"
        );
        return std::iter::once(nothing).chain(declared.map(too_little)).collect();
    };
    let mut lines = vec![detected(foreseen)];
    let half_width = foreseen.half_width_percent;
    if let Some(declared) = declared.filter(|declared| half_width > *declared) {
        lines.push(format!(
            "half of the 95 % interval of arms that are set alike will be about {half_width:.1} %, median over \
             the cells: {}",
            too_little(declared)
        ));
    }
    lines
}

fn detected(foreseen: &Foreseen) -> String {
    let [most, fewest] = foreseen.detectable_percent.map(|(turns, percent)| match turns {
        1 => format!("{percent:.1} % where arms take no turns"),
        _ => format!("{percent:.1} % where arms take {turns} turns"),
    });
    let effects = if most == fewest { most } else { format!("{most} and {fewest}") };
    format!(
        "it will be able to detect a change of the processor time per statement of a cell by {effects}: in 4 of 5 cases, \
         among all comparisons ({}), if neighbours in time differ by {NEIGHBOURS_DIFFER_BY_PERCENT} %, as on a shared \
         host; the report says what it was",
        foreseen.comparisons
    )
}

#[cfg(test)]
mod tests {
    use waggle_lab::lengths::Lengths;
    use waggle_lab::suite::{Scale, Suite};

    use super::*;

    /// What is said of a built-in suite with so many blocks of all its cells.
    fn said(name: &str, blocks: u32) -> Vec<String> {
        let (suite, scale) = (Suite::find(name).unwrap(), Scale::Tiny);
        let lengths = Lengths::of(scale);
        let reckoning =
            Reckoning { suite: &suite, scale, lengths, is_foreign: false, has_load: true };
        lines(&reckoning, &reckoning.choose(&suite.cells(), Some(blocks), None), None)
    }

    #[test]
    fn what_can_be_detected_is_told_where_arms_take_turns_and_where_they_take_none() {
        let rds = said("rds", 8);
        assert!(rds[0].contains("42 cells, 8 arms, 8 blocks: 2688 windows of 0.4 s"), "{rds:?}");
        for part in ["where arms take 8 turns and ", "take no turns", "comparisons (210)"] {
            assert!(rds[1].contains(part), "{part}: {rds:?}");
        }
        let line = said("line", 8);
        assert!(!line[1].contains(" turns and "), "{line:?}");
        assert!(line[1].contains("where arms take no turns: in 4 of 5"), "{line:?}");
    }

    #[test]
    fn a_budget_that_is_too_short_for_an_answer_is_told() {
        let suite = Suite::find("line").unwrap();
        let (scale, lengths) = (Scale::Full, Lengths::of(Scale::Full));
        let reckoning =
            Reckoning { suite: &suite, scale, lengths, is_foreign: false, has_load: true };
        let said = |minutes: u64| {
            let budget = Some(Duration::from_secs(60 * minutes));
            lines(&reckoning, &reckoning.choose(&suite.cells(), None, budget), budget).concat()
        };
        let [short, long] = [2, 10_000].map(said);
        assert!(short.contains("more than the 2 min that it may take"), "{short}");
        assert!(!long.contains("may take"), "{long}");
    }

    #[test]
    fn a_run_that_shows_less_than_its_suite_is_made_for_is_told_of_it() {
        let [few, many] = [8, 40].map(|blocks| said("line", blocks));
        assert!(
            few[2].contains("about 8.1 %, median over the cells: that is not the 5 %"),
            "{few:?}"
        );
        assert_eq!(many.len(), 2, "{many:?}");
        // Two pairs have no interval.
        let two = said("line", 2);
        assert!(two[1].contains("an effect of any size: an interval needs 6 blocks"), "{two:?}");
        assert!(two[2].starts_with("that is not the 5 % that the suite is made for"), "{two:?}");
        assert_eq!(shown(None, None).len(), 1);
    }
}
