//! The parts of a page and of a summary.

use serde::Serialize;
use serde_json::{Value, json};
use waggle_stats::Estimate;

/// A value with its interval, for programs.
pub fn interval(estimate: &Estimate) -> Value {
    let Estimate { value, low, high, count, .. } = estimate;
    let half_width = estimate.half_width();
    json!({ "value": value, "low": low, "high": high, "half_width": half_width, "count": count })
}

/// The same for people.
pub fn span(estimate: &Estimate, digits: usize) -> String {
    let Estimate { value, low, high, .. } = estimate;
    format!("{value:.digits$} ({low:.digits$} to {high:.digits$})")
}

/// The same of a change.
pub fn signed(estimate: &Estimate, digits: usize) -> String {
    let Estimate { value, low, high, .. } = estimate;
    format!("{value:+.digits$} ({low:+.digits$} to {high:+.digits$})")
}

/// A table. Head and rows are `cell | cell`.
pub fn table(head: &str, rows: impl IntoIterator<Item = String>) -> String {
    let rule = "---|".repeat(1 + head.matches(" | ").count());
    let rows: String = rows.into_iter().map(|row| format!("| {row} |\n")).collect();
    format!("| {head} |\n|{rule}\n{rows}")
}

/// What is said of a limit.
pub fn kept(is_kept: bool) -> &'static str {
    if is_kept { "kept" } else { "NOT KEPT" }
}

/// A limit, and what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Limit {
    /// Its name for programs.
    pub name: &'static str,
    /// What may be.
    pub limit: String,
    /// What is; `None` where that was not measured.
    pub measured: Option<String>,
    /// Whether that is kept; `None` where it cannot be judged.
    pub kept: Option<bool>,
}

/// The table of the limits.
pub fn limits<'a>(limits: impl IntoIterator<Item = &'a Limit>) -> String {
    let row = |one: &Limit| {
        let verdict = match (&one.measured, one.kept) {
            (None, _) => "not run",
            (Some(_), None) => "not judged",
            (Some(_), Some(is_kept)) => kept(is_kept),
        };
        format!("{} | {} | {verdict}", one.limit, one.measured.as_deref().unwrap_or("-"))
    };
    table("limit | measured | verdict", limits.into_iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_was_not_measured_is_not_called_kept() {
        let limit = |measured: Option<&str>, kept| Limit {
            name: "half",
            limit: "half".to_owned(),
            measured: measured.map(str::to_owned),
            kept,
        };
        let page = limits(&[
            limit(None, Some(true)),
            limit(Some("1"), None),
            limit(Some("2"), Some(false)),
        ]);
        let rows = "| half | - | not run |\n| half | 1 | not judged |\n| half | 2 | NOT KEPT |\n";
        assert_eq!(page, format!("| limit | measured | verdict |\n|---|---|---|\n{rows}"));
    }
}
