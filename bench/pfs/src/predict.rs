//! Predicted against measured.

use std::time::Duration;

use anyhow::{Context, Result};
use waggle_bench_frame::{CONFIDENCE, rounds};
use waggle_calibration::{Awake, Block, Windows, rounds_max};
use waggle_instrumentation::cost::{Calibration, Cost, Question, Span, StatementTime, Total};
use waggle_model::Reading;
use waggle_stats::{Estimate, Random};

use crate::load::Load;
use crate::profiles::{OFF, statements};
use crate::server::Subject;
use crate::settings::Settings;

/// What is predicted.
pub(crate) const PROFILES: [&str; 4] = ["default", "waits", "stages", "everything"];
/// Short, since neighbours in time are alike.
const WINDOWS: Windows =
    Windows { window: Duration::from_millis(20), settle: Duration::from_millis(5), fours: 6 };
/// A statement of one of many sessions takes as many times as long (16 ms the wide scan on two processors), and one
/// that is at work at a switch belongs to neither side.
const WINDOWS_OF_MANY: Windows =
    Windows { window: Duration::from_millis(60), settle: Duration::from_millis(30), fours: 3 };
/// From this many threads.
const MANY: u32 = 8;
/// What the product calls predictable is measured until the half-width of its interval is this share of what was
/// predicted: half of what a ratio of 1 has to its nearer limit. The width ends it, never where the ratio lies.
const PRECISION: f64 = (1.0 - 1.0 / Span::CLOSE) / 2.0;
/// Or for this many times the blocks of what it does not promise.
const MOST: usize = 5;
/// How long events are counted for a prediction, as `waggle pfs cost` does by itself.
const COUNTED_FOR: Duration = Duration::from_secs(1);

/// One profile under one load.
#[derive(Clone, Debug)]
pub(crate) struct Prediction {
    pub(crate) load: Load,
    pub(crate) threads: u32,
    pub(crate) profile: &'static str,
    /// Nanoseconds per statement, by `waggle pfs cost`.
    pub(crate) predicted: Span,
    /// Whether that is only a part of it, by its own word.
    pub(crate) is_at_least: bool,
    /// Whether it says that it can be relied on.
    pub(crate) is_predictable: bool,
    /// How long statements take, by its reading.
    pub(crate) statement_time: StatementTime,
    /// Nanoseconds per statement that were measured, without the windows in which something else took the
    /// processor.
    pub(crate) measured: Estimate,
    /// The same with every window: what comes in bursts is in it, and more noise.
    pub(crate) with_bursts: Estimate,
    /// Processor time per statement with everything off, ns.
    pub(crate) without_ns: f64,
}

impl Prediction {
    /// Measured by predicted, with the interval of what was measured; `None` where less than nothing is
    /// predicted.
    pub(crate) fn ratio(&self) -> Option<Span> {
        let Estimate { low, value, high, .. } = self.measured;
        let predicted = self.predicted.value;
        (predicted > 0.0).then(|| Span { low, value, high }.times(1.0 / predicted))
    }

    /// Whether the whole interval of the ratio is within 1/1.5 and 1.5.
    pub(crate) fn is_right(&self) -> bool {
        let is_within = |ratio: Span| ratio.low >= 1.0 / Span::CLOSE && ratio.high <= Span::CLOSE;
        self.ratio().is_some_and(is_within)
    }

    /// Right, or told beforehand that it may not be; what is called a lower bound has to be one.
    pub(crate) fn is_honest(&self) -> bool {
        let is_bound = self.measured.high >= self.predicted.low;
        (!self.is_predictable || self.is_right()) && (!self.is_at_least || is_bound)
    }
}

/// Measures every profile under a load that is at work, in rounds of random order.
pub(crate) fn measure(
    subject: &mut Subject,
    calibration: &Calibration,
    settings: &Settings,
    random: &mut Random,
    (load, threads): (Load, u32),
) -> Result<Vec<Prediction>> {
    let _awake = Awake::helps(threads).then(Awake::keep);
    let mut prepared = Vec::new();
    for profile in PROFILES {
        prepared.push(statements(&mut subject.connection, profile)?);
    }
    let mut predicted = Vec::new();
    for statements in &prepared {
        set(subject, statements)?;
        let Subject { connection, meter, .. } = &mut *subject;
        let mut server_ns = || match meter.cpu_ns() {
            Ok(ns) => Reading::Value(ns),
            Err(error) => Reading::absent(error.to_string()),
        };
        let question = Question {
            interval: COUNTED_FOR,
            calibration: Some(calibration),
            server_ns: &mut server_ns,
        };
        predicted.push(Cost::read(connection, question)?);
    }
    let windows = if threads < MANY { WINDOWS } else { WINDOWS_OF_MANY };
    let most = rounds_max(MOST * settings.blocks);
    let wants =
        |at: usize, blocks: &[Block]| wants_more(blocks, &predicted[at].total, settings.blocks);
    let blocks = rounds(PROFILES.len(), most, random, wants, |at, random| {
        set(subject, &prepared[at])?;
        subject.block(windows, random, &|_| {})
    })?;
    let each = PROFILES.into_iter().zip(predicted).zip(&blocks);
    each.map(|((profile, Cost { total, statement_time, .. }), blocks)| {
        let what = || {
            format!(
                "{profile} under {}: {} blocks are too few; is the host busy?",
                load.name,
                blocks.len()
            )
        };
        Ok(Prediction {
            load,
            threads,
            profile,
            predicted: total.ns_per_statement.context("nothing is known of its price")?,
            is_at_least: total.is_at_least,
            is_predictable: total.is_predictable,
            statement_time,
            measured: Block::added_ns_typical(blocks, CONFIDENCE).with_context(what)?,
            with_bursts: Block::added_ns(blocks, CONFIDENCE).with_context(what)?,
            without_ns: Block::without_ns(blocks),
        })
    })
    .collect()
}

/// Whether a profile wants another block: all have this many, what is promised is measured closely.
fn wants_more(blocks: &[Block], predicted: &Total, all: usize) -> bool {
    if blocks.len() < all || !predicted.is_predictable {
        return blocks.len() < all;
    }
    let is_close = || {
        let predicted = predicted.ns_per_statement?.value;
        let measured = Block::added_ns_typical(blocks, CONFIDENCE)?;
        Some((measured.high - measured.low) / 2.0 <= PRECISION * predicted)
    };
    blocks.len() < MOST * all && is_close() == Some(false)
}

fn set(subject: &mut Subject, statements: &[String]) -> Result<()> {
    subject.send(&OFF.map(str::to_owned))?;
    subject.send(statements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::LOADS;

    fn prediction(low: f64, high: f64, is_predictable: bool) -> Prediction {
        let value = low.midpoint(high);
        let measured = Estimate { count: 9, value, error: 1.0, freedom: 8.0, low, high };
        Prediction {
            load: LOADS[0],
            threads: 2,
            profile: "waits",
            predicted: Span { low: 80.0, value: 100.0, high: 120.0 },
            is_at_least: false,
            is_predictable,
            statement_time: StatementTime {
                here_ns: Some(1000.0),
                calibrated_ns: Some(1000.0),
                is_within_reach: true,
            },
            measured,
            with_bursts: measured,
            without_ns: 1000.0,
        }
    }

    #[test]
    fn right_is_the_whole_interval_and_honest_is_right_or_told() {
        assert!(prediction(70.0, 145.0, true).is_right());
        for (low, high) in [(60.0, 120.0), (120.0, 160.0)] {
            assert!(!prediction(low, high, true).is_honest());
            assert!(prediction(low, high, false).is_honest());
        }
        let below = Span { low: -90.0, value: -80.0, high: -70.0 };
        let below = Prediction { predicted: below, ..prediction(-100.0, -60.0, true) };
        assert!(!below.is_right() && below.ratio().is_none());
    }

    #[test]
    fn a_bound_is_below_what_was_measured() {
        let bound = |low, high| Prediction { is_at_least: true, ..prediction(low, high, false) };
        assert!(bound(120.0, 190.0).is_honest() && bound(60.0, 90.0).is_honest());
        assert!(!bound(20.0, 60.0).is_honest());
    }
}
