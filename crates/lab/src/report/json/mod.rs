//! The report as JSON, without the raw windows, and the differences of two runs. What is not there is `null`.

pub(super) mod compared;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use waggle_model::visible::in_json;

use compared::ComparedJson;

use crate::analysis::{Floor, PooledEffect, RunDifferences};
use crate::report::difference::DifferenceJson;
use crate::report::left_out::{self, LeftOut};
use crate::report::row::{ends, in_a_word, rounded};
use crate::report::{Report, machines};
use crate::run_info::{Host, LoadInfo, Run, Server, TakenUp};
use crate::suite::{Order, Sequence, Suite};

/// Grows by one when a field changes its meaning or goes.
const FORMAT: u32 = 5;

/// What a run says.
pub(super) fn of_run(report: Report<'_>) -> String {
    text(&RunJson::of(report))
}

/// Whether two runs differ, as JSON.
pub fn of_differences(differences: &RunDifferences) -> String {
    text(&RunsJson {
        format: FORMAT,
        different: differences.is_any(),
        without_ratio: differences.without_ratio,
        in_one_only: differences.in_one_only,
        differences: differences.found.iter().map(DifferenceJson::of).collect(),
    })
}

/// Keys are names of fields, and numbers are finite: writing to memory cannot fail.
fn text(value: &impl Serialize) -> String {
    in_json(&serde_json::to_string(value).unwrap_or_default()).into_owned()
}

/// The types of the JSON of a run.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(RunJson<'_>)
}

/// The types of the JSON of two runs.
pub fn differences_schema() -> schemars::Schema {
    schemars::schema_for!(RunsJson<'_>)
}

#[derive(Serialize, JsonSchema)]
struct RunsJson<'a> {
    /// Version of this shape.
    format: u32,
    /// Whether they differ in anything.
    different: bool,
    /// Effects that both have and that are not compared: a value is 0, so that there is no ratio.
    without_ratio: usize,
    /// Effects of which one run only has a number.
    in_one_only: usize,
    /// Every effect that both have.
    differences: Vec<DifferenceJson<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct RunJson<'a> {
    /// Version of this shape.
    format: u32,
    suite: SuiteJson<'a>,
    run: &'a Run,
    /// The computer of the first part of the run.
    host: &'a Host,
    /// Those of its later parts.
    taken_up: &'a [TakenUp],
    server: &'a Server,
    load: &'a LoadInfo,
    /// What a reader has to know before trusting a number.
    caveats: Vec<String>,
    /// What was left out, and why, in groups.
    not_run: Vec<NotRunJson>,
    /// Windows that were made.
    windows: usize,
    /// Those of them that do not count.
    void_windows: usize,
    /// What arms that are set alike show, by metric.
    noise_floor: Vec<FloorJson>,
    /// The mean effect of each scenario over cells.
    pooled: Vec<PooledJson<'a>>,
    /// Every scenario in every cell that was run.
    comparisons: Vec<ComparedJson>,
}

#[derive(Serialize, JsonSchema)]
struct SuiteJson<'a> {
    name: &'a str,
    title: &'a str,
    /// Where the published figures come from.
    source: &'a str,
    source_server: &'a str,
    source_load: &'a str,
    source_caveats: &'a [String],
    /// The scenario that the others are compared with.
    baseline: &'a str,
    /// The throughput that the source printed: `qps` or `tps`.
    metric: &'static str,
    /// Smaller effects are of no interest, %.
    margin_percent: f64,
    /// The effects that are declared detectable, by metric, %.
    detectable_percent: BTreeMap<&'static str, f64>,
    /// In which orders the scenarios followed each other; each is reported by itself.
    orders: Vec<OrderJson<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct OrderJson<'a> {
    name: &'a str,
    title: &'a str,
    /// `random`, or `as_listed`: the same in every block, which no interval covers.
    sequence: &'static str,
    scenarios: &'a [String],
    /// What each is compared with.
    against: &'a [String],
}

#[derive(Serialize, JsonSchema)]
struct NotRunJson {
    reason: String,
    /// How many cells it is: every workload with every number of threads or at every share.
    cells: usize,
    workloads: Vec<String>,
    threads: Vec<u32>,
    /// `closed` or `open`.
    load: &'static str,
    /// Shares of the processors that the baseline would use, 0 to 1; closed: none.
    open_shares: Vec<f64>,
    /// The order of the scenarios; `null` where the suite has only one.
    order: Option<String>,
    /// `null` for all scenarios.
    scenario: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct FloorJson {
    metric: &'static str,
    /// How many comparisons there were, one for each cell.
    comparisons: usize,
    /// Those whose interval leaves out 0.
    false_alarms: usize,
    /// The most that chance explains.
    false_alarms_max: usize,
    /// Half the length of their intervals, median, %.
    half_width_percent: Option<f64>,
    /// Mean of what they find, %.
    mean_percent: Option<f64>,
    /// What the suite declares detectable, %; `null` where it says nothing of the metric.
    declared_percent: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct PooledJson<'a> {
    scenario: &'a str,
    baseline: &'a str,
    metric: &'static str,
    /// `null` over all workloads.
    workload: Option<&'a str>,
    /// The order of the scenarios; `null` where the suite has only one.
    order: Option<&'a str>,
    /// `closed` or `open`.
    load: &'static str,
    cells: usize,
    blocks: usize,
    /// The mean change, %, with its interval of 95 %.
    percent: Option<f64>,
    percent_low: Option<f64>,
    percent_high: Option<f64>,
    /// The p value of "no effect" by the t test over the blocks, 0 to 1.
    p_student: Option<f64>,
    /// The same after Holm, over the means of the metric with this baseline.
    p_holm: Option<f64>,
    /// The smallest change that this many blocks find in 4 of 5 cases, among all of these means, %.
    detectable_percent: Option<f64>,
    /// As that of a comparison.
    verdict: &'static str,
}

impl<'a> RunJson<'a> {
    fn of(report: Report<'a>) -> RunJson<'a> {
        let Report { suite, info, analysis, .. } = report;
        let source = &suite.source;
        RunJson {
            format: FORMAT,
            suite: SuiteJson {
                name: &suite.name,
                title: &suite.title,
                source: &source.what,
                source_server: &source.server,
                source_load: &source.load,
                source_caveats: &source.caveats,
                baseline: &suite.baseline,
                metric: report.source_metric().key(),
                margin_percent: suite.margin_percent,
                detectable_percent: declared(suite),
                orders: suite.orders.iter().map(OrderJson::of).collect(),
            },
            run: &info.run,
            host: &info.host,
            taken_up: &info.taken_up,
            server: &info.server,
            load: &info.load,
            caveats: info.caveats.iter().cloned().chain(machines::caveats(report)).collect(),
            not_run: left_out::groups(report).into_iter().map(NotRunJson::of).collect(),
            windows: analysis.windows,
            void_windows: analysis.void,
            noise_floor: analysis.floor.iter().map(|floor| FloorJson::of(floor, suite)).collect(),
            pooled: analysis.pooled.iter().map(PooledJson::of).collect(),
            comparisons: compared::all(report),
        }
    }
}

/// What a suite declares detectable, by the keys of metrics.
fn declared(suite: &Suite) -> BTreeMap<&'static str, f64> {
    suite.detectable_percent.iter().map(|(metric, percent)| (metric.key(), *percent)).collect()
}

impl<'a> OrderJson<'a> {
    fn of(order: &'a Order) -> OrderJson<'a> {
        OrderJson {
            name: &order.name,
            title: &order.title,
            sequence: match order.sequence {
                Sequence::AsListed => "as_listed",
                Sequence::Random => "random",
            },
            scenarios: &order.scenarios,
            against: &order.against,
        }
    }
}

impl NotRunJson {
    fn of(group: LeftOut) -> NotRunJson {
        NotRunJson {
            cells: group.cells(),
            threads: group.threads(),
            load: if group.is_open() { "open" } else { "closed" },
            open_shares: group.shares(),
            reason: group.why,
            workloads: group.workloads,
            order: group.order,
            scenario: group.scenario,
        }
    }
}

impl FloorJson {
    fn of(floor: &Floor, suite: &Suite) -> FloorJson {
        FloorJson {
            metric: floor.metric.key(),
            comparisons: floor.comparisons,
            false_alarms: floor.false_alarms,
            false_alarms_max: floor.false_alarms_max(),
            half_width_percent: rounded(floor.half_width_percent),
            mean_percent: rounded(floor.mean_percent),
            declared_percent: suite.declared_percent(floor.metric),
        }
    }
}

impl<'a> PooledJson<'a> {
    fn of(pooled: &'a PooledEffect) -> PooledJson<'a> {
        let [percent_low, percent, percent_high] = ends(&pooled.percent);
        PooledJson {
            scenario: &pooled.arm,
            baseline: &pooled.baseline,
            metric: pooled.metric.key(),
            workload: pooled.workload.as_deref(),
            order: pooled.order.as_deref(),
            load: if pooled.is_open { "open" } else { "closed" },
            cells: pooled.cells,
            blocks: pooled.blocks,
            percent,
            percent_low,
            percent_high,
            p_student: rounded(pooled.p_student),
            p_holm: rounded(pooled.p_holm),
            detectable_percent: rounded(pooled.detectable_percent),
            verdict: in_a_word(pooled.verdict.clone()).0,
        }
    }
}
