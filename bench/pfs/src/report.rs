//! What is kept of a run.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use waggle_bench_kept::new_directory;
use waggle_instrumentation::cost::calibration::Kept;
use waggle_instrumentation::cost::{Calibration, Span};
use waggle_stats::Estimate;

use crate::apply::{Applying, LIMIT_MS, PROFILE, median};
use crate::filtering::{Filtering, Way, Which};
use crate::predict::Prediction;
use crate::server::CONFIDENCE;
use crate::settings::Settings;

/// All that was measured in one run.
pub(crate) struct Outcome {
    pub(crate) settings: Settings,
    pub(crate) machine: Value,
    pub(crate) version: String,
    pub(crate) prices: Option<Calibration>,
    pub(crate) predictions: Vec<Prediction>,
    pub(crate) filtering: Vec<Filtering>,
    pub(crate) applying: Option<Applying>,
    pub(crate) seconds: f64,
}

/// For what was not asked for.
const NOT_RUN: &str = "- | not run";

/// A way to tell what is said of a limit.
fn kept(is_kept: bool) -> &'static str {
    if is_kept { "kept" } else { "NOT KEPT" }
}

fn value_of(span: Span) -> Value {
    json!({ "value": span.value, "low": span.low, "high": span.high })
}

fn interval(Estimate { value, low, high, count, .. }: Estimate) -> Value {
    json!({ "value": value, "low": low, "high": high, "count": count })
}

fn span_in_words(Span { low, value, high }: Span, digits: usize) -> String {
    format!("{value:.digits$} ({low:.digits$} to {high:.digits$})")
}

fn in_words(Estimate { low, value, high, .. }: Estimate) -> String {
    span_in_words(Span { low, value, high }, 0)
}

/// The prices, class by class.
fn table_of(prices: &Calibration) -> String {
    let mut page =
        "\n## The prices\n\nFrom point selects alone. A class with fewer than 0.2 events \
                    per statement is not measured.\n\n\
                    | sessions | class | kept | events per statement | added, ns per statement | \
                    timer, ns per event | rest, ns per event |\n|---|---|---|---|---|---|---|\n"
            .to_owned();
    for one in &prices.measured {
        let kept = match one.kept {
            Kept::Sums => "sums",
            Kept::History => "history",
            Kept::HistoryLong => "long history",
        };
        page += &format!(
            "| {} | {} | {kept} | {:.2} | {} | {} | {} |\n",
            one.sessions,
            one.class,
            one.events_per_statement,
            span_in_words(one.added_ns, 0),
            one.timer_ns.map_or("-".to_owned(), |ns| format!("{ns:.1}")),
            one.rest_ns.map_or("-".to_owned(), |rest| span_in_words(rest, 0)),
        );
    }
    page
}

impl Outcome {
    /// What a way adds, where it was measured.
    fn added(&self, recorded: Which, read: Which) -> Option<Estimate> {
        let way = Way { recorded, read };
        self.filtering.iter().find(|one| one.way == way).map(|one| one.added)
    }

    /// Whether a `WHERE` leaves what recording all costs, and to record one only does not: the
    /// intervals say. `None` where it was not measured.
    fn filters_before(&self) -> Option<bool> {
        let all = self.added(Which::All, Which::None)?;
        let one = self.added(Which::One, Which::None)?;
        let all_by_where = self.added(Which::All, Which::One)?;
        let one_by_where = self.added(Which::One, Which::One)?;
        let saves_nothing = all_by_where.high >= all.low;
        Some(saves_nothing && one.high < all.low && one_by_where.high < all_by_where.low)
    }

    /// The summary for programs.
    fn summary(&self) -> Value {
        let settings = &self.settings;
        let predictions = self.predictions.iter().map(|one| {
            json!({
                "load": one.load.name,
                "threads": one.threads,
                "profile": one.profile,
                "without_ns": one.without_ns,
                "statement_time": one.statement_time,
                "predicted_ns": value_of(one.predicted),
                "measured_ns": interval(one.measured),
                "measured_with_bursts_ns": interval(one.with_bursts),
                "ratio": one.ratio().map(value_of),
                "is_right": one.is_right(),
                "is_at_least": one.is_at_least,
                "is_predictable": one.is_predictable,
                "is_honest": one.is_honest(),
            })
        });
        let filtering = self.filtering.iter().map(|one| {
            let [recorded, read] = one.way.names();
            json!({ "recorded": recorded, "read": read, "added_ns": interval(one.added) })
        });
        let applying = self.applying.as_ref().map(|applying| {
            json!({
                "profile": PROFILE,
                "added_ms": applying.added_ms(),
                "limit_ms": LIMIT_MS,
                "with_ms": applying.with_ms,
                "without_ms": applying.without_ms,
                "took_ms": applying.took_ms,
            })
        });
        json!({
            "machine": self.machine,
            "server": self.version,
            "settings": {
                "seed": settings.seed,
                "rounds": settings.rounds,
                "blocks": settings.blocks,
                "applies": settings.applies,
                "only": settings.only.map(|only| format!("{only:?}").to_lowercase()),
                "quick": settings.quick,
                "confidence": CONFIDENCE,
            },
            "seconds": self.seconds,
            "calibration": self.prices.as_ref().map(|prices| &prices.measured),
            "predictions": predictions.collect::<Vec<_>>(),
            "filtering": filtering.collect::<Vec<_>>(),
            "filters_before": self.filters_before(),
            "applying": applying,
        })
    }

    /// The page for people.
    fn page(&self) -> String {
        let mut page = format!(
            "# The price of Performance Schema, {}\n\n{}; server {}; {} rounds of the calibration, {} \
             blocks of each profile; seed {}; {:.0} s.{}\n\n",
            self.machine["date"].as_str().unwrap_or("unknown"),
            waggle_bench_kept::in_words(&self.machine),
            self.version,
            self.settings.rounds,
            self.settings.blocks,
            self.settings.seed,
            self.seconds,
            if self.settings.quick { " The small form: it says nothing of the price." } else { "" },
        );
        page += &self.verdicts();
        if self.prices.is_some() {
            page += &self.predicted_and_measured();
        }
        if !self.filtering.is_empty() {
            page += &self.filtered();
        }
        if let Some(prices) = &self.prices {
            page += &table_of(prices);
        }
        page
    }

    fn verdicts(&self) -> String {
        let honest = self.predictions.iter().filter(|one| one.is_honest()).count();
        let right = self.predictions.iter().filter(|one| one.is_right()).count();
        let predictable = self.predictions.iter().filter(|one| one.is_predictable).count();
        let all = self.predictions.len();
        let predicted = match &self.prices {
            Some(_) => format!(
                "{honest} of {all}; within: {right}; the product predicts: {predictable} | {}",
                kept(honest == all)
            ),
            None => NOT_RUN.to_owned(),
        };
        let filtered = match self.filters_before() {
            Some(is_so) => format!("see below | {}", kept(is_so)),
            None => NOT_RUN.to_owned(),
        };
        let applied = self.applying.as_ref().map_or(NOT_RUN.to_owned(), |applying| {
            let added = applying.added_ms();
            format!(
                "{added:.1} ms over {} pairs; an apply took {:.0} ms | {}",
                applying.with_ms.len(),
                median(applying.took_ms.clone()),
                kept(added < LIMIT_MS),
            )
        });
        let close = Span::CLOSE;
        format!(
            "| limit | measured | verdict |\n|---|---|---|\n\
             | the interval of measured by predicted within 1/{close} and {close}, or the product says that \
             it is not predictable; what it calls a lower bound is one | {predicted} |\n\
             | a `WHERE` does not save what recording costs, recording less does | {filtered} |\n\
             | the longest statement of 32 sessions while `{PROFILE}` is applied, less that of a window \
             beside it: median below {LIMIT_MS} ms | {applied} |\n",
        )
    }

    fn predicted_and_measured(&self) -> String {
        let mut page = "\n## Predicted and measured\n\nProcessor time of the server, ns per statement, \
                        against everything off; *calibrated* is that of a statement in the calibration, with as many sessions.\n\n\
                        | load | threads | profile | calibrated | without | predicted | measured | with bursts | measured \
                        by predicted | within | the product says |\n\
                        |---|---|---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
        for one in &self.predictions {
            let says = match (one.is_predictable, one.is_at_least) {
                (true, _) => "predictable",
                (false, true) => "at least, not predictable",
                (false, false) => "not predictable",
            };
            page += &format!(
                "| {} | {} | {} | {} | {:.0} | {} | {} | {} | {} | {} | {says} |\n",
                one.load.name,
                one.threads,
                one.profile,
                one.statement_time.calibrated_ns.map_or("-".to_owned(), |ns| format!("{ns:.0}")),
                one.without_ns,
                span_in_words(one.predicted, 0),
                in_words(one.measured),
                in_words(one.with_bursts),
                one.ratio().map_or("-".to_owned(), |ratio| span_in_words(ratio, 2)),
                if one.is_right() { "yes" } else { "no" },
            );
        }
        page
    }

    fn filtered(&self) -> String {
        let mut page =
            "\n## To ask for less, or to record less\n\nThe waits of one of eight sessions \
                        under `read write`, read ten times a second.\n\n\
                        | recorded | read | added, ns per statement |\n|---|---|---|\n"
                .to_owned();
        for one in &self.filtering {
            let [recorded, read] = one.way.names();
            page += &format!("| {recorded} | {read} | {} |\n", in_words(one.added));
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
