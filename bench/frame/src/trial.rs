//! A trial by the coin: `waggle prove` on a server under load.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::waggle;

/// What `waggle prove` says of the server with this process id, as JSON. What it finds is not kept on this host, where
/// others would take it for a price of theirs. Where too few statements came (its exit code is 1), there is no price in it.
///
/// # Errors
/// It fails.
pub fn prove(pid: u32, arguments: &[String]) -> Result<Value> {
    let state = tempfile::tempdir()?;
    let ended = Command::new(waggle()?)
        .args(["prove", "--json", "--pid", &pid.to_string()])
        .args(arguments)
        .env("WAGGLE_STATE_DIR", state.path())
        .output()?;
    let said = String::from_utf8_lossy(&ended.stderr);
    let is_told = matches!(ended.status.code(), Some(0 | 1));
    ensure!(is_told, "waggle prove ended with {}: {said}", ended.status);
    serde_json::from_slice(&ended.stdout).context("the JSON of waggle prove")
}

/// A number of it.
///
/// # Errors
/// It has none there.
pub fn number(json: &Value, path: &str) -> Result<f64> {
    json.pointer(path).and_then(Value::as_f64).with_context(|| format!("no {path} in {json}"))
}

/// A price of it with its interval, nanoseconds, for people.
pub fn price(price: &Value) -> String {
    match (price["ns"].as_f64(), price["half_width_ns"].as_f64()) {
        (Some(ns), Some(half)) => format!("{ns:+.0} ± {half:.0}"),
        _ => "not measured".to_owned(),
    }
}

/// A number for people, with this many digits after the point; a dash where there is none.
pub fn rounded(value: &Value, digits: usize) -> String {
    value.as_f64().map_or("-".to_owned(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_not_measured_is_no_zero() {
        let found = json!({ "total": { "ns": 1610.4, "half_width_ns": 26.6 }, "entry_ns": null });
        assert_eq!(number(&found, "/total/ns").unwrap(), 1610.4);
        assert!(number(&found, "/entry_ns").is_err());
        assert_eq!(
            [price(&found["total"]), price(&found["steps"])],
            ["+1610 ± 27", "not measured"]
        );
        assert_eq!(
            [rounded(&found["total"]["ns"], 0), rounded(&found["entry_ns"], 0)],
            ["1610", "-"]
        );
    }
}
