//! What is kept of a run.

use serde_json::{Value, json};
use waggle_bench_frame::{Run, interval, span, table};

use crate::effect::Effect;
use crate::looks::Looks;
use crate::memory::MemoryLooks;
use crate::settings::Settings;

/// All that was measured in one run.
pub(crate) struct Outcome {
    pub(crate) settings: Settings,
    pub(crate) looks: Vec<Looks>,
    pub(crate) in_memory: Vec<MemoryLooks>,
    /// The server at work. `None` where its part was not asked for.
    pub(crate) version: Option<String>,
    pub(crate) effects: Vec<Effect>,
}

fn or_dash(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
}

impl Outcome {
    /// How it was measured.
    pub(crate) fn settings(&self) -> Value {
        let settings = &self.settings;
        json!({
            "looks": settings.looks,
            "blocks": settings.blocks,
            "only": settings.only.map(|only| format!("{only:?}").to_lowercase()),
        })
    }

    /// What was found, for programs.
    pub(crate) fn found(&self) -> Value {
        let looks = self.looks.iter().map(|one| {
            json!({
                "server": one.version,
                "state": one.state,
                "statements": one.statements,
                "median_ms": one.median_ms,
                "longest_ms": one.longest_ms,
            })
        });
        let in_memory = self.in_memory.iter().map(|one| {
            json!({
                "server": one.version,
                "sessions": one.sessions,
                "waiting": one.waiting,
                "found": one.found,
                "named": one.named,
                "first_ms": one.first_ms,
                "median_ms": one.median_ms,
                "longest_ms": one.longest_ms,
                "cpu_ms": one.cpu_ms,
                "read_kib": one.read_kib,
            })
        });
        let effects = self.effects.iter().map(|one| {
            json!({
                "sessions": one.sessions,
                "pause_s": one.pause.map(|pause| pause.as_secs_f64()),
                "statements_per_s_without": one.rate_without,
                "statements_per_s_percent": interval(&one.rate_percent),
                "without_ns": one.without_ns,
                "added_ns": interval(&one.added_ns),
                "looks": one.taken.looks,
                "statements_per_look": one.statements_per_look(),
                "server_ns_per_look": one.ns_per_look(),
                "processor_percent": one.processor_percent(),
            })
        });
        json!({
            "looks": looks.collect::<Vec<_>>(),
            "in_memory": in_memory.collect::<Vec<_>>(),
            "server": self.version,
            "effects": effects.collect::<Vec<_>>(),
        })
    }

    /// The page for people.
    pub(crate) fn page(&self, run: &Run) -> String {
        let with = format!("{} blocks of each pause", self.settings.blocks);
        let mut page = run.head("The price of looking at locks", &with);
        if !self.looks.is_empty() {
            page += &self.timed();
        }
        if !self.in_memory.is_empty() {
            page += &self.in_memory();
        }
        if let Some(version) = &self.version {
            page += &self.measured(version);
        }
        page
    }

    fn timed(&self) -> String {
        let rows = self.looks.iter().map(|one| {
            format!(
                "{} | {} | {} | {:.2} | {:.2}",
                one.version, one.state, one.statements, one.median_ms, one.longest_ms
            )
        });
        format!(
            "## A look\n\nAs its client sees it, over the unix socket; {} looks each.\n\n{}\n",
            self.settings.looks,
            table("server | state | statements | median, ms | longest, ms", rows)
        )
    }

    fn in_memory(&self) -> String {
        let rows = self.in_memory.iter().map(|one| {
            format!(
                "{} | {} | {} | {} | {:.1} | {:.2} | {:.2} | {:.2} | {:.0}",
                one.version,
                one.sessions,
                one.waiting,
                one.named,
                one.first_ms,
                one.median_ms,
                one.longest_ms,
                one.cpu_ms,
                one.read_kib
            )
        });
        let head = "server | sessions | waiting | blockers named | first look, ms | median, ms | longest, ms | \
                    waggle's processor time, ms | read, KiB";
        format!(
            "## A look in memory\n\nWithout an account; {} looks each after the first, which finds out where the \
             build keeps its locks.\n\n{}\n",
            self.settings.looks,
            table(head, rows)
        )
    }

    fn measured(&self, version: &str) -> String {
        let rows = self.effects.iter().map(|one| {
            format!(
                "{} | {} | {:.0} | {} | {:.0} | {} | {} | {} | {} | {}",
                one.sessions,
                one.pause.map_or("A/A".to_owned(), |pause| format!("every {pause:?}")),
                one.rate_without,
                span(&one.rate_percent, 2),
                one.without_ns,
                span(&one.added_ns, 0),
                one.taken.looks,
                or_dash(one.statements_per_look(), 1),
                or_dash(one.ns_per_look().map(|ns| ns / 1e3), 0),
                or_dash(one.processor_percent(), 3),
            )
        });
        let head = "sessions | looks | statements/s without | change, % | processor time per statement \
                    without, ns | added, ns | looks made | statements of a look | server's processor \
                    time of a look, µs | of one processor, %";
        format!(
            "## What looking does to a server at work\n\nServer {version}; A/A is no look at all: the noise \
             floor. A look is priced by the processor time of the thread that answers it.\n\n{}",
            table(head, rows)
        )
    }
}
