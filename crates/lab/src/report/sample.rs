//! A small report with everything in it: each verdict, a void cell, one that was not run, an open load.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::analysis::{Analysis, Comparison, Floor, Interval, PooledEffect, Verdict};
use crate::metric::Metric;
use crate::report::Report;
use crate::run_info::{Host, LoadInfo, NotRun, Run, RunInfo, Server};
use crate::suite::{Figure, Source, SourceMetric, Suite};
use crate::window::{Cell, Latency, Load, Measured, Window};

const OPEN: Load = Load::Open { share: 0.6 };
/// As the suite has it.
const BASELINE: &str = "pfsoff";

pub(super) fn cell(threads: u32, load: Load) -> Cell {
    Cell { workload: "read-only".to_owned(), threads, load, order: None }
}

/// The shape of `rds`, with two numbers of threads.
pub(super) fn suite() -> Suite {
    let mut suite = Suite::find("rds").unwrap();
    assert_eq!((suite.baseline.as_str(), suite.scenarios[0].name.as_str()), (BASELINE, BASELINE));
    suite.title = "What each part costs".to_owned();
    suite.source = Source {
        what: "A report".to_owned(),
        server: "4 cores".to_owned(),
        load: "sysbench".to_owned(),
        caveats: vec!["one number per cell".to_owned()],
    };
    suite.metric = SourceMetric::Qps;
    suite.margin_percent = 1.0;
    suite.detectable_percent =
        BTreeMap::from([(Metric::CpuPerStatement, 1.0), (Metric::LatencyP99, 15.0)]);
    suite.threads = vec![1, 32];
    suite.open_shares = vec![0.6];
    suite.open_threads = 32;
    suite.workloads.truncate(1);
    suite.workloads[0].name = "read-only".to_owned();
    for scenario in &mut suite.scenarios {
        scenario.title = format!("title of {}", scenario.name);
        scenario.start = vec!["--performance-schema=OFF".to_owned()];
        scenario.profile = None;
        scenario.variables.clear();
    }
    suite.orders.truncate(1);
    let name = suite.scenarios[1].name.clone();
    for one in &mut suite.published {
        let is_it = one.threads == 32 && one.scenario == name;
        let why = is_it.then(|| (Figure::Qps, "two columns are exchanged".to_owned()));
        one.contradictions = why.into_iter().collect();
    }
    suite
}

pub(super) fn info() -> RunInfo {
    RunInfo {
        run: Run {
            command: "waggle lab run rds --scale tiny".to_owned(),
            waggle_version: "0.1.0".to_owned(),
            begin: Timestamp::UNIX_EPOCH,
            end: None,
            seed: 7,
            scale: "tiny".to_owned(),
            budget_s: Some(600.0),
            only: Vec::new(),
            blocks: 8,
            windows_planned: 400,
            window_s: 0.4,
            settle_s: 0.15,
            steal_limit: 0.02,
            resumed: 1,
        },
        host: Host {
            name: "a<b>&host".to_owned(),
            system: Some("Debian GNU/Linux 12".to_owned()),
            kernel: "6.1.0".to_owned(),
            cpu_model: None,
            processors: 2,
            memory_bytes: Some(8 << 30),
            hypervisor: None,
            pinned: None,
        },
        taken_up: Vec::new(),
        server: Server {
            version: "9.3.0 <script>alert(1)</script>".to_owned(),
            program: Some("/usr/sbin/mysqld".to_owned()),
            options: vec!["--innodb-buffer-pool-size=128M".to_owned()],
            is_foreign: false,
            data_bytes: Some(300 << 20),
            buffer_pool_bytes: None,
        },
        load: LoadInfo {
            sysbench_version: Some("1.0.20".to_owned()),
            tables: Some(10),
            rows_per_table: Some(10_000),
        },
        not_run: vec![NotRun { cell: cell(32, OPEN), scenario: None, why: "budget".to_owned() }],
        caveats: vec!["one number per cell".to_owned(), "the host has 2 processors".to_owned()],
    }
}

/// A window with this many µs of processor time per statement.
pub(super) fn window(number: u32, arm: &str, cpu_us: f64) -> Window {
    let statements = 10_000;
    Window {
        number,
        block: number / 7,
        cell: cell(32, Load::Closed),
        arm: arm.to_owned(),
        begin: Timestamp::UNIX_EPOCH + SignedDuration::from_secs(i64::from(number)),
        end: Timestamp::UNIX_EPOCH + SignedDuration::from_secs(i64::from(number) + 1),
        measured: Some(Measured {
            seconds: 0.4,
            transactions: Some(500),
            statements,
            retries: Some(0),
            latency: Some(Latency { mean_ns: 1e6, p50_ns: 9e5, ..Latency::default() }),
            server_cpu_ns: Some((cpu_us * 1e3 * statements as f64) as u64),
            load_cpu_ns: Some(20_000_000),
            server_share: Some(0.9),
            host_share: Some(0.99),
            steal_share: Some(0.0),
            context_switches: Some(100),
            read_bytes: Some(0),
            written_bytes: Some(0),
            rss_bytes: Some(1 << 29),
            performance_schema_bytes: Some(200 << 20),
            ..Measured::default()
        }),
        ..Window::default()
    }
}

/// What a report is made of.
pub(super) fn report<'a>(
    suite: &'a Suite,
    info: &'a RunInfo,
    windows: &'a [Window],
    analysis: &'a Analysis,
) -> Report<'a> {
    Report { suite, info, windows, analysis }
}

/// A comparison at 32 threads in which the arm has 5 % more than the baseline.
pub(super) fn comparison(arm: &str, metric: Metric, verdict: Verdict) -> Comparison {
    Comparison {
        cell: cell(32, Load::Closed),
        arm: arm.to_owned(),
        baseline: BASELINE.to_owned(),
        metric,
        pairs: 8,
        void: 0,
        baseline_value: 40_000.0,
        arm_value: 42_000.0,
        percent: Interval { low: 4.0, value: 5.0, high: 6.0 },
        difference: Interval { low: 1600.0, value: 2000.0, high: 2400.0 },
        bootstrap: None,
        p_sign_flip: 0.0078,
        p_student: 0.001,
        p_holm: 0.01,
        detectable_percent: 1.2,
        proven_percent: 6.0,
        is_saturated: Some(metric != Metric::Qps),
        verdict,
    }
}

/// Where nothing was measured.
pub(super) fn unknown(arm: &str, metric: Metric, verdict: Verdict) -> Comparison {
    Comparison {
        baseline_value: f64::NAN,
        arm_value: f64::NAN,
        percent: Interval::UNKNOWN,
        difference: Interval::UNKNOWN,
        p_sign_flip: f64::NAN,
        p_student: f64::NAN,
        p_holm: f64::NAN,
        detectable_percent: f64::NAN,
        proven_percent: f64::INFINITY,
        ..comparison(arm, metric, verdict)
    }
}

/// At 32 threads each scenario has another verdict; nothing else was run.
pub(super) fn analysis() -> Analysis {
    let verdicts = [
        Verdict::Cost,
        Verdict::Gain,
        Verdict::Below { detectable_percent: 1.2 },
        Verdict::Free { below_percent: 0.8 },
        Verdict::Void("the hypervisor took 9 %".to_owned()),
    ];
    let suite = suite();
    let mut comparisons = Vec::new();
    for metric in Metric::ALL {
        let others = suite.scenarios.iter().filter(|one| one.name != suite.baseline);
        for (scenario, verdict) in others.zip(&verdicts) {
            let of = if verdict.is_known() { comparison } else { unknown };
            comparisons.push(of(&scenario.name, metric, verdict.clone()));
            for (threads, load) in [(1, Load::Closed), (32, OPEN)] {
                let not_run = Verdict::NotRun(Verdict::NOT_YET.to_owned());
                let mut one = unknown(&scenario.name, metric, not_run);
                one.cell = cell(threads, load);
                comparisons.push(one);
            }
        }
        comparisons.push(comparison(
            Window::AGAIN,
            metric,
            Verdict::Below { detectable_percent: 1.2 },
        ));
    }
    let floor = |metric| Floor {
        metric,
        comparisons: 33,
        false_alarms: 2,
        half_width_percent: if metric == Metric::PerformanceSchemaMemory { f64::NAN } else { 0.7 },
        mean_percent: 0.1,
    };
    let pooled = PooledEffect {
        arm: suite.scenarios[1].name.clone(),
        baseline: suite.baseline.clone(),
        metric: Metric::CpuPerStatement,
        workload: Some("read-only".to_owned()),
        order: None,
        is_open: false,
        cells: 2,
        percent: Interval { low: 3.0, value: 4.5, high: 6.0 },
        blocks: 8,
        p_student: 0.001,
        p_holm: 0.003,
        detectable_percent: 2.1,
        proven_percent: 5.8,
        shows_costs: true,
        verdict: Verdict::Cost,
    };
    Analysis {
        comparisons,
        pooled: vec![pooled],
        floor: Metric::ALL.map(floor).to_vec(),
        void: 1,
        windows: 3,
    }
}

pub(super) fn windows() -> Vec<Window> {
    let scenario = suite().scenarios[1].name.clone();
    let mut windows = vec![
        window(0, &suite().baseline, 40.0),
        window(1, &scenario, 42.0),
        window(2, &scenario, 9.0),
    ];
    windows[2].void = Some("the hypervisor took 9 %".to_owned());
    windows
}
