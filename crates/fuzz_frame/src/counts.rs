//! What the checks met.

use std::collections::BTreeMap;

/// Numbers by name.
#[derive(Clone, Debug, Default)]
pub struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    /// Counts something once more.
    pub fn met(&mut self, what: &'static str) {
        self.add_to(what, 1);
    }

    /// Adds a number to a counter.
    pub fn add_to(&mut self, what: &'static str, times: u64) {
        *self.0.entry(what).or_default() += times;
    }

    /// How often it was met.
    pub fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, other: &Counts) {
        for (what, times) in &other.0 {
            self.add_to(what, *times);
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(what, times)| (*what, *times))
    }
}
