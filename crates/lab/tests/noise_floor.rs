//! Whether `docs/noise_floor.md` says what the runs say that are kept, and whether the limits hold that
//! their suites declare.
#![cfg(test)]

mod kept_runs;
#[path = "kept_runs/page.rs"]
mod page;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use kept_runs::kept_runs;
use page::assert_written;
use waggle_lab::analysis::{Floor, Interval, PooledEffect};
use waggle_lab::suite::Sequence;
use waggle_lab::{Metric, StoredRun, Window};
use waggle_stats::{mean_interval, percent};

/// So many comparisons show whether the limits hold.
const ENOUGH: usize = 200;

const HEAD_OF_RUNS: &str = "\
    | run | server | windows | void | unsteady | compared | half-width: CPU time, % | QPS, % | p99, % \
    | means over cells: leave out 0, of all | farthest from 0, % |\n\
    |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
const RUNS_SAY: &str = "\
    Half-width: median over the cells, of arms that are set alike. Runs with more blocks, and those with two arms and not \
    eight, are quieter. Means over cells: the baseline again against the baseline, by CPU time per statement and QPS, \
    for each workload. An effect that is smaller than the farthest is not shown by that run.";
const HEAD_OF_SHARING: &str = "\
    | metric | compared | intervals that leave out 0 | mean, % |\n\
    |---|---:|---:|---:|\n";
const SHARING: &str = "\
    Where arms share a server, one of them is there again, alone on a server of its own. Here the one alone is compared with \
    the one that shares. About 1 in 20 intervals leaves out 0 by chance. More need not be false alarms: other arms may leave \
    something behind on the server that they share ([0013](decisions/0013-arms-take-turns.md)).";

/// Metrics by which each run is told apart.
const OF_RUNS: [Metric; 3] = [Metric::CpuPerStatement, Metric::Qps, Metric::LatencyP99];

/// Every run that is kept, with the name of its directory.
static RUNS: LazyLock<Vec<(String, StoredRun)>> = LazyLock::new(|| {
    let name = |run: &Path| run.file_name().unwrap().to_string_lossy().into_owned();
    kept_runs().iter().map(|run| (name(run), StoredRun::read(run).unwrap())).collect()
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
    fn all(runs: &[&StoredRun]) -> Vec<Line> {
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

    /// Its begin of a row in the table of all suites, each of which declares something else.
    fn of_all(&self) -> String {
        let mean = mean_of(&self.floor);
        format!("{}| {mean} | {} ", self.alarms(), self.answer(self.has_few_alarms()))
    }

    /// The half-width and what is declared.
    fn half_width(&self) -> String {
        let half_width = Some(self.floor.half_width_percent).filter(|width| width.is_finite());
        let half_width = half_width.map_or_else(|| "no ratio".to_owned(), |it| format!("{it:.2}"));
        match self.declared_percent {
            Some(declared) => format!("{half_width} of {declared}"),
            None => format!("{half_width}, not declared"),
        }
    }

    /// In a line, for a message.
    fn in_a_line(&self) -> String {
        format!("{}: {}", self.alarms().trim(), self.half_width())
    }

    /// The begin of its row.
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

fn by_suite(runs: &[(String, StoredRun)]) -> BTreeMap<&str, Vec<&StoredRun>> {
    let mut suites: BTreeMap<&str, Vec<&StoredRun>> = BTreeMap::new();
    for (_, run) in runs {
        suites.entry(&run.suite.name).or_default().push(run);
    }
    suites
}

/// The answer, a table of all suites, one of all runs, and what sharing a server does.
fn sections(runs: &[(String, StoredRun)]) -> Vec<String> {
    if runs.is_empty() {
        return Vec::new();
    }
    let all: Vec<&StoredRun> = runs.iter().map(|(_, run)| run).collect();
    let rows: String = runs.iter().map(|(name, run)| row(name, run)).collect();
    let comparisons = all.iter().flat_map(|run| run.analysis.of_noise(&run.suite));
    let shared =
        Floor::of_sharing(comparisons).into_iter().filter(|it| OF_RUNS.contains(&it.metric));
    let shared: String = shared.map(|floor| sharing(&floor)).collect();
    vec![
        format!("## Answer\n\n{}\n\n{}", answer(runs, &all), table(runs, &all)),
        format!("## Each run\n\n{RUNS_SAY}{}\n\n{HEAD_OF_RUNS}{rows}", unsteady(runs)),
        format!("## What sharing a server does\n\n{SHARING}\n\n{HEAD_OF_SHARING}{shared}"),
    ]
}

/// How many alarms are false, and whether the limits hold, in a few sentences.
fn answer(runs: &[(String, StoredRun)], all: &[&StoredRun]) -> String {
    let lines = Line::all(all);
    let sum = |of: fn(&Floor) -> usize| lines.iter().map(|line| of(&line.floor)).sum::<usize>();
    let (compared, alarms) = (sum(|it| it.comparisons), sum(|it| it.false_alarms));
    let share = 100.0 * alarms as f64 / compared as f64;
    let judged = by_suite(runs).into_iter().map(|(suite, runs)| (suite, Line::all(&runs)));
    let broken: Vec<String> = judged
        .flat_map(|(suite, lines)| {
            broken(&lines).into_iter().map(move |it| format!("`{suite}` {it}"))
        })
        .collect();
    let limits = match broken.is_empty() {
        true => "No limit is broken.".to_owned(),
        false => format!("NOT KEPT: {}.", broken.join("; ")),
    };
    format!(
        "{alarms} of {compared} comparisons of equal arms ({share:.1} %) are false alarms; 5 % are to be expected. {limits} \
         {}",
        so_far(runs, all)
    )
}

/// A row for each metric: all suites together, and the half-widths of each.
fn table(runs: &[(String, StoredRun)], all: &[&StoredRun]) -> String {
    let suites: Vec<(&str, Vec<Line>)> =
        by_suite(runs).into_iter().map(|(suite, runs)| (suite, Line::all(&runs))).collect();
    let names: String = suites.iter().map(|(suite, _)| format!("| `{suite}` ")).collect();
    let head = format!(
        "| metric | compared | false alarms | allowed alone, as one of {} | mean | limit {names}|\n|---|---:|---:|---:|---:|---{}|\n",
        Metric::ALL.len(),
        "|---:".repeat(suites.len())
    );
    let row = |line: &Line| {
        let of_suites = suites.iter().map(|(_, lines)| {
            let of_metric = lines.iter().find(|it| it.floor.metric == line.floor.metric);
            of_metric.map_or_else(|| "| none ".to_owned(), |it| format!("| {} ", it.half_width()))
        });
        line.of_all() + &of_suites.collect::<String>() + "|\n"
    };
    let rows: String = Line::all(all).iter().map(row).collect();
    format!(
        "The last columns: half-width, of what the suite declares detectable, %.\n\n{head}{rows}"
    )
}

/// By how much windows that began before the throughput was steady differ, where there are enough of them.
fn unsteady(runs: &[(String, StoredRun)]) -> String {
    let told = runs
        .iter()
        .filter_map(|(name, run)| Some(format!("`{name}` {}", unsteady_apart(&run.windows)?)));
    let told: Vec<String> = told.collect();
    match told.is_empty() {
        true => String::new(),
        false => format!(
            " Unsteady: begun before the throughput was steady; QPS of these windows against the others of their cell and \
             block, %, mean and standard error: {}.",
            told.join(", ")
        ),
    }
}

/// The means of the baseline again over the cells of a workload, in orders that are not always the same.
fn means(run: &StoredRun) -> Vec<Interval> {
    let is_listed = |it: &PooledEffect| {
        let mut listed = run.suite.orders.iter().filter(|it| it.sequence == Sequence::AsListed);
        listed.any(|order| Some(&order.name) == it.order.as_ref())
    };
    let is_again = |it: &&PooledEffect| {
        let is_of_suite = it.baseline == run.suite.baseline && it.workload.is_some();
        let is_told = [Metric::CpuPerStatement, Metric::Qps].contains(&it.metric);
        it.arm == Window::AGAIN && is_of_suite && is_told && !is_listed(it)
    };
    let means = run.analysis.pooled.iter().filter(is_again).map(|it| it.percent);
    means.filter(Interval::is_known).collect()
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

/// Of what there are enough comparisons for a judgement.
fn so_far(runs: &[(String, StoredRun)], all: &[&StoredRun]) -> String {
    let most = |runs: &[&StoredRun]| {
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
    lines.iter().filter(is_broken).map(Line::in_a_line).collect()
}

/// The row of a run.
fn row(name: &str, run: &StoredRun) -> String {
    let StoredRun { manifest, suite, windows, analysis } = run;
    let compared = analysis.floor.iter().map(|floor| floor.comparisons).max().unwrap_or(0);
    let server = &manifest.info.server.version;
    let void = windows.iter().filter(|window| window.void.is_some()).count();
    let unsteady = windows.iter().filter(|window| window.unsteady).count();
    let floors = Floor::all(analysis.of_noise(suite));
    let width = |metric: Metric| {
        let floor = floors.iter().find(|floor| floor.metric == metric);
        let width = floor.map(|floor| floor.half_width_percent).filter(|it| it.is_finite());
        width.map_or_else(|| "not measured".to_owned(), |width| format!("{width:.2}"))
    };
    let widths = OF_RUNS.map(width).join(" | ");
    let means = means(run);
    let alarms = means.iter().filter(|mean| !mean.holds(0.0)).count();
    let farthest =
        means.iter().map(|mean| mean.value).max_by(|one, other| one.abs().total_cmp(&other.abs()));
    let farthest = farthest.map_or_else(|| "none".to_owned(), |it| format!("{it:+.2}"));
    format!(
        "| `{name}` | {server} | {} | {void} | {unsteady} | {compared} | {widths} | {alarms} of {} | {farthest} |\n",
        windows.len(),
        means.len()
    )
}

/// How far windows that began before the throughput was steady are from the others of their cell and block, by QPS
/// without the level of each arm: if their servers had not been warm, these would have been slower. The arms of a
/// server have one load, so that a cell and block gives one number. `None` where there are too few.
fn unsteady_apart(windows: &[Window]) -> Option<String> {
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
    let apart = mean_interval(&apart, 0.95)?;
    Some(format!("{:+.1} ± {:.1}", percent(apart.value), percent(apart.error)))
}

#[test]
fn the_page_of_the_noise_floor_is_what_the_runs_say_that_are_kept() {
    assert_written("docs/noise_floor.md", "noise_floor", &sections(&RUNS));
}

#[test]
fn the_limits_hold() {
    for (suite, runs) in by_suite(&RUNS) {
        let broken = broken(&Line::all(&runs));
        assert!(broken.is_empty(), "suite {suite}: {broken:#?}");
    }
}

#[test]
fn few_alarms_are_false_in_all_suites_together() {
    let all: Vec<&StoredRun> = RUNS.iter().map(|(_, run)| run).collect();
    let lines = Line::all(&all);
    let many = lines.iter().filter(|line| !line.has_few_alarms());
    let many: Vec<String> = many.map(Line::in_a_line).collect();
    assert!(many.is_empty(), "{many:#?}");
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
    // In the row of all suites only the false alarms count.
    assert!(by_qps(200, 15, 5.1, Some(5.0)).of_all().ends_with(" | kept "));
    assert!(by_qps(200, 20, 5.0, Some(5.0)).of_all().ends_with(" | NOT KEPT "));
}

#[test]
fn too_few_comparisons_show_no_limit_and_may_break_one() {
    let answer = |line: Line| line.answer(line.is_kept());
    assert_eq!(answer(by_qps(199, 0, 4.0, Some(5.0))), "199 of 200 comparisons");
    let above = answer(by_qps(20, 9, 4.0, Some(5.0)));
    assert_eq!(above, "above it so far, 20 of 200 comparisons");
    let lines = [(199, 90), (200, 18), (200, 90)]
        .map(|(comparisons, false_alarms)| by_qps(comparisons, false_alarms, 4.0, Some(5.0)));
    assert_eq!(broken(&lines), [lines[0].in_a_line(), lines[2].in_a_line()]);
    // Half-widths of few are not judged.
    assert_eq!(broken(&[by_qps(199, 5, 9.0, Some(5.0))]), Vec::<String>::new());
}

#[test]
fn a_row_has_as_many_places_as_its_head() {
    let places = |text: &str| text.lines().map(|line| line.matches('|').count()).max();
    let with_ratio = by_qps(250, 10, 1.234, Some(5.0)).in_a_line();
    assert_eq!(with_ratio, "| `qps` | 250 | 10 (4.0 %) | 18, 23: 1.23 of 5");
    let without = by_qps(250, 10, f64::NAN, None).in_a_line();
    assert_eq!(without, "| `qps` | 250 | 10 (4.0 %) | 18, 23: no ratio, not declared");
    let all: Vec<&StoredRun> = RUNS.iter().map(|(_, run)| run).collect();
    let table = table(&RUNS, &all);
    let head = places(table.lines().find(|line| line.starts_with("| metric")).unwrap());
    let rows: Vec<_> = table.lines().filter(|line| line.starts_with('|')).map(places).collect();
    assert!(rows.len() == 2 + Metric::ALL.len() && rows.iter().all(|row| *row == head), "{table}");
    for (name, run) in RUNS.iter() {
        assert_eq!(places(&row(name, run)), places(HEAD_OF_RUNS));
    }
}
