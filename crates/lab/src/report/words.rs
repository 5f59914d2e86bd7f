//! Numbers and verdicts in words: one place, so that every format says the same.
//!
//! A number that is not finite is never printed; in its place stands [`NOT_MEASURED`].

use crate::analysis::{Interval, Verdict};
use crate::metric::Metric;
use crate::window::{Cell, Load};

/// In place of a number that is not there.
pub(super) const NOT_MEASURED: &str = Verdict::NOT_MEASURED;
/// Why nothing is said where a value is 0.
pub(super) const NO_RATIO: &str = "no ratio could be formed";
/// In place of a figure that the source does not print.
pub(super) const NOT_PUBLISHED: &str = "not published";
/// In place of the detectable effect on a metric of which a suite says nothing.
const NOT_DECLARED: &str = "not declared";
/// Beside a cell in which the baseline left processors idle.
pub(super) const BELOW_SATURATION: &str = "below saturation: the load bounds the throughput, not the \
                                           server; read the CPU time per statement";
/// Beside what comes from an order that is the same in every block.
pub(super) const FIXED_ORDER: &str = "The scenarios of this order follow each other as listed in every \
                                      block. What drifts within a block, and what one scenario leaves \
                                      to the next, is in these numbers; the interval of 95 % does not \
                                      cover a fixed order.";
/// What a change in per cent means, in every table and chart.
pub(super) const DEFINITION: &str = "A change is 100*(scenario/baseline-1) %";

/// A number with this many digits after the point, thousands apart, a true minus.
pub(super) fn number(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return NOT_MEASURED.to_owned();
    }
    let text = grouped(value.abs(), digits);
    if value < 0.0 && !is_zero(&text) { format!("−{text}") } else { text }
}

/// A number with its sign.
pub(super) fn signed(value: f64, digits: usize) -> String {
    let text = number(value, digits);
    if value > 0.0 && value.is_finite() && !is_zero(&text) { format!("+{text}") } else { text }
}

/// A number with about four significant digits.
pub(super) fn plain(value: f64) -> String {
    number(value, digits(value, 4))
}

/// A change in per cent.
pub(super) fn percent(value: f64) -> String {
    if value.is_finite() {
        format!("{} %", signed(value, digits(value, 3).min(2)))
    } else {
        number(value, 0)
    }
}

/// A change in per cent with its interval.
pub(super) fn percent_interval(interval: &Interval) -> String {
    let Some(digits) = digits_of(interval) else { return NOT_MEASURED.to_owned() };
    let [low, value, high] = interval.ends().map(|it| signed(it, digits.min(2)));
    format!("{value} % ({low} to {high})")
}

/// A bound as [`share`] writes it, never less than it is.
fn at_most(percent: f64) -> String {
    let unit = 10_f64.powi(digits(percent, 2).min(2) as i32);
    // What binary fractions add to a whole number of units does not count.
    share((percent * unit - 1e-9).ceil() / unit)
}

/// A share of a whole that is given without a sign, in per cent.
pub(super) fn share(percent: f64) -> String {
    if percent.is_finite() {
        format!("{} %", number(percent, digits(percent, 2).min(2)))
    } else {
        NOT_MEASURED.to_owned()
    }
}

/// The effect that a suite declares detectable.
pub(super) fn declared(percent: Option<f64>) -> String {
    percent.map_or_else(|| NOT_DECLARED.to_owned(), share)
}

/// A value of a metric in [`unit`], without the unit.
pub(super) fn value(metric: Metric, value: f64) -> String {
    plain(value * factor(metric))
}

/// A difference of a metric with its interval in [`unit`], without the unit.
pub(super) fn difference(metric: Metric, interval: &Interval) -> String {
    let scaled = interval.map(|end| end * factor(metric));
    let Some(digits) = digits_of(&scaled) else { return NOT_MEASURED.to_owned() };
    let [low, value, high] = scaled.ends().map(|end| signed(end, digits));
    format!("{value} ({low} to {high})")
}

/// Whether the size of an effect on a metric is a difference in its unit. Else it is a change in per cent.
pub(super) fn is_absolute(metric: Metric) -> bool {
    metric == Metric::Rss
}

/// The size of an effect: a change in per cent, or where [`is_absolute`] a difference with its unit.
pub(super) fn size(metric: Metric, size: f64) -> String {
    match is_absolute(metric) {
        true => format!("{} {}", signed(size * factor(metric), 0), unit(metric)),
        false => percent(size),
    }
}

/// The size of an effect with its interval.
pub(super) fn size_interval(metric: Metric, size: &Interval) -> String {
    match is_absolute(metric) {
        true => format!("{} {}", difference(metric, size), unit(metric)),
        false => percent_interval(size),
    }
}

/// The name of a metric.
pub(super) fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::CpuPerStatement => "CPU time of the server per statement",
        Metric::LoadCpuPerStatement => "CPU time of sysbench per statement",
        Metric::Qps => "QPS",
        Metric::Tps => "TPS",
        Metric::LatencyMean => "mean latency",
        Metric::LatencyP50 => "latency p50",
        Metric::LatencyP95 => "latency p95",
        Metric::LatencyP99 => "latency p99",
        Metric::ServerShare => "CPUs used by the server",
        Metric::Rss => "memory of the server (RSS)",
        Metric::PerformanceSchemaMemory => "memory of Performance Schema",
        Metric::ContextSwitchesPerStatement => "context switches of the host per statement",
        Metric::WrittenBytesPerStatement => "bytes written per statement",
    }
}

/// A name that fits beside an axis, or into a title.
pub(super) fn short(metric: Metric) -> &'static str {
    match metric {
        Metric::CpuPerStatement => "CPU time per statement",
        metric => name(metric),
    }
}

/// The unit in which a metric is printed.
pub(super) fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::CpuPerStatement | Metric::LoadCpuPerStatement => "µs/statement",
        Metric::Qps => "statements/s",
        Metric::Tps => "transactions/s",
        Metric::LatencyMean | Metric::LatencyP50 | Metric::LatencyP95 | Metric::LatencyP99 => "ms",
        Metric::ServerShare => "% of those that it may use",
        Metric::Rss | Metric::PerformanceSchemaMemory => "MiB",
        Metric::ContextSwitchesPerStatement => "switches/statement",
        Metric::WrittenBytesPerStatement => "bytes/statement",
    }
}

/// What a value of the analysis is multiplied with to be in [`unit`].
pub(super) fn factor(metric: Metric) -> f64 {
    match metric {
        Metric::CpuPerStatement | Metric::LoadCpuPerStatement => 1e-3,
        Metric::LatencyMean | Metric::LatencyP50 | Metric::LatencyP95 | Metric::LatencyP99 => 1e-6,
        Metric::ServerShare => 100.0,
        Metric::Rss | Metric::PerformanceSchemaMemory => 1.0 / f64::from(1 << 20),
        Metric::Qps
        | Metric::Tps
        | Metric::ContextSwitchesPerStatement
        | Metric::WrittenBytesPerStatement => 1.0,
    }
}

/// The verdict on one comparison.
pub(super) fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Cost => "cost".to_owned(),
        Verdict::Gain => "gain".to_owned(),
        Verdict::Change => "change".to_owned(),
        Verdict::Below { detectable_percent } if detectable_percent.is_finite() => {
            format!("not shown ({})", share(*detectable_percent))
        }
        Verdict::Below { .. } => "not shown".to_owned(),
        Verdict::Free { below_percent } => format!("proven below {}", at_most(*below_percent)),
        Verdict::Overloaded(why) => format!("overloaded: {why}"),
        Verdict::Void(why) => void(why),
        Verdict::NotRun(why) => not_run(why),
    }
}

/// The same without numbers and reasons.
pub(super) fn verdict_in_a_word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Cost => "cost",
        Verdict::Gain => "gain",
        Verdict::Change => "change",
        Verdict::Below { .. } => "not shown",
        Verdict::Free { .. } => "proven small",
        Verdict::Overloaded(_) => "overloaded",
        Verdict::Void(_) => "void",
        Verdict::NotRun(why) if why == NOT_MEASURED => NOT_MEASURED,
        Verdict::NotRun(_) => "not run",
    }
}

/// What stands in a cell that was run and does not count.
pub(super) fn void(why: &str) -> String {
    format!("void: {why}")
}

/// What stands in a cell that was not run, or of which only this could not be measured.
pub(super) fn not_run(why: &str) -> String {
    if why == NOT_MEASURED { why.to_owned() } else { format!("not run: {why}") }
}

/// How a load was offered.
pub(super) fn load(load: Load) -> String {
    match load {
        Load::Closed => "closed".to_owned(),
        Load::Open { share } => format!("open, {} CPU", self::share(share * 100.0)),
    }
}

/// So many sessions, as sysbench calls them.
pub(super) fn threads(number: u32) -> String {
    count(number as usize, "thread", "threads")
}

/// A cell in one line: its workload, its sessions, its rate, and the order of its scenarios where there are several.
pub fn cell(cell: &Cell) -> String {
    let mut line = format!("{}, {}", cell.workload, threads(cell.threads));
    if cell.load.is_open() {
        line = format!("{line}, {}", load(cell.load));
    }
    match &cell.order {
        Some(order) => format!("{line}, order {order}"),
        None => line,
    }
}

/// An amount of memory or of data.
pub(super) fn bytes(bytes: f64) -> String {
    if !bytes.is_finite() {
        return NOT_MEASURED.to_owned();
    }
    let units = [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fitting = units.into_iter().find(|(size, _)| bytes >= *size as f64);
    match fitting {
        Some((size, unit)) => format!("{} {unit}", plain(bytes / size as f64)),
        None => format!("{} B", number(bytes, 0)),
    }
}

/// A length of time, s.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return NOT_MEASURED.to_owned();
    }
    if seconds < 60.0 {
        return format!("{} s", number(seconds, digits(seconds, 2)));
    }
    let whole = seconds.round() as u64;
    match (whole / 3600, whole % 3600 / 60, whole % 60) {
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// How many of something.
pub(super) fn count(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", number(count as f64, 0), if count == 1 { one } else { many })
}

fn grouped(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let (whole, rest) = match text.split_once('.') {
        Some((whole, rest)) => (whole, Some(rest)),
        None => (text.as_str(), None),
    };
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if let Some(rest) = rest {
        grouped.push('.');
        grouped.push_str(rest);
    }
    grouped
}

fn is_zero(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '0' | '.' | ','))
}

/// Digits after the point for this many significant ones.
fn digits(value: f64, significant: i32) -> usize {
    if !value.is_finite() || value == 0.0 {
        return 0;
    }
    let before = value.abs().log10().floor() as i32 + 1;
    usize::try_from(significant - before).unwrap_or(0).min(6)
}

/// Digits that fit all three numbers of an interval: three significant ones of the largest.
fn digits_of(interval: &Interval) -> Option<usize> {
    let ends = interval.ends();
    let largest = ends.iter().fold(0.0_f64, |largest, end| largest.max(end.abs()));
    ends.iter().all(|end| end.is_finite()).then(|| digits(largest, 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, value: f64, high: f64) -> Interval {
        Interval { low, value, high }
    }

    #[test]
    fn numbers_have_thousands_signs_and_no_negative_zero() {
        assert_eq!(plain(47_176.0), "47,176");
        assert_eq!(plain(3506.25), "3,506");
        assert_eq!(plain(2.2812), "2.281");
        assert_eq!(plain(0.0), "0");
        assert_eq!(number(1_234_567.8, 1), "1,234,567.8");
        assert_eq!(percent(-12.857), "−12.9 %");
        assert_eq!(percent(2.346), "+2.35 %");
        assert_eq!(percent(-0.0001), "0.00 %");
        assert_eq!(percent_interval(&interval(-13.21, -12.857, -12.5)), "−12.9 % (−13.2 to −12.5)");
        assert_eq!(
            difference(Metric::CpuPerStatement, &interval(912.0, 1234.0, 1501.0)),
            "+1.23 (+0.91 to +1.50)"
        );
        assert_eq!(bytes(1_288_490_188.8), "1.200 GiB");
        assert_eq!(bytes(12.0), "12 B");
        assert_eq!(
            [0.4, 90.0, 600.0, 7325.0].map(duration),
            ["0.40 s", "1 min 30 s", "10 min", "2 h 2 min"]
        );
    }

    #[test]
    fn what_is_no_number_is_not_measured() {
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(plain(wrong), NOT_MEASURED);
            assert_eq!(percent(wrong), NOT_MEASURED);
            assert_eq!(share(wrong), NOT_MEASURED);
            assert_eq!(percent_interval(&interval(wrong, 1.0, 2.0)), NOT_MEASURED);
            assert_eq!(difference(Metric::Qps, &interval(0.0, 1.0, wrong)), NOT_MEASURED);
            assert_eq!(duration(wrong), NOT_MEASURED);
        }
    }

    #[test]
    fn every_verdict_has_its_words() {
        let verdicts = [
            (Verdict::Cost, "cost"),
            (Verdict::Gain, "gain"),
            (Verdict::Change, "change"),
            (Verdict::Below { detectable_percent: 0.84 }, "not shown (0.84 %)"),
            (Verdict::Below { detectable_percent: f64::NAN }, "not shown"),
            (Verdict::Free { below_percent: 0.5 }, "proven below 0.50 %"),
            (Verdict::Free { below_percent: 0.841 }, "proven below 0.85 %"),
            (Verdict::Overloaded("in 1 of 8 blocks".to_owned()), "overloaded: in 1 of 8 blocks"),
            (Verdict::Void("too much steal".to_owned()), "void: too much steal"),
            (Verdict::NotRun("budget".to_owned()), "not run: budget"),
            (Verdict::NotRun(Verdict::NOT_MEASURED.to_owned()), "not measured"),
        ];
        for (one, words) in verdicts {
            assert_eq!(verdict(&one), words);
        }
    }

    #[test]
    fn a_cell_is_named_with_its_load() {
        let mut one =
            Cell { workload: "read-only".to_owned(), threads: 1, load: Load::Closed, order: None };
        assert_eq!(cell(&one), "read-only, 1 thread");
        one.load = Load::Open { share: 0.3 };
        assert_eq!(cell(&one), "read-only, 1 thread, open, 30 % CPU");
    }
}
