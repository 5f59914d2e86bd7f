//! For how long something lasts already.

use std::fmt;

/// For how long something lasts, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// Nanoseconds.
    pub ns: u64,
    /// It may last longer: its beginning was not seen.
    pub is_at_least: bool,
}

impl Age {
    /// The oldest of several; `None` where there is none. Of what may last longer, one is at least as old.
    pub fn oldest(ages: impl IntoIterator<Item = Age>) -> Option<Age> {
        ages.into_iter().reduce(|one, other| Age {
            ns: one.ns.max(other.ns),
            is_at_least: one.is_at_least || other.is_at_least,
        })
    }

    /// In seconds.
    pub fn seconds(&self) -> f64 {
        self.ns as f64 / 1e9
    }
}

impl fmt::Display for Age {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.seconds();
        match seconds < 10.0 {
            true => write!(out, "{seconds:.1} s")?,
            false => write!(out, "{seconds:.0} s")?,
        }
        out.write_str(if self.is_at_least { " at least" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_told_and_that_another_may_be_older() {
        let age = |ns, is_at_least| Age { ns, is_at_least };
        assert_eq!(Age::oldest([]), None);
        let told = |ages: [Age; 2]| Age::oldest(ages).unwrap().to_string();
        assert_eq!(told([age(12_300_000_000, false), age(1, false)]), "12 s");
        assert_eq!(told([age(4_800_000_000, false), age(1, true)]), "4.8 s at least");
    }
}
