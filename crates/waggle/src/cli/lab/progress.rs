//! The progress of a run.

use std::fmt::Display;

use waggle_lab::engine::Progress;
use waggle_lab::report::{cell_in_words, duration_in_words};

use crate::streams::tell;

/// Prints a side note. A closed terminal must not end the run, because a server still has to be
/// restored.
pub(super) fn note(text: impl Display) {
    tell!("{text}");
}

/// Where it is.
pub(super) fn text(progress: &Progress<'_>) -> String {
    let minutes = progress.remaining.as_secs().div_ceil(60);
    let remaining = duration_in_words((60 * minutes) as f64);
    format!(
        "window {} of {}, block {} of {}, {remaining} left: {}, {}",
        progress.done + 1,
        progress.of,
        progress.block[0],
        progress.block[1],
        cell_in_words(progress.cell),
        progress.arm.unwrap_or("warming up")
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use waggle_lab::suite::Suite;

    use super::*;

    #[test]
    fn the_order_is_named_where_there_is_more_than_one() {
        let line = |suite: &str| {
            let cells = Suite::find(suite).unwrap().cells();
            let remaining = Duration::from_secs(61);
            let (cell, arm) = (&cells[0], Some("basic"));
            text(&Progress { done: 2, of: 40, remaining, block: [1, 8], cell, arm })
        };
        assert_eq!(
            line("modb"),
            "window 3 of 40, block 1 of 8, 2 min left: read-update, 256 threads, \
             order cumulative, basic"
        );
        assert!(line("rds").ends_with("read-only, 1 thread, basic"), "{}", line("rds"));
    }
}
