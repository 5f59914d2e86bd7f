//! Prints the arithmetic of every class.

use std::fmt::Write as _;

use waggle_instrumentation::cost::calibration::{RestAt, SESSIONS, Source, Storage};
use waggle_instrumentation::cost::{Calibration, ClassCost, Cost, Span};
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
    total(&mut text, cost);
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
        (None, Some(why)) => match class.timer_calibrated_ns {
            Some(ns) => writeln!(
                text,
                "  timer      2 readings in the calibration = {ns:.1} ns, for {share:.0} % of the events: {why}"
            ),
            None => writeln!(text, "  timer      not measured: {why}"),
        },
        (None, None) => writeln!(text, "  timer      none: such events are not timed"),
    };
}

fn rest(text: &mut String, cost: &Cost, class: &ClassCost, prices: &Reading<Calibration>) {
    let (rest, prices) = match (class.rest, prices) {
        (Some(rest), Reading::Value(prices)) => (rest, prices),
        (_, prices) => {
            let why = prices.why().unwrap_or("the calibration saw too few events of it");
            let _ = writeln!(text, "  rest       not measured: {why}");
            return;
        }
    };
    let kept = match class.kept {
        Storage::Sums => "kept in sums only",
        Storage::History => "kept with a history for each thread",
        Storage::HistoryLong => "kept in the long history",
    };
    for at in SESSIONS.iter().filter_map(|many| prices.rest_at(&class.class, class.kept, *many)) {
        rest_at(text, &at);
    }
    let _ = writeln!(
        text,
        "  rest       {}, {kept}, at {:.1} sessions on the line between these by their logarithm",
        in_ns(rest.ns),
        cost.running
    );
}

/// The price at one of the measured numbers of sessions.
fn rest_at(text: &mut String, at: &RestAt) {
    let one = &at.measured;
    let source = match at.source {
        Source::Class => "measured for this class",
        Source::Others => "its kind, less the classes that were measured closely",
        Source::Kind => {
            "its kind: what is left beside the classes that were measured closely is too little"
        }
    };
    let timer = one.timer_ns.map_or(String::new(), |timer| {
        format!(" - {:.3} timed × {timer:.1}", one.timed_per_statement)
    });
    let extra = match at.extra_ns == Span::ZERO {
        true => String::new(),
        false => format!(" + {:.1} to keep it", at.extra_ns.value),
    };
    let _ = writeln!(
        text,
        "  {:>2} sessions ({:.1}{timer}) ns / {:.3} events{extra} = {}: {source}",
        one.sessions,
        one.added_ns.value,
        one.events_per_statement,
        in_ns(at.ns),
    );
}

fn in_ns(Span { low, value, high }: Span) -> String {
    format!("{value:.1} ns ({low:.1} to {high:.1})")
}

fn result(text: &mut String, cost: &Cost, class: &ClassCost) {
    let (Some(price), Some(cores)) = (class.ns_per_event, class.total.cores) else {
        text.push_str("  price      not measured\n");
        return;
    };
    let bound = if class.total.is_at_least { "at least " } else { "" };
    let timer = class.timer.as_ref().map(|timer| timer.ns_per_timed_event);
    let timer = timer.or(class.timer_calibrated_ns).unwrap_or(0.0);
    let rest = class.rest.map_or("not measured".to_owned(), |rest| format!("{:.1}", rest.ns.value));
    let _ = writeln!(
        text,
        "  price      {:.2} × {timer:.1} + {rest} = {bound}{:.1} ns per event",
        class.timed_share, price.value
    );
    let per_s = class.calls_per_s.unwrap_or(class.events_per_s);
    if let Some(ns) = class.total.ns_per_statement {
        let events = per_s / cost.statements_per_s;
        let _ = writeln!(
            text,
            "  statement  {events:.3} × {:.1} ns = {bound}{:.1} ns",
            price.value, ns.value
        );
    }
    let _ = write!(
        text,
        "  server     {:.1}/s × {:.1} ns = {bound}{:.5} CPUs",
        per_s, price.value, cores.value
    );
    let _ = match class.total.share_of_server.zip(cost.server_cores) {
        Some((share, busy)) => writeln!(text, " of {busy:.3} = {:.3} %", share.value * 100.0),
        None => writeln!(text, "; those of the server are not measured"),
    };
}

fn total(text: &mut String, cost: &Cost) {
    let Some(ns) = cost.total.ns_per_statement else { return };
    let _ = writeln!(
        text,
        "\nall\n  statement  {}: the sum of the above, with its ends; the interval of most rests is wider by a fifth of it \
         on both sides than what was measured, since it differs from load to load",
        in_ns(ns)
    );
}
