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
    for Proven { at, what, method, ns, low_ns, high_ns, base_ns, .. } in all {
        let percent = 100.0 * ns / base_ns;
        let how = match method {
            Method::Coin => "a coin for each statement",
            Method::Windows => "in windows",
        };
        // A text takes whatever is written.
        let _ = writeln!(
            text,
            "  {what:<24} {ns:.0} ns ({low_ns:.0} to {high_ns:.0}), {percent:.1} % of {:.1} µs, {how}, {}",
            base_ns / 1e3,
            ago(*at, Timestamp::now())
        );
    }
    text
}

/// How old something is.
fn ago(at: Timestamp, now: Timestamp) -> String {
    let minutes = now.duration_since(at).as_secs() / 60;
    match minutes {
        ..1 => "just now".to_owned(),
        1..120 => format!("{minutes} min ago"),
        120..2880 => format!("{} h ago", minutes / 60),
        _ => format!("{} days ago", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_the_unit_that_fits() {
        let at = |minutes: i64| {
            ago(Timestamp::UNIX_EPOCH, Timestamp::from_second(minutes * 60 + 5).unwrap())
        };
        assert_eq!([at(0), at(-3), at(1)], ["just now", "just now", "1 min ago"]);
        assert_eq!([at(119), at(120), at(2879)], ["119 min ago", "2 h ago", "47 h ago"]);
        assert_eq!(at(2880), "2 days ago");
    }
}
