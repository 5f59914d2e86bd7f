//! How often the intervals of a report hold the truth, on noise resampled from runs that were kept:
//! `cargo run -p waggle-lab --example coverage -- DIRECTORY…`, each the directory of a run.
#![allow(clippy::print_stdout, reason = "the table is what this program is for")]

use std::error::Error;
use std::path::PathBuf;

use waggle_lab::analysis::Metric;
use waggle_lab::analysis::coverage::{Coverage, Design, Noise, Places, residuals};
use waggle_lab::kept::read_windows;

const RUNS: usize = 10_000;
const ARMS: usize = 7;

fn main() -> Result<(), Box<dyn Error>> {
    println!("run\tmetric\tnoise\tpairs\tprinted\tstudent\tbootstrap\twrongly small");
    for run in std::env::args_os().skip(1).map(PathBuf::from) {
        let windows = read_windows(&run)?;
        for metric in Metric::ALL {
            let kept = residuals(&windows, metric);
            if kept.is_empty() {
                continue;
            }
            let as_kept = Noise { kept, ..Noise::default() };
            let worse =
                Noise { correlation: 0.6, drift: 10.0, has_heavy_tails: true, ..as_kept.clone() };
            for (what, noise) in [("as kept", &as_kept), ("worse", &worse)] {
                for pairs in [8, 20, 40] {
                    let design = Design { pairs, arms: ARMS, places: Places::Random };
                    let Coverage { interval, student, bootstrap, wrongly_small } =
                        Coverage::of(noise, &design, RUNS, 1);
                    let bootstrap = bootstrap.map_or("-".to_owned(), |share| format!("{share:.4}"));
                    let run = run.display();
                    println!(
                        "{run}\t{metric:?}\t{what}\t{pairs}\t{interval:.4}\t{student:.4}\t{bootstrap}\t{wrongly_small:.4}"
                    );
                }
            }
        }
    }
    Ok(())
}
