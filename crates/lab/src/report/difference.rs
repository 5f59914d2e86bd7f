//! Whether two runs differ, in words and as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use crate::analysis::{RunDifference, RunDifferences};
use crate::metric::Metric;
use crate::report::document::{Block, Datum, Table};
use crate::report::row::{self, ends, rounded};
use crate::report::{circumstances, markdown, words};
use crate::run_info::RunInfo;

/// Whether two runs differ, as Markdown.
pub fn in_words(one: &RunInfo, other: &RunInfo, differences: &RunDifferences) -> String {
    let RunDifferences { found: differences, without_ratio, in_one_only } = differences;
    let different: Vec<&RunDifference> =
        differences.iter().filter(|it| it.is_different()).collect();
    let compared = words::count(differences.len(), "effect", "effects");
    let answer = match different.is_empty() {
        true => format!("No difference was found among {compared}. {}", found(differences)),
        false => format!("{} of {compared} differ.", different.len()),
    };
    let how = "An effect is the change of a scenario against its baseline in the same run. The levels \
               are not compared. A difference has stayed significant at 5 % after Holm's correction over \
               all differences.";
    let mut blocks = vec![
        Block::Paragraph(answer),
        Block::Table(runs(one, other)),
        Block::Paragraph(how.to_owned()),
    ];
    if *without_ratio > 0 {
        let effects = words::count(*without_ratio, "effect", "effects");
        blocks.push(Block::Paragraph(format!(
            "Not compared: {effects} of which a value is 0, so that there is no ratio."
        )));
    }
    if *in_one_only > 0 {
        let effects = words::count(*in_one_only, "effect", "effects");
        blocks.push(Block::Paragraph(format!(
            "Not compared: {effects} of which one run only has a number: what was not run, not measured or \
             void in the other."
        )));
    }
    if !different.is_empty() {
        blocks.push(Block::Table(table("Effects that differ", different.into_iter())));
    }
    let of_cpu = differences.iter().filter(|it| it.metric == Metric::CpuPerStatement);
    if of_cpu.clone().next().is_some() {
        blocks.push(Block::Table(table("All effects on CPU time per statement", of_cpu)));
    }
    markdown::of("waggle lab: two runs", &blocks)
}

/// What could have been found: that nothing was is no proof that nothing is there.
fn found(differences: &[RunDifference]) -> String {
    let of_cpu = differences.iter().filter(|it| it.metric == Metric::CpuPerStatement);
    let mut detectable: Vec<f64> = of_cpu.map(|it| it.detectable_percent).collect();
    detectable.retain(|percent| percent.is_finite());
    detectable.sort_by(f64::total_cmp);
    match detectable.as_slice() {
        [] => "What could have been found is not known.".to_owned(),
        [least, .., most] => format!(
            "On the CPU time per statement, one of {} to {} would have been found in 4 of 5 cases, by the \
             cell: this is no proof of less.",
            words::share(*least),
            words::share(*most)
        ),
        [one] => format!(
            "On the CPU time per statement, one of {} would have been found in 4 of 5 cases: this is no \
             proof of less.",
            words::share(*one)
        ),
    }
}

/// The circumstances in which the two runs differ; the server and the scale always.
fn runs(one: &RunInfo, other: &RunInfo) -> Table {
    let heads = ["fact", "first run", "second run"].map(str::to_owned).to_vec();
    let mut table = Table::new("The runs, and in what they differ", heads);
    let (ones, others) = (circumstances::all(one), circumstances::all(other));
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in ones.iter().chain(&others) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    for name in names {
        let [one, other] = [&ones, &others].map(|info| {
            let found = info.iter().find(|(known, _)| *known == name);
            found.map_or(words::NOT_MEASURED, |(_, value)| value.as_str())
        });
        if one != other || ["server", "scale"].contains(&name) {
            table.rows.push([name, one, other].map(Datum::text).to_vec());
        }
    }
    table
}

fn table<'a>(caption: &str, differences: impl Iterator<Item = &'a RunDifference>) -> Table {
    let heads = [
        "cell",
        "scenario",
        "metric",
        "first run, change (95 % interval)",
        "second run, change (95 % interval)",
        "second against first, change (95 % interval)",
        "p after Holm (0 to 1)",
    ];
    let mut table = Table::new(caption, heads.map(str::to_owned).to_vec());
    for it in differences {
        table.rows.push(vec![
            Datum::text(words::cell(&it.cell)),
            Datum::text(&it.arm),
            Datum::text(words::name(it.metric)),
            Datum::number(words::percent_interval(&it.one)),
            Datum::number(words::percent_interval(&it.other)),
            Datum::number(words::percent_interval(&it.percent)),
            Datum::number(words::number(it.p_holm, 4)),
        ]);
    }
    table
}

/// One difference. Changes are in %.
#[derive(Serialize, JsonSchema)]
pub(super) struct DifferenceJson<'a> {
    workload: &'a str,
    threads: u32,
    /// `closed` or `open`.
    load: &'static str,
    /// Share of the processors that was in use with the baseline at the fixed rate, 0 to 1; closed: `null`.
    open_share: Option<f64>,
    /// The order of the scenarios; `null` where the suite has only one.
    order: Option<&'a str>,
    scenario: &'a str,
    baseline: &'a str,
    metric: &'static str,
    /// Change against the baseline in the first run: low end, value, high end, %.
    first_percent: [Option<f64>; 3],
    /// The same in the second run.
    second_percent: [Option<f64>; 3],
    /// How much more it is in the second run, with its interval of 95 %.
    percent: [Option<f64>; 3],
    /// The smallest difference that is found in 4 of 5 cases among all, %.
    detectable_percent: Option<f64>,
    /// P value of "the same in both", and after Holm.
    p_student: Option<f64>,
    p_holm: Option<f64>,
    /// Whether the runs differ in it.
    different: bool,
}

impl<'a> DifferenceJson<'a> {
    pub(super) fn of(it: &'a RunDifference) -> DifferenceJson<'a> {
        DifferenceJson {
            workload: &it.cell.workload,
            threads: it.cell.threads,
            load: row::load(it.cell.load),
            open_share: row::open_share(it.cell.load),
            order: it.cell.order.as_deref(),
            scenario: &it.arm,
            baseline: &it.baseline,
            metric: it.metric.key(),
            first_percent: ends(&it.one),
            second_percent: ends(&it.other),
            percent: ends(&it.percent),
            detectable_percent: rounded(it.detectable_percent),
            p_student: rounded(it.p_student),
            p_holm: rounded(it.p_holm),
            different: it.is_different(),
        }
    }
}
