//! The arithmetic of every class.

use std::fmt::Write as _;

use waggle_instrumentation::cost::calibration::{Kept, Source};
use waggle_instrumentation::cost::{Calibration, ClassCost, Cost};
use waggle_model::Reading;

/// Writing to a string cannot fail.
pub(super) fn in_words(cost: &Cost, prices: &Reading<Calibration>) -> String {
    let mut text = String::new();
    for class in cost.classes.iter().filter(|class| class.events_per_s > 0.0) {
        let _ = writeln!(text, "\n{}", class.class);
        events(&mut text, cost, class);
        timer(&mut text, class);
        rest(&mut text, cost, class, prices);
        result(&mut text, cost, class);
    }
    text
}

fn events(text: &mut String, cost: &Cost, class: &ClassCost) {
    let count = class.events_per_s * cost.interval_s;
    let _ = write!(
        text,
        "  events     {count:.0} in {:.2} s = {:.1}/s",
        cost.interval_s, class.events_per_s
    );
    let _ = match class.events_per_statement {
        Some(events) => {
            writeln!(
                text,
                " / {:.1} statements/s = {events:.3} per statement",
                cost.statements_per_s
            )
        }
        None => writeln!(text, "; there were no statements"),
    };
    if let Some(calls) = class.calls_per_s {
        let _ = writeln!(
            text,
            "  calls      at least {calls:.1}/s: its events are rows, and those of one scan are timed once; \
             so many tables were locked (wait/lock/table)"
        );
    }
}

fn timer(text: &mut String, class: &ClassCost) {
    let share = class.timed_share * 100.0;
    let _ = match (&class.timer, &class.timer_unknown) {
        (Some(timer), _) => writeln!(
            text,
            "  timer      2 readings of {} × {} cycles / {} cycles/s = {:.1} ns, for {share:.0} % of the \
             events",
            timer.name, timer.overhead_cycles, timer.cycles_per_s, timer.ns_per_timed_event
        ),
        (None, Some(why)) => writeln!(text, "  timer      not measured: {why}"),
        (None, None) => writeln!(text, "  timer      none: such events are not timed"),
    };
}

fn rest(text: &mut String, cost: &Cost, class: &ClassCost, prices: &Reading<Calibration>) {
    let Some(rest) = class.rest else {
        let why = match prices {
            Reading::Value(_) => "the calibration saw too few events of it, or measured nothing",
            Reading::Absent(why) => why,
        };
        let _ = writeln!(text, "  rest       not measured: {why}");
        return;
    };
    let source = match rest.source {
        Source::Class => "measured for this class",
        Source::Kind => {
            "what was measured of its kind, less the classes that were measured themselves"
        }
    };
    let kept = match class.kept {
        Kept::Sums => "kept in sums only",
        Kept::History => "kept with a history for each thread",
        Kept::HistoryLong => "kept in the long history",
    };
    let _ = writeln!(
        text,
        "  rest       {:.1} ns ({:.1} to {:.1}), {source}, at {:.1} of 1 to 32 sessions, {kept}",
        rest.ns.value, rest.ns.low, rest.ns.high, cost.running
    );
    if !rest.is_predictable {
        let _ = writeln!(
            text,
            "             not predictable: its interval leaves 1/1.5 to 1.5 times the price"
        );
    }
}

fn result(text: &mut String, cost: &Cost, class: &ClassCost) {
    let (Some(price), Some(cores)) = (class.ns_per_event, class.cores) else {
        text.push_str("  price      not measured\n");
        return;
    };
    let bound = if class.is_at_least { "at least " } else { "" };
    let timer = class.timer.as_ref().map_or(0.0, |timer| timer.ns_per_timed_event);
    let rest = class.rest.map_or("not measured".to_owned(), |rest| format!("{:.1}", rest.ns.value));
    let _ = writeln!(
        text,
        "  price      {:.2} × {timer:.1} + {rest} = {bound}{:.1} ns per event",
        class.timed_share, price.value
    );
    let per_s = class.calls_per_s.unwrap_or(class.events_per_s);
    if let Some(ns) = class.ns_per_statement {
        let events = per_s / cost.statements_per_s;
        let _ = writeln!(
            text,
            "  statement  {events:.3} × {:.1} ns = {bound}{:.1} ns",
            price.value, ns.value
        );
    }
    let _ = write!(
        text,
        "  server     {:.1}/s × {:.1} ns = {bound}{:.5} processors",
        per_s, price.value, cores.value
    );
    let _ = match class.share_of_server.zip(cost.server_cores) {
        Some((share, busy)) => writeln!(text, " of {busy:.3} = {:.3} %", share.value * 100.0),
        None => writeln!(text, "; those of the server are not measured"),
    };
}
