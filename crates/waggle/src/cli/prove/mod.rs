//! `waggle prove`

mod digests;
mod json;
mod seen;
mod switched;
mod text;

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use jiff::Timestamp;
use waggle_account::Grouping;
use waggle_instrumentation::cost::calibration::Host;
use waggle_instrumentation::cost::proven::{Method, Proven};
use waggle_model::{Collector, Server, Trial};
use waggle_observe::{Capture, Observer, ObserverOptions, Sinks, StatementSink, no_server};
use waggle_probes::carrier::RunTimeStatistics;
use waggle_probes::coin::Tosses;
use waggle_probes::tap::Hook;
use waggle_prove::{Ladder, Price, Proof, ladder};

use super::pfs::proven;
use super::watch::{CaptureArgs, until};
use super::{Failure, Outcome, all_written, duration, print, some_time, stop_on_signal};
use crate::lacking;
use crate::progress::Line;
use digests::{ByDigest, Met};
use seen::{Seen, Sums};
use switched::{
    InnodbArgs, PfsArgs, ProgramArgs, VariableArgs, run_innodb, run_pfs, run_program, run_variable,
};

pub(super) use switched::keeper;

const AFTER_HELP: &str = "\
For each statement a coin decides what waggle collects of it. Nothing is changed in the server. \
Statements of which nothing is collected are counted as left out.
Exit code 1 where too few statements came to say anything, 4 where the server ended meanwhile.

Example: waggle prove --within 50ns";

/// How often it is looked what is known by now.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// What is kept of the way there.
const COURSE_MAX: usize = 12;
/// What is asked of a price, or injected, is shorter.
const LONGEST_NS: f64 = 1e5;
/// For how long entries are counted when the trial is over, and how many there must be.
const ENTRIES: Duration = Duration::from_millis(500);
const ENTRIES_MIN: u64 = 100;
/// Fewer seconds say nothing of a load that changes.
const SHORTEST: Duration = Duration::from_secs(2);

/// Measure what looking costs a running server: processor time per statement, with an interval.
///
/// Without a subcommand: what waggle itself costs.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    switched: Option<Switched>,
    #[command(flatten)]
    own: OwnArgs,
}

/// What is switched for the whole server.
#[derive(Debug, clap::Subcommand)]
enum Switched {
    Pfs(PfsArgs),
    InnodbMetrics(InnodbArgs),
    Variable(VariableArgs),
    Program(ProgramArgs),
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    match args.switched {
        None => run_own(args.own),
        Some(Switched::Pfs(args)) => run_pfs(args),
        Some(Switched::InnodbMetrics(args)) => run_innodb(args),
        Some(Switched::Variable(args)) => run_variable(args),
        Some(Switched::Program(args)) => run_program(&args),
    }
}

#[derive(Debug, clap::Args)]
struct OwnArgs {
    /// Stop after this time at the latest. A bare number is seconds.
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = some_time)]
    duration: Duration,
    /// Stop as soon as the price is known within this time, such as 50ns.
    #[arg(long, value_name = "TIME", default_value = "100ns", value_parser = nanoseconds)]
    within: u64,
    /// The share of the statements of which nothing is collected, such as 1/8. Unset: as many as each other arm has.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    share: Option<f64>,
    /// Also price each of the ten digests that use the processors most. Then the beginning of every text is read, also where
    /// nothing is collected, so that the price has less of that.
    #[arg(long)]
    by_digest: bool,
    /// Also price the stack of each wait, as `waggle profile --off-cpu` takes it.
    #[arg(long, conflicts_with = "no_waits")]
    wait_stacks: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
    /// Price a time that the program idles in half of the statements, to show that it is found.
    #[arg(long, value_name = "TIME", hide = true, value_parser = nanoseconds)]
    inject: Option<u64>,
    #[command(flatten)]
    capture: CaptureArgs,
}

/// Some nanoseconds: `50ns`, `2us`, or a time of other commands.
fn nanoseconds(text: &str) -> Result<u64, String> {
    let number = |unit: &str, factor: f64| {
        let number: Option<f64> = text.strip_suffix(unit)?.parse().ok();
        number.filter(|number| *number >= 0.0).map(|number| number * factor)
    };
    let ns = number("ns", 1.0).or_else(|| number("us", 1e3)).or_else(|| number("µs", 1e3));
    let ns = match ns {
        Some(ns) => ns,
        None => duration(text)
            .map_err(|_| format!("`{text}` is no time; write 50ns or 2us"))?
            .as_nanos() as f64,
    };
    let is_short = ns <= LONGEST_NS;
    is_short.then_some(ns as u64).ok_or_else(|| {
        format!("`{text}` is longer than 100 µs; a bare number is seconds: write 100ns")
    })
}

/// `1/8` or `0.125`.
fn share(text: &str) -> Result<f64, String> {
    let (part, whole) = text.split_once('/').unwrap_or((text, "1"));
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let share = number(part).zip(number(whole)).map(|(part, whole)| part / whole);
    share
        .filter(|share| (0.01..=0.9).contains(share))
        .ok_or_else(|| format!("`{text}` is no share from 0.01 to 0.9; write 1/8"))
}

/// A moment of the trial, and the price as it was known then.
struct Moment {
    after: Duration,
    price: Price,
}

/// What was found, and how.
struct Report {
    server: Server,
    trial: Trial,
    proof: Proof,
    course: Vec<Moment>,
    length: Duration,
    within_ns: u64,
    /// What was seen of the server beside it.
    seen: Sums,
    /// Where that was asked for.
    by_digest: Option<ByDigest>,
    /// How long the tap's program takes where it leaves at once, nanoseconds, and at what.
    entry: Option<(f64, &'static str)>,
}

fn run_own(args: OwnArgs) -> Result<Outcome, Failure> {
    let mut capture_args = args.capture;
    capture_args.wait_stacks = args.wait_stacks;
    if capture_args.nested {
        let why = "--nested: breakpoints cannot be switched for each statement; leave it out";
        return Err(Failure::Usage(anyhow!(why)));
    }
    let stop = stop_on_signal()?;
    let trial = ladder(&Ladder {
        collectors: collectors(&capture_args, args.inject.is_some()),
        left_out: args.share,
        inject_ns: args.inject.unwrap_or_default(),
        by_digest: args.by_digest,
    });
    // Only that is kept for those who watch as usual.
    let is_usual = capture_args.is_usual() && args.inject.is_none();
    capture_args.trial = Some(trial.clone());
    let mut capture = capture_args.attach(false, false, &stop)?;
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::Cannot(anyhow!("it was stopped before the trial began")));
    }
    let server = the_server(&capture)?;
    capture.keep_only(server.pid);
    let tosses =
        capture.tosses().ok_or_else(|| anyhow!("no trial has begun")).map_err(Failure::Cannot)?;
    let report = take(
        Asked { server, trial, tosses, within_ns: args.within, limit: args.duration },
        capture,
        &mut until(None, &stop),
    );
    print(args.json, &json::of(&report), || text::of(&report))?;
    if let Some(price) = report.proof.total.filter(|_| is_usual && !report.trial.has_shapes) {
        keep(&report.server, Proven::WAGGLE, Method::Coin, price.span(), price.base_ns)?;
    }
    let misread = lacking::misread(&report.seen.losses);
    let ended = report.seen.gone.as_ref();
    let ended = ended.map(|why| format!("{why} after {:.0} s", report.length.as_secs_f64()));
    all_written(misread.into_iter().chain(ended))?;
    Ok(if report.proof.total.is_some() { Outcome::Done } else { Outcome::No })
}

/// Keeps what was found: nanoseconds, and the ends of their interval.
fn keep(
    server: &Server,
    what: &str,
    method: Method,
    [ns, low_ns, high_ns]: [f64; 3],
    base_ns: f64,
) -> Result<(), Failure> {
    let found = Proven {
        at: Timestamp::now(),
        host: Host::look(),
        build: server.build.0.clone(),
        version: server.version.to_string(),
        what: what.to_owned(),
        method,
        ns,
        low_ns,
        high_ns,
        base_ns,
    };
    found.store(&proven()).map(drop).map_err(|error| Failure::Config(error.into()))
}

/// What is priced: all that is collected.
fn collectors(capture: &CaptureArgs, injects: bool) -> Vec<Collector> {
    let wanted = |collector: &Collector| match collector {
        Collector::Statements => true,
        Collector::Texts => capture.has_long_texts(),
        Collector::Waits => !capture.no_waits,
        Collector::Injected => injects,
        Collector::WaitStacks => capture.wait_stacks,
    };
    Collector::ALL.into_iter().filter(wanted).collect()
}

/// The only one that is watched.
fn the_server(capture: &Capture) -> Result<Server, Failure> {
    let servers: Vec<&Server> = capture.watched().values().map(|watched| &watched.server).collect();
    match servers[..] {
        [server] => Ok(server.clone()),
        [] => {
            Err(Failure::Cannot(anyhow!("{}; start one, or run waggle where it runs", no_server())))
        }
        _ => {
            let pids: Vec<String> = servers.iter().map(|it| it.pid.to_string()).collect();
            Err(Failure::Usage(anyhow!(
                "there are several servers: choose one of {} with --pid",
                pids.join(", ")
            )))
        }
    }
}

/// What a trial needs.
struct Asked {
    server: Server,
    trial: Trial,
    tosses: Tosses,
    within_ns: u64,
    limit: Duration,
}

fn take(asked: Asked, capture: Capture, is_stopped: &mut dyn FnMut() -> bool) -> Report {
    let Asked { server, trial, tosses, within_ns, limit } = asked;
    let options = ObserverOptions {
        interval: Duration::from_secs(1),
        grouping: Grouping::Digest,
        // It is noticed when the server ends.
        looks_for_servers: true,
    };
    let seen = Seen::default();
    let mut met = trial.has_shapes.then(|| Met::of(&server));
    let mut line = Line::new();
    let mut course: Vec<Moment> = Vec::new();
    let mut observer = Observer::begin(capture, options);
    let (begun, mut looked_at) = (Instant::now(), Instant::now());
    tosses.start();
    let mut is_known = false;
    let mut is_over = || {
        let after = begun.elapsed();
        if looked_at.elapsed() >= LOOK_EVERY {
            looked_at = Instant::now();
            let proof = Proof::of(&trial, &tosses.read());
            line.tell(&text::progress(after, limit, within_ns, &proof));
            if let Some(price) = proof.total {
                course.push(Moment { after, price });
                thin(&mut course);
                is_known = price.half_width_ns <= within_ns as f64 && after >= SHORTEST;
            }
        }
        let is_over = is_known || after >= limit || is_stopped() || seen.sums().gone.is_some();
        if is_over {
            // What was collected is what was counted.
            tosses.end();
        }
        is_over
    };
    let mut sink = seen.clone();
    let statements = met.iter_mut().map(|met| met as &mut dyn StatementSink).collect();
    let mut sinks = Sinks { statements, records: vec![&mut sink], ..Sinks::default() };
    observer.run(&mut sinks, &mut is_over);
    line.end();
    let length = begun.elapsed();
    let tossed = tosses.read();
    let proof = Proof::of(&trial, &tossed);
    let by_digest = met.map(|met| met.price(&tossed, &tosses.shapes()));
    let entry = entry(observer.capture(), server.pid);
    drop(observer);
    let seen = seen.sums().clone();
    Report { server, trial, proof, course, length, within_ns, seen, by_digest, entry }
}

/// What the tap's program takes where it leaves at once, as it does when the trial is over, by the kernel's statistics of
/// programs: nanoseconds, and at what it is entered.
fn entry(capture: &Capture, pid: u32) -> Option<(f64, &'static str)> {
    let at = match capture.watched().get(&pid)?.hook {
        Hook::Syscall => "system call",
        _ => "send",
    };
    let _statistics = RunTimeStatistics::enable().ok()?;
    let before = capture.kernel_time().statements;
    thread::sleep(ENTRIES);
    let after = capture.kernel_time().statements;
    let runs = after.runs.saturating_sub(before.runs);
    let time = after.time.saturating_sub(before.time);
    (runs >= ENTRIES_MIN).then(|| (time.as_nanos() as f64 / runs as f64, at))
}

impl Report {
    /// Whether the method is tested, and not waggle.
    fn is_test(&self) -> bool {
        self.trial.arms.iter().any(|arm| arm.collectors.contains(&Collector::Injected))
    }
}

/// Keeps as many moments as are shown, the early ones nearer to each other.
fn thin(course: &mut Vec<Moment>) {
    if course.len() > COURSE_MAX {
        let last = course.len() - 1;
        let closest = (1..last).min_by(|one, other| {
            let ratio =
                |at: usize| course[at + 1].after.as_secs_f64() / course[at - 1].after.as_secs_f64();
            ratio(*one).total_cmp(&ratio(*other))
        });
        closest.map(|at| course.remove(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_shares_are_read_as_they_are_written() {
        assert_eq!(nanoseconds("50ns"), Ok(50));
        assert_eq!(nanoseconds("0.2us"), Ok(200));
        assert_eq!(nanoseconds("0.05ms"), Ok(50_000));
        assert_eq!(share("1/8"), Ok(0.125));
        assert_eq!(share("0.5"), Ok(0.5));
        for wrong in ["", "2", "1/0", "0", "x/2", "-1/2"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "ns", "-5ns", "5 parsecs", "2s", "100"] {
            assert!(nanoseconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_way_there_is_told_in_a_few_moments() {
        let price = Price { ns: 1.0, half_width_ns: 1.0, base_ns: 1.0, statements: 1 };
        let mut course = Vec::new();
        for half in 1..=120 {
            course.push(Moment { after: Duration::from_millis(500 * half), price });
            thin(&mut course);
        }
        let at: Vec<f64> = course.iter().map(|moment| moment.after.as_secs_f64()).collect();
        assert_eq!((at.len(), at[0], at[COURSE_MAX - 1]), (COURSE_MAX, 0.5, 60.0), "{at:?}");
        assert!(at[1] <= 1.5 && at.is_sorted(), "{at:?}");
    }
}
