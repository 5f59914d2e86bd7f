//! What the tap costs the sends of processes that are not watched.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use waggle_probes::tap::{Hook, RunTimeStatistics};
use waggle_stats::{Estimate, Random, mean_interval};

use crate::arms::{Arm, Arms};
use crate::meter::thread_cpu_ns;
use crate::settings::Settings;

/// The hidden command with which this program becomes the other process.
pub(crate) const COMMAND: &str = "foreign-sender";
/// Sends of one batch: some 20 ms.
const SENDS: u32 = 20_000;
/// The arms whose hook is met by every process of the host. A breakpoint is in one server only.
const ARMS: [Arm; 3] = [Arm::Tap(Hook::Send), Arm::Tap(Hook::Fentry), Arm::Tap(Hook::Syscall)];

/// The price of one send to a process that is not watched.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Foreign {
    #[serde(skip)]
    pub(crate) arm: Arm,
    /// Its own CPU per send and receive without the tap, nanoseconds.
    pub(crate) without_ns: f64,
    /// What the tap adds to that, nanoseconds.
    #[serde(skip)]
    pub(crate) added_ns: Option<Estimate>,
    /// Time in the program per send by the kernel's statistics, nanoseconds.
    pub(crate) program_ns: f64,
}

/// The life of the other process: one batch for every line that it is sent.
pub(crate) fn be_the_sender() -> Result<()> {
    let (mut here, mut there) = UnixStream::pair()?;
    let mut byte = [0; 1];
    for line in std::io::stdin().lines() {
        line?;
        let before = thread_cpu_ns();
        for _ in 0..SENDS {
            here.write_all(b"1")?;
            there.read_exact(&mut byte)?;
        }
        writeln!(std::io::stdout(), "{}", thread_cpu_ns() - before)?;
    }
    Ok(())
}

struct Sender {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Sender {
    fn start() -> Result<Sender> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program)
            .arg(COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the process that sends")?;
        let input = child.stdin.take().context("its standard input")?;
        let output = BufReader::new(child.stdout.take().context("its standard output")?);
        Ok(Sender { child, input, output })
    }

    /// Nanoseconds of CPU per send of one batch.
    fn batch(&mut self) -> Result<f64> {
        writeln!(self.input)?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the process that sends has ended");
        Ok(line.trim().parse::<f64>()? / f64::from(SENDS))
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Measures every arm that other processes meet. Nothing else should send meanwhile.
pub(crate) fn measure(
    arms: &mut Arms,
    settings: &Settings,
    random: &mut Random,
) -> Result<Vec<Foreign>> {
    let mut sender = Sender::start()?;
    sender.batch()?;
    let usable = arms.usable();
    let mut prices = Vec::new();
    for arm in ARMS.into_iter().filter(|arm| usable.contains(arm)) {
        let mut without = Vec::new();
        let mut added = Vec::new();
        for _ in 0..settings.foreign_pairs() {
            let mut batch = |on: bool| -> Result<f64> {
                if on {
                    arms.attach(arm)?;
                }
                let spent = sender.batch();
                if on {
                    arms.detach(arm);
                }
                spent
            };
            let on_first = random.coin();
            let (first, second) = (batch(on_first)?, batch(!on_first)?);
            let (on, off) = if on_first { (first, second) } else { (second, first) };
            without.push(off);
            added.push(on - off);
        }
        let program_ns = program_ns(arms, arm, &mut sender)?;
        let without_ns = without.iter().sum::<f64>() / without.len().max(1) as f64;
        let added_ns = mean_interval(&added, 0.95);
        prices.push(Foreign { arm, without_ns, added_ns, program_ns });
    }
    Ok(prices)
}

fn program_ns(arms: &mut Arms, arm: Arm, sender: &mut Sender) -> Result<f64> {
    let _statistics = RunTimeStatistics::enable().context("the kernel's statistics of programs")?;
    arms.attach(arm)?;
    let (_, before) = arms.run_time(arm);
    let sent = sender.batch();
    let (_, after) = arms.run_time(arm);
    arms.detach(arm);
    sent?;
    Ok((after - before).as_nanos() as f64 / f64::from(SENDS))
}
