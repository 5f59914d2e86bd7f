//! Waiting for what comes about by itself.

use std::fmt::Display;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longer than anything that a test waits for takes, so that a fault does not hang the tests.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// The first pause between two looks. Each pause is twice as long as the one before it.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Looks until `look` gives something.
///
/// # Panics
/// It did not come within two minutes.
pub fn wait_for<T>(what: impl Display, mut look: impl FnMut() -> Option<T>) -> T {
    wait_showing(what, || look().ok_or(""))
}

/// Looks until it is so.
///
/// # Panics
/// It did not come about within two minutes.
pub fn wait_until(what: impl Display, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}

/// Looks until `look` gives something; what it sees instead is shown if that does not come.
///
/// # Panics
/// It did not come within two minutes.
pub fn wait_showing<T, E: Display>(
    what: impl Display,
    mut look: impl FnMut() -> Result<T, E>,
) -> T {
    let (begin, mut pause) = (Instant::now(), PAUSE_MIN);
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(begin.elapsed() < PATIENCE, "it did not come: {what}\n{seen}"),
        }
        sleep(pause);
        pause = PAUSE_MAX.min(2 * pause);
    }
}
