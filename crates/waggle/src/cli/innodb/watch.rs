//! `waggle innodb watch`

use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;
use waggle_instrumentation::metrics::sample::{Moved, Sample, Source};
use waggle_model::visible::on_a_line;

use super::super::account::AccountArgs;
use super::super::pfs::connect;
use super::super::pfs::hold::wait;
use super::super::{Failure, Outcome, pause, some_time, stop_on_signal, write_json};
use crate::streams::{stdout, tell};

/// Show what the server counts, with rates per second: the global status, the counters of InnoDB that
/// are on, and the memory that Performance Schema has counted, in one list as in sys.metrics.
///
/// Rates are differences of two readings. A table shows what moved in the interval, or every metric
/// that WHAT names.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples: waggle innodb watch --interval 5s\n          \
                        waggle innodb watch module_lock 'Innodb_row_lock%' --for 10s --json")]
pub(super) struct Args {
    /// Names, modules, subsystems, or patterns in which % stands for any characters; everything
    /// without it.
    #[arg(value_name = "WHAT")]
    words: Vec<String>,
    /// Length of an interval.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = pause)]
    interval: Duration,
    /// Stop after this time; until Ctrl-C without it. A bare number is seconds.
    #[arg(long = "for", value_name = "TIME", value_parser = some_time)]
    duration: Option<Duration>,
    /// A line of JSON per interval, with every metric.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    account: AccountArgs,
}

#[derive(Serialize)]
struct IntervalJson<'a> {
    at: String,
    interval_s: f64,
    metrics: &'a [Moved],
    absent: &'a [String],
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let stop = stop_on_signal()?;
    let mut connection = connect(args.account)?;
    let mut earlier = Sample::read(&mut connection)?;
    let begin = Instant::now();
    for why in &earlier.absent {
        tell!("waggle: not shown: {why}");
    }
    if let Some(word) = args.words.iter().find(|word| !earlier.has(word)) {
        let message = format!("`{word}` is no metric of this server, and no pattern that fits one");
        return Err(match earlier.absent.is_empty() {
            true => Failure::Usage(anyhow::anyhow!(message)),
            // It may be among those that were named before.
            false => Failure::Cannot(anyhow::anyhow!("{message} that can be read")),
        });
    }
    let mut out = stdout();
    loop {
        let left = args.duration.map(|duration| duration.saturating_sub(begin.elapsed()));
        // What is left of the last interval is shown, too.
        wait(Some(left.map_or(args.interval, |left| left.min(args.interval))), &stop);
        let later = Sample::read(&mut connection)?;
        let moved = later.moved_since(&earlier, &args.words);
        let interval_s = later.since(&earlier).as_secs_f64();
        if args.json {
            let at = Timestamp::now().to_string();
            let line = IntervalJson { at, interval_s, metrics: &moved, absent: &later.absent };
            write_json(&mut out, &line)?;
        } else {
            let everything = !args.words.is_empty();
            print(&mut out, &moved, interval_s, everything)?;
        }
        out.flush()?;
        let is_over = args.duration.is_some_and(|duration| begin.elapsed() >= duration);
        if is_over || stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Done);
        }
        earlier = later;
    }
}

fn print(out: &mut impl Write, moved: &[Moved], seconds: f64, everything: bool) -> io::Result<()> {
    let time = jiff::Zoned::now().strftime("%H:%M:%S");
    writeln!(
        out,
        "{time}, {seconds:.1} s\n{:<20} {:<48} {:>20} {:>14}",
        "where", "metric", "value", "per second"
    )?;
    // What was set back, or just began to count, has moved, by nobody knows how much.
    let is_shown = |moved: &&Moved| everything || moved.value.is_some() && moved.change != Some(0);
    for row in moved.iter().filter(is_shown) {
        let place = match row.source {
            Source::Status => "status",
            Source::Innodb => row.subsystem.as_deref().unwrap_or("innodb"),
            Source::Memory => "memory",
        };
        // What does not count has no value: that is not 0.
        let value = row.value.map_or("off".to_owned(), |value| value.to_string());
        let rate = row.per_s.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
        let (place, name) = (on_a_line(place), on_a_line(&row.name));
        writeln!(out, "{place:<20} {name:<48} {value:>20} {rate:>14}")?;
    }
    writeln!(out)
}
