//! How many sessions of a load were at work.

use crate::report::{Report, words};
use crate::window::{Cell, Window};

/// Cells are told in which less of the sessions were at work.
const SHARE_MIN: f64 = 0.9;

/// What sessions of a cell could do and did, s.
#[derive(Default)]
struct Sessions {
    at_work_s: f64,
    there_s: f64,
}

/// The closed loads of the baseline in which few sessions were at work, as a sentence. How many are on average is the
/// number of transactions times their mean time, by the length of the windows (Little's law).
pub(super) fn few(report: Report<'_>) -> Option<String> {
    let mut cells: Vec<(&Cell, Sessions)> = Vec::new();
    let is_it =
        |window: &&Window| window.arm == report.suite.baseline && !window.cell.load.is_open();
    for window in report.windows.iter().filter(is_it) {
        let Some(measured) = window.counted() else { continue };
        let Some((count, latency)) = measured.transactions.zip(measured.latency.as_ref()) else {
            continue;
        };
        let at = cells.iter().position(|(cell, _)| **cell == window.cell).unwrap_or_else(|| {
            cells.push((&window.cell, Sessions::default()));
            cells.len() - 1
        });
        cells[at].1.at_work_s += count as f64 * latency.mean_ns / 1e9;
        cells[at].1.there_s += measured.seconds * f64::from(window.cell.threads);
    }
    let few = cells.into_iter().filter_map(|(cell, sessions)| {
        let share = sessions.at_work_s / sessions.there_s;
        let text = || format!("{} ({})", words::cell(cell), words::share(100.0 * share));
        (share < SHARE_MIN).then(text)
    });
    let few: Vec<String> = few.collect();
    (!few.is_empty()).then(|| {
        format!(
            "A turn begins and ends with every session at rest, and between its transactions a session is, too. On average \
             less than {} of the sessions of the baseline were at work with: {}.",
            words::share(100.0 * SHARE_MIN),
            few.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::analysis::Analysis;
    use crate::report::sample::{self, info, suite};

    use super::*;

    #[test]
    fn cells_are_told_in_which_few_sessions_were_at_work() {
        let said = |mean_ns: f64, void: Option<&str>| {
            let mut window = sample::window(0, "pfsoff", 10.0);
            window.void = void.map(str::to_owned);
            window.measured.as_mut()?.latency.as_mut()?.mean_ns = mean_ns;
            let (suite, info, analysis) = (suite(), info(), Analysis::default());
            few(Report { suite: &suite, info: &info, windows: &[window], analysis: &analysis })
        };
        // 500 transactions in 0.4 s with 32 sessions: each at work for 25.6 ms at most.
        assert_eq!(said(24e6, None), None);
        let text = said(16e6, None).unwrap();
        assert!(text.ends_with("at work with: read-only, 32 threads (62 %)."), "{text}");
        assert_eq!(said(16e6, Some("it was a test")), None);
    }
}
