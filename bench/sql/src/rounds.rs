//! Rounds in which every subject works once, in a random order.

use anyhow::Result;
use waggle_bench_frame::{CONFIDENCE, thread_cpu};
use waggle_bench_sql::load::Load;
use waggle_bench_sql::subject::Subject;
use waggle_stats::{Estimate, Random, mean_interval, trimmed_interval};

use crate::Settings;
use crate::tool::Tool;

/// Cut from each end of the rounds: those in which something else took the processor.
pub(crate) const TRIM: f64 = 0.1;
/// The name of the tool in results.
pub(crate) const TOOL: &str = "pt-query-digest";

/// The rounds of one subject under one load.
pub(crate) struct Times {
    pub(crate) load: Load,
    pub(crate) subject: &'static str,
    pub(crate) statements: usize,
    pub(crate) bytes: usize,
    /// Statements that it could not read.
    pub(crate) refused: usize,
    /// CPU time of each round, seconds.
    pub(crate) seconds: Vec<f64>,
}

/// What follows from them.
pub(crate) struct Measured<'a> {
    pub(crate) times: &'a Times,
    /// Millions of bytes per second of CPU.
    pub(crate) rate: Estimate,
    pub(crate) trimmed: Estimate,
    /// Nanoseconds of CPU per statement.
    pub(crate) ns_per_statement: Estimate,
    /// How many times as fast as it the digest of MySQL 9 is, round by round.
    pub(crate) slower: Estimate,
}

/// Measures every subject under every load.
pub(crate) fn measure(settings: &Settings) -> Result<Vec<Times>> {
    let mut all = Vec::new();
    let mut random = Random::seeded(settings.options.seed);
    for load in Load::ALL {
        let statements = load.statements(settings.kib * 1024, settings.options.seed);
        let scratch = tempfile::tempdir()?;
        let mut tool = Tool::start(&statements, scratch.path())?;
        let mut subjects = Subject::all();
        let times = |subject, refused| Times {
            load,
            subject,
            refused,
            statements: statements.len(),
            bytes: statements.iter().map(String::len).sum(),
            seconds: Vec::new(),
        };
        let mut of_load: Vec<Times> = subjects
            .iter_mut()
            // The first round of each warms it up.
            .map(|subject| times(subject.name(), subject.work(&statements)))
            .collect();
        of_load.push(times(TOOL, 0));
        tool.round()?;
        let mut order: Vec<usize> = (0..of_load.len()).collect();
        for _ in 0..settings.rounds {
            random.shuffle(&mut order);
            for at in &order {
                let seconds = match subjects.get_mut(*at) {
                    Some(subject) => timed(subject, &statements),
                    None => tool.round()?,
                };
                of_load[*at].seconds.push(seconds);
            }
        }
        all.extend(of_load);
    }
    Ok(all)
}

/// CPU of this thread that a subject needs for every statement, seconds.
fn timed(subject: &mut Subject, statements: &[String]) -> f64 {
    let begin = thread_cpu();
    subject.work(statements);
    (thread_cpu() - begin).as_secs_f64()
}

/// Rates with their intervals. Nothing below two rounds.
pub(crate) fn results(all: &[Times]) -> Vec<Measured<'_>> {
    let measured = |times: &'_ Times| {
        let rates: Vec<f64> = each(times, |seconds| times.bytes as f64 / 1e6 / seconds);
        let ns = each(times, |seconds| seconds * 1e9 / times.statements as f64);
        let first = all.iter().find(|one| one.load == times.load)?;
        let ratios = times.seconds.iter().zip(&first.seconds).map(|(its, first)| its / first);
        Some((
            mean_interval(&rates, CONFIDENCE)?,
            trimmed_interval(&rates, TRIM, CONFIDENCE)?,
            mean_interval(&ns, CONFIDENCE)?,
            mean_interval(&ratios.collect::<Vec<_>>(), CONFIDENCE)?,
        ))
    };
    all.iter()
        .filter_map(|times| {
            let (rate, trimmed, ns_per_statement, slower) = measured(times)?;
            Some(Measured { times, rate, trimmed, ns_per_statement, slower })
        })
        .collect()
}

fn each(times: &Times, value: impl Fn(f64) -> f64) -> Vec<f64> {
    times.seconds.iter().map(|seconds| value(*seconds)).collect()
}
