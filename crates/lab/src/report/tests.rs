//! What every format says, and what none may say.

use std::collections::{BTreeMap, BTreeSet};

use super::sample::{analysis, cell, comparison, info, report, suite, unknown, windows};
use super::*;
use crate::analysis::{Interval, RunDifference, RunDifferences};
use crate::window::Load;

/// A character of a table has 7 pixels on a page of 1,280, and 4.5 on one of A4.
const CHARACTERS_MAX: usize = 165;
const COLUMNS_MAX: usize = 7;

/// Every start of an element has its end, every attribute its quotes, and no text is left unescaped.
pub(super) fn assert_well_formed(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text.strip_prefix("<!DOCTYPE html>").unwrap_or(text);
    while let Some((before, after)) = rest.split_once('<') {
        for entity in before.split('&').skip(1) {
            let is_known =
                ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|it| entity.starts_with(it));
            assert!(is_known, "&{entity}");
        }
        let (tag, after) = after.split_once('>').expect("a tag that does not end");
        assert!(!tag.contains('<') && tag.matches('"').count() % 2 == 0, "<{tag}>");
        let name = tag.split_whitespace().next().expect("a tag without a name");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "</{name}> ends something else");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        rest = after;
    }
    assert!(open.is_empty(), "{open:?} have no end");
}

/// Whether a text has a word of its own.
fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|one| one == word)
}

#[test]
fn the_markdown_of_a_small_report() {
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        let text = report(&suite(), &info(), &windows(), &analysis()).markdown();
        insta::assert_snapshot!("report", text);
    });
}

#[test]
fn the_page_is_well_formed_and_needs_nothing_beside_it() {
    let page = report(&suite(), &info(), &windows(), &analysis()).html();
    assert_well_formed(&page);
    for outside in ["<script", "src=", "@import", "url(", "<link", "https:"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let ids: Vec<&str> =
        page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    for link in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(ids.contains(&link), "#{link} leads nowhere");
    }
}

#[test]
fn what_comes_from_outside_is_text_and_nothing_else() {
    let page = report(&suite(), &info(), &windows(), &analysis()).html();
    assert!(page.contains("9.3.0 &lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("a&lt;b&gt;&amp;host"));
    let text = report(&suite(), &info(), &windows(), &analysis()).markdown();
    assert!(text.contains("9.3.0 &lt;script&gt;") && !text.contains("<script"));
}

#[test]
fn every_verdict_is_printed_and_no_place_is_empty() {
    let text = report(&suite(), &info(), &windows(), &analysis()).markdown();
    let words = [
        "cost",
        "gain",
        "not shown (1.2 %)",
        "proven below 0.80 %",
        "void: the hypervisor took 9 %",
        "not run: budget",
        "not run: the run has not come to it",
    ];
    let page = report(&suite(), &info(), &windows(), &analysis()).html();
    for words in words {
        assert!(text.contains(words), "{words}");
        assert!(page.contains(words), "{words}");
    }
    for line in text.lines().filter(|line| line.starts_with('|')) {
        assert!(line.trim_matches('|').split('|').all(|datum| !datum.trim().is_empty()), "{line}");
    }
    assert!(
        !page.contains("<td class=\"number\"></td>") && !page.contains("<td class=\"text\"></td>")
    );
}

#[test]
fn what_was_not_measured_is_never_printed_as_a_number() {
    let mut analysis = analysis();
    for one in &mut analysis.comparisons {
        let verdict = Verdict::Below { detectable_percent: f64::NAN };
        let cell = one.cell.clone();
        *one = Comparison { cell, ..unknown(&one.arm, one.metric, verdict) };
    }
    let (suite, info, windows) = (suite(), info(), windows());
    let report = report(&suite, &info, &windows, &analysis);
    let outputs = [
        report.html(),
        report.markdown(),
        report.csv(),
        report.json(),
        report.summary(),
        report.windows_csv(),
    ];
    for output in outputs {
        assert!(output.len() > 100, "{output}");
        for word in ["NaN", "inf", "infinity"] {
            assert!(!has_word(&output, word), "{word} in {output}");
        }
    }
}

#[test]
fn the_windows_of_a_run_that_has_none_are_the_names_of_their_columns() {
    let (suite, info, analysis) = (suite(), info(), analysis());
    let csv = |windows: &[Window]| report(&suite, &info, windows, &analysis).windows_csv();
    let heads = csv(&windows()).lines().next().unwrap().to_owned();
    assert!(heads.starts_with("number,block,"), "{heads}");
    assert_eq!(csv(&[]), heads + "\n");
}

#[test]
fn a_published_figure_that_contradicts_its_source_is_out_of_the_answer() {
    let text = report(&suite(), &info(), &windows(), &analysis()).markdown();
    assert!(text.contains("1 of 1 cells are below saturation"), "{text}");
    let row =
        |text: &str, begin: &str| text.lines().find(|it| it.starts_with(begin)).unwrap().to_owned();
    // Its figures are in the CSV, with the reason, and out of the answer.
    let second = row(&text, "| pfson_conoff_insoff ");
    assert!(second.contains("not published"), "{second}");
    assert!(row(&text, "| pfson_conon_insoff ").contains("−11.5 %"), "{text}");
    let csv = report(&suite(), &info(), &windows(), &analysis()).csv();
    let told = |line: &&str| {
        line.contains("pfson_conoff_insoff") && line.contains("two columns are exchanged")
    };
    assert!(csv.lines().any(|line| told(&line)), "{csv}");
}

/// The answers of a run, by what is said above their table.
fn tables(text: &str) -> BTreeMap<String, String> {
    let (_, answer) = text.split_once("\n## Answer\n").unwrap();
    let (answer, _) = answer.split_once("\n## Charts\n").unwrap();
    let mut tables: BTreeMap<String, String> = BTreeMap::new();
    let mut caption = String::new();
    for line in answer.lines() {
        match line.starts_with('|') {
            true => *tables.entry(caption.clone()).or_default() += &format!("{line}\n"),
            false if !line.is_empty() => caption = line.to_owned(),
            false => {}
        }
    }
    tables
}

#[test]
fn each_order_has_an_answer_of_its_own_beside_what_the_source_has_of_it() {
    let suite = Suite::find("modb").unwrap();
    let mut windows = Vec::new();
    for (at, order) in suite.orders.iter().enumerate() {
        for (number, scenario) in order.scenarios.iter().enumerate() {
            for block in 0..8 {
                let mut one = super::sample::window(windows.len() as u32, scenario, 40.0);
                one.block = block;
                one.cell.workload = "read-update".to_owned();
                one.cell.threads = 256;
                one.cell.order = Some(order.name.clone());
                let start = (100 * at + number) as u32;
                one.server_start = 8 * start + block;
                if let Some(measured) = &mut one.measured {
                    measured.rss_bytes = Some(((1024 + 100 * number) as u64) << 20);
                }
                windows.push(one);
            }
        }
    }
    let analysis = crate::analysis::analyse_all(&suite, &windows);
    let text = report(&suite, &info(), &windows, &analysis).markdown();
    let tables = tables(&text);
    let table = |order: &str| {
        let begin = format!("Closed loads of read-update, order {order} (1 cell), against off: ");
        let table = tables.iter().find(|(said, _)| said.starts_with(&begin));
        table.unwrap_or_else(|| panic!("no {begin} in {text}")).1.clone()
    };
    let cumulative = table("cumulative");
    assert!(
        cumulative.contains("change of QPS") && cumulative.contains("published"),
        "{cumulative}"
    );
    assert!(!cumulative.contains("basic-history"), "{cumulative}");
    assert!(text.contains(words::FIXED_ORDER), "{text}");
    let memory = table("memory");
    assert!(memory.contains("+1,717 MiB") && memory.contains("+500 "), "{memory}");
    assert!(!cumulative.contains("MiB") && !memory.contains("QPS"), "{cumulative}{memory}");
    assert!(!table("one-factor").contains("all-events "), "{}", table("one-factor"));
    let (_, further) = text.split_once("\n## By workload\n").unwrap();
    assert!(further.contains("\nread-update, order one-factor, against "), "{further}");
}

#[test]
fn no_table_is_wider_than_the_page() {
    let (suite, info, windows) = (suite(), info(), windows());
    let text = report(&suite, &info, &windows, &analysis()).markdown();
    let rows = text.lines().filter(|line| line.starts_with('|'));
    assert!(rows.clone().count() > 10, "{text}");
    for row in rows {
        assert!(row.matches('|').count() <= COLUMNS_MAX + 1, "{row}");
        assert!(row.chars().count() <= CHARACTERS_MAX, "{row}");
    }
}

#[test]
fn a_report_of_nothing_says_that_nothing_was_run() {
    let mut info = info();
    info.not_run.clear();
    let text = report(&suite(), &info, &[], &Analysis::default()).markdown();
    assert!(text.contains("not run: the run has not come to it"), "{text}");
    assert!(text.contains("0 windows of 400 were made"), "{text}");
    assert_well_formed(&report(&suite(), &info, &[], &Analysis::default()).html());
}

#[test]
fn every_comparison_that_was_run_and_every_window_is_a_line_of_csv() {
    let (suite, info, analysis) = (suite(), info(), analysis());
    let text = report(&suite, &info, &windows(), &analysis).csv();
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let heads = reader.headers().unwrap().clone();
    let rows: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    // Five scenarios and the baseline again, in the only cell that was run.
    assert_eq!(rows.len(), 6 * Metric::ALL.len());
    let at = |head: &str| heads.iter().position(|one| one == head).unwrap();
    let void: Vec<&::csv::StringRecord> =
        rows.iter().filter(|row| &row[at("verdict")] == "void").collect();
    assert_eq!(void.len(), Metric::ALL.len());
    assert!(void.iter().all(|row| row[at("percent")].is_empty() && &row[at("threads")] == "32"));
    assert_eq!(csv::windows(&windows()).lines().count(), 1 + windows().len());
}

#[test]
fn the_json_has_every_comparison_that_was_run_and_null_where_there_is_no_number() {
    let (suite, info, analysis) = (suite(), info(), analysis());
    let text = report(&suite, &info, &windows(), &analysis).json();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let comparisons = value["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 6);
    let metrics = |one: &serde_json::Value| one["metrics"].as_array().unwrap().clone();
    assert!(comparisons.iter().all(|one| metrics(one).len() == Metric::ALL.len()));
    let all: Vec<serde_json::Value> = comparisons.iter().flat_map(metrics).collect();
    let void = all.iter().find(|one| one["verdict"] == "void").unwrap();
    assert!(void["percent"].is_null() && void["reason"] == "the hypervisor took 9 %");
    let cost = all.iter().find(|one| one["verdict"] == "cost" && one["metric"] == "qps").unwrap();
    assert_eq!(cost["percent"], serde_json::json!([4.0, 5.0, 6.0]));
    assert_eq!(cost["published"]["contradicts"], "two columns are exchanged");
    assert_eq!(value["run"]["seed"], 7);
    let declared = serde_json::json!({ "cpu_per_statement": 1.0, "latency_p99": 15.0 });
    assert_eq!(value["suite"]["detectable_percent"], declared);
    assert_eq!(value["suite"]["margin_percent"], 1.0);
    let [cpu, _, qps] = [0_usize, 1, 2].map(|at| &value["noise_floor"][at]);
    assert!(cpu["declared_percent"] == 1.0 && cpu["half_width_percent"] == 0.7, "{cpu}");
    assert!(qps["metric"] == "qps" && qps["declared_percent"].is_null(), "{qps}");
    let not_run = serde_json::json!({
        "reason": "budget", "cells": 1, "workloads": ["read-only"], "threads": [32],
        "load": "open", "open_shares": [0.6], "order": null, "scenario": null,
    });
    assert_eq!(value["not_run"][0], not_run);
}

/// As many cells as fit into ten minutes at the scale tiny, with numbers that have all their digits.
#[test]
fn the_json_of_a_tiny_run_is_small() {
    let (suite, sample) = (Suite::find("rds").unwrap(), analysis());
    let digits = Interval { low: -1.0 / 3.0, value: 1.0 / 7.0, high: 22.0 / 7.0 };
    let mut analysis = Analysis { comparisons: Vec::new(), ..sample.clone() };
    for cell in suite.cells().into_iter().take(8) {
        let arms = sample.comparisons.iter().filter(|one| !one.cell.load.is_open());
        for one in arms.filter(|one| one.cell.threads == 32) {
            let verdict = Verdict::Below { detectable_percent: 1.0 / 3.0 };
            let cell = cell.clone();
            let numbers = Comparison { percent: digits, difference: digits, ..one.clone() };
            analysis.comparisons.push(Comparison { cell, verdict, p_holm: 1.0 / 7.0, ..numbers });
        }
    }
    assert_eq!(analysis.comparisons.len(), 8 * 6 * Metric::ALL.len());
    let text = report(&suite, &info(), &windows(), &analysis).json();
    assert!(text.len() < 300_000, "{} bytes", text.len());
    assert!(text.contains("[-0.333333,0.142857,3.14286]"), "{text}");
}

#[test]
fn what_was_not_asked_for_has_no_row_anywhere() {
    let (suite, mut info, analysis) = (suite(), info(), analysis());
    info.run.only = vec!["32".to_owned(), "closed".to_owned()];
    for (threads, load) in [(1, Load::Closed), (32, Load::Open { share: 0.6 })] {
        let cell = cell(threads, load);
        let why = NotRun::NOT_ASKED.to_owned();
        info.not_run.retain(|one| one.cell != cell);
        info.not_run.push(NotRun { cell, scenario: None, why });
    }
    let text = report(&suite, &info, &windows(), &analysis).markdown();
    assert!(text.contains("- not asked: --only 32 --only closed leaves out 2 cells\n"), "{text}");
    for absent in ["not run: ", "fixed rate", "3,456"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    let page = report(&suite, &info, &windows(), &analysis).html();
    assert!(!page.contains("not run: "), "{page}");
}

#[test]
fn what_was_run_and_not_measured_is_said_to_be_so() {
    let (suite, info, mut analysis) = (suite(), info(), analysis());
    for one in analysis.comparisons.iter_mut().filter(|one| one.metric == Metric::CpuPerStatement) {
        if one.verdict.is_known() {
            one.verdict = Verdict::NotRun(Verdict::NOT_MEASURED.to_owned());
        }
    }
    analysis.pooled.clear();
    let text = report(&suite, &info, &windows(), &analysis).markdown();
    assert!(!text.contains("No comparison has been run"), "{text}");
    // The throughput was measured.
    let is_it = |line: &&str| {
        line.starts_with("| pfson_") && line.contains("| not measured ") && line.contains(" % (")
    };
    assert_eq!(text.lines().filter(is_it).count(), 4, "{text}");
    let text = report(&suite, &info, &windows(), &analysis).summary();
    assert!(text.contains("0 cost, 0 gain, 1 void, 4 not measured"), "{text}");
}

#[test]
fn two_runs_are_told_apart() {
    let difference = |p_holm| RunDifference {
        cell: cell(32, Load::Closed),
        arm: "all on".to_owned(),
        baseline: "off".to_owned(),
        metric: Metric::CpuPerStatement,
        one: Interval { low: 4.0, value: 5.0, high: 6.0 },
        other: Interval { low: 8.0, value: 9.0, high: 10.0 },
        percent: Interval { low: 2.0, value: 3.8, high: 5.0 },
        detectable_percent: 2.5,
        p_student: 0.001,
        p_holm,
    };
    let of = |p_holm: &[f64], not_compared| RunDifferences {
        found: p_holm.iter().copied().map(difference).collect(),
        without_ratio: not_compared,
        in_one_only: 2 * not_compared,
    };
    let text = differences(&info(), &info(), &of(&[0.001, 0.9], 3));
    assert!(text.contains("Not compared: 3 effects of which a value is 0"), "{text}");
    assert!(text.contains("Not compared: 6 effects of which one run only has a number"), "{text}");
    assert!(text.contains("1 of 2 effects differ."), "{text}");
    let text = differences(&info(), &info(), &of(&[0.9], 0));
    assert!(!text.contains("Not compared"), "{text}");
    assert!(text.contains("No difference was found among 1 effect."), "{text}");
    assert!(text.contains("one of 2.5 % would have been found"), "{text}");
    let value: serde_json::Value =
        serde_json::from_str(&differences_json(&of(&[0.001], 0))).unwrap();
    assert_eq!(value["different"], true);
    assert_eq!((&value["without_ratio"], &value["in_one_only"]), (&0.into(), &0.into()));
    assert_eq!(value["differences"][0]["percent"][1], 3.8);
}

#[test]
fn every_chart_is_a_file_of_its_own() {
    let charts = report(&suite(), &info(), &windows(), &analysis()).charts();
    // Throughput, change, two forests and the noise floor; the windows of one cell.
    assert_eq!(charts.len(), 6);
    for chart in charts {
        assert_well_formed(&chart.svg);
        assert!(chart.svg.starts_with("<svg xmlns=") && chart.svg.contains("<style>"));
    }
}

#[test]
fn a_fixed_rate_that_misses_its_share_of_the_processors_is_marked() {
    let said = |share: f64| {
        let mut one = super::sample::window(0, "pfsoff", 40.0);
        one.cell = cell(32, Load::Open { share: 0.6 });
        one.measured.as_mut().unwrap().host_share = Some(share);
        report(&suite(), &info(), &[one], &analysis()).markdown()
    };
    let far = "the rate was chosen for 60 %, and the baseline had 67 % in use";
    assert!(said(0.67).contains(far), "{}", said(0.67));
    let near = said(0.64);
    assert!(near.contains("64.00") && !near.contains("the rate was chosen"), "{near}");
}

#[test]
fn fixed_rates_that_an_arm_could_not_hold_are_named_beside_the_mean_of_the_others() {
    let suite = Suite::find("rds").unwrap();
    let arm = "pfson_conon_inson";
    let at = |share: f64| {
        let metric = Metric::CpuPerStatement;
        let mut one = match share > 0.7 {
            true => unknown(arm, metric, Verdict::Overloaded("in 2 of 8 blocks".to_owned())),
            false => comparison(arm, metric, Verdict::Cost),
        };
        one.cell = cell(32, Load::Open { share });
        one
    };
    let comparisons = [0.3, 0.6, 0.8].map(at).to_vec();
    let analysis = Analysis { comparisons, ..Analysis::default() };
    let text = report(&suite, &info(), &[], &analysis).markdown();
    assert!(text.contains("cells that count: 2 of 3; overloaded: open, 80 % CPU"), "{text}");
}
