//! A program of others: an exporter, a sniffer, a tool that sets breakpoints.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use waggle_probes::servers::discover::Found;
use waggle_sql::stable_hash;

use super::super::super::watch::CaptureArgs;
use super::super::super::{Failure, Outcome, pause, stop_on_signal};
use super::{Asked, Count, LOOK_EVERY, Switch, WindowArgs, in_trial, show, take};

/// How often it is looked whether the server ends with a program.
const LAST_LOOKS: u32 = 10;

/// Price a program, such as a tracer or a monitor: it is started and ended again and again.
///
/// What counts is what it does by itself: an exporter does nothing until it is asked, so let the command ask it, too.
///
/// It runs in one of three windows, with the rights of waggle and without standard input and output. It is ended by SIGTERM, and
/// by SIGKILL where that takes more than five seconds; so are the processes that it started, unless they left its process group. It
/// ends when waggle is killed, too.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code 1 where there is no price or it ended early, 4 where the server, the program or a right is missing.\n\n\
                  Example: waggle prove program --start 500ms -- strace -f -e trace=futex -o /dev/null -p 1234"
)]
pub(in super::super) struct ProgramArgs {
    /// How long it takes from its start until it is at work.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = pause)]
    start: Duration,
    #[command(flatten)]
    windows: WindowArgs,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(in super::super) fn run_program(args: &ProgramArgs) -> Result<Outcome, Failure> {
    let stop = stop_on_signal()?;
    let windows = &args.windows;
    let (capture, server, tosses) = in_trial(CaptureArgs::of(windows.pid), &stop)?;
    let found = capture.watched().get(&server.pid).map(|watched| watched.found().clone());
    let asked = Asked {
        server,
        what: format!("program {}", name(&args.command)),
        without: "without it".to_owned(),
        tosses,
        args: windows,
    };
    let (command, start) = (&args.command[..], args.start);
    let mut program = Program { command, start, keeper: None, server: found, stop: &stop };
    let (report, ended) = take(asked, &mut program, &stop);
    drop(capture);
    let ended = ended.and_then(|()| program.end());
    if ended.is_ok() || report.switched.blocks > 0 {
        let outcome = show(&report, windows.json)?;
        return ended.map(|()| outcome);
    }
    ended.map(|()| Outcome::No)
}

/// A command line by its program and some digits that tell it from others: its arguments may hold a secret.
fn name(command: &[OsString]) -> String {
    let program = Path::new(&command[0]).file_name().unwrap_or(&command[0]);
    let line = command.join(OsStr::new("\0"));
    let digits = stable_hash(line.as_encoded_bytes()) & 0xffff;
    format!("{} {digits:04x}", program.display())
}

/// A program that is started and ended.
struct Program<'a> {
    command: &'a [OsString],
    start: Duration,
    /// What keeps it running.
    keeper: Option<Child>,
    /// Under which it runs.
    server: Option<Found>,
    stop: &'a AtomicBool,
}

impl Program<'_> {
    fn begin(&mut self) -> Result<(), Failure> {
        if self.has_server_ended() {
            return Err(server_ended());
        }
        let keeper = Command::new("/proc/self/exe")
            .args(["keep-program", "--"])
            .args(self.command)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // Ctrl-C is for waggle, which ends the program.
            .process_group(0)
            .spawn()
            .context("the process that keeps the program running")
            .map_err(Failure::Cannot)?;
        self.keeper = Some(keeper);
        let begun = Instant::now();
        while begun.elapsed() < self.start && !self.stop.load(Ordering::Relaxed) {
            thread::sleep(LOOK_EVERY.min(self.start));
            self.check()?;
        }
        self.check()
    }

    /// That it runs.
    fn check(&mut self) -> Result<(), Failure> {
        let Some(keeper) = &mut self.keeper else { return Ok(()) };
        match keeper.try_wait()? {
            None => Ok(()),
            Some(status) => {
                self.keeper = None;
                // Many programs end with the server under which they run, and some before it.
                let has_server_ended = |_| {
                    thread::sleep(LOOK_EVERY);
                    self.has_server_ended()
                };
                if (0..LAST_LOOKS).any(has_server_ended) {
                    return Err(server_ended());
                }
                let name = self.command[0].display();
                // It has said why.
                let what = match status.code() {
                    Some(1) => format!(
                        "`{name}` ended by itself, where it should run until it is ended: nothing is known of its price; \
                         give it the arguments with which it stays"
                    ),
                    _ => format!("without `{name}` there is nothing to price"),
                };
                Err(Failure::Cannot(anyhow!(what)))
            }
        }
    }

    fn has_server_ended(&self) -> bool {
        self.server.as_ref().is_some_and(Found::has_ended)
    }

    /// Ends it, and waits until it has.
    fn end(&mut self) -> Result<(), Failure> {
        self.check()?;
        if let Some(mut keeper) = self.keeper.take() {
            drop(keeper.stdin.take());
            keeper.wait()?;
        }
        Ok(())
    }
}

fn server_ended() -> Failure {
    Failure::Cannot(anyhow!("the server has ended"))
}

impl Switch for Program<'_> {
    type Error = Failure;

    fn turn(&mut self, on: bool) -> Result<(), Failure> {
        if on { self.begin() } else { self.end() }
    }

    fn count(&mut self) -> Result<Option<Count>, Failure> {
        Ok(None)
    }

    fn shown_by(&self) -> Option<&'static str> {
        Some("it ran in every window that was on")
    }
}
