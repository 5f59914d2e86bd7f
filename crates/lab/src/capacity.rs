//! How much the baseline can do, and at which rate an open load arrives.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::error::LabError;
use crate::gate;
use crate::load::{Pace, Traffic};
use crate::measured_server::MeasuredServer;
use crate::run_dir::{RunDir, read_json, write_json};
use crate::span::Span;
use crate::window::{Cell, Load};

/// How long one measurement of the baseline takes, and how many there are. The middle one counts, since other users of the
/// host slow down some and not others. A load at a fixed rate settles for half of that time.
pub(crate) const LOOK_FOR: Duration = Duration::from_secs(2);
pub(crate) const CAPACITY_LOOKS: u32 = 7;
/// Why there is no rate under the load or on the host of others.
const NO_RATE: &str = "what a server can do at a fixed rate is measured on private servers only";
/// What the baseline can do, by workload.
const CAPACITIES: &str = "capacities.json";

/// One measurement of the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Look {
    /// Transactions per second.
    per_second: f64,
    /// Share of the processors that was in use meanwhile, 0 to 1.
    share: f64,
}

impl Look {
    /// Transactions per second at which a share of the processors would be in use, if that grew as the rate does.
    fn rate(self, share: f64) -> f64 {
        self.per_second * share / self.share
    }
}

/// What the baseline can do with a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Capacity {
    /// As fast as it goes.
    closed: Look,
    /// At the rates that follow from it, each with its share: processor time per statement changes with the load.
    open: Vec<(f64, Look)>,
}

impl Capacity {
    /// Transactions per second at which a share of the processors is in use, by what was measured near it. `None` above
    /// what the closed load uses: there the server waits for something else.
    fn rate(&self, share: f64) -> Option<f64> {
        // Written to a file and read again, a number may end in another digit.
        let seen = self.open.iter().find(|(of, _)| (of - share).abs() < 1e-9);
        let rate = seen.map(|(_, look)| look.rate(share));
        // If too little was done to see a share, by the closed load.
        rate.map(|rate| if rate.is_finite() { rate } else { self.closed.rate(share) })
    }
}

/// What the baseline can do, by workload.
pub(crate) struct Capacities(BTreeMap<String, Capacity>);

impl Capacities {
    /// Transactions per second of an open load, the same for every arm; `None` for a closed one.
    ///
    /// # Errors
    /// The baseline was not measured with this workload, or cannot do that.
    pub(crate) fn rate(&self, cell: &Cell) -> Result<Option<f64>, LabError> {
        let Load::Open { share } = cell.load else { return Ok(None) };
        let rate = self.0.get(&cell.workload).and_then(|capacity| capacity.rate(share));
        rate.map(Some).ok_or_else(|| {
            let (workload, percent) = (&cell.workload, 100.0 * share);
            LabError::Cannot(format!(
                "{workload}: it is not known at which rate {percent} % of the CPUs are in use; begin a new run"
            ))
        })
    }

    /// Whether an open load asks for more of the processors than the baseline can use.
    fn is_too_little(&self, cell: &Cell) -> bool {
        let Load::Open { share } = cell.load else { return false };
        self.0.get(&cell.workload).is_some_and(|capacity| capacity.rate(share).is_none())
    }
}

impl Engine<'_> {
    /// The cells with an open load whose share of the processors the baseline cannot use. It is measured once in a run,
    /// before the first window.
    ///
    /// # Errors
    /// The server or the load cannot be started, or somebody stopped it.
    pub(crate) fn beyond_reach(&self, run_dir: &mut RunDir) -> Result<Vec<Cell>, LabError> {
        let capacities = self.capacities(run_dir)?;
        let cells = self.schedule.cells.iter().filter(|cell| capacities.is_too_little(cell));
        Ok(cells.cloned().collect())
    }

    /// Measures the baseline once in a run, with the workloads that have open loads.
    pub(crate) fn capacities(&self, run_dir: &mut RunDir) -> Result<Capacities, LabError> {
        let file = run_dir.path().join(CAPACITIES);
        let mut known: BTreeMap<String, Capacity> = read_json(&file)?.unwrap_or_default();
        let open = |cell: &&Cell| cell.load.is_open() && !known.contains_key(&cell.workload);
        let unknown: Vec<Cell> = self.schedule.cells.iter().filter(open).cloned().collect();
        let baseline = self.suite.scenarios.iter().find(|one| one.name == self.suite.baseline);
        let Some(baseline) = baseline.filter(|_| !unknown.is_empty()) else {
            return Ok(Capacities(known));
        };
        let mut server = self.origin.start_warm(baseline, run_dir.next_start())?;
        server.set(baseline)?;
        if let Some(reason) = server.misread(baseline)? {
            return Err(LabError::Scenario { scenario: baseline.name.clone(), reason });
        }
        for cell in unknown {
            if let Entry::Vacant(free) = known.entry(cell.workload.clone()) {
                free.insert(self.capacity(&mut server, &cell)?);
            }
        }
        write_json(&file, &known)?;
        Ok(Capacities(known))
    }

    /// What the baseline does as fast as it goes, and at the rates that follow from it.
    fn capacity(&self, server: &mut MeasuredServer<'_>, cell: &Cell) -> Result<Capacity, LabError> {
        let mut load = self.load(server, self.workload(cell)?, cell.threads, self.manifest.seed)?;
        self.warm_up(&mut [&mut load], cell)?;
        let closed = self.look(server, &mut load.traffic, Pace::Closed)?;
        let mut open = Vec::new();
        let asked = self.schedule.cells.iter().filter(|one| one.workload == cell.workload);
        let shares: Vec<f64> = asked.filter_map(|one| one.load.share()).collect();
        for share in shares.into_iter().filter(|share| *share <= closed.share) {
            let pace = Pace::Open { per_second: closed.rate(share) };
            open.push((share, self.look(server, &mut load.traffic, pace)?));
        }
        Ok(Capacity { closed, open })
    }

    /// What a paused load does, the middle of [`CAPACITY_LOOKS`] measurements.
    fn look(
        &self,
        server: &mut MeasuredServer<'_>,
        load: &mut Traffic,
        pace: Pace,
    ) -> Result<Look, LabError> {
        let (mut looks, mut anew) = (Vec::new(), 0);
        while looks.len() < CAPACITY_LOOKS as usize {
            let span = match pace {
                Pace::Closed => self.span(server, load, LOOK_FOR)?,
                Pace::Open { .. } => self.settled_span(server, load, pace, [LOOK_FOR / 2; 2])?,
            };
            if span.stolen().is_some() && anew < gate::ANEW_MAX {
                anew += 1;
                continue;
            }
            looks.push(seen(&span)?);
        }
        looks.sort_by(|one, other| one.rate(1.0).total_cmp(&other.rate(1.0)));
        Ok(looks.swap_remove(looks.len() / 2))
    }
}

/// Transactions per second and share of the processors. With an open load both differ by chance, their ratio does not.
fn seen(span: &Span) -> Result<Look, LabError> {
    let measured = span.measured();
    match (measured.tps(), measured.host_share) {
        (Some(per_second), Some(share)) => Ok(Look { per_second, share }),
        _ => Err(LabError::Cannot(NO_RATE.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_follows_from_what_the_baseline_does_and_there_is_none_above_it() {
        // It waits for the disk, and needs more for a transaction when it is less busy.
        let closed = Look { per_second: 800.0, share: 0.5 };
        let look = Look { per_second: closed.rate(0.25), share: 0.32 };
        let capacity = Capacity { closed, open: vec![(0.25, look)] };
        assert_eq!([0.25, 0.6].map(|share| capacity.rate(share)), [Some(312.5), None]);
        let too_little = Look { per_second: 1.0, share: 0.0 };
        let idle = Capacity { closed, open: vec![(0.25, too_little)] };
        assert_eq!(idle.rate(0.25), Some(closed.rate(0.25)));
        let capacities = Capacities([("reads".to_owned(), capacity)].into());
        let cell =
            |workload: &str, load| Cell { workload: workload.to_owned(), load, ..Cell::default() };
        let [low, high] = [0.25, 0.6].map(|share| cell("reads", Load::Open { share }));
        assert_eq!(capacities.rate(&low).unwrap(), Some(312.5));
        assert_eq!([&low, &high].map(|cell| capacities.is_too_little(cell)), [false, true]);
        assert_eq!(capacities.rate(&cell("writes", Load::Closed)).unwrap(), None);
        // An open load is never run as a closed one.
        for cell in [high, cell("writes", Load::Open { share: 0.25 })] {
            let refused = capacities.rate(&cell).unwrap_err().to_string();
            assert!(refused.contains("not known at which rate"), "{cell:?}: {refused}");
        }
    }
}
