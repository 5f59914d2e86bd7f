//! The process that keeps a program running for `waggle prove program`, and ends it when waggle asks for it or has died.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

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

/// Keep a program running until standard input closes.
#[derive(Debug, clap::Args)]
pub(in super::super::super) struct Args {
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

pub(in super::super::super) fn run(args: Args) -> Result<Outcome, Failure> {
    // Who ends all processes of a service ends the program, too.
    let stop = stop_on_signal()?;
    let mut program = Command::new(&args.command[0])
        .args(&args.command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
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
    while !IS_OVER.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
        if has_ended(&program)? {
            bury(&mut program)?;
            // It may have left its end of the pipe to others, so nobody waits for the other end.
            thread::sleep(LAST_WORDS);
            let last = last.lock().unwrap_or_else(PoisonError::into_inner);
            tell!("{}", String::from_utf8_lossy(&last).trim_end());
            return Ok(Outcome::No);
        }
        thread::sleep(LOOK_EVERY);
    }
    signal(&program, Signal::TERM);
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE && !has_ended(&program)? {
        thread::sleep(LOOK_EVERY);
    }
    bury(&mut program)?;
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

/// Sends it to the program and all that it started. Nobody has waited for the program yet, so its number is nobody else's.
fn signal(program: &Child, signal: Signal) {
    // They may have ended.
    let _ = kill_process_group(Pid::from_child(program), signal);
}

/// Kills what is left of it and of what it started, and waits for it.
fn bury(program: &mut Child) -> io::Result<()> {
    signal(program, Signal::KILL);
    program.wait().map(drop)
}

/// Whether it has ended. It is still to be waited for.
fn has_ended(program: &Child) -> io::Result<bool> {
    let program = WaitId::Pid(Pid::from_child(program));
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(rustix::io::retry_on_intr(|| waitid(program.clone(), options))?.is_some())
}
