//! What a run is reckoned to take, beside what the runs that are kept took.
#![cfg(test)]

mod kept_runs;

use kept_runs::kept_runs;
use waggle_lab::needs::Needs;
use waggle_lab::{Manifest, run_dir};

/// The largest server of each run, with the sessions of its load not counted in.
#[test]
fn no_server_took_more_memory_than_a_run_asks_for() {
    for run in kept_runs() {
        let manifest: Manifest = run_dir::read_run(&run).unwrap();
        let needs = Needs::of(&manifest.suite().unwrap(), &manifest.cells, manifest.scale);
        let windows = run_dir::read_windows(&run).unwrap();
        let measured = windows.iter().filter_map(|window| window.measured.as_ref()?.rss_bytes);
        let most = measured.max().unwrap();
        let estimated = needs.memory_bytes() / needs.servers;
        assert!(most <= estimated, "{}: {most} bytes, reckoned {estimated}", run.display());
    }
}

/// The median of the windows that count, since neighbours of the host take something of one and not of another.
#[test]
fn at_a_fixed_rate_the_baseline_is_near_the_share_of_the_processors_that_its_cell_is_called_by() {
    let (mut cells, mut near) = (0, 0);
    for run in kept_runs() {
        let manifest: Manifest = run_dir::read_run(&run).unwrap();
        let baseline = manifest.suite().unwrap().baseline;
        let windows = run_dir::read_windows(&run).unwrap();
        for cell in &manifest.cells {
            let Some(share) = cell.load.share() else { continue };
            let of_cell = windows.iter().filter(|one| one.cell == *cell && one.arm == baseline);
            let mut used: Vec<f64> = of_cell.filter_map(|one| one.counted()?.host_share).collect();
            used.sort_by(f64::total_cmp);
            let Some(median) = used.get(used.len() / 2) else { continue };
            // The report marks a cell that is more than 5 points off.
            assert!((median - share).abs() <= 0.1, "{}: {cell:?}: {median}", run.display());
            near += usize::from((median - share).abs() <= 0.05);
            cells += 1;
        }
    }
    assert!(cells > 0, "no run is kept that has loads at a fixed rate");
    assert!(near as f64 >= 0.8 * f64::from(cells), "{near} of {cells} cells are near");
}
