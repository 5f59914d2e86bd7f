//! Windows with known effects, without a server.

use std::collections::BTreeSet;

use waggle_stats::Random;

use super::*;
use crate::window::{Latency, Load, Measured};

mod lacking;

const BLOCKS: u32 = 20;
/// Processor time of a statement of the baseline, ns.
const CPU_NS: f64 = 100_000.0;

fn cell(threads: u32, load: Load) -> Cell {
    Cell { workload: "read-only".to_owned(), threads, load, ..Cell::default() }
}

/// A window whose statements take so much processor time, and which is longer by the same share.
fn measured(cpu_ns: f64) -> Measured {
    let statements = 100_000;
    let time_ns = 20.0 * cpu_ns;
    Measured {
        seconds: cpu_ns / CPU_NS,
        transactions: Some(statements / 20),
        statements,
        retries: Some(0),
        latency: Some(Latency {
            mean_ns: time_ns,
            p50_ns: time_ns,
            p95_ns: 2.0 * time_ns,
            p99_ns: 3.0 * time_ns,
            max_ns: 4.0 * time_ns,
            ..Latency::default()
        }),
        server_cpu_ns: Some((cpu_ns * statements as f64) as u64),
        server_share: Some(0.9),
        host_share: Some(0.99),
        steal_share: Some(0.0),
        context_switches: Some(statements),
        read_bytes: Some(0),
        written_bytes: Some(0),
        rss_bytes: Some(1 << 30),
        ..Measured::default()
    }
}

/// Windows as a schedule makes them: every block has every arm once.
struct Run {
    windows: Vec<Window>,
    random: Random,
    /// Half the range of the noise, a share.
    noise: f64,
    /// By how much the level rises from block to block, a share.
    drift: f64,
}

impl Run {
    fn new(noise: f64, drift: f64) -> Run {
        Run { windows: Vec::new(), random: Random::seeded(11), noise, drift }
    }

    /// A cell in which each arm costs this many times what the baseline costs; all on one server start.
    fn cell(mut self, cell: &Cell, arms: &[(&str, f64)]) -> Run {
        for block in 0..BLOCKS {
            let level = CPU_NS * (1.0 + self.drift * f64::from(block));
            let mut arms = arms.to_vec();
            self.random.shuffle(&mut arms);
            for (arm, factor) in arms {
                let share = self.random.below(2001) as f64 / 1000.0 - 1.0;
                let cpu_ns = level * factor * (1.0 + self.noise * share);
                self.windows.push(Window {
                    number: self.windows.len() as u32,
                    block,
                    cell: cell.clone(),
                    arm: arm.to_owned(),
                    measured: Some(measured(cpu_ns)),
                    ..Window::default()
                });
            }
        }
        self
    }

    /// Changes the windows of an arm in some blocks.
    fn change(
        mut self,
        arm: &str,
        blocks: impl Fn(u32) -> bool,
        change: impl Fn(&mut Window),
    ) -> Run {
        let chosen = self.windows.iter_mut().filter(|it| it.arm == arm && blocks(it.block));
        chosen.for_each(change);
        self
    }

    fn analyse(&self, cells: &[&Cell], margin_percent: f64) -> Analysis {
        matrix(cells, margin_percent).analyse(&self.windows)
    }
}

fn matrix(cells: &[&Cell], margin_percent: f64) -> Matrix<'static> {
    let with_arms = |cell: &&Cell| ((*cell).clone(), vec!["on", "all", Window::AGAIN]);
    Matrix { cells: cells.iter().map(with_arms).collect(), baseline: "off", margin_percent }
}

fn closed() -> Cell {
    cell(8, Load::Closed)
}

fn three_arms(noise: f64, drift: f64, on: f64) -> Run {
    let arms = [("off", 1.0), ("on", on), ("all", 1.25), (Window::AGAIN, 1.0)];
    Run::new(noise, drift).cell(&closed(), &arms)
}

fn found<'a>(analysis: &'a Analysis, arm: &str, metric: Metric) -> &'a Comparison {
    analysis.find("off", &closed(), arm, metric).unwrap()
}

#[test]
fn a_known_effect_is_found_also_where_the_level_doubles_over_the_run() {
    for drift in [0.0, 0.05] {
        let analysis = three_arms(0.02, drift, 1.1).analyse(&[&closed()], 1.0);
        let cpu = found(&analysis, "on", Metric::CpuPerStatement);
        assert_eq!((cpu.pairs, cpu.void, cpu.verdict.clone()), (20, 0, Verdict::Cost));
        assert!(cpu.percent.holds(10.0) && cpu.percent.half_width() < 1.5, "{cpu:?}");
        assert!(cpu.p_holm <= 0.05 && cpu.p_sign_flip < 0.01);
        assert_eq!(cpu.is_saturated, Some(true));
        let all = found(&analysis, "all", Metric::CpuPerStatement);
        assert!(all.percent.holds(25.0), "{all:?}");
        if drift == 0.0 {
            assert!(cpu.difference.holds(10_000.0), "{cpu:?}");
            assert!((cpu.baseline_value - CPU_NS).abs() < 2000.0, "{cpu:?}");
            assert!((cpu.arm_value - 1.1 * CPU_NS).abs() < 2000.0, "{cpu:?}");
        }
    }
}

#[test]
fn fewer_statements_in_a_second_are_a_cost_and_more_are_a_gain() {
    let slower = three_arms(0.02, 0.0, 1.1).analyse(&[&closed()], 1.0);
    let qps = found(&slower, "on", Metric::Qps);
    assert!(qps.verdict == Verdict::Cost && qps.percent.holds(-100.0 / 11.0), "{qps:?}");
    let faster = three_arms(0.02, 0.0, 0.9).analyse(&[&closed()], 1.0);
    assert_eq!(found(&faster, "on", Metric::Qps).verdict, Verdict::Gain);
    assert_eq!(found(&faster, "on", Metric::LatencyP95).verdict, Verdict::Gain);
}

#[test]
fn the_baseline_against_itself_is_the_floor() {
    let analysis = three_arms(0.02, 0.05, 1.1).analyse(&[&closed()], 0.1);
    let again = found(&analysis, Window::AGAIN, Metric::CpuPerStatement);
    assert!(matches!(again.verdict, Verdict::Below { .. }), "{again:?}");
    let floor = Floor::all(&analysis.comparisons);
    let floor = floor.iter().find(|it| it.metric == Metric::CpuPerStatement).unwrap();
    assert_eq!((floor.comparisons, floor.false_alarms), (1, 0));
    assert_eq!(floor.half_width_percent, again.percent.half_width());
    assert_eq!(floor.mean_percent, again.percent.value);
}

#[test]
fn the_floor_of_several_runs_is_that_of_all_their_comparisons() {
    let runs = [0.02, 0.04, 0.06].map(|noise| {
        let arms = [("off", 1.0), ("on", 1.1), ("all", 1.25), (Window::AGAIN, 1.2)];
        Run::new(noise, 0.0).cell(&closed(), &arms).analyse(&[&closed()], 1.0)
    });
    let all = Floor::all(runs.iter().flat_map(|run| &run.comparisons));
    let floor = all.iter().find(|it| it.metric == Metric::CpuPerStatement).unwrap();
    // The arm that is to be alike is not: an alarm in each.
    assert_eq!((floor.comparisons, floor.false_alarms), (3, 3));
    let middle = found(&runs[1], Window::AGAIN, Metric::CpuPerStatement);
    assert_eq!(floor.half_width_percent, middle.percent.half_width());
}

#[test]
fn no_effect_is_called_free_only_where_that_is_proven_at_the_margin() {
    let run = three_arms(0.002, 0.0, 1.0);
    let verdict = |margin| {
        let analysis = run.analyse(&[&closed()], margin);
        found(&analysis, "on", Metric::CpuPerStatement).verdict.clone()
    };
    let Verdict::Free { below_percent } = verdict(0.5) else { panic!("{:?}", verdict(0.5)) };
    assert!(below_percent > 0.0 && below_percent < 0.5, "{below_percent}");
    let Verdict::Below { detectable_percent } = verdict(0.01) else {
        panic!("{:?}", verdict(0.01))
    };
    assert!(detectable_percent > 0.01 && detectable_percent < 0.5, "{detectable_percent}");
}

#[test]
fn a_rate_that_the_load_sets_is_not_called_free() {
    let verdict = |share| {
        let used = |window: &mut Window| window.measured.as_mut().unwrap().host_share = share;
        let run = three_arms(0.002, 0.0, 1.0).change("off", |_| true, used);
        let analysis = run.analyse(&[&closed()], 0.5);
        [Metric::Qps, Metric::Tps, Metric::CpuPerStatement]
            .map(|metric| matches!(found(&analysis, "on", metric).verdict, Verdict::Free { .. }))
    };
    assert_eq!(verdict(Some(0.99)), [true; 3]);
    assert_eq!(verdict(Some(0.6)), [false, false, true]);
    assert_eq!(verdict(None), [false, false, true]);
}

#[test]
fn a_mean_rate_is_called_free_only_where_all_its_cells_were_saturated() {
    let cells = [1, 2].map(|threads| cell(threads, Load::Closed));
    let arms = [("off", 1.0), ("on", 1.0)];
    let is_free = |share_of_one, metric| {
        let used = |window: &mut Window| {
            let share = if window.cell == cells[0] { share_of_one } else { 0.99 };
            window.measured.as_mut().unwrap().host_share = Some(share);
        };
        let run = cells.iter().fold(Run::new(0.002, 0.0), |run, cell| run.cell(cell, &arms));
        let run = run.change("off", |_| true, used);
        let analysis = run.analyse(&[&cells[0], &cells[1]], 0.5);
        let mut of_metric = analysis.pooled.iter().filter(|it| it.metric == metric);
        matches!(of_metric.next().unwrap().verdict, Verdict::Free { .. })
    };
    assert!(is_free(0.99, Metric::Qps) && !is_free(0.6, Metric::Qps));
    assert!(is_free(0.6, Metric::CpuPerStatement));
}

#[test]
fn memory_is_compared_between_lives_only_and_without_a_ratio_where_there_was_none_before() {
    let with = |server_start: u32, bytes: u64| {
        move |window: &mut Window| {
            window.server_start = server_start + window.block;
            let measured = window.measured.as_mut().unwrap();
            let grown = if bytes > 0 { u64::from(window.block) } else { 0 };
            measured.performance_schema_bytes = Some(bytes + grown);
        }
    };
    let run = three_arms(0.02, 0.0, 1.1)
        .change("off", |_| true, with(100, 0))
        .change("on", |_| true, with(200, 200 << 20))
        .change("all", |_| true, with(300, 500 << 20))
        .change(Window::AGAIN, |_| true, with(300, 0));
    let analysis = run.analyse(&[&closed()], 1.0);
    let on = found(&analysis, "on", Metric::PerformanceSchemaMemory);
    assert!(on.verdict == Verdict::Cost && !on.percent.is_known(), "{on:?}");
    assert!(on.difference.holds((200 << 20) as f64 + 9.5), "{on:?}");
    assert_eq!((on.baseline_value, on.pairs), (0.0, 20));
    // Another arm had its server before it, or after it.
    let all = found(&analysis, "all", Metric::PerformanceSchemaMemory);
    assert!(matches!(all.verdict, Verdict::NotRun(_)), "{all:?}");
}

#[test]
fn noise_of_memory_is_told_by_one_of_the_cells_that_have_the_same_servers() {
    let cells = [closed(), cell(16, Load::Closed)];
    let arms = [("off", 1.0), ("on", 1.1), (Window::AGAIN, 1.0)];
    let server_start = |server_start: u32| {
        move |window: &mut Window| window.server_start = server_start + window.block
    };
    let run = Run::new(0.02, 0.0).cell(&cells[0], &arms).cell(&cells[1], &arms);
    let run =
        run.change("off", |_| true, server_start(100)).change("on", |_| true, server_start(200));
    let run = run.change(Window::AGAIN, |_| true, server_start(300));
    let analysis = run.analyse(&[&cells[0], &cells[1]], 1.0);
    let suite = Suite::find("rds").unwrap();
    let noise: Vec<&Comparison> = analysis.of_noise(&suite).collect();
    let count = |metric| noise.iter().filter(|it| it.metric == metric).count();
    assert_eq!([Metric::Rss, Metric::CpuPerStatement].map(count), [1, 2]);
}

#[test]
fn one_modest_effect_among_many_comparisons_is_not_yet_a_cost() {
    let cells: Vec<Cell> = (1..=90).map(|threads| cell(threads, Load::Closed)).collect();
    let none = [("off", 1.0), ("on", 1.0), ("all", 1.0)];
    let run = cells.iter().fold(Run::new(0.02, 0.0), |run, cell| run.cell(cell, &none));
    let analysis = run.analyse(&cells.iter().collect::<Vec<_>>(), 0.1);
    let of_cpu: Vec<&Comparison> = analysis
        .comparisons
        .iter()
        .filter(|it| it.metric == Metric::CpuPerStatement && !it.is_control())
        .collect();
    let least = of_cpu.iter().map(|it| it.p_student).fold(1.0, f64::min);
    assert!(least < 0.05, "{least}");
    assert!(of_cpu.iter().all(|it| it.p_holm >= it.p_student));
    assert!(of_cpu.iter().all(|it| matches!(it.verdict, Verdict::Below { .. })));
    // As many times the least as there are comparisons, as long as that is below 1.
    let adjusted = of_cpu.iter().map(|it| it.p_holm).fold(1.0, f64::min);
    let expected = (of_cpu.len() as f64 * least).min(1.0);
    assert!((adjusted - expected).abs() < 1e-9, "{adjusted}");
}

#[test]
fn only_a_closed_load_that_leaves_nothing_idle_is_saturated() {
    let idle = |window: &mut Window| window.measured.as_mut().unwrap().host_share = Some(0.6);
    let run = three_arms(0.02, 0.0, 1.1).change("off", |_| true, idle);
    let saturated =
        |run: &Run| found(&run.analyse(&[&closed()], 1.0), "on", Metric::Qps).is_saturated;
    assert_eq!(saturated(&run), Some(false));
    let elsewhere = |window: &mut Window| window.measured.as_mut().unwrap().host_share = None;
    assert_eq!(saturated(&three_arms(0.02, 0.0, 1.1).change("off", |_| true, elsewhere)), None);
    let open = cell(8, Load::Open { share: 0.6 });
    let run = Run::new(0.02, 0.0).cell(&open, &[("off", 1.0), ("on", 1.1)]);
    let analysis = run.analyse(&[&open], 1.0);
    assert_eq!(analysis.find("off", &open, "on", Metric::Qps).unwrap().is_saturated, Some(false));
}

#[test]
fn effects_are_pooled_over_the_cells_of_one_kind_of_load() {
    let cells = [1, 2, 4].map(|threads| cell(threads, Load::Closed));
    let open = cell(8, Load::Open { share: 0.3 });
    let run = cells
        .iter()
        .zip([1.04, 1.05, 1.06])
        .fold(Run::new(0.01, 0.0), |run, (cell, on)| run.cell(cell, &[("off", 1.0), ("on", on)]));
    let run = run.cell(&open, &[("off", 1.0), ("on", 1.5)]);
    let mut asked: Vec<&Cell> = cells.iter().collect();
    asked.push(&open);
    let analysis = run.analyse(&asked, 1.0);
    let of_cpu: Vec<&PooledEffect> =
        analysis.pooled.iter().filter(|it| it.metric == Metric::CpuPerStatement).collect();
    // Over all closed cells and over those of the one workload; the open cell is alone.
    assert_eq!(of_cpu.len(), 2, "{of_cpu:?}");
    let all = of_cpu[0];
    assert_eq!((all.workload.as_deref(), all.cells, all.is_open), (None, 3, false));
    assert!(all.percent.holds(5.0) && (all.percent.value - 5.0).abs() < 0.5, "{all:?}");
    assert_eq!((all.blocks, &all.verdict), (BLOCKS as usize, &Verdict::Cost), "{all:?}");
    assert_eq!(of_cpu[1].workload.as_deref(), Some("read-only"));
    assert_eq!(of_cpu[1].percent, all.percent);
}

#[test]
fn effects_of_two_orders_are_not_pooled_with_each_other() {
    let of = |order: &str, threads| {
        let order = Some(order.to_owned());
        Cell { order, ..cell(threads, Load::Closed) }
    };
    let cells = [of("one", 1), of("one", 2), of("other", 1), of("other", 2)];
    let run = cells
        .iter()
        .zip([1.04, 1.04, 1.2, 1.2])
        .fold(Run::new(0.01, 0.0), |run, (cell, on)| run.cell(cell, &[("off", 1.0), ("on", on)]));
    let analysis = run.analyse(&cells.iter().collect::<Vec<_>>(), 1.0);
    for (order, percent) in [("one", 4.0), ("other", 20.0)] {
        let is_it = |it: &&PooledEffect| {
            it.metric == Metric::CpuPerStatement && it.order.as_deref() == Some(order)
        };
        let pooled: Vec<&PooledEffect> = analysis.pooled.iter().filter(is_it).collect();
        // Over all workloads, and over the only one.
        assert_eq!(pooled.len(), 2, "{pooled:?}");
        for it in pooled {
            assert!(it.cells == 2 && (it.percent.value - percent).abs() < 0.5, "{it:?}");
        }
    }
}

#[test]
fn the_arm_that_is_alone_on_a_server_is_compared_with_its_like_and_no_part_of_the_floor() {
    let suite = Suite::find("rds").unwrap();
    let shared = suite.also_alone().unwrap().name.clone();
    let arms =
        [("pfsoff", 1.0), (Window::AGAIN, 1.0), (shared.as_str(), 1.2), (Window::ALONE, 1.26)];
    let run = Run::new(0.01, 0.0).cell(&closed(), &arms);
    let analysis = analyse_all(&suite, &run.windows);
    // A server that rests too much costs 5 % here.
    for (baseline, percent) in [(shared.as_str(), 5.0), ("pfsoff", 26.0)] {
        let is_it = |it: &&Comparison| it.arm == Window::ALONE && it.baseline == baseline;
        let mut of_cpu =
            analysis.comparisons.iter().filter(|it| it.metric == Metric::CpuPerStatement);
        let alone = of_cpu.find(|it| is_it(it) && it.cell == closed()).unwrap();
        assert!((alone.percent.value - percent).abs() < 1.0, "{alone:?}");
        assert_eq!(alone.verdict, Verdict::Cost, "{alone:?}");
    }
    let floor = analysis.floor.iter().find(|it| it.metric == Metric::CpuPerStatement).unwrap();
    assert_eq!((floor.comparisons, floor.false_alarms), (1, 0), "{floor:?}");
    let sharing = Floor::of_sharing(analysis.of_noise(&suite));
    let sharing = sharing.iter().find(|it| it.metric == Metric::CpuPerStatement).unwrap();
    assert_eq!((sharing.comparisons, sharing.false_alarms), (1, 1), "{sharing:?}");
}

#[test]
fn two_runs_differ_where_an_effect_does_and_not_where_the_level_does() {
    let run = |seed, drift, on| {
        let arms = [("off", 1.0), ("on", on), ("all", 1.25), (Window::AGAIN, 1.0)];
        let run = Run { random: Random::seeded(seed), ..Run::new(0.02, drift) };
        run.cell(&closed(), &arms).windows
    };
    let (one, other) = (run(1, 0.0, 1.1), run(2, 0.05, 1.2));
    let differences = runs::apart(&[matrix(&[&closed()], 1.0)], &one, &other).found;
    let of_cpu = |arm: &str| {
        let is_it = |it: &&RunDifference| it.arm == arm && it.metric == Metric::CpuPerStatement;
        differences.iter().find(is_it).unwrap()
    };
    let on = of_cpu("on");
    assert!(on.is_different() && on.one.holds(10.0) && on.other.holds(20.0), "{on:?}");
    // 1.2 / 1.1.
    assert!(on.percent.holds(100.0 / 11.0), "{on:?}");
    assert!(!of_cpu("all").is_different() && !of_cpu(Window::AGAIN).is_different());
    assert!(differences.iter().all(|it| !it.metric.is_per_server_start()));
}

#[test]
fn what_is_alone_on_a_server_is_compared_between_runs_that_have_the_same_there() {
    let whole = Suite::find("rds").unwrap();
    let shared = whole.also_alone().unwrap().name.clone();
    let mut without = whole.clone();
    without.scenarios.retain(|one| one.name != shared);
    assert!(without.also_alone().is_some());
    let run = |seed, alone| {
        let arms =
            [("pfsoff", 1.0), (Window::AGAIN, 1.0), (shared.as_str(), 1.2), (Window::ALONE, alone)];
        let run = Run { random: Random::seeded(seed), ..Run::new(0.01, 0.0) };
        run.cell(&closed(), &arms).windows
    };
    let (one, other) = (run(1, 1.2), run(2, 1.3));
    let of_alone = |suites: [&Suite; 2]| {
        let mut found = compare_runs(suites, &one, &other).found;
        found.retain(|it| it.arm == Window::ALONE && it.metric == Metric::CpuPerStatement);
        found
    };
    let found = of_alone([&whole, &whole]);
    assert!(found.len() == 1 && found[0].is_different(), "{found:?}");
    assert!(of_alone([&whole, &without]).is_empty());
}

#[test]
fn an_order_compares_each_pair_of_its_scenarios_once() {
    let suite = Suite::find("modb").unwrap();
    let analysis = analyse_all(&suite, &[]);
    let is_step = |it: &&Comparison| {
        it.baseline != suite.baseline && it.metric == Metric::Qps && !it.is_control()
    };
    let steps: Vec<&Comparison> = analysis.comparisons.iter().filter(is_step).collect();
    let mut left = steps.len();
    // What has all histories with three others; where there is the default, that with four. In the last one the default
    // with five, and `basic` with four. `off` is the baseline of the suite. Each has a closed load, and one
    // three fixed rates as well.
    for (order, count, cells) in [
        ("cumulative", 3, 1),
        ("random", 4 + 3, 1 + 3),
        ("memory", 4 + 3, 1),
        ("one-factor", 5 + 4, 1),
    ] {
        let of_order = steps.iter().filter(|it| it.cell.order.as_deref() == Some(order));
        left -= count * cells;
        assert_eq!(of_order.clone().count(), count * cells, "{order}");
        let pairs: BTreeSet<(&str, &str)> =
            of_order.map(|it| (it.baseline.as_str(), it.arm.as_str())).collect();
        assert_eq!(pairs.len(), count, "{order}: {pairs:?}");
        for (baseline, arm) in &pairs {
            assert!(*arm != suite.baseline && !pairs.contains(&(*arm, *baseline)), "{pairs:?}");
        }
    }
    assert_eq!(left, 0);
}
