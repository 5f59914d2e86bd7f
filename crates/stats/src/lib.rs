//! Intervals and tests for paired measurements.
//!
//! Nothing here does I/O, reads a clock or finds randomness by itself: numbers and a seeded
//! [`Random`] are given. What cannot be computed (too few values) is `None`, never zero.
//!
//! ```
//! use waggle_stats::{Random, mean_interval, sign_flip};
//!
//! let differences = [1.9, 2.3, 2.1, 1.7, 2.0, 2.2, 1.8, 2.4];
//! let mean = mean_interval(&differences, 0.95).ok_or("too few")?;
//! assert!(mean.low < 2.05 && 2.05 < mean.high);
//! assert_eq!(sign_flip(&differences, 1000, &mut Random::seeded(1)), Some(2.0 / 256.0));
//! # Ok::<(), &str>(())
//! ```
#![forbid(unsafe_code)]

mod arms;
mod chance;
mod equivalence;
mod interval;
mod multiple;
mod pooled;
mod power;
mod random;
mod ratio;
mod resample;
mod sequential;
mod typical;

pub use arms::{ArmDifference, Groups, arm_difference, trimmed_mean};
pub use chance::most_by_chance;
pub use equivalence::smallest_margin;
pub use interval::{
    Estimate, difference, lag_one, mean_interval, median, ratio_interval, trimmed_interval,
};
pub use multiple::holm;
pub use pooled::block_means;
pub use power::detectable;
pub use random::Random;
pub use ratio::{log_ratios, percent};
pub use resample::{sign_flip, studentised_interval};
pub use sequential::Watch;
pub use typical::sign_flip_interval;
