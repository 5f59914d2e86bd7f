//! The arguments of `waggle lab run` and `waggle lab resume`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use clap::ArgGroup;
use jiff::Timestamp;
use waggle_lab::lengths::Lengths;
use waggle_lab::suite::{Scale, Suite};

use super::super::account::AccountArgs;
use super::super::{Failure, pause};
use super::runs;

/// Run a suite, and report what it shows beside what was published.
#[derive(Debug, clap::Args)]
#[command(
    group = ArgGroup::new("which").args(["server", "dsn"]).required(true),
    after_help = "Example: waggle lab run rds --server /usr/sbin/mysqld --scale tiny --time-budget 10m"
)]
pub(super) struct RunArgs {
    /// A name from `waggle lab suites`, or the path of a TOML file.
    pub(super) suite: String,
    /// The server: the path of a mysqld or mariadbd, or a name in a list of servers. Private servers of
    /// it are started.
    #[arg(long, value_name = "PATH|NAME")]
    pub(super) server: Option<String>,
    /// Instead of --server, without a value: the running server that the option files name. Only
    /// what SQL can change is measured, and undone.
    #[arg(long)]
    pub(super) dsn: bool,
    /// Change the server of --dsn; without it, say what would be changed.
    #[arg(long, requires = "dsn")]
    pub(super) yes: bool,
    /// Make no load on the server of --dsn: measure under the load that others make.
    #[arg(long, requires = "dsn")]
    pub(super) no_load: bool,
    /// The list of servers; unset: target/servers/servers.toml or /etc/waggle/servers.toml.
    #[arg(long, value_name = "FILE")]
    pub(super) servers: Option<PathBuf>,
    /// How much data, and how long a window is.
    #[arg(long, value_enum, default_value_t = ScaleArg::Small)]
    pub(super) scale: ScaleArg,
    /// Run only the cells that fit into this time, such as 30m; --plan names them. A bare number is seconds.
    #[arg(long, value_name = "TIME", value_parser = pause)]
    pub(super) time_budget: Option<Duration>,
    /// How often each arm is measured in each cell; unset: 8, or with a time budget as often as
    /// fits, at most 40.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(super) blocks: Option<u32>,
    /// Length of a window; unset: that of the scale.
    #[arg(long, value_name = "TIME", value_parser = pause)]
    pub(super) window: Option<Duration>,
    /// Only this workload, number of threads, scenario or order, or only closed loads, or only open ones (at a
    /// fixed rate). May be given more than once.
    #[arg(long, value_name = "WORD")]
    pub(super) only: Vec<String>,
    /// Seed of the order of the windows; unset: the time.
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Give half of the CPUs to the server and half to the load.
    #[arg(long, conflicts_with = "dsn")]
    pub(super) pin: bool,
    /// Say what would be measured, how long that takes and what it needs, and start nothing.
    #[arg(long)]
    pub(super) plan: bool,
    /// Directory of the run; unset: one in the state directory, named by suite and time.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) account: AccountArgs,
}

/// Continue an interrupted run.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle lab resume rds-20260314T101500")]
pub(super) struct ResumeArgs {
    /// Its name as in `waggle lab list`, or its directory.
    pub(super) run: PathBuf,
    /// The list of servers; unset: target/servers/servers.toml or /etc/waggle/servers.toml.
    #[arg(long, value_name = "FILE")]
    pub(super) servers: Option<PathBuf>,
    /// Change the server again, where the run is one of --dsn.
    #[arg(long)]
    pub(super) yes: bool,
    #[command(flatten)]
    pub(super) account: AccountArgs,
}

/// Scales, as on the command line.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum ScaleArg {
    /// To see that everything works: little data, windows of 0.4 s.
    Tiny,
    /// For a first answer: windows of 2 s.
    Small,
    /// The data of the source where it says how many: 10 tables of 1,000,000 rows, windows of 10 s.
    Full,
}

impl RunArgs {
    /// How long things take.
    pub(super) fn lengths(&self) -> Lengths {
        let lengths = Lengths::of(self.scale.into());
        Lengths { window: self.window.unwrap_or(lengths.window), ..lengths }
    }

    /// When the time is over that the run may take from now on.
    pub(super) fn until(&self) -> Option<Instant> {
        Instant::now().checked_add(self.time_budget?)
    }

    /// The directory of the run, which must not be there yet, and can be made.
    pub(super) fn place(&self, suite: &Suite, begin: Timestamp) -> Result<PathBuf, Failure> {
        let at = begin.strftime("%Y%m%dT%H%M%S");
        let named = || runs().join(format!("{}-{at}", suite.name));
        let place = self.output.clone().unwrap_or_else(named);
        if place.exists() {
            return Err(Failure::Cannot(anyhow!(
                "{} is there already: name another directory with --output, or go on with a run by \
                 waggle lab resume",
                place.display()
            )));
        }
        // Those on the way to it, too, are there again only when the run is begun.
        let is_new = |it: &&Path| !it.as_os_str().is_empty() && !it.exists();
        let new: Vec<&Path> = place.ancestors().take_while(is_new).collect();
        let made =
            fs::create_dir_all(&place).and_then(|()| new.iter().try_for_each(fs::remove_dir));
        made.map_err(|error| {
            Failure::Cannot(anyhow!(
                "directory {} cannot be made: {error}; name another one with --output",
                place.display()
            ))
        })?;
        Ok(place)
    }
}

/// A command as it is typed into a shell: words with blanks or signs in quotes.
pub(super) fn as_typed(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
    let words = words.into_iter().map(|word| word.as_ref().to_string_lossy().into_owned());
    let quoted = words.map(|word| match shlex::try_quote(&word) {
        Ok(quoted) => quoted.into_owned(),
        // No word of a command holds a NUL.
        Err(_) => word,
    });
    quoted.collect::<Vec<_>>().join(" ")
}

impl From<ScaleArg> for Scale {
    fn from(scale: ScaleArg) -> Scale {
        match scale {
            ScaleArg::Tiny => Scale::Tiny,
            ScaleArg::Small => Scale::Small,
            ScaleArg::Full => Scale::Full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_typed_again() {
        let words = ["waggle", "lab", "resume", "/a b/it's", "--only", "read-only"];
        let typed = as_typed(words);
        assert_eq!(shlex::split(&typed).unwrap(), words, "{typed}");
        assert!(typed.starts_with("waggle lab resume ") && typed.ends_with(" --only read-only"));
    }
}
