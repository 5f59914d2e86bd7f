//! The arms of a trial.

use waggle_model::{Arm, Chooser, Collector, Trial};

/// What a trial is to compare.
#[derive(Clone, Debug, PartialEq)]
pub struct Ladder {
    /// The collectors that are priced, each beside those before it.
    pub collectors: Vec<Collector>,
    /// The share of the statements of which nothing is collected, 0 to 1; `None`: as many as each other arm has.
    pub left_out: Option<f64>,
    /// How long [`Collector::Injected`] idles, nanoseconds.
    pub inject_ns: u64,
    /// Whether it is also priced by digest.
    pub by_digest: bool,
}

/// The trial: its first arm collects nothing, and each further one a collector more.
///
/// Where the injected time is priced, all else is collected in every arm: nothing but that time differs.
pub fn ladder(wanted: &Ladder) -> Trial {
    let is_test = wanted.collectors.contains(&Collector::Injected);
    let collectors: Vec<Collector> = wanted.collectors.clone();
    let first = match is_test {
        true => collectors.len() - 1,
        false => 0,
    };
    let counts: Vec<usize> = (first..=collectors.len()).collect();
    let others = counts.len() as f64 - 1.0;
    let left_out = wanted.left_out.unwrap_or(1.0 / (others + 1.0));
    let arm = |(at, count): (usize, usize)| Arm {
        collectors: collectors[..count].to_vec(),
        share: if at == 0 { left_out } else { (1.0 - left_out) / others },
    };
    Trial {
        chooser: Chooser::Coin,
        arms: counts.into_iter().enumerate().map(arm).collect(),
        inject_ns: wanted.inject_ns,
        has_shapes: wanted.by_digest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Collector::{Injected, Statements, Waits};

    fn wanted(collectors: &[Collector], left_out: Option<f64>) -> Ladder {
        Ladder { collectors: collectors.to_vec(), left_out, inject_ns: 0, by_digest: false }
    }

    #[test]
    fn each_arm_adds_a_collector() {
        let trial = ladder(&wanted(&[Statements, Waits], Some(0.2)));
        let arms: Vec<_> = trial.arms.iter().map(|arm| &arm.collectors[..]).collect();
        assert_eq!(arms, [&[][..], &[Statements], &[Statements, Waits]]);
        let shares: Vec<_> = trial.arms.iter().map(|arm| arm.share).collect();
        assert_eq!(shares, [0.2, 0.4, 0.4]);
        let even = ladder(&wanted(&[Statements], None));
        assert_eq!(even.arms.iter().map(|arm| arm.share).collect::<Vec<_>>(), [0.5, 0.5]);
    }

    #[test]
    fn a_test_of_the_method_differs_in_the_injected_time_alone() {
        let trial = ladder(&wanted(&[Statements, Waits, Injected], None));
        let arms: Vec<_> = trial.arms.iter().map(|arm| &arm.collectors[..]).collect();
        assert_eq!(arms, [&[Statements, Waits][..], &[Statements, Waits, Injected]]);
    }
}
