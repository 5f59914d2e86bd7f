//! Comparisons by cell and scenario, each with its metrics.

use serde::Serialize;

use crate::report::Report;
use crate::report::row::{self, Row};

/// A scenario against its baseline in one cell.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ComparedJson {
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
    metrics: Vec<MetricJson>,
}

/// By one metric.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MetricJson {
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
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
pub(super) fn all(report: Report<'_>) -> Vec<ComparedJson> {
    let mut all: Vec<ComparedJson> = Vec::new();
    for row in row::all(report) {
        match all.iter_mut().find(|one| one.holds(&row)) {
            Some(known) => known.metrics.push(MetricJson::of(row)),
            None => all.push(ComparedJson::of(row)),
        }
    }
    all
}

impl ComparedJson {
    fn of(row: Row) -> ComparedJson {
        ComparedJson {
            workload: row.workload.clone(),
            threads: row.threads,
            load: row.load,
            open_share: row.open_share,
            order: row.order.clone(),
            scenario: row.scenario.clone(),
            sets: row.sets.clone(),
            baseline: row.baseline.clone(),
            saturated: row.saturated,
            metrics: vec![MetricJson::of(row)],
        }
    }

    fn holds(&self, row: &Row) -> bool {
        self.workload == row.workload
            && self.threads == row.threads
            && (self.load, self.open_share) == (row.load, row.open_share)
            && self.order == row.order
            && self.scenario == row.scenario
            && self.baseline == row.baseline
    }
}

impl MetricJson {
    fn of(row: Row) -> MetricJson {
        let ends =
            |low: Option<f64>, value: Option<f64>, high: Option<f64>| Some([low?, value?, high?]);
        let bootstrap = row.bootstrap_percent_low.zip(row.bootstrap_percent_high);
        let is_published = row.published_value.is_some() || row.printed_percent.is_some();
        MetricJson {
            metric: row.metric,
            unit: row.unit,
            verdict: row.verdict,
            pairs: row.pairs,
            void_pairs: row.void_pairs,
            baseline_value: row.baseline_value,
            value: row.value,
            percent: ends(row.percent_low, row.percent, row.percent_high),
            difference: ends(row.difference_low, row.difference, row.difference_high),
            bootstrap_percent: bootstrap.map(|(low, high)| [low, high]),
            p_sign_flip: row.p_sign_flip,
            p_student: row.p_student,
            p_holm: row.p_holm,
            detectable_percent: row.detectable_percent,
            proven_percent: row.proven_percent,
            published: is_published.then_some(PublishedJson {
                value: row.published_value,
                unit: row.published_unit,
                percent: row.published_percent,
                printed_percent: row.printed_percent,
                contradicts: row.published_contradicts,
            }),
            reason: row.reason,
        }
    }
}
