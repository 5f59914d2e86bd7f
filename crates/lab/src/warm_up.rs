//! The warm-up of servers and their loads.

use std::time::{Duration, Instant};

use crate::engine::{Engine, StartedLoad};
use crate::error::LabError;
use crate::lengths::{LONGER_ABOVE_THREADS, SESSION_TURN_S};
use crate::load::Pace;
use crate::window::Cell;

/// How often the throughput is read during a warm-up, and how near four readings have to be to their mean: on a shared
/// host neighbours differ by a tenth. A reading has some transactions of each session ([`SESSION_TURN_S`]): in less time
/// their number would vary, since all sessions have begun together.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const LOOKS: usize = 4;
const STEADY: f64 = 0.10;
/// Transactions of a session after which its script is compiled (`hotloop` in `lab.lua`) and what the
/// server keeps for it is there: seen on 8 and 64 sessions.
const WARM_AFTER: u64 = 10;
/// How many times the longest warm-up they may take for that: 1,024 sessions need 25 s on two slow processors.
const PATIENCE: u32 = 4;
/// Pauses of a load after which each further one costs the same: until then its sessions compile the code of a pause.
/// Without them the first four turns of a load took a seventh more of its processor time than the later ones, and a
/// load that serves five arms has its first four turns five times sooner.
const PAUSES: u32 = 8;
/// From [`LONGER_ABOVE_THREADS`] sessions on: each takes more than half a second, and loads have few turns.
const PAUSES_OF_MANY: u32 = 3;
/// Loads warm up side by side up to this number of sessions together: a load of few sessions is idle for most of that
/// time. Of four loads with 1,024 sessions each, one had the processors nearly for itself, and the warm-up took 170 s
/// in place of 60.
const SESSIONS_AT_ONCE: u32 = 256;
/// How long a load works between two pauses: about as long as each session needs for a transaction on two processors. In
/// 10 ms only some of 64 sessions leave a pause (`docs/decisions/0013` says what that did).
const PAUSE_EVERY: Duration = Duration::from_millis(10);
const SESSION_PAUSE_EVERY: Duration = Duration::from_millis(1);

impl Engine<'_> {
    /// Lets loads run side by side as fast as they go until every session is warm and the throughput is steady, or for as
    /// long as the warm-ups may take.
    pub(crate) fn warm_up(
        &self,
        loads: &mut [&mut StartedLoad],
        cell: &Cell,
    ) -> Result<(), LabError> {
        let mut warmed = self.run_until_warm(loads, cell.threads);
        for load in &mut *loads {
            let paused = load.traffic.pause().map_err(LabError::from);
            warmed = warmed.and_then(|is_steady| paused.map(|()| is_steady));
        }
        // Where every server has one arm, all loads have equally many pauses anyway.
        if warmed.is_ok() && self.suite.keeps_servers(cell) {
            self.pause_often(loads, cell.threads)?;
        }
        for load in loads {
            load.is_warm = warmed.is_ok();
            load.is_steady = matches!(warmed, Ok(true));
        }
        warmed.map(drop)
    }

    /// Pauses loads until a pause costs them no more than the next.
    fn pause_often(&self, loads: &mut [&mut StartedLoad], threads: u32) -> Result<(), LabError> {
        let every = PAUSE_EVERY.max(SESSION_PAUSE_EVERY * threads);
        let pauses = if threads < LONGER_ABOVE_THREADS { PAUSES } else { PAUSES_OF_MANY };
        for _ in 0..pauses {
            for load in &mut *loads {
                load.traffic.go(Pace::Closed)?;
                self.wait(every)?;
                load.traffic.pause()?;
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
        let longest = self.manifest.lengths.warm_up_of(threads) * loads.len() as u32;
        // Twice as many readings as it needs at least.
        let longest = longest.max(2 * LOOKS as u32 * look);
        let enough = WARM_AFTER * u64::from(threads);
        loads.iter_mut().try_for_each(|load| load.traffic.go(Pace::Closed))?;
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

/// How many loads with this number of sessions warm up side by side.
pub(crate) fn warm_at_once(threads: u32) -> usize {
    (SESSIONS_AT_ONCE / threads.max(1)).max(1) as usize
}

/// Transactions of each load since its start.
fn transactions(loads: &mut [&mut StartedLoad]) -> Result<Vec<u64>, LabError> {
    let count = |load: &mut &mut StartedLoad| -> Result<u64, LabError> {
        Ok(load.traffic.transactions()?.unwrap_or(0))
    };
    loads.iter_mut().map(count).collect()
}

/// Whether the last readings are near their mean, and do not rise from each to the next.
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
