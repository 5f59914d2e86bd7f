//! How far a run is.

use std::io::IsTerminal;

use waggle_lab::engine::Progress;

use super::run::now_s;

/// The line that says how far it is: one that is written over, or where that cannot be, one a minute.
pub(super) struct Line {
    is_terminal: bool,
    /// When it was last told, in minutes.
    told: u64,
}

impl Line {
    pub(super) fn new() -> Line {
        Line { is_terminal: std::io::stderr().is_terminal(), told: 0 }
    }

    pub(super) fn tell(&mut self, progress: &Progress<'_>) {
        let minutes = progress
            .remaining
            .map_or_else(String::new, |left| format!(", {} min left", left.as_secs().div_ceil(60)));
        let text = format!(
            "window {} of {}, block {} of {}{minutes}: {} with {} threads, {}",
            progress.done + 1,
            progress.of,
            progress.block[0],
            progress.block[1],
            progress.cell.workload,
            progress.cell.threads,
            progress.arm
        );
        if self.is_terminal {
            eprint!("\r\x1b[K{text}");
        } else if now_s() / 60 != self.told {
            self.told = now_s() / 60;
            eprintln!("{text}");
        }
    }

    /// Leaves the line.
    pub(super) fn end(&self) {
        if self.is_terminal {
            eprintln!();
        }
    }
}
