//! What `waggle prove` has found of a server, beside what is computed.

use std::fmt::Write as _;

use anyhow::anyhow;
use jiff::Timestamp;
use waggle_instrumentation::cost::calibration::Host;
use waggle_instrumentation::cost::proven::{Method, Proven};

use super::super::super::Failure;
use super::super::proven;
use super::build_of;

/// All that was found on this host for the build of a server; nothing where its process is not known.
pub(in super::super) fn of_server(pid: Option<u32>) -> Result<Vec<Proven>, Failure> {
    let Some(build) = pid.and_then(build_of) else { return Ok(Vec::new()) };
    Proven::find(&proven(), &Host::look(), &build).map_err(|error| Failure::Config(anyhow!(error)))
}

/// A line for each; nothing where there is none.
pub(in super::super) fn in_words(all: &[Proven]) -> String {
    let mut text = String::new();
    if all.is_empty() {
        return text;
    }
    text.push_str("measured here by waggle prove, processor time per statement:\n");
    let now = Timestamp::now();
    for one in all {
        let Proven { what, method, ns, low_ns, high_ns, base_ns, .. } = one;
        let percent = 100.0 * ns / base_ns;
        let cost = match *low_ns <= 0.0 && *high_ns >= 0.0 {
            true => format!("{low_ns:+.0} to {high_ns:+.0} ns, which cannot be told from nothing,"),
            false => format!("{ns:.0} ns ({low_ns:.0} to {high_ns:.0}), {percent:.1} %"),
        };
        let how = match method {
            Method::Coin => "a coin for each statement",
            Method::Windows => "in windows",
        };
        // A text takes whatever is written.
        let _ = writeln!(
            text,
            "  {what:<24} {cost} of {:.1} µs, {how}, {}",
            base_ns / 1e3,
            one.ago(now)
        );
    }
    text
}
