//! What a run is told.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use serde::{Deserialize, Serialize};
use waggle_bench_frame::Options;
use waggle_testkit::Version;

/// Of fewer repetitions a single one that is wrong would be more than the 5 % that may be.
const REPETITIONS_MIN: u32 = 20;

/// Inject costs of known size, and see whether the lab finds them.
///
/// Each repetition is kept when it is made. Ctrl-C ends a run after the one at work; --resume goes on with it.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo xtask bench lab")]
#[command(after_help = "Example: cargo xtask bench lab --repetitions 30 --name trial")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Go on with the run in this directory of raw data, as it was begun.
    #[arg(long, value_name = "DIR", exclusive = true)]
    pub(crate) resume: Option<PathBuf>,
}

/// What is measured, and how.
#[derive(Clone, Debug, PartialEq, clap::Args, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// The server: mysql-5.7, mysql-8.0, mysql-9, mariadb-10.11 or mariadb-11.4.
    #[arg(long, value_name = "NAME", default_value = "mysql-9")]
    #[serde(with = "by_name")]
    pub(crate) server: Version,
    /// How often everything is measured, 20 times or more.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) repetitions: u32,
    /// Blocks of each repetition.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) blocks: u32,
    /// Turns of each window.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) turns: u32,
    /// Length of a turn, ms.
    #[arg(long, value_name = "MS", default_value_t = 20)]
    pub(crate) turn_ms: u64,
    /// Time under load before each turn, ms.
    #[arg(long, value_name = "MS", default_value_t = 5)]
    pub(crate) settle_ms: u64,
    /// How long the server is busy for a statement in every arm, without the cost, µs.
    #[arg(long, value_name = "US", default_value_t = 80)]
    pub(crate) always_us: u32,
    /// How long the load is busy for a statement in every arm, without what is left of the largest cost, µs.
    #[arg(long, value_name = "US", default_value_t = 20)]
    pub(crate) always_load_us: u32,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) options: Options,
}

impl Settings {
    /// The small form.
    pub(crate) fn made_quick(self) -> Settings {
        if !self.options.quick {
            return self;
        }
        Settings { repetitions: 2, blocks: 6, turns: 3, ..self }
    }

    /// Whether what is found can be held against the limits.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(
            self.options.quick || self.repetitions >= REPETITIONS_MIN,
            "--repetitions {}: of fewer than {REPETITIONS_MIN} a single one that is wrong would be \
             more than the 5 % that may be; give {REPETITIONS_MIN} or more, or --quick to see that \
             everything works",
            self.repetitions
        );
        Ok(())
    }

    /// Number from which the order of a repetition follows.
    pub(crate) fn seed_of(&self, repetition: u32) -> u64 {
        self.options.seed.wrapping_add(u64::from(repetition))
    }

    pub(crate) fn turns(&self) -> u32 {
        self.turns.max(1)
    }

    pub(crate) fn turn(&self) -> Duration {
        Duration::from_millis(self.turn_ms)
    }

    pub(crate) fn settle(&self) -> Duration {
        Duration::from_millis(self.settle_ms)
    }
}

/// A server as its name.
mod by_name {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use waggle_testkit::Version;

    pub(super) fn serialize<S: Serializer>(server: &Version, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(server.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Version, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[&str]) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(["bench"].into_iter().chain(words.iter().copied()))
    }

    #[test]
    fn a_long_form_has_at_least_twenty_repetitions_and_says_why() {
        let settings = |words: &[&str]| arguments(words).unwrap().settings.made_quick();
        assert!(settings(&[]).check().is_ok());
        assert!(settings(&["--repetitions", "20"]).check().is_ok());
        assert!(settings(&["--repetitions", "3", "--quick"]).check().is_ok());
        let refused = settings(&["--repetitions", "19"]).check().unwrap_err().to_string();
        assert!(refused.contains("19: of fewer than 20") && refused.contains("5 %"), "{refused}");
    }

    #[test]
    fn a_run_goes_on_as_it_was_begun_and_nothing_else_can_be_asked_of_it() {
        assert_eq!(arguments(&["--resume", "run"]).unwrap().resume, Some(PathBuf::from("run")));
        assert!(arguments(&["--resume", "run", "--repetitions", "80"]).is_err());
    }
}
