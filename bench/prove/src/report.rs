//! What is kept of a run.

use serde_json::{Value, json};
use waggle_bench_frame::{Run, price, rounded, table};

use crate::prices::Priced;
use crate::settings::Settings;
use crate::truth::Truth;

/// All that was measured in one run.
pub(crate) struct Outcome {
    pub(crate) settings: Settings,
    pub(crate) truth: Vec<Truth>,
    pub(crate) prices: Vec<Priced>,
}

impl Outcome {
    /// How it was measured.
    pub(crate) fn settings(&self) -> Value {
        let Settings { server, trials, seconds, .. } = &self.settings;
        json!({ "server": server.to_string(), "trials": trials, "seconds": seconds })
    }

    /// What was found, for programs.
    pub(crate) fn found(&self) -> Value {
        let truth = self.truth.iter().map(|truth| {
            let trials = truth.trials.iter().map(|one| {
                json!({
                    "injected_ns": one.injected,
                    "found_ns": one.found,
                    "half_width_ns": one.half_width,
                    "statements_per_s": one.statements_per_s,
                })
            });
            json!({
                "cost_ns": truth.cost_ns,
                "threads": truth.threads,
                "right": truth.right(),
                "trials": trials.collect::<Vec<_>>(),
            })
        });
        let prices = self.prices.iter().map(
            |priced| json!({ "server": priced.server, "load": priced.load, "prove": priced.json }),
        );
        json!({ "truth": truth.collect::<Vec<_>>(), "prices": prices.collect::<Vec<_>>() })
    }

    /// The page for people.
    pub(crate) fn page(&self, run: &Run) -> String {
        let mut page = run.head("Trials by a coin for each statement", "sysbench");
        if !self.truth.is_empty() {
            page.push_str(&format!(
                "## Costs of known size\n\n{}, point selects over a unix socket, trials of {} s.\n\n",
                self.settings.server, self.settings.seconds
            ));
            page.push_str(&self.truth_table());
        }
        if !self.prices.is_empty() {
            page.push_str("\n## What waggle costs\n\nProcessor time per statement, 4 sessions over a unix socket, ns.\n\n");
            page.push_str(&self.price_table());
        }
        page
    }

    fn truth_table(&self) -> String {
        let rows = self.truth.iter().map(|truth| {
            format!(
                "{} | {:.0} | {:.0} | {:.0} | {} of {} | {:.0}",
                truth.threads,
                truth.mean(|one| one.injected),
                truth.mean(|one| one.found),
                truth.half_width(),
                truth.right(),
                truth.trials.len(),
                truth.mean(|one| one.statements_per_s),
            )
        });
        table(
            "sessions | injected, ns | found (mean), ns | half-width (median), ns | interval holds it | statements/s",
            rows,
        )
    }

    fn price_table(&self) -> String {
        let rows = self.prices.iter().map(|priced| {
            let json = &priced.json;
            let steps = json["steps"].as_array().into_iter().flatten();
            let steps: Vec<String> = steps.map(|step| price(&step["price"])).collect();
            format!(
                "{} | {} | {} | {} | {} | {} % | {}",
                priced.server,
                priced.load,
                rounded(&json["total"]["base_ns"], 0),
                steps.join(" | "),
                price(&json["total"]),
                rounded(&json["total"]["percent"], 1),
                rounded(&json["length_s"], 0),
            )
        });
        table(
            "server | load | without | statements | long texts | waits | together | of it | length, s",
            rows,
        )
    }
}
