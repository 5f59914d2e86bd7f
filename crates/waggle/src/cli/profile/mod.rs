//! `waggle profile`

mod files;
mod flame_svg;
mod json;
mod profiler;
mod text;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use waggle_account::Grouping;
use waggle_host::{processors, wall_ns};
use waggle_model::{Losses, Server};
use waggle_observe::{Capture, Observer, ObserverOptions, Sinks, no_server};
use waggle_profile::{Profile, Work};

use super::watch::{CaptureArgs, until};
use super::{Failure, Outcome, all_written, print, some_time, stop_on_signal};
use crate::lacking;
use profiler::{Finished, Profiler};

const AFTER_HELP: &str = "\
Exit code 1 where no sample belongs to the digest of --digest.

Example: waggle profile --for 30s --svg flame.svg";

/// What waits count in a second.
const MICROSECONDS: u32 = 1_000_000;
/// How often the sessions are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Show where processor time goes: which digests use it, and in which functions of the server.
///
/// The clock of each processor ticks, and if a thread of a server runs there then, its statement and its
/// functions are noted. Functions without a name are shown by their file and begin.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Stop after this time; until Ctrl-C without it. A bare number is seconds.
    #[arg(long = "for", value_name = "TIME", value_parser = some_time)]
    duration: Option<Duration>,
    /// Only the statements with this digest, as `waggle watch --json` shows it.
    #[arg(long, value_name = "ID", value_parser = digest)]
    digest: Option<u64>,
    /// Ticks per second of each processor.
    #[arg(long, value_name = "HZ", default_value_t = 99,
          value_parser = clap::value_parser!(u32).range(1..=999))]
    hz: u32,
    /// Show where the time off the processor goes instead: each wait of a statement counts by its length, with the
    /// functions that wait. It costs something at every context switch of the servers' threads.
    #[arg(long, conflicts_with = "hz")]
    off_cpu: bool,
    /// Digests, threads and functions that are shown, those that use the most first.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Also draw a flame graph into this file, as SVG. A browser zooms into it and searches it.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Also write folded stacks into this file, for tools that draw pictures of them.
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// Also write a profile in the format of pprof into this file.
    #[arg(long, value_name = "FILE")]
    pprof: Option<PathBuf>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    capture: CaptureArgs,
}

fn digest(text: &str) -> Result<u64, String> {
    let is_one = text.len() == 16;
    u64::from_str_radix(text, 16)
        .ok()
        .filter(|_| is_one)
        .ok_or_else(|| format!("`{text}` is no digest: it has 16 hexadecimal digits"))
}

/// A profile, and how it was taken.
struct Report {
    /// That of the digest that was asked for, or all.
    profile: Profile,
    /// Samples of all digests and threads.
    samples: u64,
    only: Option<u64>,
    servers: Vec<Server>,
    begin_ns: u64,
    length: Duration,
    /// How much a processor or a wait counts in a second.
    per_second: u32,
    is_off_cpu: bool,
    processors: Option<usize>,
    losses: Losses,
    nameless: Vec<String>,
    /// What it lacks of servers whose programs were being read all the time.
    unread: Option<String>,
    /// What it took in the kernel to note one.
    ns_per_sample: Option<f64>,
    limit: usize,
}

pub(super) fn run(mut args: Args) -> Result<Outcome, Failure> {
    if args.off_cpu && args.capture.no_waits {
        let why = "--off-cpu shows the waits of statements, and --no-waits leaves them unmeasured";
        return Err(Failure::Usage(anyhow!(why)));
    }
    let stop = stop_on_signal()?;
    match args.off_cpu {
        true => args.capture.wait_stacks = true,
        // Where processor time goes, waits do not tell.
        false => (args.capture.profile_hz, args.capture.no_waits) = (Some(args.hz), true),
    }
    let capture = args.capture.attach(false, true, &stop)?;
    if capture.watched().is_empty() {
        return Err(Failure::Cannot(anyhow!("{}", no_server())));
    }
    refuse(&capture, args.off_cpu)?;
    let report = take(&args, capture, until(args.duration, &stop));
    let files = files::Files::of(&args);
    let lacks = files.write(&report);
    print(args.json, &json::of(&report), || text::of(&report))?;
    lacks?;
    let misread = lacking::misread(&report.losses);
    all_written(misread.into_iter().chain(report.unread.clone()))?;
    let is_missing = report.only.is_some() && report.profile.samples() == 0;
    Ok(if is_missing { Outcome::No } else { Outcome::Done })
}

/// Fails where the time of one cannot be sampled.
fn refuse(capture: &Capture, off_cpu: bool) -> Result<(), Failure> {
    let refusals = capture.watched().keys().map(|pid| {
        let waits = capture.waits(*pid).filter(|_| off_cpu);
        let waits = waits.and_then(|waits| waits.parts.why());
        (*pid, capture.profile_refusal(*pid).or(waits))
    });
    let refusals: Vec<(u32, Option<&str>)> = refusals.collect();
    match refusals.iter().find(|(_, why)| why.is_some()) {
        Some((pid, Some(why))) => {
            Err(Failure::Cannot(anyhow!("pid {pid}: its time cannot be sampled: {why}")))
        }
        _ => Ok(()),
    }
}

fn take(args: &Args, capture: Capture, mut is_over: impl FnMut() -> bool) -> Report {
    let options = ObserverOptions {
        interval: LOOK_EVERY,
        grouping: Grouping::Digest,
        looks_for_servers: true,
    };
    let mut profiler = Profiler::default();
    let (begin_ns, begun) = (wall_ns(), Instant::now());
    let unread = lacking::Unread::of(&capture);
    let mut observer = Observer::begin(capture, options);
    let mut sinks = Sinks { statements: vec![&mut profiler], ..Sinks::default() };
    observer.run(&mut sinks, &mut is_over);
    let length = begun.elapsed();
    let unread = unread.still(observer.capture());
    // Nothing more is to be sampled.
    drop(observer);
    let Finished { mut profile, servers, losses, nameless, ns_per_sample } = profiler.finish();
    let samples = profile.samples();
    if let Some(only) = args.digest {
        profile = profile
            .only(|owner| matches!(&owner.work, Work::Digest { key, .. } if key.text == only));
    }
    Report {
        profile,
        samples,
        only: args.digest,
        servers: servers.into_values().collect(),
        begin_ns,
        length,
        per_second: if args.off_cpu { MICROSECONDS } else { args.hz },
        is_off_cpu: args.off_cpu,
        processors: processors::online().ok(),
        losses,
        nameless: nameless.into_iter().collect(),
        unread,
        ns_per_sample,
        limit: args.limit,
    }
}

impl Report {
    /// A part of the samples of the profile, 0 to 1.
    fn share(&self, samples: u64) -> f64 {
        samples as f64 / self.profile.samples().max(1) as f64
    }

    /// Processors that were busy all the time, for so many samples, or sessions that waited all the time.
    fn cores(&self, samples: u64) -> f64 {
        samples as f64
            / (f64::from(self.per_second) * self.length.as_secs_f64()).max(f64::MIN_POSITIVE)
    }

    /// Samples of digests, of threads, and of statements that were not seen to end.
    fn by_kind(&self) -> [u64; 3] {
        let mut kinds = [0; 3];
        for (owner, samples) in self.profile.by_owner() {
            kinds[match owner.work {
                Work::Digest { .. } => 0,
                Work::Thread(_) => 1,
                Work::Unmatched => 2,
            }] += samples;
        }
        kinds
    }
}
