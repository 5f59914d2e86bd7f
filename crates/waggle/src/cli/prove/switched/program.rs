//! A program of others: an exporter, a sniffer, a tool that sets breakpoints.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};

use super::super::super::watch::CaptureArgs;
use super::super::super::{Failure, Outcome, pause, stop_on_signal};
use super::{Asked, Count, LOOK_EVERY, Switch, WindowArgs, in_trial, show, take};

/// Price a program, such as a tracer or a monitor: it is started and ended again and again.
///
/// What counts is what it does by itself: an exporter does nothing until it is asked, so let the command ask it, too.
///
/// It runs in one of three windows, with the rights of waggle and without standard input and output. It is ended by SIGTERM, and
/// by SIGKILL where that takes more than five seconds; so are the processes that it started, unless they left its process group. It
/// ends when waggle is killed, too.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: waggle prove program --start 500ms -- strace -f -e trace=futex -o /dev/null -p 1234"
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
    // Its arguments may hold a secret.
    let name = Path::new(&args.command[0]).file_name().unwrap_or(&args.command[0]);
    let asked = Asked {
        server,
        what: format!("program {}", name.display()),
        without: "without it".to_owned(),
        tosses,
        args: windows,
    };
    let mut program =
        Program { command: &args.command, start: args.start, keeper: None, stop: &stop };
    let (report, ended) = take(asked, &mut program, &stop);
    drop(capture);
    let ended = ended.and_then(|()| program.end());
    if ended.is_ok() || report.switched.blocks > 0 {
        let outcome = show(&report, windows.json)?;
        return ended.map(|()| outcome);
    }
    ended.map(|()| Outcome::No)
}

/// A program that is started and ended.
struct Program<'a> {
    command: &'a [OsString],
    start: Duration,
    /// What keeps it running.
    keeper: Option<Child>,
    stop: &'a AtomicBool,
}

impl Program<'_> {
    fn begin(&mut self) -> Result<(), Failure> {
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
