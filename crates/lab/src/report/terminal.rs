//! The end of a run, as plain text of less than a screen.

use crate::analysis::{Floor, Interval, Verdict};
use crate::metric::Metric;
use crate::report::group::Group;
use crate::report::verdicts::{self, Line};
use crate::report::{Report, first_page, left_out, words};

/// So many costs are named.
const COSTS_MAX: usize = 8;
/// So many groups of what was left out or is void are named.
const LEFT_OUT_MAX: usize = 8;

/// What was found, what was left out and how sure it is.
pub(super) fn text(report: Report<'_>) -> String {
    let mut lines = vec![report.title()];
    lines.extend(first_page::unfinished(report));
    let left_out = left_out::in_words(report);
    lines.extend(left_out.iter().take(LEFT_OUT_MAX).cloned());
    if let Some(more @ 1..) = left_out.len().checked_sub(LEFT_OUT_MAX) {
        lines.push(format!("and {more} more such lines in the report"));
    }
    lines.push(String::new());
    lines.extend(found(report));
    lines.push(String::new());
    lines.extend(noise(report));
    // Names may come from outside, and a terminal obeys control characters.
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    lines.iter().map(|line| line.chars().map(shown).chain(['\n']).collect::<String>()).collect()
}

/// How many verdicts of each kind there are, and the biggest costs. For a scenario that was also measured alone on a server,
/// that one stands: it is what the scenario costs by itself.
fn found(report: Report<'_>) -> Vec<String> {
    let groups = Group::all(report);
    let all: Vec<Line<'_>> = verdicts::lines(report, &groups);
    let is_told = |line: &&Line<'_>| {
        let mut alone = all.iter().filter(|other| other.is_alone_of(line));
        !alone.any(|other| other.verdict().is_known())
    };
    let lines: Vec<&Line<'_>> = all.iter().filter(is_told).collect();
    let verdicts: Vec<Verdict> = lines.iter().map(|line| line.verdict()).collect();
    let count = |is_it: fn(&Verdict) -> bool| verdicts.iter().filter(|one| is_it(one)).count();
    let counts = format!(
        "{} cost, {} gain, {} below what we can detect, {} proven small, {} overloaded, {} void, {} without a number",
        count(|one| *one == Verdict::Cost),
        count(|one| *one == Verdict::Gain),
        count(|one| matches!(one, Verdict::Below { .. })),
        count(|one| matches!(one, Verdict::Free { .. })),
        count(|one| matches!(one, Verdict::Overloaded(_))),
        count(|one| matches!(one, Verdict::Void(_))),
        count(|one| matches!(one, Verdict::NotRun(_))),
    );
    let metric = report.verdict_metric();
    let what = words::short(metric);
    let baseline = &report.suite.baseline;
    let head = format!("{what} against {baseline}, each scenario under each workload:");
    let mut costs: Vec<(Interval, &Line<'_>)> = lines
        .iter()
        .zip(&verdicts)
        .filter(|(_, verdict)| **verdict == Verdict::Cost)
        .filter_map(|(line, _)| Some((line.change(metric)?, *line)))
        .collect();
    costs.sort_by(|(one, _), (other, _)| other.value.abs().total_cmp(&one.value.abs()));
    costs.truncate(COSTS_MAX);
    let warning = costs.iter().find_map(|(_, line)| line.group.warning());
    let mut found = vec![head, format!("  {counts}")];
    if !costs.is_empty() {
        found.push("the biggest costs, d% (95 % interval):".to_owned());
    }
    found.extend(costs.into_iter().map(|(change, line)| {
        let (scenario, workload) = (line.name(), line.workload());
        let mark = if line.group.warning().is_some() { " *" } else { "" };
        let text = words::percent_interval(&change);
        format!("  {scenario:<24} {workload:<32} {text}{mark}")
    }));
    found.extend(warning.map(|warning| format!("  * {warning}")));
    found
}

/// A line for each metric of the server that could be compared; the pages have all.
fn noise(report: Report<'_>) -> Vec<String> {
    let floor = &report.analysis.floor;
    if floor.is_empty() {
        return vec![first_page::NOISE_UNKNOWN.to_owned()];
    }
    let head = "noise floor: half of the 95 % interval of the baseline against itself, median, and what is \
                declared detectable";
    let line = |floor: &Floor| {
        format!(
            "  {:<44} {:>12}, {:>12}; {} of {} are false alarms",
            words::short(floor.metric),
            words::share(floor.half_width_percent),
            words::declared(report.suite.declared_percent(floor.metric)),
            floor.false_alarms,
            floor.comparisons
        )
    };
    let is_shown = |floor: &&Floor| {
        floor.half_width_percent.is_finite() && floor.metric != Metric::LoadCpuPerStatement
    };
    std::iter::once(head.to_owned()).chain(floor.iter().filter(is_shown).map(line)).collect()
}

#[cfg(test)]
mod tests {
    use crate::analysis::{Analysis, Comparison, PooledEffect};
    use crate::metric::Metric;
    use crate::report::sample::{analysis, comparison, facts, suite, unknown, windows};
    use crate::suite::Suite;
    use crate::window::Window;

    use super::*;

    #[test]
    fn a_small_run_is_told_in_short() {
        let (suite, facts, windows, analysis) = (suite(), facts(), windows(), analysis());
        let report =
            Report { suite: &suite, facts: &facts, windows: &windows, analysis: &analysis };
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!("terminal", text(report));
        });
    }

    /// Every scenario costs under every closed load, each one more than the one before, and everything
    /// at a fixed rate is void, each for a reason of its own.
    fn costs(suite: &Suite) -> Analysis {
        let sample = analysis();
        let mut costs = Analysis { comparisons: Vec::new(), pooled: Vec::new(), ..sample };
        for (at, cell) in suite.cells().into_iter().enumerate() {
            for (number, scenario) in suite.scenarios[1..].iter().enumerate() {
                let mut one = comparison(&scenario.name, Metric::CpuPerStatement, Verdict::Cost);
                if cell.load.is_open() {
                    one.verdict = Verdict::Void(format!("reason {at} {number}"));
                }
                costs.comparisons.push(Comparison { cell: cell.clone(), ..one });
            }
        }
        for workload in &suite.workloads {
            for scenario in &suite.scenarios[1..] {
                let by = costs.pooled.len() as f64;
                let pooled = &sample_pooled();
                costs.pooled.push(PooledEffect {
                    arm: scenario.name.clone(),
                    workload: Some(workload.name.clone()),
                    percent: pooled.percent.map(|percent| percent + by),
                    ..pooled.clone()
                });
            }
        }
        costs
    }

    fn sample_pooled() -> PooledEffect {
        analysis().pooled.remove(0)
    }

    #[test]
    fn the_largest_suite_fits_on_a_screen_with_its_biggest_costs_first() {
        let (suite, facts) = (Suite::find("rds").unwrap(), facts());
        let analysis = costs(&suite);
        let report = Report { suite: &suite, facts: &facts, windows: &[], analysis: &analysis };
        let text = text(report);
        assert!(text.lines().count() <= 45, "{text}");
        assert!(text.contains("15 cost, 0 gain"), "{text}");
        assert!(text.contains("more such lines in the report"), "{text}");
        let costs: Vec<&str> = text.lines().filter(|line| line.contains(" % (+")).collect();
        assert_eq!(costs.len(), COSTS_MAX, "{text}");
        let highest = words::percent_interval(&sample_pooled().percent.map(|it| it + 14.0));
        assert!(costs[0].ends_with(&highest), "{text}");
        assert!(costs[0].contains("write-only") && costs[0].contains("conon_inson"), "{text}");
    }

    #[test]
    fn a_scenario_stands_there_as_it_is_alone_on_a_server_where_that_is_known() {
        let (suite, facts) = (Suite::find("rds").unwrap(), facts());
        let shared = &suite.also_alone().unwrap().name;
        let said = |alone: Comparison| {
            let cost = comparison(shared, Metric::CpuPerStatement, Verdict::Cost);
            let comparisons = vec![cost, alone];
            let analysis = Analysis { comparisons, ..Analysis::default() };
            text(Report { suite: &suite, facts: &facts, windows: &[], analysis: &analysis })
        };
        let metric = Metric::CpuPerStatement;
        let below = Verdict::Below { detectable_percent: 1.2 };
        let said_below = said(comparison(Window::ALONE, metric, below));
        assert!(said_below.contains("0 cost, 0 gain, 1 below"), "{said_below}");
        let void = said(unknown(Window::ALONE, metric, Verdict::Void("nothing".to_owned())));
        assert!(void.contains("1 cost, 0 gain") && void.contains(shared.as_str()), "{void}");
    }

    #[test]
    fn a_name_from_outside_moves_no_cursor() {
        let (suite, mut facts) = (suite(), facts());
        facts.server.version = "9.3.0\u{1b}[2J\r".to_owned();
        let analysis = Analysis::default();
        let report = Report { suite: &suite, facts: &facts, windows: &[], analysis: &analysis };
        let text = text(report);
        assert!(!text.contains(['\u{1b}', '\r']), "{text:?}");
        assert!(text.contains("the noise is not known"), "{text}");
    }
}
