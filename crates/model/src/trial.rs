//! A trial of what looking costs.

/// What waggle collects of a statement. Each has its price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Collector {
    /// The statement itself, with a text of at most 256 bytes.
    Statements,
    /// The text up to the limit.
    Texts,
    /// Where its time went.
    Waits,
    /// Nothing: the program idles for a time that is known, to test the method.
    Injected,
}

impl Collector {
    /// All of them.
    pub const ALL: [Collector; 4] =
        [Collector::Statements, Collector::Texts, Collector::Waits, Collector::Injected];

    /// Its name in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Collector::Statements => "statements",
            Collector::Texts => "long texts",
            Collector::Waits => "waits",
            Collector::Injected => "injected",
        }
    }
}

/// What is collected of the statements that a coin gives to this arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// Collectors that work.
    pub collectors: Vec<Collector>,
    /// Its share of the statements, 0 to 1.
    pub share: f64,
}

/// What decides to which arm a statement belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chooser {
    /// A coin for each statement, by the shares of the arms.
    Coin,
    /// Time: all statements of a window belong to its arm.
    Window,
}

/// The arms of a trial; their shares add up to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// How they share the statements.
    pub chooser: Chooser,
    /// Each adds collectors to the one before.
    pub arms: Vec<Arm>,
    /// How long [`Collector::Injected`] idles, nanoseconds.
    pub inject_ns: u64,
}

impl Trial {
    /// The most arms of a trial.
    pub const ARMS_MAX: usize = 6;

    /// One in windows of so many arms. It collects nothing, so that it prices what else is switched.
    pub fn in_windows(arms: usize) -> Trial {
        let arm = Arm { collectors: Vec::new(), share: 1.0 / arms as f64 };
        Trial { chooser: Chooser::Window, arms: vec![arm; arms], inject_ns: 0 }
    }
}

/// Times in ascending buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// How many times each bucket has, and their sum in nanoseconds. Those with none are left out.
    pub buckets: Vec<(u64, u64)>,
}

impl Times {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(count, _)| count).sum()
    }

    /// The mean of the bucket in which this share of the times ends, nanoseconds; `None` if there are no times.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = (self.count() as f64 * share).ceil().max(1.0);
        let mut seen = 0.0;
        let found = self.buckets.iter().find(|(count, _)| {
            seen += *count as f64;
            seen >= wanted
        });
        found.map(|(count, sum_ns)| *sum_ns as f64 / *count as f64)
    }

    /// All of them together. Buckets of the same times become one.
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Times>) -> Times {
        let mut buckets: Vec<(u64, u64)> =
            all.into_iter().flat_map(|times| &times.buckets).copied().collect();
        buckets.sort_unstable_by_key(|(count, sum_ns)| sum_ns / count);
        buckets.dedup_by(|next, kept| {
            let is_same = bucket_of(*next) == bucket_of(*kept);
            if is_same {
                *kept = (kept.0 + next.0, kept.1.saturating_add(next.1));
            }
            is_same
        });
        Times { buckets }
    }
}

/// Each power of two has so many buckets, and shorter times have one each.
const PER_POWER: u64 = 32;

/// The bucket of some times, as the kernel's half has them: a power of two, and a part of it.
fn bucket_of((count, sum_ns): (u64, u64)) -> (u32, u64) {
    let ns = sum_ns / count;
    let power = ns.max(PER_POWER).ilog2();
    (power, ns >> (power - PER_POWER.ilog2()))
}

/// What one arm of a trial has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArmTimes {
    /// Statements that began.
    pub requests: u64,
    /// Processor time of each statement from its request to the next, where both came in one window.
    pub processor: Times,
    /// From the request of a statement to its last send.
    pub latency: Times,
}

/// What a trial has counted so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tossed {
    /// Processor time of each statement, from its request to the next: by the arm of the statement before, then by its own.
    pub processor: Vec<Vec<Times>>,
    /// From the request of a statement to its last send, by arm.
    pub latency: Vec<Times>,
    /// How long the program idled in all, nanoseconds, by arm.
    pub injected_ns: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_that_of_the_bucket_in_which_it_ends() {
        let times = Times { buckets: vec![(9, 900), (1, 1_000)] };
        assert_eq!(times.quantile(0.9), Some(100.0));
        assert_eq!(times.quantile(0.91), Some(1_000.0));
        assert_eq!(times.quantile(0.0), Some(100.0));
        assert_eq!(Times::default().quantile(0.5), None);
    }

    #[test]
    fn times_that_are_added_stay_in_order() {
        let one = Times { buckets: vec![(1, 1_000), (1, 3_000)] };
        let other = Times { buckets: vec![(2, 4_000), (3, 9_003), (1, 9_000)] };
        let sum = Times::sum([&one, &other]).buckets;
        assert_eq!(sum, [(1, 1_000), (2, 4_000), (4, 12_003), (1, 9_000)]);
        assert_eq!(Times::sum([]).buckets, []);
    }
}
