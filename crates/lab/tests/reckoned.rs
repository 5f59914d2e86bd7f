//! What a run is reckoned to take, beside what the runs that are kept took.
#![allow(clippy::unwrap_used, reason = "clippy sees tests in #[test] functions only")]

mod kept_runs;

use kept_runs::kept_runs;
use waggle_lab::needs::Needs;
use waggle_lab::{Begun, kept};

/// The largest server of each run, with the sessions of its load not counted in.
#[test]
fn no_server_took_more_memory_than_a_run_asks_for() {
    for run in kept_runs() {
        let begun: Begun = kept::read_run(&run).unwrap();
        let needs = Needs::of(&begun.suite().unwrap(), &begun.cells, begun.scale);
        let windows = kept::read_windows(&run).unwrap();
        let measured = windows.iter().filter_map(|window| window.measured.as_ref()?.rss_bytes);
        let most = measured.max().unwrap();
        let reckoned = needs.memory_bytes() / needs.servers;
        assert!(most <= reckoned, "{}: {most} bytes, reckoned {reckoned}", run.display());
    }
}
