//! The real `waggle watch` on the densest load: its CPU, its memory and its losses.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use waggle_bench_frame::waggle;
use waggle_host::{self as host, Process};
use waggle_model::Reading;
use waggle_testkit::{Killed, Server, target_dir};

use crate::load::Load;
use crate::settings::Settings;

/// From its start until it has attached and written its first interval.
const START: Duration = Duration::from_millis(2000);
/// What the measured time may be shorter than the life of `waggle watch`.
const MARGIN: Duration = Duration::from_millis(2000);

/// What the agent costs, with its children.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent {
    pub(crate) seconds: f64,
    /// By the server's counter.
    pub(crate) statements: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) rss_bytes: u64,
    /// The most that was ever resident.
    pub(crate) rss_peak_bytes: u64,
    /// What the agent itself reported as captured and as lost, from its first interval to its
    /// last.
    pub(crate) captured: u64,
    pub(crate) lost: u64,
}

impl Agent {
    /// Cores per 10,000 statements per second.
    pub(crate) fn cores_per_10k(&self) -> f64 {
        self.cpu_ns as f64 / 1e9 / self.statements.max(1) as f64 * 1e4
    }

    /// Statements per second while it was measured.
    pub(crate) fn rate(&self) -> f64 {
        self.statements as f64 / self.seconds
    }
}

/// Runs `waggle watch` under the densest load.
pub(crate) fn measure(server: &Server, settings: &Settings) -> Result<Agent> {
    let _running = Load::DENSEST.start(server, settings.threads)?;
    let mut client = server.root()?;
    let output = target_dir().join("bench-watch.jsonl");
    let file = File::create(&output).with_context(|| output.display().to_string())?;
    let time = settings.agent_time();
    let child = Command::new(waggle()?)
        .args(["watch", "--json", "--pid", &server.pid().to_string()])
        .args(["--for", &format!("{}ms", (START + time + MARGIN).as_millis())])
        .stdin(Stdio::null())
        .stdout(file)
        .spawn()
        .context("waggle watch")?;
    let mut watch = Killed(child);
    let pid = watch.id();
    thread::sleep(START);
    let begin = Instant::now();
    let meters = with_children(pid)
        .iter()
        .map(|pid| host::Meter::of(*pid))
        .collect::<Result<Vec<_>, _>>()?;
    let cpu_ns = || meters.iter().map(host::Meter::cpu_ns).collect::<Vec<_>>();
    let before = (client.questions()?, cpu_ns());
    thread::sleep(time);
    let after = (client.questions()?, cpu_ns());
    let spent = after.1.into_iter().zip(before.1);
    // A child that reads a program ends when it has: what it used up to then is not of this time.
    let spent = spent.filter_map(|(after, before)| Some(after.ok()? - before.ok()?));
    let cpu_ns = spent.sum();
    let all = with_children(pid);
    let seconds = begin.elapsed().as_secs_f64();
    let sum = |bytes: fn(&Process) -> Reading<u64>| {
        all.iter().map(|pid| read(bytes(&Process::of(*pid)))).sum::<Result<u64>>()
    };
    let rss_bytes = sum(Process::rss_bytes)?;
    let rss_peak_bytes = sum(Process::rss_peak_bytes)?;
    let status = watch.wait()?;
    ensure!(status.success(), "waggle watch ended with {status}");
    let (captured, lost) = reported(&output)?;
    Ok(Agent {
        seconds,
        statements: after.0 - before.0,
        cpu_ns,
        rss_bytes,
        rss_peak_bytes,
        captured,
        lost,
    })
}

fn with_children(pid: u32) -> Vec<u32> {
    [vec![pid], Process::of(pid).children()].concat()
}

fn read(bytes: Reading<u64>) -> Result<u64> {
    match bytes {
        Reading::Value(bytes) => Ok(bytes),
        Reading::Absent(why) => bail!("{why}"),
    }
}

/// Sums the intervals that the agent has written.
fn reported(output: &Path) -> Result<(u64, u64)> {
    let file = File::open(output).with_context(|| output.display().to_string())?;
    let (mut captured, mut lost) = (0, 0);
    for line in BufReader::new(file).lines() {
        let interval: serde_json::Value = serde_json::from_str(&line?)?;
        captured += interval["statements"].as_u64().unwrap_or(0);
        for kind in ["ring_full", "unreadable_session"] {
            lost += interval["lost"][kind].as_u64().unwrap_or(0);
        }
    }
    Ok((captured, lost))
}
