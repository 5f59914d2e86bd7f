//! A trial in windows as one JSON object. `docs/reference/prove-switched-json.md` documents the shape; `null` was not
//! measured.

use serde::Serialize;
use waggle_prove::{BLOCK_TRIM, CONFIDENCE, FLOOR_CONFIDENCE, Slower, Sum, TRIM};
use waggle_stats::Estimate;

use super::super::json::QuantilesJson;
use super::{Report, Witness};
use crate::server_json::ServerJson;

/// The object.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct SwitchedJson<'a> {
    server: ServerJson,
    what: &'a str,
    length_s: f64,
    window_ms: f64,
    blocks: usize,
    confidence: f64,
    trimmed: f64,
    blocks_trimmed: f64,
    base_ns: Option<f64>,
    added_ns: Option<IntervalJson>,
    added_percent: Option<IntervalJson>,
    /// The windows that are off beside each other.
    floor_ns: Option<IntervalJson>,
    floor_confidence: f64,
    throughput_percent: Option<IntervalJson>,
    is_unsound: bool,
    /// By a signal.
    is_stopped: bool,
    witness: Option<WitnessJson>,
    gave_up: Option<GaveUpJson>,
    off: PhaseJson,
    off_again: PhaseJson,
    on: PhaseJson,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum GaveUpJson {
    Standstill,
    Throughput,
    P99,
}

impl From<Slower> for GaveUpJson {
    fn from(slower: Slower) -> GaveUpJson {
        match slower {
            Slower::Standstill => GaveUpJson::Standstill,
            Slower::Throughput => GaveUpJson::Throughput,
            Slower::P99 => GaveUpJson::P99,
        }
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct IntervalJson {
    value: f64,
    low: f64,
    high: f64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WitnessJson {
    wanted: u64,
    unwanted: u64,
    is_switched: bool,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PhaseJson {
    statements: u64,
    per_second: f64,
    processor_ns: QuantilesJson,
    latency_ns: QuantilesJson,
}

/// An interval in another unit; where the factor is below 0, its ends change places.
fn times(estimate: &Estimate, factor: f64) -> IntervalJson {
    let ends = [estimate.low * factor, estimate.high * factor];
    let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
    IntervalJson { value: estimate.value * factor, low, high }
}

pub(super) fn of(report: &Report) -> SwitchedJson<'_> {
    let switched = &report.switched;
    let interval = |estimate: &Option<Estimate>| estimate.as_ref().map(|one| times(one, 1.0));
    let added = switched.added_ns.as_ref();
    let phase = |sum: &Sum| PhaseJson {
        statements: sum.statements,
        per_second: sum.rate(),
        processor_ns: QuantilesJson::of(&sum.processor),
        latency_ns: QuantilesJson::of(&sum.latency),
    };
    let [off, off_again, on] = switched.sums.each_ref().map(phase);
    let witness = |witness: Witness| WitnessJson {
        wanted: witness.wanted,
        unwanted: witness.unwanted,
        is_switched: witness.is_switched(),
    };
    SwitchedJson {
        server: ServerJson::from(&report.server),
        what: &report.what,
        length_s: report.length.as_secs_f64(),
        window_ms: report.window.as_secs_f64() * 1e3,
        blocks: switched.blocks,
        confidence: CONFIDENCE,
        trimmed: TRIM,
        blocks_trimmed: BLOCK_TRIM,
        base_ns: switched.base_ns,
        added_ns: interval(&switched.added_ns),
        added_percent: added.zip(switched.base_ns).map(|(added, base)| times(added, 100.0 / base)),
        floor_ns: interval(&switched.floor_ns),
        floor_confidence: FLOOR_CONFIDENCE,
        throughput_percent: switched.slower_percent.as_ref().map(|slower| times(slower, -1.0)),
        is_unsound: switched.is_unsound(),
        is_stopped: report.is_stopped,
        witness: report.witness.map(witness),
        gave_up: report.gave_up.map(GaveUpJson::from),
        off,
        off_again,
        on,
    }
}

#[cfg(test)]
mod tests {
    use schemars::schema_for;

    use super::SwitchedJson;
    use crate::schema::{assert_explained, assert_kept};

    #[test]
    fn the_reference_documents_every_property_of_the_json() {
        let schema = schema_for!(SwitchedJson<'_>);
        assert_kept("prove-switched", &schema);
        assert_explained("prove-switched", &schema, 27);
    }
}
