//! What a look in the memory of a server costs waggle. The server does nothing for it.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use waggle_bench_frame::thread_cpu;
use waggle_mysql::locks::{About, in_memory};
use waggle_probes::servers::discover::servers;
use waggle_probes::servers::recognise::{Builds, Recognised};
use waggle_probes::sessions::{Limits, LockReader, Sampler, Sessions, TEXT_LIMIT, TEXTS_LIMIT};
use waggle_testkit::client::{Client, Command};
use waggle_testkit::{Server, Version};

use crate::looks::{TAKE, UNTIL_THEY_WAIT};

const TABLES: [&str; 4] = [
    "CREATE DATABASE shop",
    "CREATE TABLE shop.t (id INT PRIMARY KEY, n INT) ENGINE = InnoDB",
    "CREATE TABLE shop.u (id INT PRIMARY KEY, n INT) ENGINE = InnoDB",
    "INSERT INTO shop.t VALUES (1, 0)",
];
const ALTER: &str = "ALTER TABLE shop.u ADD COLUMN later INT";
/// More do not wait: it is one in ten.
const WAITING_MAX: usize = 50;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// The looks at one server with one number of sessions.
pub(crate) struct MemoryLooks {
    pub(crate) version: String,
    pub(crate) sessions: usize,
    /// How many of them wait: one for a table, the others for a row.
    pub(crate) waiting: usize,
    /// How many of these the last look found, and how many of them with their blocker.
    pub(crate) found: usize,
    pub(crate) named: usize,
    /// Of the first look, which has to find where the build keeps its locks.
    pub(crate) first_ms: f64,
    pub(crate) median_ms: f64,
    pub(crate) longest_ms: f64,
    /// Processor time of the thread that looks, by look, without the first.
    pub(crate) cpu_ms: f64,
    /// What is read of the locks by the last look, without the sample of the sessions.
    pub(crate) read_kib: f64,
}

/// Looks so often at one server with each of these numbers of sessions, none of which waits, and then some.
pub(crate) fn measure(
    version: Version,
    numbers: &[usize],
    looks: usize,
) -> Result<Vec<MemoryLooks>> {
    let mut all = Vec::new();
    for number in numbers {
        let server = Server::builder(version).max_connections(1200).start()?;
        let mut root = server.root()?;
        TABLES.iter().try_for_each(|statement| root.run(statement).map(drop))?;
        root.quit()?;
        let sessions = (0..*number).map(|_| server.root()).collect::<Result<Vec<Client>, _>>();
        let mut sessions = sessions?;
        all.push(look(&server, (*number, 0), looks)?);
        let waiting = (number / 10).clamp(2, WAITING_MAX);
        if *number > waiting + 2 {
            wait(&mut sessions, waiting)?;
            all.push(look(&server, (*number, waiting), looks)?);
        }
        // Who waits is killed by the server's end.
    }
    Ok(all)
}

/// Lets one session wait for a table, and the others for a row.
fn wait(sessions: &mut [Client], waiting: usize) -> Result<()> {
    let (holders, others) = sessions.split_at_mut(2);
    for (holder, statement) in holders.iter_mut().zip([TAKE, "SELECT n FROM shop.u"]) {
        holder.run("BEGIN")?;
        holder.run(statement)?;
    }
    for (at, waiter) in others.iter_mut().take(waiting).enumerate() {
        let statement = if at == 0 { ALTER } else { TAKE };
        waiter.send(Command::Query, statement.as_bytes())?;
    }
    sleep(UNTIL_THEY_WAIT);
    Ok(())
}

fn look(server: &Server, (number, waiting): (usize, usize), looks: usize) -> Result<MemoryLooks> {
    let found = servers(Path::new("/proc")).into_iter().find(|found| found.pid == server.pid());
    let found = found.context("the server is not found")?;
    let Recognised { server: who, layout, instance, .. } = Builds::default().recognise(&found)?;
    let (sampler, mut sessions) = (Sampler::load()?, Sessions::of(&layout)?);
    let mut reader = LockReader::of(&layout)?;
    let mut one = || -> Result<_> {
        let limits = Limits { text: TEXT_LIMIT, texts: TEXTS_LIMIT, start_to_monotonic: &|_| None };
        let begin = Instant::now();
        sampler.sample(&instance, &mut sessions, limits)?;
        let seen = reader.look(&instance, &sessions)?;
        let locks = in_memory(&seen, who.flavour, &|_| About::default());
        Ok((begin.elapsed().as_secs_f64() * 1e3, locks, reader.bytes_read()))
    };
    let (first_ms, mut locks, mut bytes) = one()?;
    let (mut times, mut cpu) = (Vec::new(), Duration::ZERO);
    for _ in 0..looks {
        sleep(PAUSE);
        let before = thread_cpu();
        let (ms, now, read) = one()?;
        cpu += thread_cpu().saturating_sub(before);
        times.push(ms);
        (locks, bytes) = (now, read);
    }
    times.sort_by(f64::total_cmp);
    let waits = locks.tree.waits();
    Ok(MemoryLooks {
        version: server.version_string().to_owned(),
        sessions: number,
        waiting,
        found: waits.len(),
        named: waits.iter().filter(|wait| !wait.blockers.is_empty()).count(),
        first_ms,
        median_ms: times[looks / 2],
        longest_ms: times[looks - 1],
        cpu_ms: cpu.as_secs_f64() * 1e3 / looks as f64,
        read_kib: bytes as f64 / 1024.0,
    })
}
