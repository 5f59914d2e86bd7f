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

/// Runs these tests, `at_once` at a time. A test that runs longer than `longest` fails, with the stacks of its threads, and
/// so does a test during which the program ends. What the program has not begun then is run by it once more.
pub(crate) fn look(
    program: &Executable,
    names: &[String],
    at_once: usize,
    longest: Duration,
) -> Result<Vec<Ended>> {
    let (mut ended, mut left) = (Vec::new(), names.to_vec());
    while !left.is_empty() {
        let mut command = program.command(&left, at_once);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| program.name())?;
        let mut seen = Seen::new();
        let said = child.stdout.take().map(lines).context("no output")?;
        let why = seen.follow(&mut child, &said, longest)?;
        left = seen.close(&left, why.as_deref());
        ended.append(&mut seen.ended);
    }
    Ok(ended)
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
struct Seen {
    running: BTreeMap<String, Instant>,
    ended: Vec<Ended>,
    /// When it told something last.
    heard: Instant,
}

impl Seen {
    fn new() -> Seen {
        Seen { running: BTreeMap::new(), ended: Vec::new(), heard: Instant::now() }
    }

    /// Listens until the program ends or hangs. Returns why it ended, where that is not that all tests have passed.
    fn follow(
        &mut self,
        child: &mut Child,
        said: &Receiver<String>,
        longest: Duration,
    ) -> Result<Option<String>> {
        let mut status = None;
        loop {
            match said.recv_timeout(POLL) {
                Ok(line) => self.hear(&line),
                Err(RecvTimeoutError::Disconnected) => break,
                // What a child of the program holds open never ends.
                Err(RecvTimeoutError::Timeout) if status.is_some() => break,
                Err(RecvTimeoutError::Timeout) => status = child.try_wait()?,
            }
            if self.hangs(longest) {
                let stacks = stacks::of(child.id());
                child.kill()?;
                child.wait()?;
                let minutes = longest.as_secs() / 60;
                return Ok(Some(format!(
                    "stopped, since nothing ended for {minutes} minutes\n{stacks}"
                )));
            }
        }
        let status = child.wait()?;
        Ok((!status.success()).then(|| status.to_string()))
    }

    /// Whether a test runs too long, or none runs and the program does not end.
    fn hangs(&self, longest: Duration) -> bool {
        let is_over = |since: &Instant| since.elapsed() > longest;
        self.running.values().any(is_over) || (self.running.is_empty() && is_over(&self.heard))
    }

    /// A line of `--format json`: library/test/src/formatters/json.rs of Rust.
    fn hear(&mut self, line: &str) {
        // What others print without the end of a line stands before it.
        let (before, told) = line.split_at(line.find(r#"{ "type":"#).unwrap_or(line.len()));
        if !before.is_empty() {
            println!("{before}");
        }
        let Ok(said) = serde_json::from_str::<Value>(told) else {
            if !told.is_empty() {
                println!("{told}");
            }
            return;
        };
        self.heard = Instant::now();
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
            Some("ignored") => self.end(name, time, Some("no test is skipped".to_owned())),
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

    /// Ends what ran when the program ended, and returns those of the tests that were asked for that it had not begun.
    fn close(&mut self, names: &[String], why: Option<&str>) -> Vec<String> {
        let ended = why.unwrap_or("its program ended");
        for (name, since) in std::mem::take(&mut self.running) {
            self.end(&name, since.elapsed(), Some(format!("while it ran: {ended}")));
        }
        let is_left = |name: &&String| !self.ended.iter().any(|one| one.name == **name);
        let left: Vec<String> = names.iter().filter(is_left).cloned().collect();
        if left.len() == names.len() {
            for name in &left {
                self.end(name, Duration::ZERO, Some(format!("before it began: {ended}")));
            }
            return Vec::new();
        }
        let has_failed = self.ended.iter().any(|one| one.failure.is_some());
        if let Some(why) = why.filter(|_| left.is_empty() && !has_failed) {
            self.end("(after all tests)", Duration::ZERO, Some(why.to_owned()));
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &[&str]) -> Seen {
        let mut seen = Seen::new();
        lines.iter().for_each(|line| seen.hear(line));
        seen
    }

    fn failures(seen: &Seen) -> Vec<Option<&str>> {
        seen.ended.iter().map(|one| one.failure.as_deref()).collect()
    }

    #[test]
    fn what_the_harness_tells_is_read_among_other_lines() {
        let mut seen = told(&[
            r#"{ "type": "suite", "event": "started", "test_count": 2 }"#,
            r#"{ "type": "test", "event": "started", "name": "a::b" }"#,
            r#"{ "type": "test", "event": "started", "name": "c" }"#,
            "a private server is started",
            r#"half a line{ "type": "test", "name": "a::b", "event": "ok", "exec_time": 1.5 }"#,
            r#"{ "type": "test", "event": "timeout", "name": "c" }"#,
        ]);
        assert!(seen.hangs(Duration::ZERO) && !seen.hangs(Duration::from_secs(999)));
        let names = ["a::b", "c", "d"].map(str::to_owned);
        assert_eq!(seen.close(&names, Some("signal: 6")), ["d"]);
        assert_eq!(failures(&seen), [None, Some("while it ran: signal: 6")]);
        assert_eq!(seen.ended[0].time, Duration::from_millis(1500));
    }

    #[test]
    fn what_never_begins_and_an_end_without_a_word_are_failures() {
        let names = ["a".to_owned()];
        let mut seen = told(&[]);
        assert!(seen.close(&names, Some("signal: 11")).is_empty());
        assert_eq!(failures(&seen), [Some("before it began: signal: 11")]);
        let mut seen =
            told(&[r#"{ "type": "test", "name": "a", "event": "ok", "exec_time": 0.1 }"#]);
        assert!(seen.close(&names, Some("signal: 11")).is_empty());
        assert_eq!(failures(&seen), [None, Some("signal: 11")]);
    }

    #[test]
    fn a_test_that_fails_has_what_it_said() {
        let seen = told(&[
            r#"{ "type": "test", "name": "a", "event": "failed", "exec_time": 0.1, "stdout": "no\nno" }"#,
        ]);
        assert_eq!(seen.ended[0].failure.as_deref(), Some("no\nno"));
    }
}
