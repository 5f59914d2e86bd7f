//! The process that keeps a program running for `waggle prove program`, and ends it when waggle asks for it or has died.

use std::ffi::OsString;
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use rustix::process::{Signal, getpgrp, getpid, kill_current_process_group};

use super::super::super::{Failure, Outcome, stop_on_signal};
use crate::streams::tell;

/// How long a program may take to end before it is killed.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that are kept of what it says beside its output.
const SAID_MAX: usize = 4096;
/// How long what it said may take to arrive when it has ended.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Keep a program running until standard input closes. The process group is that of this process alone: all of it is killed in the
/// end.
#[derive(Debug, clap::Args)]
pub(in super::super::super) struct Args {
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

pub(in super::super::super) fn run(args: Args) -> Result<Outcome, Failure> {
    if getpgrp() != getpid() {
        return Err(Failure::Usage(anyhow!(
            "waggle starts this command in a process group of its own"
        )));
    }
    // What the program or this process sends to all of the group arrives here, too.
    stop_on_signal()?;
    let mut program = Command::new(&args.command[0])
        .args(&args.command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("`{}` cannot be started", args.command[0].display()))
        .map_err(Failure::Cannot)?;
    let last = Arc::new(Mutex::new(Vec::new()));
    if let Some(said) = program.stderr.take() {
        let last = Arc::clone(&last);
        thread::spawn(move || keep_last(said, &last));
    }
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    thread::spawn(|| {
        // Whatever happens to it, nobody asks for the program any more.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        IS_OVER.store(true, Ordering::Relaxed);
    });
    while !IS_OVER.load(Ordering::Relaxed) {
        if program.try_wait()?.is_some() {
            // It may have left its end of the pipe to others, so nobody waits for the other end.
            thread::sleep(LAST_WORDS);
            let last = last.lock().unwrap_or_else(PoisonError::into_inner);
            tell!("{}", String::from_utf8_lossy(&last).trim_end());
            return Ok(Outcome::No);
        }
        thread::sleep(LOOK_EVERY);
    }
    kill_current_process_group(Signal::TERM)?;
    within(PATIENCE, &mut program)?;
    // The program, what it started, and this process.
    kill_current_process_group(Signal::KILL)?;
    Ok(Outcome::Done)
}

/// Keeps the last of what a program says beside its output.
fn keep_last(mut said: impl Read, last: &Mutex<Vec<u8>>) {
    let mut some = [0; SAID_MAX];
    while let Ok(count @ 1..) = said.read(&mut some) {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        last.extend_from_slice(&some[..count]);
        let more = last.len().saturating_sub(SAID_MAX);
        last.drain(..more);
    }
}

fn within(time: Duration, program: &mut Child) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        let ended = program.try_wait()?;
        if ended.is_some() || begun.elapsed() >= time {
            return Ok(ended);
        }
        thread::sleep(LOOK_EVERY);
    }
}
