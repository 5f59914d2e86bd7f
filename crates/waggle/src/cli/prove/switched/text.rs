//! A trial in windows, in words: a sentence, a table, and what else is to be known.

use std::time::Duration;

use waggle_model::Server;
use waggle_prove::{Blocks, FLOOR_CONFIDENCE, Slower, Sum, Switched};
use waggle_stats::Estimate;

use super::super::text::{LATENCY, cost, line, thousands};
use super::Report;

/// How far a trial is.
pub(super) fn progress(after: Duration, limit: Duration, blocks: &Blocks) -> String {
    let known = match &blocks.added_ns() {
        Some(added) => format!("{} ns each", with_interval(added)),
        None => "too few to say anything".to_owned(),
    };
    let [after, limit] = [after, limit].map(|time| time.as_secs_f64());
    format!("{after:.0} of {limit:.0} s, {} blocks: {known}", blocks.count())
}

pub(super) fn of(report: &Report) -> String {
    let mut text = sentence(report);
    table(&mut text, report);
    beside(&mut text, report);
    text
}

fn sentence(report: &Report) -> String {
    let Report { server: Server { pid, flavour, version, .. }, switched, what, without, .. } =
        report;
    let (blocks, seconds) = (switched.blocks, report.length.as_secs_f64());
    let blocks = format!("{blocks} {}", if blocks == 1 { "block" } else { "blocks" });
    let of = format!("pid {pid}, {flavour} {version}; {blocks} in {seconds:.0} s");
    let found = switched.added_ns.as_ref().zip(switched.base_ns);
    let known = match (why_not(report), found) {
        (Some(why), _) => format!("Not measured: {why}"),
        (None, None) => "Not measured: too few statements to say anything".to_owned(),
        (None, Some((added, base_ns))) => {
            let span = [added.value, added.low, added.high];
            cost(&format!("`{what}`"), span, base_ns, &format!("a statement {without}"))
        }
    };
    match report.gave_up {
        Some(slower) => {
            let why = became_slower(slower, switched);
            format!("`{what}` was undone early, because {why}. {known} ({of}).\n")
        }
        None => format!("{known} ({of}).\n"),
    }
}

/// What was worse than --give-up allows.
fn became_slower(slower: Slower, switched: &Switched) -> String {
    match (slower, &switched.slower_percent) {
        (Slower::Throughput, Some(Estimate { value, low, high, .. })) => {
            format!("throughput was {value:.1} % ({low:.1} to {high:.1}) less while it was on")
        }
        (Slower::Throughput, None) => "throughput was less while it was on".to_owned(),
        (Slower::P99, _) => "p99 was longer while it was on".to_owned(),
        (Slower::Standstill, _) => {
            "in two blocks one after the other less than a third of the statements came while it was on".to_owned()
        }
    }
}

/// Why there is no price.
fn why_not(report: &Report) -> Option<String> {
    let Report { switched, what, .. } = report;
    match (report.is_idle, report.is_stopped) {
        (true, true) => {
            return Some("it was stopped before a statement came; nothing was switched".to_owned());
        }
        (true, false) => return Some("no statement came, so nothing was switched".to_owned()),
        _ => {}
    }
    if report.shown_by.is_none() {
        return Some(format!("the server did not take all of `{what}`"));
    }
    if switched.blocks == 0 && report.is_stopped {
        return Some("it was stopped before the first block came to its end".to_owned());
    }
    if switched.blocks == 0 {
        let switch = report.switch.as_secs_f64();
        return Some(format!(
            "no block came to its end; to turn it on or off takes {switch:.1} s, so give it longer with --for"
        ));
    }
    if !report.is_switched() {
        return Some(format!(
            "`{what}` was set, and nothing shows that it does anything under this load"
        ));
    }
    switched.is_unsound().then(|| {
        "the windows in which it is off differ from each other, so do not trust these figures; try again, for longer".to_owned()
    })
}

fn table(text: &mut String, report: &Report) {
    line(
        text,
        format_args!(
            "\n{:<10} {:>12} {:>12} {:>12} {:>12} {:>12}",
            "WINDOWS", "STATEMENTS", "PER SECOND", "CPU p50, µs", "p50, µs", "p99, µs"
        ),
    );
    for (name, sum) in ["off", "off again", "on"].iter().zip(&report.switched.sums) {
        let Sum { statements, processor, latency, .. } = sum;
        let rate = sum.rate();
        let us = |ns: Option<f64>| ns.map_or("-".to_owned(), |ns| format!("{:.1}", ns / 1e3));
        line(
            text,
            format_args!(
                "{name:<10} {:>12} {rate:>12.0} {:>12} {:>12} {:>12}",
                thousands(*statements),
                us(processor.quantile(0.5)),
                us(latency.quantile(0.5)),
                us(latency.quantile(0.99))
            ),
        );
    }
    line(text, format_args!("{LATENCY}\n"));
}

fn beside(text: &mut String, report: &Report) {
    let switched = &report.switched;
    if let Some(floor) = &switched.floor_ns {
        let floor = with_interval(floor);
        let confidence = 100.0 * FLOOR_CONFIDENCE;
        let what = "noise floor, off beside off again";
        line(
            text,
            format_args!(
                "{what}: {floor} ns ({confidence:.0} %); no price where that leaves out 0"
            ),
        );
    }
    if let Some(slower) = &switched.slower_percent {
        let (value, half) = (-slower.value, slower.half_width());
        line(text, format_args!("throughput while it is on: {value:+.1} ± {half:.1} %"));
    }
    let ms = report.window.as_secs_f64() * 1e3;
    line(text, format_args!("windows of {ms:.0} ms in random order, three to a block"));
    match report.witness {
        Some(witness) => line(
            text,
            format_args!(
                "it was seen to work: {} events in windows that count them, {} in windows that do not",
                thousands(witness.wanted),
                thousands(witness.unwanted)
            ),
        ),
        None => {
            if let Some(shown_by) = report.shown_by {
                line(text, format_args!("{shown_by}"));
            }
        }
    }
    if report.is_stopped && switched.blocks > 0 {
        let why =
            "stopped before its time, while the interval holds for one look at its end: not kept";
        line(text, format_args!("{why}"));
    }
}

fn with_interval(estimate: &Estimate) -> String {
    format!("{:+.0} ± {:.0}", estimate.value, estimate.half_width())
}
