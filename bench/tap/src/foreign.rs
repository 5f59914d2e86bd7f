//! What the tap costs processes that are not watched: their sends, and their switches where waits are
//! measured.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::unix::net::UnixStream;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use anyhow::{Context, Result, ensure};
use waggle_bench_frame::CONFIDENCE;
use waggle_host::Meter;
use waggle_host::processors::keep_on;
use waggle_probes::capture::Tap;
use waggle_probes::carrier::RunTimeStatistics;
use waggle_probes::servers::recognise::Recognised;
use waggle_probes::tap::Hook;
use waggle_stats::{Estimate, Random, mean_interval};
use waggle_testkit::Killed;

use crate::arm::Arm;
use crate::settings::Settings;

/// The hidden command with which this program becomes the other process.
pub(crate) const COMMAND: &str = "foreign";
/// Sends or switches of one batch: some 20 ms.
const TIMES: u32 = 20_000;

/// What the other process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Work {
    /// Sends a byte over a socket pair, and receives it.
    Send,
    /// Two threads on one processor hand a byte to each other: each time one leaves it for the other.
    Switch,
}

impl Work {
    /// The name on the command line and in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Work::Send => "send",
            Work::Switch => "switch",
        }
    }

    /// What other processes do that meets this arm. A breakpoint is in one server only.
    fn met_by(arm: Arm) -> Option<Work> {
        match arm {
            Arm::Rung(Hook::Send | Hook::Fentry | Hook::Syscall) => Some(Work::Send),
            Arm::Default => Some(Work::Switch),
            _ => None,
        }
    }
}

/// What an arm costs a process that is not watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreign {
    pub(crate) arm: Arm,
    pub(crate) work: Work,
    /// Its own CPU each time without the tap, nanoseconds.
    pub(crate) without_ns: f64,
    /// What the tap adds to that, nanoseconds.
    pub(crate) added_ns: Option<Estimate>,
    /// Time in the program each time by the kernel's statistics, nanoseconds.
    pub(crate) program_ns: f64,
}

/// The life of the other process: one batch for every line that it is sent.
pub(crate) fn be_the_other(work: Work) -> Result<()> {
    let (mut here, mut there) = UnixStream::pair()?;
    let mut sends = || -> Result<()> {
        for _ in 0..TIMES {
            here.write_all(b"1")?;
            there.read_exact(&mut [0])?;
        }
        Ok(())
    };
    if work == Work::Switch {
        keep_on(std::process::id(), &[0])?;
    }
    let meter = Meter::of(std::process::id())?;
    for line in std::io::stdin().lines() {
        line?;
        let before = meter.cpu_ns()?;
        match work {
            Work::Send => sends()?,
            Work::Switch => hand_over()?,
        }
        writeln!(std::io::stdout(), "{}", meter.cpu_ns()? - before)?;
    }
    Ok(())
}

/// A byte goes there and back, half as often as there are switches.
fn hand_over() -> Result<()> {
    let ((from_here, to_there), (from_there, to_here)) = (pipe()?, pipe()?);
    let times = |mut from: PipeReader, mut to: PipeWriter| -> Result<()> {
        for _ in 0..TIMES / 2 {
            to.write_all(b"1")?;
            from.read_exact(&mut [0])?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let other = scope.spawn(move || times(from_here, to_here));
        let ours = times(from_there, to_there);
        let theirs = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ours.and(theirs)
    })
}

struct Other {
    _child: Killed,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Other {
    fn start(work: Work) -> Result<Other> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program)
            .args([COMMAND, work.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the other process")?;
        let input = child.stdin.take().context("its standard input")?;
        let output = BufReader::new(child.stdout.take().context("its standard output")?);
        let mut other = Other { _child: Killed(child), input, output };
        other.batch()?;
        Ok(other)
    }

    /// Nanoseconds of CPU each time, of one batch.
    fn batch(&mut self) -> Result<f64> {
        writeln!(self.input)?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the other process has ended");
        Ok(line.trim().parse::<f64>()? / f64::from(TIMES))
    }
}

/// Measures every arm that other processes meet. Nothing else should work meanwhile.
pub(crate) fn measure(
    target: &Recognised,
    arms: &[Arm],
    settings: &Settings,
    random: &mut Random,
) -> Result<Vec<Foreign>> {
    let met = arms.iter().filter_map(|arm| Some((*arm, Work::met_by(*arm)?, arm.tap()?)));
    met.map(|(arm, work, options)| {
        let tap = Tap::new(options)?;
        Beside { target, tap, other: Other::start(work)? }.price(arm, work, settings, random)
    })
    .collect()
}

/// The other process beside a tap.
struct Beside<'a> {
    target: &'a Recognised,
    tap: Tap,
    other: Other,
}

impl Beside<'_> {
    fn price(
        mut self,
        arm: Arm,
        work: Work,
        settings: &Settings,
        random: &mut Random,
    ) -> Result<Foreign> {
        let mut without = Vec::new();
        let mut added = Vec::new();
        for _ in 0..settings.foreign_pairs() {
            let on_first = random.coin();
            let (first, second) = (self.batch(on_first)?, self.batch(!on_first)?);
            let (on, off) = if on_first { (first, second) } else { (second, first) };
            without.push(off);
            added.push(on - off);
        }
        let program_ns = self.program_ns()?;
        let without_ns = without.iter().sum::<f64>() / without.len().max(1) as f64;
        let added_ns = mean_interval(&added, CONFIDENCE);
        Ok(Foreign { arm, work, without_ns, added_ns, program_ns })
    }

    /// Nanoseconds of CPU each time, with the tap or without it.
    fn batch(&mut self, on: bool) -> Result<f64> {
        if on {
            self.attach()?;
        }
        let spent = self.other.batch();
        if on {
            self.detach();
        }
        spent
    }

    fn program_ns(&mut self) -> Result<f64> {
        let _statistics =
            RunTimeStatistics::enable().context("the kernel's statistics of programs")?;
        let run_time = |tap: &Tap| tap.run_time().time + tap.waits_run_time().time;
        self.attach()?;
        let before = run_time(&self.tap);
        let worked = self.other.batch();
        let after = run_time(&self.tap);
        self.detach();
        worked?;
        Ok((after - before).as_nanos() as f64 / f64::from(TIMES))
    }

    fn attach(&mut self) -> Result<()> {
        self.tap.attach(&self.target.instance, &self.target.layout)?;
        Ok(())
    }

    fn detach(&mut self) {
        self.tap.detach(self.target.instance.pid);
    }
}
