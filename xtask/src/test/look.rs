//! One look at tests of a program: runs them and tells how each ended, also where the program dies or hangs.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use super::built::Executable;
use super::stacks;

/// How often the program is asked whether it still runs.
const POLL: Duration = Duration::from_millis(200);

/// How a test ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) name: String,
    pub(crate) time: Duration,
    /// What it said, if it failed.
    pub(crate) failure: Option<String>,
}

/// Runs these tests, `at_once` at a time. A test that runs longer than `longest` fails, with the stacks of its threads,
/// and so does what the program did not come to.
pub(crate) fn look(
    program: &Executable,
    names: &[String],
    at_once: usize,
    longest: Duration,
) -> Result<Vec<Ended>> {
    let mut command = program.command(names, at_once);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| program.name())?;
    let mut seen = Seen::default();
    let said = child.stdout.take().map(lines).context("no output")?;
    let why = seen.follow(&mut child, &said, longest)?;
    Ok(seen.all_of(names, &why))
}

/// The lines of an output as they come. What else a test or its children print is among them.
fn lines(output: ChildStdout) -> Receiver<String> {
    let (says, said) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if says.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    said
}

/// What the test harness has told so far.
#[derive(Default)]
struct Seen {
    running: BTreeMap<String, Instant>,
    ended: Vec<Ended>,
}

impl Seen {
    /// Listens until the program ends or hangs, and returns why tests that it has not told of did not end.
    fn follow(
        &mut self,
        child: &mut Child,
        said: &Receiver<String>,
        longest: Duration,
    ) -> Result<String> {
        let mut status = None;
        loop {
            match said.recv_timeout(POLL) {
                Ok(line) => self.hear(&line),
                Err(RecvTimeoutError::Disconnected) => break,
                // What a child of the program holds open never ends.
                Err(RecvTimeoutError::Timeout) if status.is_some() => break,
                Err(RecvTimeoutError::Timeout) => status = child.try_wait()?,
            }
            if let Some(hung) = self.hung(longest) {
                let stacks = stacks::of(child.id());
                child.kill()?;
                child.wait()?;
                let minutes = longest.as_secs() / 60;
                let failure = format!("{hung} did not end within {minutes} minutes\n{stacks}");
                println!("{failure}");
                self.end(&hung, longest, Some(failure));
                return Ok(format!("its program was stopped, since {hung} did not end"));
            }
        }
        Ok(format!("its program ended before it did: {}", child.wait()?))
    }

    fn hung(&self, longest: Duration) -> Option<String> {
        let is_over = |(_, since): &(&String, &Instant)| since.elapsed() > longest;
        self.running.iter().find(is_over).map(|(name, _)| name.clone())
    }

    /// A line of `--format json`: library/test/src/formatters/json.rs of Rust.
    fn hear(&mut self, line: &str) {
        let Ok(said) = serde_json::from_str::<Value>(line) else {
            println!("{line}");
            return;
        };
        let (Some("test"), Some(name)) = (said["type"].as_str(), said["name"].as_str()) else {
            return;
        };
        let time = Duration::from_secs_f64(said["exec_time"].as_f64().unwrap_or_default());
        match said["event"].as_str() {
            Some("started") => drop(self.running.insert(name.to_owned(), Instant::now())),
            Some("ok") => self.end(name, time, None),
            Some("failed") => {
                let words = said["stdout"].as_str().unwrap_or("it said nothing");
                self.end(name, time, Some(words.to_owned()));
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &str, time: Duration, failure: Option<String>) {
        let outcome = if failure.is_none() { "ok" } else { "FAILED" };
        println!("test {name} ... {outcome} <{:.3}s>", time.as_secs_f64());
        if let Some(words) = &failure {
            println!("{words}");
        }
        self.running.remove(name);
        self.ended.push(Ended { name: name.to_owned(), time, failure });
    }

    /// All tests that were asked for; the others have failed.
    fn all_of(mut self, names: &[String], why: &str) -> Vec<Ended> {
        for name in names {
            if !self.ended.iter().any(|one| one.name == *name) {
                let ran = if self.running.contains_key(name) { ", while it ran" } else { "" };
                let time = self.running.get(name).map_or(Duration::ZERO, Instant::elapsed);
                self.end(name, time, Some(format!("{why}{ran}")));
            }
        }
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &[&str]) -> Seen {
        let mut seen = Seen::default();
        lines.iter().for_each(|line| seen.hear(line));
        seen
    }

    #[test]
    fn what_the_harness_tells_is_read_among_other_lines() {
        let seen = told(&[
            r#"{ "type": "suite", "event": "started", "test_count": 2 }"#,
            r#"{ "type": "test", "event": "started", "name": "a::b" }"#,
            r#"{ "type": "test", "event": "started", "name": "c" }"#,
            "a private server is started",
            r#"{ "type": "test", "name": "a::b", "event": "ok", "exec_time": 1.5 }"#,
            r#"{ "type": "test", "event": "timeout", "name": "c" }"#,
        ]);
        let names = ["a::b", "c", "d"].map(str::to_owned);
        assert_eq!(seen.hung(Duration::ZERO), Some("c".to_owned()));
        assert_eq!(seen.hung(Duration::from_secs(999)), None);
        let ended = seen.all_of(&names, "it was stopped");
        let failure = |at: usize| ended[at].failure.as_deref();
        assert_eq!((failure(0), ended[0].time), (None, Duration::from_millis(1500)));
        assert_eq!(failure(1), Some("it was stopped, while it ran"));
        assert_eq!(failure(2), Some("it was stopped"));
    }

    #[test]
    fn a_test_that_fails_has_what_it_said() {
        let seen = told(&[
            r#"{ "type": "test", "name": "a", "event": "failed", "exec_time": 0.1, "stdout": "no\nno" }"#,
        ]);
        assert_eq!(seen.ended[0].failure.as_deref(), Some("no\nno"));
    }
}
