//! What applying a profile does to the sessions of a busy server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use anyhow::Result;
use waggle_instrumentation::Change;
use waggle_instrumentation::apply::{Pace, write};
use waggle_instrumentation::undo::undo;
use waggle_mysql::{Connection, Options};
use waggle_stats::{Random, median};

use crate::profiles::changes;
use crate::server::Subject;
use crate::settings::Settings;

const SESSIONS: u32 = 32;
/// What is applied: the most rows of all profiles that name one class of events.
pub(crate) const PROFILE: &str = "waits";
/// The shortest window. All are as long as the longest apply before them took, and half as long again.
const WINDOW: Duration = Duration::from_secs(2);
const LONGER: f64 = 1.5;
const REST: Duration = Duration::from_millis(300);
/// What may be added to the longest statement, ms.
pub(crate) const LIMIT_MS: f64 = 50.0;

/// The longest statement of each window, ms.
pub(crate) struct Applying {
    pub(crate) with_ms: Vec<f64>,
    pub(crate) without_ms: Vec<f64>,
    /// How long each apply took, ms.
    pub(crate) took_ms: Vec<f64>,
}

impl Applying {
    /// The median of the differences between a window and the one beside it.
    pub(crate) fn added_ms(&self) -> f64 {
        let pairs = self.with_ms.iter().zip(&self.without_ms);
        median(pairs.map(|(with, without)| with - without).collect()).unwrap_or(f64::NAN)
    }
}

/// Sessions that note their longest statement.
struct Timed {
    stop: Arc<AtomicBool>,
    longest_ns: Arc<AtomicU64>,
    sessions: Vec<JoinHandle<()>>,
}

impl Timed {
    fn start(options: &Options) -> Result<Timed> {
        let (stop, longest_ns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut timed = Timed { stop, longest_ns, sessions: Vec::new() };
        for number in 0..SESSIONS {
            let mut connection = Connection::open(options)?;
            let (stop, longest) = (timed.stop.clone(), timed.longest_ns.clone());
            let mut random = Random::seeded(u64::from(number));
            timed.sessions.push(std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let id = random.below(10_000);
                    let begin = Instant::now();
                    let sent =
                        connection.rows(&format!("SELECT c FROM test.sbtest1 WHERE id = {id}"));
                    if sent.is_err() {
                        break;
                    }
                    longest.fetch_max(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
                }
            }));
        }
        Ok(timed)
    }

    /// The longest statement that ended in a window, ms.
    fn window(&self, length: Duration, meanwhile: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
        let begin = Instant::now();
        self.longest_ns.store(0, Ordering::Relaxed);
        meanwhile()?;
        sleep(length.saturating_sub(begin.elapsed()));
        Ok(self.longest_ns.load(Ordering::Relaxed) as f64 / 1e6)
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for session in self.sessions.drain(..) {
            // One that failed has ended already.
            let _ = session.join();
        }
    }
}

/// Pairs of windows, one of them with an apply, in random order.
pub(crate) fn measure(
    subject: &mut Subject,
    settings: &Settings,
    random: &mut Random,
) -> Result<Applying> {
    let default = changes(&mut subject.connection, "default")?;
    write(&mut subject.connection, &default, &mut Pace::default(), &mut |_| {})?;
    let wanted = changes(&mut subject.connection, PROFILE)?;
    let timed = Timed::start(&subject.options)?;
    sleep(REST);
    let mut applying = Applying { with_ms: vec![], without_ms: vec![], took_ms: vec![] };
    // How long it takes is learnt by one that does not count.
    let mut length = WINDOW.max(applied(subject, &wanted)?.mul_f64(LONGER));
    undo(&mut subject.connection, &wanted, None, &mut |_| Ok(()))?;
    for _ in 0..settings.applies {
        let first = random.coin();
        for apply in [first, !first] {
            sleep(REST);
            if !apply {
                applying.without_ms.push(timed.window(length, &mut || Ok(()))?);
                continue;
            }
            let mut took = Duration::ZERO;
            let longest = timed.window(length, &mut || {
                took = applied(subject, &wanted)?;
                Ok(())
            })?;
            applying.with_ms.push(longest);
            applying.took_ms.push(took.as_secs_f64() * 1e3);
            length = length.max(took.mul_f64(LONGER));
            undo(&mut subject.connection, &wanted, None, &mut |_| Ok(()))?;
        }
    }
    Ok(applying)
}

/// Applies changes as `waggle pfs apply` does; how long that took.
fn applied(subject: &mut Subject, changes: &[Change]) -> Result<Duration> {
    let begin = Instant::now();
    write(&mut subject.connection, changes, &mut Pace::default(), &mut |_| {})?;
    Ok(begin.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_differences_is_that_of_pairs() {
        let applying = Applying {
            with_ms: vec![10.0, 30.0, 100.0],
            without_ms: vec![5.0, 28.0, 10.0],
            took_ms: vec![],
        };
        assert_eq!(applying.added_ms(), 5.0);
    }
}
