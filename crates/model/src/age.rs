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

    /// One that is known.
    pub fn exact(ns: u64) -> Age {
        Age { ns, is_at_least: false }
    }

    /// In seconds.
    pub fn seconds(&self) -> f64 {
        self.ns as f64 / 1e9
    }
}

/// `0.3 s`, `12 s`, `3m 20s`, `2h 5m`, `3d 4h`, and ` at least`.
impl fmt::Display for Age {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.ns / 1_000_000_000;
        let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
        match seconds {
            0..10 => write!(out, "{:.1} s", self.seconds())?,
            10..60 => write!(out, "{seconds} s")?,
            60..3_600 => write!(out, "{minutes}m {}s", seconds % 60)?,
            3_600..86_400 => write!(out, "{hours}h {minutes}m")?,
            _ => write!(out, "{days}d {hours}h")?,
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

    #[test]
    fn ages_are_read_at_a_glance() {
        let second = 1_000_000_000;
        let told = |ns| Age::exact(ns).to_string();
        assert_eq!(told(second / 4), "0.2 s");
        assert_eq!(told(59 * second), "59 s");
        assert_eq!(told(3_599 * second), "59m 59s");
        assert_eq!(told(7_500 * second), "2h 5m");
        assert_eq!(told(90_061 * second), "1d 1h");
    }
}
