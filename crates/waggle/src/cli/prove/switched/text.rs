//! A trial in windows, in words: a sentence, a table, and what else is to be known.

use std::time::Duration;

use waggle_model::Server;
use waggle_prove::{Blocks, Sum, Switched, holds};
use waggle_stats::Estimate;

use super::super::text::{LATENCY, line, thousands};
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
    let seconds = report.length.as_secs_f64();
    let of =
        format!("pid {pid}, {flavour} {version}; {} blocks in {seconds:.0} s", switched.blocks);
    let found = switched.added_ns.as_ref().zip(switched.base_ns);
    let (added, base_ns) = match (why_not(report), found) {
        (Some(why), _) => return format!("Not measured: {why} ({of}).\n"),
        (None, None) => {
            return format!("Not measured: too few statements to say anything ({of}).\n");
        }
        (None, Some(found)) => found,
    };
    let base = format!("the {:.2} µs that a statement takes {without}", base_ns / 1e3);
    let percent = |ns: f64| (100.0 * ns / base_ns).abs();
    if holds(added, 0.0) {
        let added_words = with_interval(added);
        let most = (100.0 * added.high / base_ns).max(0.0);
        return format!(
            "No cost of `{what}` is seen: {added_words} ns of processor time per statement, at most {most:.1} % of {base} \
             ({of}){}.\n",
            beside_it(switched)
        );
    }
    let (verb, low, high) = match added.value < 0.0 {
        true => ("saves", added.high, added.low),
        false => ("costs", added.low, added.high),
    };
    format!(
        "`{what}` {verb} the server {:.0} ± {:.0} ns of processor time per statement: {:.1} % ({:.1} to {:.1}) of {base} ({of}).\n",
        added.value.abs(),
        added.half_width(),
        percent(added.value),
        percent(low),
        percent(high)
    )
}

/// Why there is no price.
fn why_not(report: &Report) -> Option<String> {
    let Report { switched, what, .. } = report;
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
    switched.is_unsound.then(|| {
        "the windows in which it is off differ from each other, so do not trust these figures; try again, for longer".to_owned()
    })
}

/// What the throughput says where the processor time says nothing.
fn beside_it(switched: &Switched) -> String {
    match &switched.slower_percent {
        Some(slower) if slower.low > 0.0 => {
            format!("; but {:.1} % fewer statements came while it was on", slower.value)
        }
        _ => String::new(),
    }
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
        line(text, format_args!("noise floor, off beside off again: {floor} ns"));
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
    if let Some(what) = report.gave_up {
        line(
            text,
            format_args!(
                "ended early: {what} became worse than --give-up allows; it was undone at once"
            ),
        );
    }
}

fn with_interval(estimate: &Estimate) -> String {
    format!("{:+.0} ± {:.0}", estimate.value, estimate.half_width())
}
