//! What is kept of a run.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use waggle_bench_kept::new_directory;
use waggle_stats::Estimate;

use crate::effect::{CONFIDENCE, Effect};
use crate::looks::Looks;
use crate::settings::Settings;

/// All that was measured in one run.
pub(crate) struct Outcome {
    pub(crate) settings: Settings,
    pub(crate) machine: Value,
    pub(crate) looks: Vec<Looks>,
    /// The server at work. `None` where its part was not asked for.
    pub(crate) version: Option<String>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) seconds: f64,
}

fn interval(Estimate { value, low, high, count, .. }: Estimate) -> Value {
    json!({ "value": value, "low": low, "high": high, "count": count })
}

fn in_words(Estimate { value, low, high, .. }: Estimate, digits: usize) -> String {
    format!("{value:.digits$} ({low:.digits$} to {high:.digits$})")
}

fn or_dash(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
}

impl Outcome {
    /// The summary for programs.
    fn summary(&self) -> Value {
        let settings = &self.settings;
        let looks = self.looks.iter().map(|one| {
            json!({
                "server": one.version,
                "state": one.state,
                "statements": one.statements,
                "median_ms": one.median_ms,
                "longest_ms": one.longest_ms,
            })
        });
        let effects = self.effects.iter().map(|one| {
            json!({
                "sessions": one.sessions,
                "pause_s": one.pause.map(|pause| pause.as_secs_f64()),
                "statements_per_s_without": one.rate_without,
                "statements_per_s_percent": interval(one.rate_percent),
                "without_ns": one.without_ns,
                "added_ns": interval(one.added_ns),
                "looks": one.taken.looks,
                "statements_per_look": one.statements_per_look(),
                "server_ns_per_look": one.ns_per_look(),
                "processor_percent": one.processor_percent(),
            })
        });
        json!({
            "machine": self.machine,
            "settings": {
                "seed": settings.seed,
                "looks": settings.looks,
                "blocks": settings.blocks,
                "only": settings.only.map(|only| format!("{only:?}").to_lowercase()),
                "quick": settings.quick,
                "confidence": CONFIDENCE,
            },
            "seconds": self.seconds,
            "looks": looks.collect::<Vec<_>>(),
            "server": self.version,
            "effects": effects.collect::<Vec<_>>(),
        })
    }

    /// The page for people.
    fn page(&self) -> String {
        let mut page = format!(
            "# The price of looking at locks, {}\n\n{}; seed {}; {:.0} s.{}\n",
            self.machine["date"].as_str().unwrap_or("unknown"),
            waggle_bench_kept::in_words(&self.machine),
            self.settings.seed,
            self.seconds,
            if self.settings.quick { " The small form: it says nothing of the price." } else { "" },
        );
        if !self.looks.is_empty() {
            page += &self.timed();
        }
        if let Some(version) = &self.version {
            page += &self.measured(version);
        }
        page
    }

    fn timed(&self) -> String {
        let mut page = format!(
            "\n## A look\n\nAs its client sees it, over the unix socket; {} looks each.\n\n\
             | server | state | statements | median, ms | longest, ms |\n|---|---|---|---|---|\n",
            self.settings.looks,
        );
        for one in &self.looks {
            page += &format!(
                "| {} | {} | {} | {:.2} | {:.2} |\n",
                one.version, one.state, one.statements, one.median_ms, one.longest_ms
            );
        }
        page
    }

    fn measured(&self, version: &str) -> String {
        let mut page = format!(
            "\n## What looking does to a server at work\n\nServer {version}; {} blocks each. A/A is no \
             look at all: the noise floor. A look is priced by the processor time of the thread that \
             answers it.\n\n\
             | sessions | looks | statements/s without | change, % | processor time per statement \
             without, ns | added, ns | looks made | statements of a look | server's processor time of \
             a look, µs | of one processor, % |\n|---|---|---|---|---|---|---|---|---|---|\n",
            self.settings.blocks,
        );
        for one in &self.effects {
            page += &format!(
                "| {} | {} | {:.0} | {} | {:.0} | {} | {} | {} | {} | {} |\n",
                one.sessions,
                one.pause.map_or("A/A".to_owned(), |pause| format!("every {pause:?}")),
                one.rate_without,
                in_words(one.rate_percent, 2),
                one.without_ns,
                in_words(one.added_ns, 0),
                one.taken.looks,
                or_dash(one.statements_per_look(), 1),
                or_dash(one.ns_per_look().map(|ns| ns / 1e3), 0),
                or_dash(one.processor_percent(), 3),
            );
        }
        page
    }

    /// Writes the result into a new directory; the page for people.
    pub(crate) fn write(&self) -> Result<PathBuf> {
        let Settings { output, name, .. } = &self.settings;
        let directory = new_directory(output, name, &self.machine)?;
        let put = |name: &str, text: String| {
            let path = directory.join(name);
            fs::write(&path, text).with_context(|| path.display().to_string()).map(|()| path)
        };
        put("summary.json", format!("{:#}\n", self.summary()))?;
        put("README.md", self.page())
    }
}
