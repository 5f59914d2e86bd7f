//! Comparisons and windows as CSV.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use waggle_model::visible::in_cell;

use crate::report::json::compared;
use crate::report::{Report, row};
use crate::window::{Latency, Measured, Window};

/// The columns of a comparison, and where each is in the JSON: in that of the cell, or below in that of a metric.
const COLUMNS: [(&str, &str); 35] = [
    ("workload", "/workload"),
    ("threads", "/threads"),
    ("load", "/load"),
    ("open_share", "/open_share"),
    ("order", "/order"),
    ("scenario", "/scenario"),
    ("sets", "/sets"),
    ("baseline", "/baseline"),
    ("metric", "/metric"),
    ("unit", "/unit"),
    ("verdict", "/verdict"),
    ("reason", "/reason"),
    ("pairs", "/pairs"),
    ("void_pairs", "/void_pairs"),
    ("baseline_value", "/baseline_value"),
    ("value", "/value"),
    ("percent", "/percent/1"),
    ("percent_low", "/percent/0"),
    ("percent_high", "/percent/2"),
    ("difference", "/difference/1"),
    ("difference_low", "/difference/0"),
    ("difference_high", "/difference/2"),
    ("bootstrap_percent_low", "/bootstrap_percent/0"),
    ("bootstrap_percent_high", "/bootstrap_percent/1"),
    ("p_sign_flip", "/p_sign_flip"),
    ("p_student", "/p_student"),
    ("p_holm", "/p_holm"),
    ("detectable_percent", "/detectable_percent"),
    ("proven_percent", "/proven_percent"),
    ("saturated", "/saturated"),
    ("published_value", "/published/value"),
    ("published_unit", "/published/unit"),
    ("published_percent", "/published/percent"),
    ("printed_percent", "/published/printed_percent"),
    ("published_contradicts", "/published/contradicts"),
];

/// A line for each comparison. What is not there is empty.
pub(super) fn comparisons(report: Report<'_>) -> String {
    let mut to = csv::Writer::from_writer(Vec::new());
    let heads = COLUMNS.iter().map(|(name, _)| *name);
    // Writing to memory cannot fail.
    drop(to.write_record(std::iter::once("suite").chain(heads)));
    for compared in compared::all(report) {
        let of_cell = serde_json::to_value(&compared).unwrap_or_default();
        for metric in &compared.metrics {
            let of_metric = serde_json::to_value(metric).unwrap_or_default();
            let value = |pointer| of_cell.pointer(pointer).or_else(|| of_metric.pointer(pointer));
            let data = COLUMNS.iter().map(|(_, pointer)| text(value(pointer)));
            drop(to.write_record(
                std::iter::once(in_cell(&report.suite.name).into_owned()).chain(data),
            ));
        }
    }
    String::from_utf8(to.into_inner().unwrap_or_default()).unwrap_or_default()
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => in_cell(text).into_owned(),
        Some(value) => value.to_string(),
    }
}

/// A line for each window.
pub(super) fn windows(windows: &[Window]) -> String {
    if windows.is_empty() {
        // The names of the columns come with the first line.
        let one = lines(&[Window::default()]);
        return one.split_inclusive('\n').take(1).collect();
    }
    lines(windows)
}

/// The names of the columns and the lines. Writing plain fields to memory cannot fail.
fn lines(windows: &[Window]) -> String {
    let mut to = csv::Writer::from_writer(Vec::new());
    windows.iter().map(Line::of).for_each(|line| drop(to.serialize(line)));
    String::from_utf8(to.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// A window. The names of the fields are the names of the columns.
#[derive(Debug, Serialize)]
struct Line<'a> {
    number: u32,
    block: u32,
    workload: Cow<'a, str>,
    threads: u32,
    load: &'static str,
    open_share: Option<f64>,
    order: Option<Cow<'a, str>>,
    arm: Cow<'a, str>,
    server_start: u32,
    part: u32,
    /// Transactions per second that arrived; empty in a closed load.
    rate: Option<f64>,
    begin: String,
    end: String,
    /// Whether it began before the throughput was steady.
    unsteady: bool,
    /// Turns that were made anew because the hypervisor took too much of them.
    turns_anew: usize,
    /// Why it does not count; empty where it does.
    void: Option<Cow<'a, str>>,
    seconds: Option<f64>,
    transactions: Option<u64>,
    statements: Option<u64>,
    retries: Option<u64>,
    qps: Option<f64>,
    tps: Option<f64>,
    cpu_ns_per_statement: Option<f64>,
    latency_mean_ns: Option<f64>,
    latency_p50_ns: Option<f64>,
    latency_p95_ns: Option<f64>,
    latency_p99_ns: Option<f64>,
    latency_max_ns: Option<f64>,
    server_cpu_ns: Option<u64>,
    load_cpu_ns: Option<u64>,
    server_share: Option<f64>,
    host_share: Option<f64>,
    steal_share: Option<f64>,
    context_switches: Option<u64>,
    read_bytes: Option<u64>,
    written_bytes: Option<u64>,
    rss_bytes: Option<u64>,
    performance_schema_bytes: Option<u64>,
    /// For how long the next arrival had been waiting at its beginning and at its end; empty in a closed load.
    behind_begin_s: Option<f64>,
    behind_end_s: Option<f64>,
}

impl<'a> Line<'a> {
    fn of(window: &'a Window) -> Line<'a> {
        let measured = window.measured.as_ref();
        let number = |of: fn(&Measured) -> Option<f64>| {
            measured.and_then(of).filter(|value| value.is_finite())
        };
        let count = |of: fn(&Measured) -> Option<u64>| measured.and_then(of);
        let latency = measured.and_then(|it| it.latency.as_ref());
        let time = |of: fn(&Latency) -> f64| latency.map(of).filter(|value| value.is_finite());
        Line {
            number: window.number,
            block: window.block,
            workload: in_cell(&window.cell.workload),
            threads: window.cell.threads,
            load: row::load(window.cell.load),
            open_share: row::open_share(window.cell.load),
            order: window.cell.order.as_deref().map(in_cell),
            arm: in_cell(&window.arm),
            server_start: window.server_start,
            part: window.part,
            rate: window.rate,
            begin: window.begin.to_string(),
            end: window.end.to_string(),
            unsteady: window.unsteady,
            turns_anew: window.stolen.len(),
            void: window.void.as_deref().map(in_cell),
            seconds: number(|it| Some(it.seconds)),
            transactions: count(|it| it.transactions),
            statements: count(|it| Some(it.statements)),
            retries: count(|it| it.retries),
            qps: number(|it| Some(it.qps())),
            tps: number(Measured::tps),
            cpu_ns_per_statement: number(Measured::cpu_ns_per_statement),
            latency_mean_ns: time(|it| it.mean_ns),
            latency_p50_ns: time(|it| it.p50_ns),
            latency_p95_ns: time(|it| it.p95_ns),
            latency_p99_ns: time(|it| it.p99_ns),
            latency_max_ns: time(|it| it.max_ns),
            server_cpu_ns: count(|it| it.server_cpu_ns),
            load_cpu_ns: count(|it| it.load_cpu_ns),
            server_share: number(|it| it.server_share),
            host_share: number(|it| it.host_share),
            steal_share: number(|it| it.steal_share),
            context_switches: count(|it| it.context_switches),
            read_bytes: count(|it| it.read_bytes),
            written_bytes: count(|it| it.written_bytes),
            rss_bytes: count(|it| it.rss_bytes),
            performance_schema_bytes: count(|it| it.performance_schema_bytes),
            behind_begin_s: number(|it| Some(it.behind_s?[0])),
            behind_end_s: number(|it| Some(it.behind_s?[1])),
        }
    }
}
