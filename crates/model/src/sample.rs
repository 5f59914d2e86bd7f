//! A few statements of a digest with their text, so that a reader sees what the digest stands for.

use crate::{Identity, Parts, SessionSettings, Statement, StatementKey};

/// Bytes of text that are kept of a sample: as many as the server keeps of its own
/// (`performance_schema_max_sql_text_length`).
pub const SAMPLE_TEXT_MAX: usize = 1024;

/// A statement that ended, kept as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Which one it was.
    pub statement: StatementKey,
    /// Its end, `CLOCK_MONOTONIC` nanoseconds.
    pub end_ns: u64,
    /// Its latency, nanoseconds; `None` if its start is not known.
    pub latency_ns: Option<u64>,
    /// The first bytes of its text without secrets, with its literals; `None` if the text was not captured.
    pub text: Option<Vec<u8>>,
    /// The length of the whole text in bytes, without secrets.
    pub text_length: u64,
    /// The settings of its session; `None` if they are not known.
    pub settings: Option<SessionSettings>,
    /// Who sent it, from where and in which database.
    pub identity: Identity,
    /// Rows sent.
    pub rows_sent: Option<u64>,
    /// Rows examined.
    pub rows_examined: Option<u64>,
    /// Rows changed.
    pub rows_affected: Option<u64>,
    /// Time in locks, nanoseconds.
    pub lock_ns: Option<u64>,
    /// The error number, 0 for none.
    pub error: Option<u32>,
    /// Where its time went: classes whose sum is the latency.
    pub parts: Option<Parts>,
}

impl Sample {
    /// Keeps a statement. `head` is what is kept of its text, and how long the whole of it is.
    pub fn of(statement: &Statement<'_>, head: Option<(Vec<u8>, u64)>) -> Self {
        let (text, text_length) = head.unzip();
        Self {
            statement: statement.key(),
            end_ns: statement.end_ns,
            latency_ns: statement.latency_ns,
            text,
            text_length: text_length.unwrap_or(0),
            settings: statement.settings,
            identity: statement.identity.clone(),
            rows_sent: statement.rows_sent,
            rows_examined: statement.rows_examined,
            rows_affected: statement.rows_affected,
            lock_ns: statement.lock_ns,
            error: statement.error,
            parts: statement.parts_of_latency().copied(),
        }
    }
}

/// The samples of one digest in one interval: two at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// The one that took longest.
    pub slowest: Option<Box<Sample>>,
    /// One at random, every statement of the interval with the same chance.
    pub random: Option<Box<Sample>>,
}

impl Samples {
    /// Offers the `nth` statement of the interval, counted from 1. On average few are kept, by `keep`: the
    /// nth one is the slowest so far, or takes the place of the random one, with chance 1/n
    /// (Vitter, "Random Sampling with a Reservoir", 1985, algorithm R with a reservoir of one).
    pub(crate) fn offer(
        &mut self,
        statement: &Statement<'_>,
        nth: u64,
        keep: impl Fn(&Statement<'_>) -> Sample,
    ) {
        let slowest = self.slowest.as_ref().map(|sample| sample.latency_ns);
        if slowest.is_none_or(|slowest| statement.latency_ns > slowest) {
            self.slowest = Some(Box::new(keep(statement)));
        }
        if is_chosen(statement.end_ns, nth) {
            self.random = Some(Box::new(keep(statement)));
        }
    }

    /// Takes over the samples of another part of the same digest.
    pub(crate) fn merge(&mut self, other: &Samples) {
        let latency = |sample: &Option<Box<Sample>>| sample.as_ref().map(|one| one.latency_ns);
        if latency(&other.slowest) > latency(&self.slowest) {
            self.slowest.clone_from(&other.slowest);
        }
        if self.random.is_none() {
            self.random.clone_from(&other.random);
        }
    }
}

/// True with chance 1/n. The nanoseconds of its end, mixed, are the chance (the finaliser of
/// SplitMix64, <https://prng.di.unimi.it/splitmix64.c>), so that nothing is drawn and kept.
fn is_chosen(end_ns: u64, n: u64) -> bool {
    let mut mixed = end_ns.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    // Multiply-shift: the high half of the product is even over 0..n.
    (u128::from(mixed) * u128::from(n.max(1))) >> 64 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: Identity = Identity { user: None, host: None, database: None };

    fn offered(latencies: impl IntoIterator<Item = u64>) -> Samples {
        let mut samples = Samples::default();
        for (at, latency) in latencies.into_iter().enumerate() {
            let statement = Statement {
                latency_ns: Some(latency),
                ..Statement::unread(at as u64 * 1_000, &NOBODY)
            };
            samples.offer(&statement, at as u64 + 1, |one| Sample::of(one, None));
        }
        samples
    }

    #[test]
    fn the_slowest_is_kept_and_the_first_one_is_a_sample_of_one() {
        let samples = offered([5, 9, 2]);
        assert_eq!(samples.slowest.unwrap().latency_ns, Some(9));
        assert_eq!(offered([5]).random.unwrap().latency_ns, Some(5));
        assert_eq!(offered([]).slowest, None);
    }

    #[test]
    fn every_statement_has_about_the_same_chance() {
        let mut in_first_half = 0;
        for run in 0..2_000_u64 {
            let mut samples = Samples::default();
            for at in 0..50_u64 {
                let end_ns = run * 1_000_003 + at * 997;
                let statement = Statement::unread(end_ns, &NOBODY);
                samples.offer(&statement, at + 1, |one| Sample::of(one, None));
            }
            let chosen = samples.random.unwrap().end_ns - run * 1_000_003;
            in_first_half += u64::from(chosen < 25 * 997);
        }
        assert!((900..1_100).contains(&in_first_half), "{in_first_half} of 2000");
    }

    #[test]
    fn merged_samples_have_the_slower_one() {
        let mut merged = offered([5]);
        merged.merge(&offered([7]));
        assert_eq!(merged.slowest.unwrap().latency_ns, Some(7));
        assert_eq!(merged.random.unwrap().latency_ns, Some(5));
    }
}
