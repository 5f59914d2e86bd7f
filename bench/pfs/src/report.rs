//! What is kept of a run.

use serde_json::{Value, json};
use waggle_bench_frame::{Limit, Run, interval, limits, span, table};
use waggle_instrumentation::cost::calibration::Storage;
use waggle_instrumentation::cost::{Calibration, Span};
use waggle_stats::{Estimate, median};

use crate::apply::{Applying, LIMIT_MS, PROFILE};
use crate::filtering::{Filtering, Way, Which};
use crate::predict::Prediction;
use crate::settings::Settings;

/// All that was measured in one run.
pub(crate) struct Outcome {
    pub(crate) settings: Settings,
    pub(crate) version: String,
    pub(crate) prices: Option<Calibration>,
    pub(crate) predictions: Vec<Prediction>,
    pub(crate) filtering: Vec<Filtering>,
    pub(crate) applying: Option<Applying>,
}

fn value_of(span: Span) -> Value {
    json!({ "value": span.value, "low": span.low, "high": span.high })
}

fn span_in_words(Span { low, value, high }: Span, digits: usize) -> String {
    format!("{value:.digits$} ({low:.digits$} to {high:.digits$})")
}

/// The prices, class by class.
fn table_of(prices: &Calibration) -> String {
    let rows = prices.measured.iter().map(|one| {
        let kept = match one.kept {
            Storage::Sums => "sums",
            Storage::History => "history",
            Storage::HistoryLong => "long history",
        };
        format!(
            "{} | {} | {kept} | {:.2} | {} | {} | {}",
            one.sessions,
            one.class,
            one.events_per_statement,
            span_in_words(one.added_ns, 0),
            one.timer_ns.map_or("-".to_owned(), |ns| format!("{ns:.1}")),
            one.rest_ns.map_or("-".to_owned(), |rest| span_in_words(rest, 0)),
        )
    });
    let head = "sessions | class | kept | events per statement | added, ns per statement | \
                timer, ns per event | rest, ns per event";
    format!(
        "\n## The prices\n\nFrom point selects alone. A class with fewer than 0.2 events \
         per statement is not measured.\n\n{}",
        table(head, rows)
    )
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

    /// How it was measured.
    pub(crate) fn settings(&self) -> Value {
        let settings = &self.settings;
        json!({
            "rounds": settings.rounds,
            "blocks": settings.blocks,
            "applies": settings.applies,
            "only": settings.only.map(|only| format!("{only:?}").to_lowercase()),
        })
    }

    /// What was found, for programs.
    pub(crate) fn found(&self) -> Value {
        let predictions = self.predictions.iter().map(|one| {
            json!({
                "load": one.load.name,
                "threads": one.threads,
                "profile": one.profile,
                "without_ns": one.without_ns,
                "statement_time": one.statement_time,
                "predicted_ns": value_of(one.predicted),
                "measured_ns": interval(&one.measured),
                "measured_with_bursts_ns": interval(&one.with_bursts),
                "ratio": one.ratio().map(value_of),
                "is_right": one.is_right(),
                "is_at_least": one.is_at_least,
                "is_predictable": one.is_predictable,
                "is_honest": one.is_honest(),
            })
        });
        let filtering = self.filtering.iter().map(|one| {
            let [recorded, read] = one.way.names();
            json!({ "recorded": recorded, "read": read, "added_ns": interval(&one.added) })
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
            "server": self.version,
            "calibration": self.prices.as_ref().map(|prices| &prices.measured),
            "predictions": predictions.collect::<Vec<_>>(),
            "filtering": filtering.collect::<Vec<_>>(),
            "filters_before": self.filters_before(),
            "applying": applying,
        })
    }

    /// The page for people.
    pub(crate) fn page(&self, run: &Run) -> String {
        let Settings { rounds, blocks, .. } = &self.settings;
        let with = format!(
            "server {}; {rounds} rounds of the calibration, {blocks} blocks of each profile",
            self.version
        );
        let mut page = run.head("The price of Performance Schema", &with);
        page += &limits(&self.limits());
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

    fn limits(&self) -> [Limit; 3] {
        let count = |is_so: fn(&Prediction) -> bool| {
            self.predictions.iter().filter(|one| is_so(one)).count()
        };
        let (honest, right) = (count(Prediction::is_honest), count(Prediction::is_right));
        let predictable = count(|one| one.is_predictable);
        let all = self.predictions.len();
        let filters_before = self.filters_before();
        let applying = self.applying.as_ref();
        let close = Span::CLOSE;
        [
            Limit {
                name: "predicted",
                limit: format!(
                    "the interval of measured by predicted within 1/{close} and {close}, or the product says that \
                     it is not predictable; what it calls a lower bound is one"
                ),
                measured: self.prices.as_ref().map(|_| {
                    format!(
                        "{honest} of {all}; within: {right}; the product predicts: {predictable}"
                    )
                }),
                kept: Some(honest == all),
            },
            Limit {
                name: "filtered",
                limit: "a `WHERE` does not save what recording costs, recording less does"
                    .to_owned(),
                measured: filters_before.map(|_| "see below".to_owned()),
                kept: filters_before,
            },
            Limit {
                name: "applied",
                limit: format!(
                    "the longest statement of 32 sessions while `{PROFILE}` is applied, less that of a window \
                     beside it: median below {LIMIT_MS} ms"
                ),
                measured: applying.map(|applying| {
                    format!(
                        "{:.1} ms over {} pairs; an apply took {:.0} ms",
                        applying.added_ms(),
                        applying.with_ms.len(),
                        median(applying.took_ms.clone()).unwrap_or(f64::NAN),
                    )
                }),
                kept: applying.map(|applying| applying.added_ms() < LIMIT_MS),
            },
        ]
    }

    fn predicted_and_measured(&self) -> String {
        let rows = self.predictions.iter().map(|one| {
            let says = match (one.is_predictable, one.is_at_least) {
                (true, _) => "predictable",
                (false, true) => "at least, not predictable",
                (false, false) => "not predictable",
            };
            format!(
                "{} | {} | {} | {} | {:.0} | {} | {} | {} | {} | {} | {says}",
                one.load.name,
                one.threads,
                one.profile,
                one.statement_time.calibrated_ns.map_or("-".to_owned(), |ns| format!("{ns:.0}")),
                one.without_ns,
                span_in_words(one.predicted, 0),
                span(&one.measured, 0),
                span(&one.with_bursts, 0),
                one.ratio().map_or("-".to_owned(), |ratio| span_in_words(ratio, 2)),
                if one.is_right() { "yes" } else { "no" },
            )
        });
        let head = "load | threads | profile | calibrated | without | predicted | measured | with bursts | \
                    measured by predicted | within | the product says";
        format!(
            "\n## Predicted and measured\n\nProcessor time of the server, ns per statement, against everything \
             off; *calibrated* is that of a statement in the calibration, with as many sessions.\n\n{}",
            table(head, rows)
        )
    }

    fn filtered(&self) -> String {
        let rows = self.filtering.iter().map(|one| {
            let [recorded, read] = one.way.names();
            format!("{recorded} | {read} | {}", span(&one.added, 0))
        });
        format!(
            "\n## To ask for less, or to record less\n\nThe waits of one of eight sessions under \
             `read write`, read ten times a second.\n\n{}",
            table("recorded | read | added, ns per statement", rows)
        )
    }
}
