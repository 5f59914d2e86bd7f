//! A trial in words: a sentence, a table, a picture.

use std::fmt::Write;
use std::time::Duration;

use waggle_model::{DigestName, Server, visible};
use waggle_prove::{ArmSeen, Price, Proof};

use super::digests::ByDigest;
use super::{Moment, Report};

/// Fewer latencies have no quantile.
const LATENCIES_MIN: u64 = 100;
/// Below each table.
pub(super) const LATENCY: &str = "p50 and p99: from the request to the last send of its reply.";
/// Characters of a digest.
const DIGEST: usize = 60;
/// Columns of the picture.
const PICTURE: usize = 48;

pub(super) fn of(report: &Report) -> String {
    let mut text = sentence(report);
    not_in_it(&mut text, report);
    table(&mut text, report);
    picture(&mut text, &report.course);
    if let Some(by_digest) = &report.by_digest {
        digests(&mut text, by_digest);
    }
    beside(&mut text, report);
    text
}

pub(super) fn line(text: &mut String, words: std::fmt::Arguments<'_>) {
    // A text takes whatever is written.
    let _ = text.write_fmt(words);
    text.push('\n');
}

/// How far a trial is.
pub(super) fn progress(after: Duration, limit: Duration, within_ns: u64, proof: &Proof) -> String {
    let seconds = after.as_secs_f64().ceil();
    let known = match &proof.total {
        Some(price) => {
            let left = after.as_secs_f64() * (price.factor_for(within_ns as f64) - 1.0);
            let until = match left > (limit.saturating_sub(after)).as_secs_f64() {
                true => format!("until {} s", limit.as_secs()),
                false => format!("± {within_ns} ns in about {:.0} s", left.max(1.0).ceil()),
            };
            format!("{} ns each; {until}", with_interval(price))
        }
        None => "too few to say anything".to_owned(),
    };
    format!("{seconds} s, {} statements: {known}", thousands(proof.statements()))
}

fn sentence(report: &Report) -> String {
    let statements = thousands(report.proof.statements());
    let seconds = report.length.as_secs_f64();
    let Server { pid, flavour, version, .. } = &report.server;
    let of = format!("pid {pid}, {flavour} {version}; {statements} statements in {seconds:.0} s");
    let (what, base) = match report.is_test() {
        true => ("injected time", "a statement without it"),
        false => ("waggle", "a statement of which nothing is collected"),
    };
    match &report.proof.total {
        Some(price) => format!("{} ({of}).\n", cost(what, price.span(), price.base_ns, base)),
        None => format!("Not measured: too few statements to say anything ({of}).\n"),
    }
}

/// What something costs a server, nanoseconds and their interval beside those of a statement: as much as is known of it.
pub(super) fn cost(what: &str, span: [f64; 3], base_ns: f64, base: &str) -> String {
    let percent = |ns: f64| 100.0 * ns / base_ns;
    let of = format!("of the {:.2} µs of {base}", base_ns / 1e3);
    let (verb, [ns, low, high]) = match span {
        [_, low, high] if low <= 0.0 && high >= 0.0 => {
            return format!(
                "What {what} costs the server cannot be told from nothing: between {low:+.0} and {high:+.0} ns of \
                 processor time per statement, {:+.1} to {:+.1} % {of}",
                percent(low),
                percent(high)
            );
        }
        [ns, low, high] if ns < 0.0 => ("saves", [-ns, -high, -low]),
        _ => ("costs", span),
    };
    format!(
        "{what} {verb} the server {ns:.0} ± {:.0} ns of processor time per statement: {:.1} % ({:.1} to {:.1}) {of}",
        (high - low) / 2.0,
        percent(ns),
        percent(low),
        percent(high)
    )
}

/// What both arms pay, and what the server does not.
fn not_in_it(text: &mut String, report: &Report) {
    let own = report.seen.own_ns();
    let own = own.map_or("not measured".to_owned(), |ns| format!("{ns:.0} ns per statement"));
    let entry = report.entry.map_or("not measured".to_owned(), |(ns, at)| {
        format!("about {ns:.0} ns at each {at} of this host, at receives and context switches not measured")
    });
    line(text, format_args!("Not in that: waggle's own process, {own}."));
    line(
        text,
        format_args!("Not in that: entering its programs, for every statement pays it, {entry}."),
    );
}

fn table(text: &mut String, report: &Report) {
    line(
        text,
        format_args!(
            "\n{:<14} {:>20} {:>7} {:>13} {:>12} {:>12}",
            "COLLECTED", "ADDED, ns", "%", "STATEMENTS", "p50, µs", "p99, µs"
        ),
    );
    let proof = &report.proof;
    for (at, arm) in proof.arms.iter().enumerate() {
        line(text, format_args!("{}", row(&name(at, arm), arm)));
    }
    if proof.steps().count() > 1 {
        let (added, percent) = added(Some(proof.total));
        line(text, format_args!("{:<14} {added:>20} {percent:>7}", "together"));
    }
    line(text, format_args!("{LATENCY}"));
}

/// An arm by what it adds.
fn name(at: usize, arm: &ArmSeen) -> String {
    match (at, arm.collectors.last()) {
        (0, Some(_)) => "all".to_owned(),
        (_, None) => "nothing".to_owned(),
        (_, Some(collector)) => format!("+ {}", collector.name()),
    }
}

fn row(name: &str, arm: &ArmSeen) -> String {
    let (added, percent) = added(arm.step.as_ref().map(|step| step.price));
    let latency = |share| match arm.latency.quantile(share) {
        Some(ns) if arm.statements >= LATENCIES_MIN => format!("{:.1}", ns / 1e3),
        _ => "-".to_owned(),
    };
    let statements = thousands(arm.statements);
    format!(
        "{name:<14} {added:>20} {percent:>7} {statements:>13} {:>12} {:>12}",
        latency(0.5),
        latency(0.99)
    )
}

/// Nanoseconds with the 95 % interval.
fn with_interval(price: &Price) -> String {
    format!("{:+.0} ± {:.0}", price.ns, price.half_width_ns)
}

/// A price and its part of a statement; nothing where there is none to be had.
fn added(price: Option<Option<Price>>) -> (String, String) {
    match price {
        Some(Some(price)) => (with_interval(&price), format!("{:+.1}", price.percent(price.ns))),
        Some(None) => ("not measured".to_owned(), "-".to_owned()),
        None => (String::new(), String::new()),
    }
}

/// The price and its interval as they became known.
fn picture(text: &mut String, course: &[Moment]) {
    let Some(last) = course.last() else { return };
    let reach = 3.0 * last.price.half_width_ns;
    let (low, high) = ((last.price.ns - reach).min(0.0), last.price.ns + reach);
    let column = |ns: f64| {
        let place = ((ns - low) / (high - low) * (PICTURE - 1) as f64).round();
        place.clamp(0.0, (PICTURE - 1) as f64) as usize
    };
    line(text, format_args!("\n   AFTER  ADDED, ns, with the 95 % interval; | is 0"));
    for Moment { after, price } in course {
        let [from, at, to] =
            [price.ns - price.half_width_ns, price.ns, price.ns + price.half_width_ns].map(column);
        let zero = column(0.0);
        let sign = |column: usize| match column {
            _ if column == at => 'o',
            _ if column == zero => '|',
            _ if (from..=to).contains(&column) => '-',
            _ => ' ',
        };
        let picture: String = (0..PICTURE).map(sign).collect();
        let seconds = after.as_secs_f64();
        line(text, format_args!("{seconds:>6.1} s  {picture}  {}", with_interval(price)));
    }
}

/// The busiest digests, each beside itself.
fn digests(text: &mut String, by_digest: &ByDigest) {
    line(
        text,
        format_args!(
            "\n{:>20} {:>7} {:>13} {:>13}  DIGEST",
            "ADDED, ns", "%", "WITHOUT, µs", "STATEMENTS"
        ),
    );
    for (price, names) in &by_digest.rows {
        let (added, percent) = added(Some(price.price));
        let without =
            price.price.map_or("-".to_owned(), |price| format!("{:.2}", price.base_ns / 1e3));
        let statements = thousands(price.statements);
        let digest = digest(names);
        line(
            text,
            format_args!("{added:>20} {percent:>7} {without:>13} {statements:>13}  {digest}"),
        );
    }
    if by_digest.others > 0 {
        let others = thousands(by_digest.others);
        line(text, format_args!("{:>20} {:>7} {:>13} {others:>13}  others", "", "", ""));
    }
    if by_digest.without_room > 0 {
        let without_room = thousands(by_digest.without_room);
        line(
            text,
            format_args!("{without_room} of the others: their texts begin in too many ways"),
        );
    }
}

/// The first of some digests that begin alike, cut to a line.
fn digest(names: &[DigestName]) -> String {
    let Some((first, others)) = names.split_first() else { return "-".to_owned() };
    let text: String = first.text.chars().take(DIGEST).map(visible::visible).collect();
    match others.len() {
        0 => text,
        count => format!("{text} (and at least {count} that begin alike)"),
    }
}

/// What else is to be known.
fn beside(text: &mut String, report: &Report) {
    let proof = &report.proof;
    text.push('\n');
    if let Some(price) = &proof.carried_over {
        line(text, format_args!("carried over to the next statement: {} ns", with_interval(price)));
    }
    let memory = report.seen.rss_bytes.map_or("not measured".to_owned(), |bytes| {
        format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
    });
    line(text, format_args!("memory of waggle: {memory}"));
    let left_out = match report.is_test() {
        true => String::new(),
        false => format!("{} left out by the coin, ", thousands(proof.left_out())),
    };
    let captured = thousands(report.seen.captured);
    line(
        text,
        format_args!("{captured} captured, {left_out}{} lost", report.seen.losses.statements()),
    );
    if let Some(ns) = proof.injected_ns {
        line(text, format_args!("injected: {ns:.0} ns"));
    }
}

pub(super) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn large_numbers_are_read_in_threes() {
        for (count, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(count), text);
        }
    }
}
