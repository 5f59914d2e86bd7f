//! What was run and does not count: cells, and windows of each arm.

use crate::analysis::{Comparison, Verdict};
use crate::report::{Report, words};
use crate::window::{Cell, Window};

/// Of the cells that were run no more may be void, %.
const PERCENT_MAX: f64 = 5.0;

/// Every arm in every cell that was run, by what verdicts are on.
pub(super) struct CellsRun {
    run: usize,
    void: usize,
    /// Without a number, too.
    overloaded: usize,
}

impl CellsRun {
    pub(super) fn of(report: Report<'_>) -> CellsRun {
        let run = cells_run(report);
        let count =
            |is_it: fn(&Verdict) -> bool| run.iter().filter(|one| is_it(&one.verdict)).count();
        CellsRun {
            run: run.len(),
            void: count(|verdict| matches!(verdict, Verdict::Void(_))),
            overloaded: count(|verdict| matches!(verdict, Verdict::Overloaded(_))),
        }
    }

    fn void_percent(&self) -> f64 {
        100.0 * self.void as f64 / self.run as f64
    }

    /// Whether more are void than may be. Of none it is not said.
    pub(super) fn are_too_many_void(&self) -> bool {
        self.void_percent() > PERCENT_MAX
    }
}

/// How many of the cells that were run are void, and how many may be; `None` where none was run.
pub(super) fn cells(report: Report<'_>) -> Option<String> {
    let cells = CellsRun::of(report);
    let (share, most) = (words::share(cells.void_percent()), words::share(PERCENT_MAX));
    let answer = if cells.are_too_many_void() { "more" } else { "not more" };
    let CellsRun { run, void, overloaded } = cells;
    (run > 0).then(|| {
        format!(
            "Void comparisons (a scenario in a cell): {void} of {run} that were run ({share}), {answer} than \
             the {most} that may be; without a number, too, since the arm was overloaded: {overloaded}.",
        )
    })
}

/// Void windows of each arm; `None` where there is no window. What voids one arm more often than the
/// others, as an overload does an expensive one, hides what that arm costs.
pub(super) fn windows(report: Report<'_>) -> Option<String> {
    let mut arms: Vec<(&str, usize, usize)> = Vec::new();
    for Window { arm, .. } in report.windows {
        if !arms.iter().any(|(known, ..)| known == arm) {
            let of_arm = || report.windows.iter().filter(|window| window.arm == *arm);
            let void = of_arm().filter(|window| window.counted().is_none()).count();
            arms.push((arm.as_str(), void, of_arm().count()));
        }
    }
    let arm = |(arm, void, all): &(&str, usize, usize)| {
        let share = words::share(100.0 * *void as f64 / *all as f64);
        format!("{arm} {void} of {all} ({share})")
    };
    let arms: Vec<String> = arms.iter().map(arm).collect();
    (!arms.is_empty()).then(|| format!("Void windows by arm: {}.", arms.join(", ")))
}

/// How many turns were made anew because of the hypervisor; `None` where none was.
pub(super) fn stolen(report: Report<'_>) -> Option<String> {
    let tries: usize = report.windows.iter().map(|window| window.stolen.len()).sum();
    let windows = report.windows.iter().filter(|window| !window.stolen.is_empty()).count();
    (tries > 0).then(|| {
        format!(
            "The hypervisor took too much of {} of {}, and {} made anew.",
            words::count(tries, "turn", "turns"),
            words::count(windows, "window", "windows"),
            if tries == 1 { "it was" } else { "they were" }
        )
    })
}

/// How many windows began before the throughput was steady; `None` where none did.
pub(super) fn unsteady(report: Report<'_>) -> Option<String> {
    let count = report.windows.iter().filter(|window| window.unsteady).count();
    (count > 0).then(|| {
        format!(
            "The throughput was not steady when the warm-up had taken as long as it may: {} of {}.",
            words::count(count, "window", "windows"),
            report.windows.len()
        )
    })
}

/// How many transactions met a deadlock, or waited for a lock for too long, and were begun anew; `None` where none was.
pub(super) fn retries(report: Report<'_>) -> Option<String> {
    let measured = || report.windows.iter().filter_map(Window::counted);
    let retries: u64 = measured().filter_map(|it| it.retries).sum();
    let ended: u64 = measured().filter_map(|it| it.transactions).sum();
    (retries > 0).then(|| {
        format!(
            "Begun anew after a deadlock, or after too long a wait for a lock: {} for {} transactions ({}); their \
             statements count, too.",
            words::number(retries as f64, 0),
            words::number(ended as f64, 0),
            words::share(100.0 * retries as f64 / ended.max(1) as f64)
        )
    })
}

/// The void cells by what verdicts are on, a line for each cell and reason.
pub(super) fn lines(report: Report<'_>) -> Vec<String> {
    let mut lines: Vec<(&Cell, &str, Vec<&str>)> = Vec::new();
    for one in cells_run(report) {
        let Verdict::Void(why) = &one.verdict else { continue };
        match lines.iter_mut().find(|(cell, reason, _)| **cell == one.cell && *reason == why) {
            Some((_, _, arms)) => arms.push(one.arm.as_str()),
            None => lines.push((&one.cell, why.as_str(), vec![one.arm.as_str()])),
        }
    }
    let line = |(cell, why, arms): (&Cell, &str, Vec<&str>)| {
        words::void(&format!("{}, {} ({why})", words::cell(cell), arms.join(", ")))
    };
    lines.into_iter().map(line).collect()
}

/// Every arm in every cell that was run, against the baseline; for the baseline stands its second arm.
fn cells_run(report: Report<'_>) -> Vec<&Comparison> {
    let metric = report.verdict_metric();
    let was_run = |one: &&Comparison| {
        let is_of_suite = one.baseline == report.suite.baseline;
        let is_scenario = one.arm != Window::ALONE;
        one.metric == metric && is_of_suite && is_scenario && !one.verdict.is_not_yet()
    };
    report.analysis.comparisons.iter().filter(was_run).collect()
}

#[cfg(test)]
mod tests {
    use crate::analysis::Analysis;
    use crate::report::sample::{self, analysis, info, suite};

    use super::*;

    fn said(made: &[Window], analysis: &Analysis) -> [Option<String>; 2] {
        let (suite, info) = (suite(), info());
        let report = Report { suite: &suite, info: &info, windows: made, analysis };
        [cells(report), windows(report)]
    }

    #[test]
    fn void_cells_are_told_beside_what_may_be_and_void_windows_by_arm() {
        let [cells, by_arm] = said(&sample::windows(), &analysis());
        let begin = "Void comparisons (a scenario in a cell): ";
        let end = "without a number, too, since the arm was overloaded: 0.";
        let expected =
            format!("{begin}1 of 6 that were run (17 %), more than the 5.0 % that may be; {end}");
        assert_eq!(cells, Some(expected));
        let expected =
            "Void windows by arm: pfsoff 0 of 1 (0 %), pfson_conoff_insoff 1 of 2 (50 %).";
        assert_eq!(by_arm.as_deref(), Some(expected));
        let mut sound = analysis();
        sound.comparisons.retain(|one| !matches!(one.verdict, Verdict::Void(_)));
        let [cells, _] = said(&[], &sound);
        let expected = format!(
            "{begin}0 of 5 that were run (0 %), not more than the 5.0 % that may be; {end}"
        );
        assert_eq!(cells, Some(expected));
    }

    #[test]
    fn of_what_was_not_run_no_share_is_told() {
        assert_eq!(said(&[], &Analysis::default()), [None, None]);
    }

    #[test]
    fn what_was_begun_anew_is_told_beside_what_ended() {
        let (suite, info, analysis) = (suite(), info(), analysis());
        let said = |windows: &[Window]| {
            retries(Report { suite: &suite, info: &info, windows, analysis: &analysis })
        };
        let mut windows = sample::windows();
        assert_eq!(said(&windows), None);
        for window in &mut windows {
            let measured = window.measured.as_mut().unwrap();
            (measured.retries, measured.transactions) = (Some(3), Some(600));
        }
        // One of the three is void.
        let said = said(&windows).unwrap();
        assert!(said.contains("6 for 1,200 transactions (0.50 %)"), "{said}");
    }
}
