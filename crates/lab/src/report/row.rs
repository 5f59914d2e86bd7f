//! A comparison beside the published figure, flat: a line of CSV, from which the JSON is made. The names
//! of the fields are the names of the columns; numbers are in base units, and what is not there is absent.

use serde::Serialize;

use crate::analysis::{Comparison, Interval, Verdict};
use crate::metric::Metric;
use crate::report::{Absent, Report, columns};
use crate::window::{Load, Window};

/// One arm against its baseline, in one cell, by one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    /// Name of the suite.
    pub(super) suite: String,
    /// Name of the workload.
    pub(super) workload: String,
    /// Sessions of the load.
    pub(super) threads: u32,
    /// `closed` or `open`.
    pub(super) load: &'static str,
    /// Share of the processors that was in use with the baseline at the fixed rate, 0 to 1; closed: absent.
    pub(super) open_share: Option<f64>,
    /// The order in which scenarios followed each other; absent where the suite has only one.
    pub(super) order: Option<String>,
    /// The scenario, `baseline again` or `alone on a server`.
    pub(super) scenario: String,
    /// The scenario that is set in it.
    pub(super) sets: String,
    /// What it is compared with.
    pub(super) baseline: String,
    /// By what.
    pub(super) metric: &'static str,
    /// The unit of the values and of the difference.
    pub(super) unit: &'static str,
    /// `cost`, `gain`, `change`, `below`, `free`, `overloaded`, `void` or `not_run`.
    pub(super) verdict: &'static str,
    /// Why it is overloaded or void, or was not run.
    pub(super) reason: Option<String>,
    /// Pairs that count.
    pub(super) pairs: usize,
    /// Pairs that do not, because a window of either arm is void.
    pub(super) void_pairs: usize,
    /// Mean of the baseline.
    pub(super) baseline_value: Option<f64>,
    /// Mean of the scenario.
    pub(super) value: Option<f64>,
    /// Change, %: `100 (value / baseline_value - 1)`, with its interval of 95 %.
    pub(super) percent: Option<f64>,
    pub(super) percent_low: Option<f64>,
    pub(super) percent_high: Option<f64>,
    /// Difference in the unit, with its interval of 95 %.
    pub(super) difference: Option<f64>,
    pub(super) difference_low: Option<f64>,
    pub(super) difference_high: Option<f64>,
    /// Interval of 95 % of the change by the bootstrap, %.
    pub(super) bootstrap_percent_low: Option<f64>,
    pub(super) bootstrap_percent_high: Option<f64>,
    /// P values of "no effect": by the sign-flip test, by the t test, and the latter after Holm.
    pub(super) p_sign_flip: Option<f64>,
    pub(super) p_student: Option<f64>,
    pub(super) p_holm: Option<f64>,
    /// The smallest change that is found in 4 of 5 cases, among all comparisons of the metric, %.
    pub(super) detectable_percent: Option<f64>,
    /// The smallest margin within which the change is proven to be, %.
    pub(super) proven_percent: Option<f64>,
    /// Whether the baseline left no processor idle. Else rates say nothing of the cost.
    pub(super) saturated: Option<bool>,
    /// What the source printed, in `published_unit`.
    pub(super) published_value: Option<f64>,
    /// Its unit.
    pub(super) published_unit: Option<&'static str>,
    /// Change that follows from the figures of the source, %; for the metric of the source only.
    pub(super) published_percent: Option<f64>,
    /// Change as the source printed it, %.
    pub(super) printed_percent: Option<f64>,
    /// Why the source contradicts itself there; it is out of the verdict then.
    pub(super) published_contradicts: Option<String>,
}

/// Every comparison of the cells that were run.
pub(super) fn all(report: Report<'_>) -> impl Iterator<Item = Row> {
    let run = report.cells_run();
    let was_run = move |one: &&Comparison| one.verdict.is_known() || run.contains(&&one.cell);
    report.analysis.comparisons.iter().filter(was_run).map(move |one| row(report, one))
}

fn row(report: Report<'_>, one: &Comparison) -> Row {
    let verdict = match &one.verdict {
        Verdict::NotRun(why) => {
            let Absent(verdict) = report.absent(&one.cell, &one.arm, why);
            verdict
        }
        verdict => verdict.clone(),
    };
    let (verdict, reason) = in_a_word(verdict);
    let is_of_suite = one.baseline == report.suite.baseline;
    // The baseline again stands beside nothing.
    let scenario = match one.arm == Window::ALONE {
        true => report.suite.set_by(&one.arm),
        false => &one.arm,
    };
    let published = report.published(&one.cell, scenario, one.metric).filter(|_| is_of_suite);
    let is_of_source = one.metric == report.source_metric();
    let value = published.and_then(|it| columns::published_value(it, one.metric));
    let contradicts =
        published.and_then(|it| columns::contradiction(it, report.source_metric(), one.metric));
    let [percent_low, percent, percent_high] = ends(&one.percent);
    let [difference_low, difference, difference_high] = ends(&one.difference);
    let [bootstrap_percent_low, _, bootstrap_percent_high] =
        one.bootstrap.as_ref().map_or([None; 3], ends);
    Row {
        suite: report.suite.name.clone(),
        workload: one.cell.workload.clone(),
        threads: one.cell.threads,
        load: load(one.cell.load),
        open_share: open_share(one.cell.load),
        order: one.cell.order.clone(),
        scenario: one.arm.clone(),
        sets: report.suite.set_by(&one.arm).to_owned(),
        baseline: one.baseline.clone(),
        metric: one.metric.key(),
        unit: base_unit(one.metric),
        verdict,
        reason,
        pairs: one.pairs,
        void_pairs: one.void,
        baseline_value: rounded(one.baseline_value),
        value: rounded(one.arm_value),
        percent,
        percent_low,
        percent_high,
        difference,
        difference_low,
        difference_high,
        bootstrap_percent_low,
        bootstrap_percent_high,
        p_sign_flip: rounded(one.p_sign_flip),
        p_student: rounded(one.p_student),
        p_holm: rounded(one.p_holm),
        detectable_percent: rounded(one.detectable_percent),
        proven_percent: rounded(one.proven_percent),
        saturated: one.is_saturated,
        published_value: value,
        published_unit: value.map(|_| crate::report::words::unit(one.metric)),
        published_percent: report
            .published_percent(&one.cell, scenario)
            .filter(|_| is_of_source && is_of_suite),
        printed_percent: published.and_then(|it| it.percent).filter(|_| is_of_source),
        published_contradicts: contradicts.map(str::to_owned),
    }
}

pub(super) fn in_a_word(verdict: Verdict) -> (&'static str, Option<String>) {
    match verdict {
        Verdict::Cost => ("cost", None),
        Verdict::Gain => ("gain", None),
        Verdict::Change => ("change", None),
        Verdict::Below { .. } => ("below", None),
        Verdict::Free { .. } => ("free", None),
        Verdict::Overloaded(why) => ("overloaded", Some(why)),
        Verdict::Void(why) => ("void", Some(why)),
        Verdict::NotRun(why) => ("not_run", Some(why)),
    }
}

/// How a load is called in a column.
pub(super) fn load(load: Load) -> &'static str {
    match load {
        Load::Closed => "closed",
        Load::Open { .. } => "open",
    }
}

/// The share of a load at a fixed rate.
pub(super) fn open_share(load: Load) -> Option<f64> {
    load.share().and_then(rounded)
}

/// The unit of a metric as the analysis has it.
fn base_unit(metric: Metric) -> &'static str {
    match metric {
        Metric::CpuPerStatement | Metric::LoadCpuPerStatement => "ns/statement",
        Metric::Qps => "statements/s",
        Metric::Tps => "transactions/s",
        Metric::LatencyMean | Metric::LatencyP50 | Metric::LatencyP95 | Metric::LatencyP99 => "ns",
        Metric::ServerShare => "share of those that it may use",
        Metric::Rss | Metric::PerformanceSchemaMemory => "bytes",
        Metric::ContextSwitchesPerStatement => "switches/statement",
        Metric::WrittenBytesPerStatement => "bytes/statement",
    }
}

/// A number to six significant digits, where it is one. No measurement of ours has more.
pub(super) fn rounded(value: f64) -> Option<f64> {
    if !value.is_finite() {
        return None;
    }
    format!("{value:.5e}").parse().ok()
}

/// The low end, the value and the high end.
pub(super) fn ends(interval: &Interval) -> [Option<f64>; 3] {
    interval.ends().map(rounded)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_number_has_six_digits_at_any_size() {
        let numbers = [52_148.262_801, -8.834_467_593, 1.234_567_89e-7, 0.2, 0.0, 1e15];
        let short = [52_148.3, -8.834_47, 1.234_57e-7, 0.2, 0.0, 1e15];
        assert_eq!(numbers.map(rounded), short.map(Some));
        assert_eq!([f64::NAN, f64::INFINITY].map(rounded), [None, None]);
    }

    #[test]
    fn the_reference_has_every_metric_with_its_unit() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/lab-json.md");
        let page = fs::read_to_string(page).unwrap();
        for metric in Metric::ALL {
            let row = format!("\n| `{}` | {} | ", metric.key(), base_unit(metric));
            assert!(page.contains(&row), "{row}");
        }
    }
}
