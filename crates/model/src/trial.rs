//! A trial of what looking costs.

use std::collections::BTreeMap;

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
    /// The stack of each wait.
    WaitStacks,
}

impl Collector {
    /// All of them, in the order in which they are added.
    pub const ALL: [Collector; 5] = [
        Collector::Statements,
        Collector::Texts,
        Collector::Waits,
        Collector::WaitStacks,
        Collector::Injected,
    ];

    /// Its name in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Collector::Statements => "statements",
            Collector::Texts => "long texts",
            Collector::Waits => "waits",
            Collector::Injected => "injected",
            Collector::WaitStacks => "wait stacks",
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
    /// Time: all statements that begin in a window belong to the arm of the window.
    Time,
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
    /// Whether statements are also counted by the shape of their text ([`ShapeTimes`]).
    pub has_shapes: bool,
}

impl Trial {
    /// The most arms of a trial.
    pub const ARMS_MAX: usize = 6;

    /// A trial in windows. No arm collects anything: it is for what something else switches.
    pub fn in_windows(arms: usize) -> Trial {
        let arm = Arm { collectors: Vec::new(), share: 1.0 / arms as f64 };
        Trial { chooser: Chooser::Time, arms: vec![arm; arms], inject_ns: 0, has_shapes: false }
    }
}

/// Times that were counted together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Its place among all buckets: the times of a higher place are longer.
    pub place: u16,
    /// How many times it has.
    pub count: u64,
    /// Their sum, nanoseconds.
    pub sum_ns: u64,
}

/// Times in ascending buckets. Those with none are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// One of each place at most.
    pub buckets: Vec<Bucket>,
}

impl Times {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.count).sum()
    }

    /// How many each bucket has, and their sum in nanoseconds.
    pub fn counts_and_sums(&self) -> Vec<(u64, u64)> {
        self.buckets.iter().map(|bucket| (bucket.count, bucket.sum_ns)).collect()
    }

    /// The mean of the bucket in which this share of the times ends, nanoseconds; `None` if there are no times.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = (self.count() as f64 * share).ceil().max(1.0);
        let mut seen = 0.0;
        let found = self.buckets.iter().find(|bucket| {
            seen += bucket.count as f64;
            seen >= wanted
        });
        found.map(|bucket| bucket.sum_ns as f64 / bucket.count as f64)
    }

    /// All of them together.
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Times>) -> Times {
        let mut sums = BTreeMap::<u16, Bucket>::new();
        for bucket in all.into_iter().flat_map(|times| &times.buckets) {
            let Bucket { place, count, sum_ns } = *bucket;
            let sum = sums.entry(place).or_insert(Bucket { place, ..Bucket::default() });
            sum.count += count;
            sum.sum_ns = sum.sum_ns.saturating_add(sum_ns);
        }
        Times { buckets: sums.into_values().collect() }
    }
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
    /// Where the trial has shapes: statements whose shape had no room among those that are counted.
    pub without_room: u64,
}

/// The statements whose texts begin alike: their first bytes are the same but for numbers and for what stands in quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShapeTimes {
    /// The hash of what they have in common.
    pub shape: u64,
    /// Processor time of each, from its request to the next, by arm.
    pub processor: Vec<Times>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times<const N: usize>(buckets: [(u16, u64, u64); N]) -> Times {
        let bucket = |(place, count, sum_ns)| Bucket { place, count, sum_ns };
        Times { buckets: buckets.map(bucket).into() }
    }

    #[test]
    fn a_quantile_is_that_of_the_bucket_in_which_it_ends() {
        let times = times([(3, 9, 900), (7, 1, 1_000)]);
        assert_eq!(times.quantile(0.9), Some(100.0));
        assert_eq!(times.quantile(0.91), Some(1_000.0));
        assert_eq!(times.quantile(0.0), Some(100.0));
        assert_eq!(Times::default().quantile(0.5), None);
    }

    #[test]
    fn times_that_are_added_stay_in_order() {
        let one = times([(1, 1, 1_000), (3, 1, 3_000)]);
        let other = times([(2, 2, 4_000), (3, 3, 9_003), (9, 1, 9_000)]);
        let sum = times([(1, 1, 1_000), (2, 2, 4_000), (3, 4, 12_003), (9, 1, 9_000)]);
        assert_eq!(Times::sum([&one, &other]), sum);
        assert_eq!(Times::sum([]), Times::default());
    }
}
