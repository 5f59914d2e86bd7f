//! Costs of known size: the program in the kernel idles for a while in half of the statements.

use anyhow::Result;
use waggle_bench_frame::{Run, number, prove};
use waggle_stats::{Random, median};
use waggle_testkit::Server;
use waggle_testkit::sysbench::Sysbench;

use crate::settings::Settings;

/// What one trial found, ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) injected: f64,
    pub(crate) found: f64,
    pub(crate) half_width: f64,
    pub(crate) statements_per_s: f64,
}

impl Found {
    fn is_right(&self) -> bool {
        (self.found - self.injected).abs() <= self.half_width
    }
}

/// All trials of one cost and number of sessions.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    pub(crate) cost_ns: u64,
    pub(crate) threads: u32,
    pub(crate) trials: Vec<Found>,
}

impl Truth {
    /// Trials whose interval holds what was injected.
    pub(crate) fn right(&self) -> usize {
        self.trials.iter().filter(|one| one.is_right()).count()
    }

    /// Of all trials.
    pub(crate) fn mean(&self, of: impl Fn(&Found) -> f64) -> f64 {
        self.trials.iter().map(of).sum::<f64>() / self.trials.len().max(1) as f64
    }

    /// The median half-width.
    pub(crate) fn half_width(&self) -> f64 {
        median(self.trials.iter().map(|one| one.half_width).collect()).unwrap_or(f64::NAN)
    }
}

/// Runs all trials, in rounds of random order.
pub(crate) fn measure(settings: &Settings, run: &Run, random: &mut Random) -> Result<Vec<Truth>> {
    let server = Server::start(settings.server)?;
    let mut all = Vec::new();
    for threads in &settings.threads {
        let sysbench = Sysbench { threads: *threads, ..Sysbench::endless("oltp_point_select") };
        sysbench.prepare(&server)?;
        let load = sysbench.start(&server)?;
        let truth = |cost_ns: &u64| Truth { cost_ns: *cost_ns, threads: *threads, trials: vec![] };
        let mut of_costs: Vec<Truth> = settings.costs.iter().map(truth).collect();
        for round in 1..=settings.trials {
            run.say(&format!("{threads} sessions, round {round} of {}", settings.trials))?;
            let mut order: Vec<usize> = (0..of_costs.len()).collect();
            random.shuffle(&mut order);
            for at in order {
                let found = one(&server, of_costs[at].cost_ns, settings.seconds)?;
                of_costs[at].trials.push(found);
            }
        }
        drop(load);
        sysbench.cleanup(&server)?;
        all.extend(of_costs);
    }
    Ok(all)
}

fn one(server: &Server, cost_ns: u64, seconds: u32) -> Result<Found> {
    let injected = format!("{cost_ns}ns");
    let length = format!("{seconds}s");
    let words = ["--within", "0ns", "--for", &length, "--inject", &injected].map(str::to_owned);
    let json = prove(server.pid(), &words)?;
    Ok(Found {
        // Without a cost nothing idles.
        injected: json["injected_ns"].as_f64().unwrap_or(0.0),
        found: number(&json, "/total/ns")?,
        half_width: number(&json, "/total/half_width_ns")?,
        statements_per_s: number(&json, "/statements")? / number(&json, "/length_s")?,
    })
}
