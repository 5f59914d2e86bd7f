//! Whether `docs/noise_floor.md` says what the runs say that are kept, and whether the limits hold that
//! their suites declare.
#![allow(clippy::unwrap_used, reason = "clippy sees tests in #[test] functions only")]

mod kept_runs;
#[path = "kept_runs/page.rs"]
mod page;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use kept_runs::kept_runs;
use page::assert_written;
use waggle_lab::analysis::{Floor, PooledEffect};
use waggle_lab::suite::Sequence;
use waggle_lab::{KeptRun, Metric, Window};
use waggle_stats::{mean_interval, percent};

/// So many comparisons show whether the limits hold.
const ENOUGH: usize = 200;

const HEAD_OF_RUNS: &str = "\
    | suite | run | server | windows (number) | of these void (number) \
    | begun before the throughput was steady (number) \
    | QPS of these against the others of their cell and block, mean and its standard error (%) \
    | A/A comparisons by one metric, at most (number) |\n\
    |---|---|---|---:|---:|---:|---:|---:|\n";
const HEAD_OF_SUITE: &str = "\
    | metric | comparisons (number) | false alarms (number, share) | allowed by itself, and as one of 13 (number) \
    | half-width of the 95 % interval, median (%) | declared detectable (%) | limits |\n\
    |---|---:|---:|---:|---:|---:|---|\n";
const HEAD_OF_ALL: &str = "\
    | metric | comparisons (number) | false alarms (number, share) | allowed by itself, and as one of 13 (number) \
    | mean of what was found (%) | limit |\n\
    |---|---:|---:|---:|---:|---|\n";

const HEAD_OF_SHARING: &str = "\
    | metric | comparisons (number) | intervals that leave out 0 (number) \
    | mean of what was found (%) |\n\
    |---|---:|---:|---:|\n";
const SHARING: &str = "\
    Where arms share a server, one of them is there again, alone on a server of its own. The change is that of the one \
    alone, against the one that shares. About 1 in 20 intervals leaves out 0 by chance; more need not be false alarms: other \
    arms may leave something behind on the server that they share, and its sessions log in before any of them is set ([0013](decisions/0013-arms-take-turns.md)).";

/// Metrics by which each run is told apart: those of verdicts, of the sources, and those with the widest intervals.
const OF_RUNS: [Metric; 4] =
    [Metric::CpuPerStatement, Metric::Qps, Metric::LatencyP99, Metric::ServerShare];
const BY_RUN: &str = "\
    The tables above put all runs of a suite together. Runs with more blocks, and those that have two arms and not eight, are \
    quieter than others: so this is each of them. Half of the 95 % interval of arms that are set alike, median over the \
    cells, %.";
const MEANS: &str = "\
    Reports say means over several cells, too. These are such means of the baseline again against the baseline, with their \
    95 % intervals: an effect that is smaller than what is seen here is not shown by one run. About 1 in 20 leaves out 0 by \
    chance.";
const HEAD_OF_MEANS: &str = "\
    | run | workload | order | load | cells (number) | processor time per statement (%) | QPS (%) |\n\
    |---|---|---|---|---:|---:|---:|\n";

/// Every run that is kept, with the name of its directory.
static RUNS: LazyLock<Vec<(String, KeptRun)>> = LazyLock::new(|| {
    let name = |run: &Path| run.file_name().unwrap().to_string_lossy().into_owned();
    kept_runs().iter().map(|run| (name(run), KeptRun::read(run).unwrap())).collect()
});

/// What A/A comparisons by one metric say, beside what is declared.
struct Line {
    floor: Floor,
    /// The effect that the suite declares detectable, %; absent where it says nothing of the metric.
    declared_percent: Option<f64>,
}

impl Line {
    /// Those of all comparisons of these runs, a line for each metric. Where the suite was another one
    /// from run to run, the smallest effect that it declared counts.
    fn all(runs: &[&KeptRun]) -> Vec<Line> {
        let line = |floor: Floor| {
            let declared = runs.iter().filter_map(|run| run.suite.declared_percent(floor.metric));
            let declared_percent = declared.reduce(f64::min);
            Line { floor, declared_percent }
        };
        let comparisons = runs.iter().flat_map(|run| run.analysis.of_noise(&run.suite));
        Floor::all(comparisons).into_iter().map(line).collect()
    }

    /// As one of the metrics that are looked at.
    fn has_few_alarms(&self) -> bool {
        self.floor.false_alarms <= self.floor.false_alarms_max()
    }

    /// Where no ratio could be formed there is no half-width that could be too large.
    fn is_kept(&self) -> bool {
        let half_width = self.floor.half_width_percent;
        let is_wide = self.declared_percent.is_some_and(|declared| half_width > declared);
        self.has_few_alarms() && !is_wide
    }

    fn is_shown(&self) -> bool {
        self.floor.comparisons >= ENOUGH
    }

    /// Its row in the table of a suite.
    fn of_suite(&self) -> String {
        let half_width = Some(self.floor.half_width_percent).filter(|width| width.is_finite());
        let or = |percent: Option<String>, otherwise: &str| {
            percent.map_or_else(|| otherwise.to_owned(), |percent| format!("{percent} %"))
        };
        format!(
            "{}| {} | {} | {} |\n",
            self.alarms(),
            or(half_width.map(|width| format!("{width:.2}")), "no ratio"),
            or(self.declared_percent.map(|declared| declared.to_string()), "not declared"),
            self.answer(self.is_kept())
        )
    }

    /// Its row in the table of all suites, each of which declares something else.
    fn of_all(&self) -> String {
        let mean = mean_of(&self.floor);
        format!("{}| {mean} | {} |\n", self.alarms(), self.answer(self.has_few_alarms()))
    }

    /// The begin of a row.
    fn alarms(&self) -> String {
        let Floor { metric, comparisons, false_alarms, .. } = &self.floor;
        let share = 100.0 * *false_alarms as f64 / *comparisons as f64;
        let (alone, allowed) = (self.floor.false_alarms_max_alone(), self.floor.false_alarms_max());
        let metric = metric.key();
        format!(
            "| `{metric}` | {comparisons} | {false_alarms} ({share:.1} %) | {alone}, {allowed} "
        )
    }

    fn answer(&self, is_kept: bool) -> String {
        let so_far = format!("{} of {ENOUGH} comparisons", self.floor.comparisons);
        match (is_kept, self.is_shown()) {
            (true, true) if self.floor.false_alarms > self.floor.false_alarms_max_alone() => {
                format!("kept as one of {}, not by itself", Metric::ALL.len())
            }
            (true, true) => "kept".to_owned(),
            (false, true) => "NOT KEPT".to_owned(),
            (true, false) => so_far,
            (false, false) => format!("above it so far, {so_far}"),
        }
    }
}

fn by_suite(runs: &[(String, KeptRun)]) -> BTreeMap<&str, Vec<&KeptRun>> {
    let mut suites: BTreeMap<&str, Vec<&KeptRun>> = BTreeMap::new();
    for (_, run) in runs {
        suites.entry(&run.suite.name).or_default().push(run);
    }
    suites
}

/// What is kept, a table for each suite and one for all of them.
fn sections(runs: &[(String, KeptRun)]) -> Vec<String> {
    if runs.is_empty() {
        return Vec::new();
    }
    let rows: String = runs.iter().map(|(name, run)| row(name, run)).collect();
    let all: Vec<&KeptRun> = runs.iter().map(|(_, run)| run).collect();
    let so_far = so_far(runs, &all);
    let mut sections = vec![format!("## What is kept\n\n{so_far}\n\n{HEAD_OF_RUNS}{rows}")];
    for (suite, runs) in by_suite(runs) {
        let rows: String = Line::all(&runs).iter().map(Line::of_suite).collect();
        sections.push(format!("## Suite `{suite}`\n\n{HEAD_OF_SUITE}{rows}"));
    }
    let rows: String = Line::all(&all).iter().map(Line::of_all).collect();
    sections.push(format!("## All suites together\n\n{HEAD_OF_ALL}{rows}"));
    let rows: String = runs.iter().map(|(name, run)| half_widths(name, run)).collect();
    sections
        .push(format!("## Half-widths of each run\n\n{BY_RUN}\n\n{}{rows}", head_of_half_widths()));
    let rows: String = runs.iter().map(|(name, run)| means(name, run)).collect();
    sections.push(format!("## Means over cells\n\n{MEANS}\n\n{HEAD_OF_MEANS}{rows}"));
    let comparisons = all.iter().flat_map(|run| run.analysis.of_noise(&run.suite));
    let rows: String = Floor::of_sharing(comparisons).iter().map(sharing).collect();
    sections.push(format!("## What sharing a server does\n\n{SHARING}\n\n{HEAD_OF_SHARING}{rows}"));
    sections
}

fn head_of_half_widths() -> String {
    let metrics = OF_RUNS.map(|metric| format!("| `{}` ", metric.key())).concat();
    format!("| run | blocks (number) {metrics}|\n|---|---:{}|\n", "|---:".repeat(OF_RUNS.len()))
}

/// The row of a run in the table of half-widths.
fn half_widths(name: &str, run: &KeptRun) -> String {
    let floors = Floor::all(run.analysis.of_noise(&run.suite));
    let width = |metric: Metric| {
        let floor = floors.iter().find(|floor| floor.metric == metric);
        let width = floor.map(|floor| floor.half_width_percent).filter(|it| it.is_finite());
        width.map_or_else(|| "| not measured ".to_owned(), |width| format!("| {width:.2} "))
    };
    format!("| `{name}` | {} {}|\n", run.begun.blocks, OF_RUNS.map(width).concat())
}

/// The rows of a run in the table of means, one for each workload, order and kind of load.
fn means(name: &str, run: &KeptRun) -> String {
    let is_listed = |it: &PooledEffect| {
        let mut listed = run.suite.orders.iter().filter(|it| it.sequence == Sequence::AsListed);
        listed.any(|order| Some(&order.name) == it.order.as_ref())
    };
    let is_again = |it: &&PooledEffect| {
        let is_of_suite = it.baseline == run.suite.baseline && it.workload.is_some();
        it.arm == Window::AGAIN && is_of_suite && !is_listed(it)
    };
    let pooled = || run.analysis.pooled.iter().filter(is_again);
    let size = |it: Option<&PooledEffect>| {
        let percent = it.map(|it| it.percent).filter(|percent| percent.is_known());
        percent.map_or_else(
            || "not measured".to_owned(),
            |it| format!("{:+.2} ({:+.2} to {:+.2})", it.value, it.low, it.high),
        )
    };
    let row = |cpu: &PooledEffect| {
        let key = |it: &PooledEffect| (it.workload.clone(), it.order.clone(), it.is_open);
        let qps = pooled().find(|it| it.metric == Metric::Qps && key(it) == key(cpu));
        let workload = cpu.workload.as_deref().unwrap_or_default();
        let order = cpu.order.as_deref().unwrap_or("random");
        let load = if cpu.is_open { "fixed rates" } else { "closed" };
        let (cells, cpu, qps) = (cpu.cells, size(Some(cpu)), size(qps));
        format!("| `{name}` | {workload} | {order} | {load} | {cells} | {cpu} | {qps} |\n")
    };
    pooled().filter(|it| it.metric == Metric::CpuPerStatement).map(row).collect()
}

/// The mean of what was found, in words.
fn mean_of(floor: &Floor) -> String {
    let mean = Some(floor.mean_percent).filter(|mean| mean.is_finite());
    mean.map_or_else(|| "no ratio".to_owned(), |mean| format!("{mean:+.2} %"))
}

/// The row of a metric in the table of what sharing a server does.
fn sharing(floor: &Floor) -> String {
    let Floor { metric, comparisons, false_alarms, .. } = floor;
    let mean = mean_of(floor);
    format!("| `{}` | {comparisons} | {false_alarms} | {mean} |\n", metric.key())
}

/// Of what there are enough comparisons, and of what there are not.
fn so_far(runs: &[(String, KeptRun)], all: &[&KeptRun]) -> String {
    let most = |runs: &[&KeptRun]| {
        Line::all(runs).iter().map(|line| line.floor.comparisons).max().unwrap_or(0)
    };
    let of_suites =
        by_suite(runs).into_iter().map(|(suite, runs)| (format!("suite `{suite}`"), most(&runs)));
    let counts: Vec<(String, usize)> =
        of_suites.chain([("all together".to_owned(), most(all))]).collect();
    let there = counts.iter().map(|(of, count)| format!("{of} {count}"));
    let shown = counts.iter().filter(|(_, count)| *count >= ENOUGH).map(|(of, _)| of.as_str());
    let (there, shown): (Vec<String>, Vec<&str>) = (there.collect(), shown.collect());
    format!(
        "Half-widths are judged from {ENOUGH} comparisons on. There are, by one metric at most: {}. So far judged: {}.",
        there.join(", "),
        if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
    )
}

/// The rows of those that do not keep their limits. Too many false alarms are that whatever the number of comparisons;
/// a half-width is taken for one where there are enough.
fn broken(lines: &[Line]) -> Vec<String> {
    let is_broken = |line: &&Line| !line.has_few_alarms() || line.is_shown() && !line.is_kept();
    lines.iter().filter(is_broken).map(Line::of_suite).collect()
}

/// The row of a run in the table of what is kept.
fn row(name: &str, run: &KeptRun) -> String {
    let KeptRun { begun, suite, windows, analysis } = run;
    let most = analysis.floor.iter().map(|floor| floor.comparisons).max().unwrap_or(0);
    let server = &begun.facts.server.version;
    let void = windows.iter().filter(|window| window.void.is_some()).count();
    let unsteady = windows.iter().filter(|window| window.unsteady).count();
    let (suite, of, apart) = (&suite.name, windows.len(), unsteady_apart(windows));
    format!("| `{suite}` | `{name}` | {server} | {of} | {void} | {unsteady} | {apart} | {most} |\n")
}

/// How far windows that began before the throughput was steady are from the others of their cell and block, by QPS
/// without the level of each arm: if their servers had not been warm, these would have been slower. The arms of a
/// server have one load, so that a cell and block gives one number.
fn unsteady_apart(windows: &[Window]) -> String {
    let log = |window: &Window| Some(Metric::Qps.of(window.counted()?)?.ln());
    let cell = |window: &Window| format!("{:?}", window.cell);
    let mut arms: BTreeMap<(String, &str), Vec<f64>> = BTreeMap::new();
    for window in windows {
        arms.entry((cell(window), &window.arm)).or_default().extend(log(window));
    }
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
    let mut apart: BTreeMap<(String, u32), [Vec<f64>; 2]> = BTreeMap::new();
    for window in windows {
        let level = mean(&arms[&(cell(window), window.arm.as_str())]);
        let of_block = apart.entry((cell(window), window.block)).or_default();
        of_block[usize::from(window.unsteady)].extend(log(window).map(|log| log - level));
    }
    let have_both = apart.values().filter(|[one, other]| !one.is_empty() && !other.is_empty());
    let apart: Vec<f64> =
        have_both.map(|[steady, unsteady]| mean(unsteady) - mean(steady)).collect();
    match mean_interval(&apart, 0.95) {
        Some(apart) => format!("{:+.1} ± {:.1}", percent(apart.value), percent(apart.error)),
        None => "too few".to_owned(),
    }
}

#[test]
fn the_page_of_the_noise_floor_is_what_the_runs_say_that_are_kept() {
    assert_written("docs/noise_floor.md", "noise_floor", &sections(&RUNS));
}

#[test]
fn the_limits_hold() {
    for (suite, runs) in by_suite(&RUNS) {
        let broken = broken(&Line::all(&runs));
        assert!(broken.is_empty(), "suite {suite}:\n{HEAD_OF_SUITE}{}", broken.concat());
    }
}

#[test]
fn few_alarms_are_false_in_all_suites_together() {
    let all: Vec<&KeptRun> = RUNS.iter().map(|(_, run)| run).collect();
    let lines = Line::all(&all);
    let many = lines.iter().filter(|line| !line.has_few_alarms());
    let rows: String = many.map(Line::of_all).collect();
    assert!(rows.is_empty(), "{HEAD_OF_ALL}{rows}");
}

/// Of the cells that were run: those of which a scenario has too few windows that count.
#[test]
fn few_cells_of_a_run_are_void() {
    for (name, run) in RUNS.iter() {
        assert!(run.analysis.comparisons.iter().any(|one| one.verdict.is_known()), "{name}");
        assert!(!run.report().has_too_many_void(), "{name}");
    }
}

fn by_qps(
    comparisons: usize,
    false_alarms: usize,
    half_width_percent: f64,
    declared_percent: Option<f64>,
) -> Line {
    let metric = Metric::Qps;
    let floor = Floor { metric, comparisons, false_alarms, half_width_percent, mean_percent: 0.0 };
    Line { floor, declared_percent }
}

#[test]
fn a_limit_that_is_not_kept_is_called_so() {
    let answer = |line: Line| line.answer(line.is_kept());
    // Of 200 comparisons of one metric by itself 15 may be false alarms, and 19 of one of 13.
    assert_eq!(answer(by_qps(200, 15, 5.0, Some(5.0))), "kept");
    assert_eq!(answer(by_qps(200, 16, 5.0, Some(5.0))), "kept as one of 13, not by itself");
    assert_eq!(answer(by_qps(200, 19, 5.0, Some(5.0))), "kept as one of 13, not by itself");
    assert_eq!(answer(by_qps(200, 20, 5.0, Some(5.0))), "NOT KEPT");
    assert_eq!(answer(by_qps(200, 18, 5.1, Some(5.0))), "NOT KEPT");
    assert_eq!(answer(by_qps(200, 15, 5.1, None)), "kept");
    assert_eq!(answer(by_qps(200, 15, f64::NAN, Some(5.0))), "kept");
    // In the table of all suites only the false alarms count.
    assert!(by_qps(200, 15, 5.1, Some(5.0)).of_all().ends_with(" | kept |\n"));
    assert!(by_qps(200, 20, 5.0, Some(5.0)).of_all().ends_with(" | NOT KEPT |\n"));
}

#[test]
fn too_few_comparisons_show_no_limit_and_may_break_one() {
    let answer = |line: Line| line.answer(line.is_kept());
    assert_eq!(answer(by_qps(199, 0, 4.0, Some(5.0))), "199 of 200 comparisons");
    let above = answer(by_qps(20, 9, 4.0, Some(5.0)));
    assert_eq!(above, "above it so far, 20 of 200 comparisons");
    let lines = [(199, 90), (200, 18), (200, 90)]
        .map(|(comparisons, false_alarms)| by_qps(comparisons, false_alarms, 4.0, Some(5.0)));
    assert_eq!(broken(&lines), [lines[0].of_suite(), lines[2].of_suite()]);
    // Half-widths of few are not judged.
    assert_eq!(broken(&[by_qps(199, 5, 9.0, Some(5.0))]), Vec::<String>::new());
}

#[test]
fn a_row_has_as_many_places_as_its_head() {
    let places = |text: &str| text.lines().map(|line| line.matches('|').count()).max();
    let with_ratio = by_qps(250, 10, 1.234, Some(5.0)).of_suite();
    assert_eq!(with_ratio, "| `qps` | 250 | 10 (4.0 %) | 18, 23 | 1.23 % | 5 % | kept |\n");
    let without = by_qps(250, 10, f64::NAN, None).of_suite();
    assert_eq!(without, "| `qps` | 250 | 10 (4.0 %) | 18, 23 | no ratio | not declared | kept |\n");
    assert_eq!(places(&with_ratio), places(HEAD_OF_SUITE));
    assert_eq!(places(&by_qps(250, 10, 1.0, None).of_all()), places(HEAD_OF_ALL));
    for (name, run) in RUNS.iter() {
        assert_eq!(places(&row(name, run)), places(HEAD_OF_RUNS));
    }
}
