//! `cargo xtask test`: every layer of the tests, one after another.
//!
//! There are two tiers. The gate tests every kind of truth and passes on a busy machine. The long tier measures, guards,
//! calibrates, floods, simulates, and boots other kernels.

mod built;
mod layers;
mod look;
mod report;
mod stacks;
mod step;
mod tier;

use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use built::Built;
use layers::{LAYERS, Layer};
use look::Ended;
use step::Found;
use tier::Tier;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only the layers whose name holds this.
    #[arg(default_value = "")]
    only: String,
    /// Run the long tier: the tests that the gate leaves out.
    #[arg(long)]
    long: bool,
    /// How many of the slowest tests to list at the end.
    #[arg(long, default_value_t = 10)]
    slowest: usize,
}

/// A layer that was run.
struct Ran {
    layer: &'static Layer,
    time: Duration,
    found: Vec<Found>,
}

/// How often a test that failed is run again, alone.
const LOOKS_MORE: usize = 2;

pub(crate) fn run(args: &Args) -> Result<()> {
    let tier = if args.long { Tier::Long } else { Tier::Gate };
    let chosen = |layer: &&Layer| layer.name.contains(&args.only) && layer.is_of(tier);
    let layers: Vec<&'static Layer> = LAYERS.iter().filter(chosen).collect();
    if layers.is_empty() {
        bail!("no layer of the {tier} is called `{}`", args.only);
    }
    let built = built_beside_setup(tier)?;
    let mut ran = Vec::new();
    for layer in layers {
        let begin = Instant::now();
        let found = layer.run(tier, &built);
        ran.push(Ran { layer, time: begin.elapsed(), found });
    }
    let begin = Instant::now();
    for found in ran.iter_mut().filter(|one| one.layer.looks_again).flat_map(|one| &mut one.found) {
        look_again(found, tier);
    }
    report::print(&ran, begin.elapsed(), args.slowest);
    let failed = ran.iter().flat_map(|one| &one.found).filter(|one| one.has_failed()).count();
    ensure!(failed == 0, "{failed} of the tests failed: see above");
    Ok(())
}

/// Fetching servers waits for the network and for disks, building tests for processors.
fn built_beside_setup(tier: Tier) -> Result<Built> {
    crate::setup::for_demo()?;
    thread::scope(|scope| {
        let setup = scope.spawn(crate::setup::run);
        let built = Built::all(tier);
        setup.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        built
    })
}

/// A test that failed beside others is run alone. Where it passes then, it is unstable.
fn look_again(found: &mut Found, tier: Tier) {
    let Some(program) = found.program.clone() else { return };
    while found.has_failed() && found.again.len() < LOOKS_MORE {
        println!("\n== once more, alone: {}", found.name());
        let names = [found.ended.name.clone()];
        let looked = look::look(&program, &names, 1, tier.longest_test());
        found.again.extend(looked.unwrap_or_else(|error| {
            let failure = Some(format!("{error:#}"));
            vec![Ended { name: names[0].clone(), time: Duration::ZERO, failure }]
        }));
    }
}
