//! The cost as a table.

use std::fmt::Write as _;

use waggle_instrumentation::cost::calibration::{Source, Storage, is_steady};
use waggle_instrumentation::cost::{Calibration, ClassCost, Cost, Span, StatementTime, Total};
use waggle_model::Reading;

use super::super::NOT_SAID;
use super::super::status::mib;

/// Writing to a string cannot fail.
pub(super) fn in_words(cost: &Cost, prices: &Reading<Calibration>) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}: {:.1} statements/s, {:.1} sessions at work, {}\n",
        cost.version,
        cost.statements_per_s,
        cost.running,
        busy(cost.server_cores, cost.server_cores_unknown.as_deref())
    );
    let _ = writeln!(
        text,
        "{:<20} {:>12} {:>13} {:>13} {:>13} {:>11} {:>9}",
        "class", "events/s", "per statement", "ns per event", "ns/statement", "CPUs", "of server"
    );
    for class in &cost.classes {
        let _ = writeln!(text, "  {}", line(class));
    }
    let _ = writeln!(text, "  {:<18} {:>12} {}", "all", "", sum(&cost.total));
    between(&mut text, &cost.total);
    let _ = writeln!(text, "\n{}", source_of(prices));
    let with_events = cost.classes.iter().filter(|class| class.events_per_s > 0.0);
    let with_events = with_events.map(|class| (class.class.as_str(), class.kept));
    reasons(&mut text, &cost.total, cost.statement_time, with_events);
    ways_out(&mut text, cost);
    text
}

/// What the server uses.
pub(super) fn busy(cores: Option<f64>, unknown: Option<&str>) -> String {
    match cores {
        Some(cores) => format!("{cores:.3} CPUs busy"),
        None => format!("CPUs busy: not measured: {}", unknown.unwrap_or_default()),
    }
}

/// The note on how reliable a price is.
pub(super) fn certainty(total: &Total) -> &'static str {
    match (total.is_predictable, total.is_at_least) {
        (true, _) => "",
        (false, true) => "  at least, not predictable",
        (false, false) => "  not predictable",
    }
}

/// The columns of a sum, from `per statement` on.
pub(super) fn sum(total: &Total) -> String {
    let note = certainty(total);
    format!("{:>13} {:>13} {}{note}", "", "", columns(total))
}

/// The last three columns of a class or a sum.
pub(super) fn columns(total: &Total) -> String {
    format!(
        "{:>13} {:>11} {:>9}",
        number(total.ns_per_statement, 1),
        number(total.cores, 4),
        percent(total.share_of_server),
    )
}

/// The interval of a sum, where it has an upper end.
pub(super) fn between(text: &mut String, total: &Total) {
    let Some(Span { low, high, .. }) = total.cores.filter(|_| !total.is_at_least) else { return };
    let share = total.share_of_server.map_or(String::new(), |share| {
        format!(", {:.2} to {:.2} % of the server", share.low * 100.0, share.high * 100.0)
    });
    let _ = writeln!(text, "  between {low:.4} and {high:.4} CPUs{share}");
}

/// Where the prices are from.
pub(super) fn source_of(prices: &Reading<Calibration>) -> String {
    match prices {
        Reading::Value(prices) => {
            let at = prices.at.strftime("%Y-%m-%d");
            format!("prices: calibrated on this host on {at} in {} rounds", prices.rounds)
        }
        Reading::Absent(why) => format!("prices: those of the timer only: {why}"),
    }
}

/// Why a total that has a price is not predictable, where it is not. `classes` are those with events.
pub(super) fn reasons<'a>(
    text: &mut String,
    total: &Total,
    time: StatementTime,
    classes: impl Iterator<Item = (&'a str, Storage)>,
) {
    let classes: Vec<(&str, Storage)> = classes.collect();
    let is_asked = !total.is_predictable && !classes.is_empty();
    let Some(calibrated) = time.calibrated_ns.filter(|_| is_asked) else { return };
    if classes.iter().any(|(class, _)| !is_steady(class, Storage::Sums)) {
        text.push_str(
            "not predictable: wait/synch, whose price depends on how many CPUs share a mutex\n",
        );
    }
    if classes.iter().any(|(_, kept)| *kept == Storage::HistoryLong) {
        text.push_str(
            "not predictable: what is kept in a long history, whose price depends on the caches\n",
        );
    }
    let _ = match time.here_ns {
        _ if time.is_within_reach => Ok(()),
        Some(here) => writeln!(
            text,
            "not predictable: the server takes {:.1} µs of CPU per statement here and took {:.1} µs in the \
             calibration; events of more than twice as long statements cost more",
            here / 1e3,
            calibrated / 1e3
        ),
        None => writeln!(text, "not predictable: how long a statement takes here is not measured"),
    };
}

fn line(class: &ClassCost) -> String {
    let mut notes = String::new();
    if class.events_per_s > 0.0 {
        notes.push_str(certainty(&class.total));
        if class.rest.is_some_and(|rest| rest.source != Source::Class) {
            notes.push_str("  priced like its kind");
        }
    }
    let per_statement =
        class.events_per_statement.map_or("-".to_owned(), |events| format!("{events:.2}"));
    format!(
        "{:<18} {:>12.1} {per_statement:>13} {:>13} {}{notes}",
        class.class,
        class.events_per_s,
        number(class.ns_per_event, 1),
        columns(&class.total),
    )
}

pub(super) fn number(span: Option<Span>, digits: usize) -> String {
    span.map_or("-".to_owned(), |span| format!("{:.digits$}", span.value))
}

fn percent(share: Option<Span>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.2} %", share.value * 100.0))
}

/// What removes it.
fn ways_out(text: &mut String, cost: &Cost) {
    text.push_str(
        "\ndynamic: the above ends when its class is switched off, but for the memory of Performance Schema \
         itself: waggle pfs plan off\n\
         static: only a restart with performance_schema=OFF removes\n  \
         the CPU time of code that asks whether to record: not measured; published figures run \
         from 1 to 15 % of the throughput\n",
    );
    let Some(total) = cost.fixed.memory_bytes_total else {
        let why = cost.fixed.memory_missing.as_deref().unwrap_or(NOT_SAID);
        let _ = writeln!(text, "  memory: not measured: {why}");
        return;
    };
    let kinds: Vec<String> = cost
        .fixed
        .memory_bytes
        .iter()
        .map(|(kind, bytes)| format!("{kind} {:.1}", mib(*bytes)))
        .collect();
    let _ = writeln!(text, "  memory: {:.1} MiB: {}", mib(total), kinds.join(", "));
}
