//! How much a server can do: when it is warm, and at which rate an open load arrives.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::budget::{SESSION_TURN_S, THREADS};
use crate::engine::{Engine, StartedLoad};
use crate::error::LabError;
use crate::gate;
use crate::kept::{Kept, read_json, write_json};
use crate::life::Life;
use crate::load::{Pace, Work};
use crate::span::Span;
use crate::window::{Cell, Load};

/// How often the throughput is looked at while a server warms up, and how near four looks have to be to
/// their mean: on a shared host neighbours differ by a tenth. A look has some transactions of each session
/// ([`SESSION_TURN_S`]): all of them have begun together, and in less time now many of them would end and now few.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const LOOKS: usize = 4;
const STEADY: f64 = 0.10;
/// Transactions of a session after which its script is compiled (`hotloop` in `lab.lua`) and what the
/// server keeps for it is there: seen on 8 and 64 sessions.
const WARM_AFTER: u64 = 10;
/// How often the longest warm-up may pass until they have done that: 1,024 sessions need 25 s on two slow processors.
const PATIENCE: u32 = 4;
/// Pauses of a load after which each further one costs it as much as the last: until then its sessions compile what
/// leads into one and out of it. Without them the first four turns of a load took a seventh more of its processor
/// time than the later ones, and a load that serves five arms has its first four turns five times sooner.
const PAUSES: u32 = 8;
/// From [`THREADS`] sessions on: each takes more than half a second, and loads have few turns.
const PAUSES_OF_MANY: u32 = 3;
/// How long it works between two of them: about as long as each session needs for a transaction on two processors. In
/// 10 ms only some of 64 sessions leave a pause (`docs/decisions/0013` has what that did).
const PAUSE_EVERY: Duration = Duration::from_millis(10);
const SESSION_PAUSE_EVERY: Duration = Duration::from_millis(1);
/// For how long a load shows what the baseline can do, and how often: the middle one counts, since neighbours of the host
/// take something of one and not of another. One at a fixed rate settles for half of that time.
pub(crate) const LOOK_FOR: Duration = Duration::from_secs(2);
pub(crate) const CAPACITY_LOOKS: u32 = 7;
/// Said where the load or the host is not ours.
const NO_RATE: &str = "what a server can do at a fixed rate is measured on private servers only";
/// What the baseline can do, by workload.
const CAPACITIES: &str = "capacities.json";

/// What the baseline does.
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
    /// At the rates that follow from that, beside the shares that they are for: a busier server needs less processor
    /// time for a statement, or more.
    open: Vec<(f64, Look)>,
}

impl Capacity {
    /// Transactions per second at which a share of the processors is in use, by what was seen nearby. `None` above
    /// what the closed load uses: there it waits for something else, and no rate helps.
    fn rate(&self, share: f64) -> Option<f64> {
        // Written to a file and read again, a number may end in another digit.
        let seen = self.open.iter().find(|(of, _)| (of - share).abs() < 1e-9);
        let rate = seen.map(|(_, look)| look.rate(share));
        // Where so little was done that no share could be seen, what was seen of more.
        rate.map(|rate| if rate.is_finite() { rate } else { self.closed.rate(share) })
    }
}

/// What the baseline can do, by workload.
pub(crate) struct Capacities(BTreeMap<String, Capacity>);

impl Capacities {
    /// Transactions per second of an open load, the same for every arm; `None` for a closed one.
    ///
    /// # Errors
    /// Nobody looked at what the baseline can do with this workload, or it cannot do that.
    pub(crate) fn rate(&self, cell: &Cell) -> Result<Option<f64>, LabError> {
        let Load::Open { share } = cell.load else { return Ok(None) };
        let rate = self.0.get(&cell.workload).and_then(|capacity| capacity.rate(share));
        rate.map(Some).ok_or_else(|| LabError::NoRate { workload: cell.workload.clone(), share })
    }

    /// Whether an open load would have to use more of the processors than the baseline can.
    fn is_too_little(&self, cell: &Cell) -> bool {
        let Load::Open { share } = cell.load else { return false };
        self.0.get(&cell.workload).is_some_and(|capacity| capacity.rate(share).is_none())
    }
}

impl Engine<'_> {
    /// The cells with an open load whose share of the processors the baseline cannot use. It is looked at
    /// once in a run, before its first window.
    ///
    /// # Errors
    /// The server or the load cannot be started, or somebody stopped it.
    pub fn beyond_reach(&self, kept: &mut Kept) -> Result<Vec<Cell>, LabError> {
        let capacities = self.capacities(kept)?;
        let cells = self.schedule.cells.iter().filter(|cell| capacities.is_too_little(cell));
        Ok(cells.cloned().collect())
    }

    /// Looks at the baseline once in a run, for the workloads that have open loads.
    pub(crate) fn capacities(&self, kept: &mut Kept) -> Result<Capacities, LabError> {
        let file = kept.path().join(CAPACITIES);
        let mut known: BTreeMap<String, Capacity> = read_json(&file)?.unwrap_or_default();
        let open = |cell: &&Cell| cell.load.is_open() && !known.contains_key(&cell.workload);
        let unknown: Vec<Cell> = self.schedule.cells.iter().filter(open).cloned().collect();
        let baseline = self.suite.scenarios.iter().find(|one| one.name == self.suite.baseline);
        let Some(baseline) = baseline.filter(|_| !unknown.is_empty()) else {
            return Ok(Capacities(known));
        };
        let mut life = self.origin.life(baseline, kept.next_life())?;
        life.set(baseline)?;
        if let Some(reason) = life.misread(baseline)? {
            return Err(LabError::Scenario { scenario: baseline.name.clone(), reason });
        }
        for cell in unknown {
            if let Entry::Vacant(free) = known.entry(cell.workload.clone()) {
                free.insert(self.capacity(&mut life, &cell)?);
            }
        }
        write_json(&file, &known)?;
        Ok(Capacities(known))
    }

    /// What the baseline does as fast as it goes, and at the rates that follow from it.
    fn capacity(&self, life: &mut Life<'_>, cell: &Cell) -> Result<Capacity, LabError> {
        let mut load = self.load(life, self.workload(cell)?, cell.threads, self.seed)?;
        self.warm_up(&mut [&mut load], cell)?;
        let closed = self.look(life, &mut load.work, Pace::Closed)?;
        let mut open = Vec::new();
        let asked = self.schedule.cells.iter().filter(|one| one.workload == cell.workload);
        let shares: Vec<f64> = asked.filter_map(|one| one.load.share()).collect();
        for share in shares.into_iter().filter(|share| *share <= closed.share) {
            let pace = Pace::Open { per_second: closed.rate(share) };
            open.push((share, self.look(life, &mut load.work, pace)?));
        }
        Ok(Capacity { closed, open })
    }

    /// What a load does that stands still before, the middle of [`CAPACITY_LOOKS`].
    fn look(&self, life: &mut Life<'_>, load: &mut Work, pace: Pace) -> Result<Look, LabError> {
        let (mut looks, mut anew) = (Vec::new(), 0);
        while looks.len() < CAPACITY_LOOKS as usize {
            let span = match pace {
                Pace::Closed => self.span(life, load, LOOK_FOR)?,
                Pace::Open { .. } => self.settled_span(life, load, pace, [LOOK_FOR / 2; 2])?,
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

    /// Lets loads run side by side as fast as they go until the sessions of each have done what they need to be
    /// warm and looks at the throughput of all are near each other, or for as long as the warm-ups may take.
    pub(crate) fn warm_up(
        &self,
        loads: &mut [&mut StartedLoad],
        cell: &Cell,
    ) -> Result<(), LabError> {
        let mut warmed = self.run_until_warm(loads, cell.threads);
        for load in &mut *loads {
            let paused = load.work.pause().map_err(LabError::from);
            warmed = warmed.and_then(|is_steady| paused.map(|()| is_steady));
        }
        // Where a server has one arm, each load stands still as often as the next.
        if warmed.is_ok() && self.suite.keeps_servers(cell) {
            self.pause_often(loads, cell.threads)?;
        }
        for load in loads {
            load.is_warm = warmed.is_ok();
            load.is_steady = matches!(warmed, Ok(true));
        }
        warmed.map(drop)
    }

    /// Lets loads stand still as often as they have to until they do that as quickly as ever.
    fn pause_often(&self, loads: &mut [&mut StartedLoad], threads: u32) -> Result<(), LabError> {
        let every = PAUSE_EVERY.max(SESSION_PAUSE_EVERY * threads);
        let pauses = if threads < THREADS { PAUSES } else { PAUSES_OF_MANY };
        for _ in 0..pauses {
            for load in &mut *loads {
                load.work.go(Pace::Closed)?;
                self.wait(every)?;
                load.work.pause()?;
            }
        }
        Ok(())
    }

    /// Whether the throughput is steady at the end.
    fn run_until_warm(
        &self,
        loads: &mut [&mut StartedLoad],
        threads: u32,
    ) -> Result<bool, LabError> {
        let begin = Instant::now();
        let look = LOOK_EVERY.max(Duration::from_secs_f64(SESSION_TURN_S * f64::from(threads)));
        let longest = self.lengths.warm_up_of(threads) * loads.len() as u32;
        // Twice the looks that it takes at least.
        let longest = longest.max(2 * LOOKS as u32 * look);
        let enough = WARM_AFTER * u64::from(threads);
        loads.iter_mut().try_for_each(|load| load.work.go(Pace::Closed))?;
        let firsts = transactions(loads)?;
        let (mut before, mut looks, mut is_enough) = (firsts.clone(), Vec::new(), false);
        while (!is_enough || !is_steady(&looks))
            && begin.elapsed() < (if is_enough { longest } else { PATIENCE * longest })
        {
            self.wait(look)?;
            let now = transactions(loads)?;
            let of_all = |counts: &[u64]| counts.iter().sum::<u64>();
            looks.push(of_all(&now).saturating_sub(of_all(&before)) as f64);
            is_enough =
                now.iter().zip(&firsts).all(|(now, first)| now.saturating_sub(*first) >= enough);
            before = now;
        }
        Ok(is_enough && is_steady(&looks))
    }
}

/// What was seen of a load. How many transactions an open one ends differs by chance, and so does what they use: the one
/// by the other does not.
fn seen(span: &Span) -> Result<Look, LabError> {
    let measured = span.measured();
    match (measured.tps(), measured.host_share) {
        (Some(per_second), Some(share)) => Ok(Look { per_second, share }),
        _ => Err(LabError::Foreign(NO_RATE.to_owned())),
    }
}

/// Transactions of each load since its start.
fn transactions(loads: &mut [&mut StartedLoad]) -> Result<Vec<u64>, LabError> {
    let count = |load: &mut &mut StartedLoad| -> Result<u64, LabError> {
        Ok(load.work.transactions()?.unwrap_or(0))
    };
    loads.iter_mut().map(count).collect()
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
        let cell = |workload: &str, load| Cell {
            workload: workload.to_owned(),
            threads: 10,
            load,
            order: None,
        };
        let [low, high] = [0.25, 0.6].map(|share| cell("reads", Load::Open { share }));
        assert_eq!(capacities.rate(&low).unwrap(), Some(312.5));
        assert_eq!([&low, &high].map(|cell| capacities.is_too_little(cell)), [false, true]);
        assert_eq!(capacities.rate(&cell("writes", Load::Closed)).unwrap(), None);
        // An open load is never run as a closed one.
        for cell in [high, cell("writes", Load::Open { share: 0.25 })] {
            assert!(matches!(capacities.rate(&cell), Err(LabError::NoRate { .. })), "{cell:?}");
        }
    }

    #[test]
    fn steady_is_near_its_mean_and_no_longer_rising() {
        assert!(is_steady(&[10.0, 100.0, 101.0, 99.0, 100.0]));
        assert!(!is_steady(&[100.0, 101.0, 102.0, 103.0]));
        assert!(!is_steady(&[50.0, 100.0, 101.0, 99.0]));
        assert!(!is_steady(&[100.0, 100.0, 100.0]));
        assert!(!is_steady(&[0.0; 4]));
    }
}
