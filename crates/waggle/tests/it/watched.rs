//! What `watch --json` says, read.

use serde_json::Value;

/// Sums a number over intervals; what was not measured is an error.
pub(crate) fn sum(lines: &[Value], number: &str) -> u64 {
    lines.iter().map(|line| line.pointer(number).unwrap().as_u64().unwrap()).sum()
}

/// The largest value of a number that was measured in some interval at least.
pub(crate) fn largest(lines: &[Value], number: &str) -> f64 {
    let measured = lines.iter().filter_map(|line| line.pointer(number)?.as_f64());
    measured.reduce(f64::max).unwrap()
}

/// Every digest of every interval whose text holds `part`.
pub(crate) fn digests<'a>(lines: &'a [Value], part: &str) -> Vec<&'a Value> {
    let all = lines.iter().flat_map(|line| line["digests"].as_array().unwrap());
    all.filter(|digest| digest["digest_text"].as_str().is_some_and(|text| text.contains(part)))
        .collect()
}

/// The calls of those digests.
pub(crate) fn calls(lines: &[Value], part: &str) -> u64 {
    digests(lines, part).iter().map(|digest| digest["calls"].as_u64().unwrap()).sum()
}
