//! Time that may be spent: a share of what passes, of which some can be saved up.

use std::time::{Duration, Instant};

/// What is left to spend.
#[derive(Debug)]
pub(super) struct Allowance {
    share: f64,
    saved_max_s: f64,
    saved_s: f64,
    saved_at: Instant,
}

impl Allowance {
    /// All that can be saved up is there.
    pub(super) fn new(share: f64, saved_max_s: f64) -> Allowance {
        Allowance { share, saved_max_s, saved_s: saved_max_s, saved_at: Instant::now() }
    }

    /// Whether some is left.
    pub(super) fn is_left(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.saved_at);
        self.saved_at = now;
        self.saved_s = self.saved_max_s.min(self.saved_s + self.share * passed.as_secs_f64());
        self.saved_s > 0.0
    }

    /// Takes what was spent; it may be more than was left.
    pub(super) fn spend(&mut self, time: Duration) {
        self.saved_s -= time.as_secs_f64();
    }
}
