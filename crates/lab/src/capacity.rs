//! How much a server can do: when it is warm, and at which rate an open load arrives.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::error::LabError;
use crate::kept::{Kept, KeptError, write_json};
use crate::life::Life;
use crate::load::{Pace, Work};
use crate::window::{Cell, Load};

/// How often the throughput is looked at while a server warms up, and how near four looks have to be.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const LOOKS: usize = 4;
const STEADY: f64 = 0.05;
/// For how long a closed load shows what the baseline can do.
const LOOK_FOR: Duration = Duration::from_secs(2);
/// Said where the load or the host is not ours.
const NO_RATE: &str = "what a server can do at a fixed rate is measured on private servers only";
/// Transactions per second that the baseline does when it has the whole host, by workload.
const CAPACITIES: &str = "capacities.json";

/// What the baseline can do, by workload: transactions per second of the whole host.
pub(crate) struct Capacities(BTreeMap<String, f64>);

impl Capacities {
    /// Transactions per second of an open load, the same for every arm; `None` for a closed one.
    pub(crate) fn rate(&self, cell: &Cell) -> Option<f64> {
        match cell.load {
            Load::Closed => None,
            Load::Open { share } => self.0.get(&cell.workload).map(|capacity| capacity * share),
        }
    }
}

/// What the baseline of a run could do, transactions per second by workload; empty where nobody asked.
fn read_capacities(run: &Path) -> Result<BTreeMap<String, f64>, KeptError> {
    let path = run.join(CAPACITIES);
    let Ok(text) = fs::read(&path) else { return Ok(BTreeMap::new()) };
    serde_json::from_slice(&text).map_err(|error| KeptError::Spoiled {
        path,
        line: error.line(),
        reason: error.to_string(),
    })
}

impl Engine<'_> {
    /// Looks at the baseline once in a run, for the workloads that have open loads. `None` where somebody
    /// stopped it.
    pub(crate) fn capacities(&self, kept: &mut Kept) -> Result<Option<Capacities>, LabError> {
        let mut known = read_capacities(kept.path())?;
        let open = |cell: &&Cell| cell.load != Load::Closed && !known.contains_key(&cell.workload);
        let unknown: Vec<Cell> = self.schedule.cells.iter().filter(open).cloned().collect();
        let baseline = self.suite.scenarios.iter().find(|one| one.name == self.suite.baseline);
        let Some(baseline) = baseline.filter(|_| !unknown.is_empty()) else {
            return Ok(Some(Capacities(known)));
        };
        let mut life = self.life_of(baseline, kept.next_life())?;
        life.set(baseline)?;
        for cell in unknown {
            if let Entry::Vacant(free) = known.entry(cell.workload.clone()) {
                let Some(capacity) = self.capacity(&mut life, &cell)? else { return Ok(None) };
                free.insert(capacity);
            }
        }
        write_json(&kept.path().join(CAPACITIES), &known)?;
        Ok(Some(Capacities(known)))
    }

    /// Transactions per second that the whole host would do. `None` where somebody stopped it.
    fn capacity(&self, life: &mut Life<'_>, cell: &Cell) -> Result<Option<f64>, LabError> {
        let mut load = self.load(life, self.workload(cell)?, cell.threads, self.seed)?;
        self.warm_up(&mut load)?;
        load.go(Pace::Closed)?;
        let Some(measured) = self.span(life, &mut load, LOOK_FOR)? else { return Ok(None) };
        load.pause()?;
        let (Some(per_second), Some(share)) = (measured.tps(), measured.host_share) else {
            return Err(LabError::Foreign(NO_RATE.to_owned()));
        };
        Ok(Some(per_second / share.max(f64::EPSILON)))
    }

    /// Lets a load run as fast as it goes until looks at its throughput are near each other, or for as
    /// long as a warm-up may take.
    pub(crate) fn warm_up(&self, load: &mut Work) -> Result<(), LabError> {
        let begin = Instant::now();
        let mut looks: Vec<f64> = Vec::new();
        load.go(Pace::Closed)?;
        // Where others make the load, the server was warm before us.
        let Some(mut before) = load.count()?.map(|count| count.transactions) else { return Ok(()) };
        while !is_steady(&looks) && begin.elapsed() < self.lengths.warm_up && self.wait(LOOK_EVERY)
        {
            let now = load.count()?.map_or(before, |count| count.transactions);
            looks.push(now.saturating_sub(before) as f64);
            before = now;
        }
        Ok(load.pause()?)
    }
}

/// Whether the last looks are near their mean, and do not rise from each to the next.
fn is_steady(looks: &[f64]) -> bool {
    let Some(from) = looks.len().checked_sub(LOOKS) else { return false };
    let last = &looks[from..];
    let mean = last.iter().sum::<f64>() / LOOKS as f64;
    let is_rising = last.windows(2).all(|two| two[1] > two[0]);
    mean > 0.0 && !is_rising && last.iter().all(|look| (look - mean).abs() <= STEADY * mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_is_near_its_mean_and_no_longer_rising() {
        assert!(is_steady(&[10.0, 100.0, 101.0, 99.0, 100.0]));
        assert!(!is_steady(&[100.0, 101.0, 102.0, 103.0]));
        assert!(!is_steady(&[50.0, 100.0, 101.0, 99.0]));
        assert!(!is_steady(&[100.0, 100.0, 100.0]));
        assert!(!is_steady(&[0.0; 4]));
    }
}
