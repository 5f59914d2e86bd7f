//! Comparisons by cell and scenario, each with its metrics.

use schemars::JsonSchema;
use serde::Serialize;

use crate::analysis::{Comparison, Interval, Verdict};
use crate::report::row::{self, ends, in_a_word, rounded};
use crate::report::{Report, published, words};
use crate::window::Window;

/// A scenario against its baseline in one cell.
#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct ComparedJson {
    workload: String,
    threads: u32,
    /// `closed` or `open`.
    load: &'static str,
    /// Share of the processors that was in use with the baseline at the fixed rate, 0 to 1; closed: `null`.
    open_share: Option<f64>,
    /// The order of the scenarios; `null` where the suite has only one.
    order: Option<String>,
    /// The scenario, `baseline again` or `alone on a server`.
    scenario: String,
    /// The scenario that is set in it.
    sets: String,
    /// What it is compared with.
    baseline: String,
    /// Whether the baseline left no processor idle. Else rates say nothing of the cost. `null`: not measured.
    saturated: Option<bool>,
    pub(in crate::report) metrics: Vec<MetricJson>,
}

/// By one metric.
#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct MetricJson {
    metric: &'static str,
    /// The unit of the values and of the difference.
    unit: &'static str,
    /// `cost`, `gain`, `change`, `below`, `free`, `overloaded`, `void` or `not_run`.
    verdict: &'static str,
    /// Why it is overloaded or void, or was not run.
    reason: Option<String>,
    /// Pairs that count, and pairs that do not because a window of either arm is void.
    pairs: usize,
    void_pairs: usize,
    /// Mean of the baseline.
    baseline_value: Option<f64>,
    /// Mean of the scenario.
    value: Option<f64>,
    /// Change, %: low end, value, high end.
    percent: Option<[f64; 3]>,
    /// Difference in the unit: low end, value, high end.
    difference: Option<[f64; 3]>,
    /// The interval of the change by the bootstrap, %: low end, high end.
    bootstrap_percent: Option<[f64; 2]>,
    /// P values of "no effect": by the sign-flip test, by the t test, and the latter after Holm.
    p_sign_flip: Option<f64>,
    p_student: Option<f64>,
    p_holm: Option<f64>,
    /// The smallest change that is found in 4 of 5 cases, among all comparisons of the metric, %.
    detectable_percent: Option<f64>,
    /// The smallest margin within which the change is proven to be, %.
    proven_percent: Option<f64>,
    published: Option<PublishedJson>,
}

/// What the source printed.
#[derive(Serialize, JsonSchema)]
struct PublishedJson {
    value: Option<f64>,
    unit: Option<&'static str>,
    /// Change that follows from the figures of the source, %; for the metric of the source only.
    percent: Option<f64>,
    /// Change as the source printed it, %.
    printed_percent: Option<f64>,
    /// Why the source contradicts itself there; it is out of the verdict then.
    contradicts: Option<String>,
}

/// Every comparison of the cells that were run.
pub(in crate::report) fn all(report: Report<'_>) -> Vec<ComparedJson> {
    let run = report.cells_run();
    let was_run = |one: &&Comparison| one.verdict.is_known() || run.contains(&&one.cell);
    let mut all: Vec<(&Comparison, ComparedJson)> = Vec::new();
    for one in report.analysis.comparisons.iter().filter(was_run) {
        let is_alike = |(known, _): &&mut (&Comparison, ComparedJson)| {
            known.cell == one.cell && known.arm == one.arm && known.baseline == one.baseline
        };
        let metric = MetricJson::of(report, one);
        match all.iter_mut().find(is_alike) {
            Some((_, known)) => known.metrics.push(metric),
            None => all.push((one, ComparedJson::of(report, one, metric))),
        }
    }
    all.into_iter().map(|(_, compared)| compared).collect()
}

impl ComparedJson {
    fn of(report: Report<'_>, one: &Comparison, metric: MetricJson) -> ComparedJson {
        ComparedJson {
            workload: one.cell.workload.clone(),
            threads: one.cell.threads,
            load: row::load(one.cell.load),
            open_share: row::open_share(one.cell.load),
            order: one.cell.order.clone(),
            scenario: one.arm.clone(),
            sets: report.suite.set_by(&one.arm).to_owned(),
            baseline: one.baseline.clone(),
            saturated: one.is_saturated,
            metrics: vec![metric],
        }
    }
}

impl MetricJson {
    fn of(report: Report<'_>, one: &Comparison) -> MetricJson {
        let verdict = match &one.verdict {
            Verdict::NotRun(why) => report.absent(&one.cell, &one.arm, why).0,
            verdict => verdict.clone(),
        };
        let (verdict, reason) = in_a_word(verdict);
        MetricJson {
            metric: one.metric.key(),
            unit: row::base_unit(one.metric),
            verdict,
            reason,
            pairs: one.pairs,
            void_pairs: one.void,
            baseline_value: rounded(one.baseline_value),
            value: rounded(one.arm_value),
            percent: known_ends(&one.percent),
            difference: known_ends(&one.difference),
            bootstrap_percent: one
                .bootstrap
                .as_ref()
                .and_then(known_ends)
                .map(|[low, _, high]| [low, high]),
            p_sign_flip: rounded(one.p_sign_flip),
            p_student: rounded(one.p_student),
            p_holm: rounded(one.p_holm),
            detectable_percent: rounded(one.detectable_percent),
            proven_percent: rounded(one.proven_percent),
            published: PublishedJson::of(report, one),
        }
    }
}

impl PublishedJson {
    /// `None` where the source has no such figure, or the comparison is not with the baseline of the suite.
    fn of(report: Report<'_>, one: &Comparison) -> Option<PublishedJson> {
        // The baseline again stands beside nothing.
        let is_alone = one.arm == Window::ALONE;
        let scenario = if is_alone { report.suite.set_by(&one.arm) } else { &one.arm };
        let printed = report.published(&one.cell, scenario, one.metric);
        let printed = printed.filter(|_| one.baseline == report.suite.baseline)?;
        let is_of_source = one.metric == report.source_metric();
        let value = published::value(printed, one.metric);
        let change = printed.changes.get(&report.suite.metric.figure());
        let printed_percent = change.copied().filter(|_| is_of_source);
        (value.is_some() || printed_percent.is_some()).then(|| PublishedJson {
            value,
            unit: value.map(|_| words::unit(one.metric)),
            percent: report.published_percent(&one.cell, scenario).filter(|_| is_of_source),
            printed_percent,
            contradicts: published::contradiction(printed, one.metric).map(str::to_owned),
        })
    }
}

/// The low end, the value and the high end, where they are numbers.
fn known_ends(interval: &Interval) -> Option<[f64; 3]> {
    let [low, value, high] = ends(interval);
    Some([low?, value?, high?])
}
