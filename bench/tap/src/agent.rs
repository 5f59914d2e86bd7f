//! The real `waggle watch` on the densest load: its CPU, its memory and its losses.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use waggle_testkit::Server;

use crate::meter::{Meter, memory_bytes, process_cpu_ns};
use crate::settings::Settings;

/// From its start until it has attached and written its first interval.
const START: Duration = Duration::from_millis(2000);
/// What the measured time may be shorter than the life of `waggle watch`.
const MARGIN: Duration = Duration::from_millis(2000);

/// What the agent costs.
#[derive(Clone, Copy, Debug, Serialize)]
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

struct Watch(Child);

impl Drop for Watch {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and need not be.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The binary beside this one in the build directory.
pub(crate) fn waggle() -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("waggle");
    ensure!(path.is_file(), "no binary `waggle` beside this one: run cargo build -p waggle first");
    Ok(path)
}

/// Runs `waggle watch` under the load that is at work.
pub(crate) fn measure(
    server: &Server,
    meter: &mut Meter,
    settings: &Settings,
    output: &Path,
) -> Result<Agent> {
    let file = File::create(output).with_context(|| output.display().to_string())?;
    let time = settings.agent_time();
    let child = Command::new(waggle()?)
        .args(["watch", "--json", "--pid", &server.pid().to_string()])
        .args(["--for", &format!("{}ms", (START + time + MARGIN).as_millis())])
        .stdin(Stdio::null())
        .stdout(file)
        .spawn()
        .context("waggle watch")?;
    let mut watch = Watch(child);
    let pid = watch.0.id();
    thread::sleep(START);
    let begin = Instant::now();
    let before = (meter.read()?, process_cpu_ns(pid).context("waggle watch has ended")?);
    thread::sleep(time);
    let after = (meter.read()?, process_cpu_ns(pid).context("waggle watch has ended")?);
    let seconds = begin.elapsed().as_secs_f64();
    let rss_bytes = memory_bytes(pid, "VmRSS")?;
    let rss_peak_bytes = memory_bytes(pid, "VmHWM")?;
    let status = watch.0.wait()?;
    ensure!(status.success(), "waggle watch ended with {status}");
    let (captured, lost) = reported(output)?;
    Ok(Agent {
        seconds,
        statements: after.0.questions - before.0.questions,
        cpu_ns: after.1 - before.1,
        rss_bytes,
        rss_peak_bytes,
        captured,
        lost,
    })
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
