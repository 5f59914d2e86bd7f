//! The end of a run, as plain text of less than a screen.

use waggle_model::visible::on_a_line;

use crate::report::answer::{Answer, NOTHING};
use crate::report::group::Group;
use crate::report::{Report, asked, left_out};

/// So many lines of the answer are printed.
const ANSWER_MAX: usize = 24;
/// So many groups of what was left out or is void are named.
const LEFT_OUT_MAX: usize = 8;
/// Places of a bar.
const PLACES: usize = 23;

/// What was found, how sure it is and what was left out.
pub(super) fn text(report: Report<'_>) -> String {
    let mut lines = vec![report.title(), String::new()];
    let groups = Group::over_workloads(report);
    let answers = Answer::all(report, &groups, &report.suite.baseline);
    for answer in &answers {
        lines.push(answer.in_a_sentence());
        lines.extend(answer.in_text(PLACES).into_iter().map(|line| format!("  {line}")));
    }
    if answers.is_empty() {
        lines.push(NOTHING.to_owned());
    }
    shorten(&mut lines, ANSWER_MAX);
    lines.push(asked::noise_in_a_sentence(report));
    lines.push(String::new());
    lines.extend(asked::unfinished(report));
    let mut left_out = left_out::in_words(report);
    shorten(&mut left_out, LEFT_OUT_MAX);
    lines.extend(left_out);
    lines.iter().flat_map(|line| [on_a_line(line), "\n".into()]).collect()
}

/// Cuts lines of which there are too many, and says so.
fn shorten(lines: &mut Vec<String>, most: usize) {
    if let Some(more @ 1..) = lines.len().checked_sub(most) {
        lines.truncate(most);
        lines.push(format!("and {more} more such lines in the report"));
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::{Analysis, Comparison, PooledEffect, Verdict};
    use crate::metric::Metric;
    use crate::report::sample::{analysis, comparison, info, suite, unknown, windows};
    use crate::report::words;
    use crate::suite::Suite;
    use crate::window::Window;

    use super::*;

    #[test]
    fn a_small_run_is_told_in_short() {
        let (suite, info, windows, analysis) = (suite(), info(), windows(), analysis());
        let report = Report { suite: &suite, info: &info, windows: &windows, analysis: &analysis };
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
        for scenario in &suite.scenarios[1..] {
            let by = costs.pooled.len() as f64;
            let pooled = &sample_pooled();
            costs.pooled.push(PooledEffect {
                arm: scenario.name.clone(),
                workload: None,
                percent: pooled.percent.map(|percent| percent + by),
                ..pooled.clone()
            });
        }
        costs
    }

    fn sample_pooled() -> PooledEffect {
        analysis().pooled.remove(0)
    }

    #[test]
    fn the_largest_suite_fits_on_a_screen_and_begins_with_the_most_expensive_scenario() {
        let (suite, info) = (Suite::find("rds").unwrap(), info());
        let analysis = costs(&suite);
        let report = Report { suite: &suite, info: &info, windows: &[], analysis: &analysis };
        let text = text(report);
        assert!(text.lines().count() <= 45, "{text}");
        assert!(text.contains("5 scenarios, 5 cost, 0 gain."), "{text}");
        assert!(text.contains("5 scenarios, 0 cost, 0 gain, 5 void."), "{text}");
        assert!(text.contains("more such lines in the report"), "{text}");
        let highest = words::percent_interval(&sample_pooled().percent.map(|it| it + 4.0));
        let most_expensive =
            format!("The most expensive is pfson_conon_inson: CPU time per statement {highest}");
        assert!(text.lines().nth(2).unwrap().contains(&most_expensive), "{text}");
        let costs: Vec<&str> = text
            .lines()
            .filter(|line| line.contains(" % (+") && line.contains(", cost "))
            .collect();
        assert_eq!(costs.len(), 5, "{text}");
        for line in text.lines().filter(|line| line.contains('●')) {
            assert!(line.chars().count() <= 130, "{line}");
        }
    }

    #[test]
    fn a_scenario_counts_as_it_is_alone_on_a_server_where_that_is_known() {
        let (suite, info) = (Suite::find("rds").unwrap(), info());
        let shared = &suite.also_alone().unwrap().name;
        let said = |alone: Comparison| {
            let cost = comparison(shared, Metric::CpuPerStatement, Verdict::Cost);
            let comparisons = vec![cost, alone];
            let analysis = Analysis { comparisons, ..Analysis::default() };
            text(Report { suite: &suite, info: &info, windows: &[], analysis: &analysis })
        };
        let metric = Metric::CpuPerStatement;
        let below = Verdict::Below { detectable_percent: 1.2 };
        let said_below = said(comparison(Window::ALONE, metric, below));
        assert!(said_below.contains("1 scenario, 0 cost, 0 gain, 1 not shown"), "{said_below}");
        let void = said(unknown(Window::ALONE, metric, Verdict::Void("nothing".to_owned())));
        assert!(void.contains("1 cost, 0 gain") && void.contains(shared.as_str()), "{void}");
    }

    #[test]
    fn noise_that_is_larger_than_the_suite_allows_is_told_with_what_to_do() {
        let (suite, info, windows, mut analysis) = (suite(), info(), windows(), analysis());
        let said = |analysis: &Analysis| {
            text(Report { suite: &suite, info: &info, windows: &windows, analysis })
        };
        let warning =
            "The noise of CPU time per statement is larger than the suite allows: do not quote";
        assert!(!said(&analysis).contains(warning));
        for floor in &mut analysis.floor {
            floor.half_width_percent = 33.0;
        }
        let noisy = said(&analysis);
        assert!(noisy.contains("CPU time per statement ± 33 % (allowed: 1.0 %; "), "{noisy}");
        assert!(noisy.contains(warning), "{noisy}");
    }

    #[test]
    fn a_name_from_outside_moves_no_cursor() {
        let (suite, mut info) = (suite(), info());
        info.server.version = "9.3.0\u{1b}[2J\r".to_owned();
        let analysis = Analysis::default();
        let report = Report { suite: &suite, info: &info, windows: &[], analysis: &analysis };
        let text = text(report);
        assert!(!text.contains(['\u{1b}', '\r']), "{text:?}");
        assert!(text.contains("the noise is not known"), "{text}");
    }
}
