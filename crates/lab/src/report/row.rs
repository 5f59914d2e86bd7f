//! How values stand in CSV and JSON: names of verdicts, loads and units, and numbers in base units.

use crate::analysis::{Interval, Verdict};
use crate::metric::Metric;
use crate::window::Load;

/// The name of a verdict, and why it is not known.
pub(super) fn in_a_word(verdict: Verdict) -> (&'static str, Option<String>) {
    match verdict {
        Verdict::Cost => ("cost", None),
        Verdict::Gain => ("gain", None),
        Verdict::Change => ("change", None),
        Verdict::Below { .. } => ("below", None),
        Verdict::Free { .. } => ("free", None),
        Verdict::Overloaded(why) => ("overloaded", Some(why)),
        Verdict::Void(why) => ("void", Some(why)),
        Verdict::NotRun(why) => ("not_run", Some(why)),
    }
}

/// How a load is called in a column.
pub(super) fn load(load: Load) -> &'static str {
    match load {
        Load::Closed => "closed",
        Load::Open { .. } => "open",
    }
}

/// The share of a load at a fixed rate.
pub(super) fn open_share(load: Load) -> Option<f64> {
    load.share().and_then(rounded)
}

/// The unit of a metric as the analysis has it.
pub(super) fn base_unit(metric: Metric) -> &'static str {
    match metric {
        Metric::CpuPerStatement | Metric::LoadCpuPerStatement => "ns/statement",
        Metric::Qps => "statements/s",
        Metric::Tps => "transactions/s",
        Metric::LatencyMean | Metric::LatencyP50 | Metric::LatencyP95 | Metric::LatencyP99 => "ns",
        Metric::ServerShare => "share of those that it may use",
        Metric::Rss | Metric::PerformanceSchemaMemory => "bytes",
        Metric::ContextSwitchesPerStatement => "switches/statement",
        Metric::WrittenBytesPerStatement => "bytes/statement",
    }
}

/// A number to six significant digits, where it is one. No measurement of ours has more.
pub(super) fn rounded(value: f64) -> Option<f64> {
    if !value.is_finite() {
        return None;
    }
    format!("{value:.5e}").parse().ok()
}

/// The low end, the value and the high end.
pub(super) fn ends(interval: &Interval) -> [Option<f64>; 3] {
    interval.ends().map(rounded)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_number_has_six_digits_at_any_size() {
        let numbers = [52_148.262_801, -8.834_467_593, 1.234_567_89e-7, 0.2, 0.0, 1e15];
        let short = [52_148.3, -8.834_47, 1.234_57e-7, 0.2, 0.0, 1e15];
        assert_eq!(numbers.map(rounded), short.map(Some));
        assert_eq!([f64::NAN, f64::INFINITY].map(rounded), [None, None]);
    }

    #[test]
    fn the_reference_has_every_metric_with_its_unit() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/lab-json.md");
        let page = fs::read_to_string(page).unwrap();
        for metric in Metric::ALL {
            let row = format!("\n| `{}` | {} | ", metric.key(), base_unit(metric));
            assert!(page.contains(&row), "{row}");
        }
    }
}
