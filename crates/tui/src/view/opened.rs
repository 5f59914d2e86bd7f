//! All details of one digest or one session.

mod holder;
mod past;
mod time;

use std::collections::BTreeMap;

use ratatui_core::text::{Line, Span};
use waggle_model::{DigestKey, Sample, TimeClass, WaitsFor, visible};
use waggle_sql::SqlModes;

use super::bars::{bar, sparkline};
use super::look::{BAR, BOLD, DIM, PLAIN, TITLE};
use super::number::{age, count, ms, percent, plain, step};
use super::over_time::OverTime;
use super::sql;
use super::text::{fit, left, right, wrapped};
use crate::state::{
    App, Frame, Measured, Opened, Row, Session, Wait, Watched, kind_name, lower_ns, modes,
    printable,
};
use past::{Past, sums};

/// Columns of the names of numbers.
const NAME_WIDTH: usize = 20;
/// Columns of a number, where there is room.
const NUMBER_WIDTH: usize = 14;
/// From this width on, numbers and distributions stand side by side.
const SIDE_BY_SIDE_FROM: usize = 110;
/// Users that are named.
const USERS_SHOWN: usize = 8;

/// Everything that there is to say of what is open.
pub(crate) fn lines(
    app: &App,
    one: &Watched,
    frame: &Frame,
    opened: &Opened,
    width: usize,
) -> Vec<Line<'static>> {
    match opened {
        Opened::Digest(key) => digest(app, one, frame, key, width),
        Opened::Session(session, end_ns) => {
            let mut lines = self::session(session, app.options.literals, width);
            if *end_ns != frame.end_ns {
                lines.insert(1, Line::styled(fit(&not_now(*end_ns, frame), width), BOLD));
            }
            lines
        }
    }
}

fn head(text: &str) -> Line<'static> {
    Line::styled(text.to_owned(), BOLD)
}

fn digest(
    app: &App,
    one: &Watched,
    frame: &Frame,
    key: &DigestKey,
    width: usize,
) -> Vec<Line<'static>> {
    let row = frame.row(key);
    let name = row.map(|row| row.name.clone()).or_else(|| one.history.name(key));
    let Some(name) = name else {
        return vec![Line::raw("This digest is not kept any more.")];
    };
    let schema = name.schema.as_deref().unwrap_or("none");
    let title = format!("DIGEST {:016x}  {}  database {schema}", key.text, kind_name(name.kind));
    let mut lines = vec![Line::styled(fit(&title, width), TITLE)];
    lines.extend(sql::lines(&name.text, SqlModes::default(), width).into_iter().map(Line::raw));
    if let Some(waits) = row.and_then(|row| row.waits_now.as_deref()) {
        lines.push(Line::default());
        lines.extend(holder::of_waiting_digest(waits, app.options.literals, width));
    }
    let past = Past::of(one, frame, key);
    lines.push(Line::default());
    let numbers_width = width.min(NAME_WIDTH + 2 * NUMBER_WIDTH);
    let numbers = numbers(frame, row, &past, numbers_width);
    let is_wide = width >= SIDE_BY_SIDE_FROM;
    let right_width = if is_wide { width - numbers_width - GAP } else { width };
    let mut distributions = latencies(&past, right_width);
    distributions.push(Line::default());
    distributions.extend(calls_over_time(one, frame, key, right_width));
    let time = time::lines(frame, row, &past, width);
    let blocks = match is_wide {
        true => vec![beside(numbers, distributions, numbers_width + GAP), time],
        false => vec![numbers, time, distributions],
    };
    for block in blocks {
        lines.extend(block);
        lines.push(Line::default());
    }
    lines.extend(flags(row, &past, width));
    lines.extend(who(one, frame, key, width));
    let details = one.details(frame, key);
    let known = details.iter().flatten().filter_map(|it| it.server_digest.as_ref());
    if let Some(server_digest) = known.max_by_key(|it| it.value().is_some()) {
        lines.extend(named("Server's digest", &server_digest.to_string(), width));
    }
    let waits = details.iter().flatten().filter_map(|it| it.wait.as_deref());
    if let Some(longest) = waits.max_by_key(|wait| wait.wait.length_ns) {
        lines.extend(holder::of_digest(longest, app.options.literals, width));
    }
    let slowest = details.iter().flatten().filter_map(|it| it.samples.slowest.as_deref());
    let slowest = slowest.max_by_key(|sample| sample.latency_ns);
    let recent = details.iter().flatten().find_map(|it| it.samples.random.as_deref());
    for (what, sample) in [("Slowest kept", slowest), ("A recent one, by chance", recent)] {
        lines.push(Line::default());
        lines.extend(self::sample(what, sample, app.options.literals, width));
    }
    lines
}

/// Blanks between what stands side by side.
const GAP: usize = 4;

/// Two blocks side by side, the right one from the column `at` on.
fn beside(left: Vec<Line<'static>>, right: Vec<Line<'static>>, at: usize) -> Vec<Line<'static>> {
    // What a line has as its style goes to its pieces, so that it does not reach the other side.
    let pieces = |line: Option<Line<'static>>| -> Vec<Span<'static>> {
        let line = line.unwrap_or_default();
        line.spans.into_iter().map(|span| span.patch_style(line.style)).collect()
    };
    let lines = left.len().max(right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    let line = |_| {
        let mut line = Line::from(pieces(left.next()));
        line.push_span(Span::raw(" ".repeat(at.saturating_sub(line.width()))));
        line.spans.extend(pieces(right.next()));
        line
    };
    (0..lines).map(line).collect()
}

/// The numbers of the shown interval, and those of all that is kept.
fn numbers(frame: &Frame, row: Option<&Row>, past: &Past, width: usize) -> Vec<Line<'static>> {
    let number_width = width.saturating_sub(NAME_WIDTH) / 2;
    let line = |name: &str, now: String, before: String| {
        let (now, before) = (right(&now, number_width), right(&before, number_width));
        Line::raw(left(name, NAME_WIDTH) + &now + &before)
    };
    let kept = age((past.seconds * 1e9) as u64);
    let titles = match number_width {
        NUMBER_WIDTH.. => line("", "this interval".to_owned(), format!("last {kept}")),
        _ => line("", "now".to_owned(), kept),
    };
    let mut lines = vec![titles.style(DIM)];
    let calls = row.map_or(0.0, |row| row.calls as f64);
    let rate = |seconds: f64, n: f64| if seconds > 0.0 { Some(n / seconds) } else { None };
    let of = |field: fn(&Row) -> Measured| row.and_then(|row| field(row).get());
    lines.push(line(
        "calls/s",
        plain(Some(frame.rate(calls))),
        plain(rate(past.seconds, past.calls as f64)),
    ));
    lines.push(line(
        "load",
        plain(row.map_or(Some(0.0), |row| row.load.get())),
        plain(past.load_seconds.and_then(|seconds| rate(past.seconds, seconds))),
    ));
    lines.push(line("avg ms", ms(of(|row| row.avg_ns)), ms(past.per_call(past.time_ns))));
    lines.push(line("p50 ms", ms(of(|row| row.p50_ns)), String::new()));
    lines.push(line("p95 ms", ms(of(|row| row.p95_ns)), String::new()));
    lines.push(line("p99 ms", ms(of(|row| row.p99_ns)), String::new()));
    let max_ns = Some(past.max_ns).filter(|_| past.calls > 0);
    lines.push(line("max ms", ms(of(|row| row.max_ns)), ms(max_ns)));
    let names = ["rows examined/call", "rows sent/call", "rows changed/call", "bytes sent/call"];
    let now = row.map(sums);
    let now = |at: usize| now.and_then(|sums| sums.get(at).copied()?.get());
    let before = |at: usize| past.sums.get(at).copied().and_then(Measured::get);
    let per_call = |sum: Option<f64>| plain(sum.filter(|_| calls > 0.0).map(|sum| sum / calls));
    let past_per_call = |at: usize| before(at).and_then(|sum| past.per_call(sum));
    for (at, name) in names.into_iter().enumerate() {
        lines.push(line(name, per_call(now(at)), plain(past_per_call(at))));
    }
    let lock_now = now(4).filter(|_| calls > 0.0).map(|sum| sum / calls);
    lines.push(line("lock time ms/call", ms(lock_now), ms(past_per_call(4))));
    lines.push(line("errors", count(now(5)), count(before(5))));
    lines.push(line("no index used", count(now(6)), count(before(6))));
    lines
}

/// What is worth a second look.
fn flags(row: Option<&Row>, past: &Past, width: usize) -> Vec<Line<'static>> {
    let mut flags = Vec::new();
    let share = |at: usize| {
        let sum = past.sums.get(at).copied().and_then(Measured::get)?;
        past.per_call(sum).filter(|share| *share > 0.0)
    };
    if let Some(share) = share(6) {
        flags.push(format!("no index, or no good one, in {} of the calls", percent(Some(share))));
    }
    if let Some(share) = share(5) {
        flags.push(format!("{} of the calls end with an error", percent(Some(share))));
    }
    let (examined, sent) = (share(0).unwrap_or(0.0), share(1).unwrap_or(0.0));
    if examined >= 1_000.0 && examined >= 100.0 * (sent + share(2).unwrap_or(0.0)) {
        flags.push("examines more than 100 rows for each one that it sends or changes".to_owned());
    }
    if row.is_none() {
        flags.push("did not end in this interval, or is not kept of it".to_owned());
    }
    if past.unknown > 0 {
        flags.push(format!("not known of {} older intervals", past.unknown));
    }
    let flags = if flags.is_empty() { "none".to_owned() } else { flags.join("; ") };
    named("Flags", &flags, width)
}

/// A name and a text that may take several lines.
fn named(name: &str, text: &str, width: usize) -> Vec<Line<'static>> {
    let room = width.saturating_sub(NAME_WIDTH);
    let lines = wrapped(text, room).into_iter().enumerate();
    let line = |(at, text): (usize, String)| {
        let name = left(if at == 0 { name } else { "" }, NAME_WIDTH);
        Line::from(vec![Span::styled(name, BOLD), Span::raw(text)])
    };
    lines.map(line).collect()
}

/// Users by their calls in all that is kept, and the databases in which the same text ran in the shown interval.
fn who(one: &Watched, frame: &Frame, key: &DigestKey, width: usize) -> Vec<Line<'static>> {
    let mut users: BTreeMap<String, u64> = BTreeMap::new();
    for details in one.details(frame, key).into_iter().flatten() {
        for (user, calls) in &details.users {
            let user = visible::name(&String::from_utf8_lossy(user)).into_owned();
            *users.entry(user).or_default() += calls;
        }
    }
    let mut users: Vec<(String, u64)> = users.into_iter().collect();
    users.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    let beyond = users.len().saturating_sub(USERS_SHOWN);
    let named_users = users.iter().take(USERS_SHOWN);
    let mut shown: Vec<String> =
        named_users.map(|(user, calls)| format!("{user} {calls}")).collect();
    if beyond > 0 {
        shown.push(format!("{beyond} more"));
    }
    let with_text = frame.rows.iter().filter(|row| row.key.text == key.text);
    let databases: Vec<String> = with_text
        .map(|row| {
            let name = row.name.schema.as_deref().unwrap_or("none");
            format!("{name} {}", row.calls)
        })
        .collect();
    let within = |names: Vec<String>, period: &str| match names.is_empty() {
        true => format!("none {period}"),
        false => format!("{} {period}", names.join(", ")),
    };
    let mut lines = named("Calls by user", &within(shown, "(all that is kept)"), width);
    lines.extend(named("Calls by database", &within(databases, "(this interval)"), width));
    lines
}

fn latencies(past: &Past, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![head("Latency")];
    let filled = |n: &u64| *n > 0;
    let (Some(first), Some(last)) =
        (past.latencies.iter().position(filled), past.latencies.iter().rposition(filled))
    else {
        lines.push(Line::styled("no call with a known start", DIM));
        return lines;
    };
    let largest = past.latencies.iter().max().copied().unwrap_or(1).max(1) as f64;
    let bar_width = width.saturating_sub(30).clamp(4, 80);
    for at in first..=last {
        let n = past.latencies.get(at).copied().unwrap_or(0);
        let label = format!("from {}", step(lower_ns(at)));
        lines.push(Line::from(vec![
            Span::raw(left(&label, 13)),
            Span::styled(bar(n as f64 / largest, bar_width), BAR),
            Span::raw(right(&count(Some(n as f64)), 9)),
        ]));
    }
    lines
}

fn calls_over_time(
    one: &Watched,
    frame: &Frame,
    key: &DigestKey,
    width: usize,
) -> Vec<Line<'static>> {
    let over_time = OverTime::of(one, frame, width.saturating_sub(2).clamp(10, 120));
    let rates = over_time.values(|frame| match frame.row(key) {
        Some(row) => Some(frame.rate(row.calls as f64)),
        None => (frame.rows_left_out == 0).then_some(0.0),
    });
    let largest = rates.iter().flatten().fold(0.0, |largest: f64, rate| largest.max(*rate));
    let title = format!("Calls, last {}: at most {}/s", over_time.length(), plain(Some(largest)));
    vec![head(&title), Line::styled(sparkline(&rates), BAR)]
}

fn sample(what: &str, sample: Option<&Sample>, literals: bool, width: usize) -> Vec<Line<'static>> {
    let Some(sample) = sample else {
        return vec![Line::from(vec![Span::styled(format!("{what}: "), BOLD), Span::raw("none")])];
    };
    let lossy = |bytes: &Option<Vec<u8>>| {
        let bytes = bytes.as_deref().unwrap_or(b"-");
        visible::name(&String::from_utf8_lossy(bytes)).into_owned()
    };
    let number = |value: Option<u64>| count(value.map(|value| value as f64));
    let facts = format!(
        "{what}: {} ms, {} rows examined, {} sent, {} changed, error {}, {}@{}, database {}",
        ms(sample.latency_ns.map(|ns| ns as f64)),
        number(sample.rows_examined),
        number(sample.rows_sent),
        number(sample.rows_affected),
        number(sample.error.map(u64::from)),
        lossy(&sample.identity.user),
        lossy(&sample.identity.host),
        lossy(&sample.identity.database),
    );
    let mut lines: Vec<Line<'static>> =
        wrapped(&facts, width).into_iter().map(|line| Line::styled(line, BOLD)).collect();
    if let Some(parts) = &sample.parts {
        let known = TimeClass::ALL.into_iter().filter(|class| parts.get(*class) > 0);
        let time = known.map(|class| {
            let ns = parts.get(class) as f64;
            format!("{} {} ms", class.name(), ms(Some(ns)))
        });
        let time = format!("of it {}", time.collect::<Vec<_>>().join(", "));
        lines.extend(wrapped(&time, width).into_iter().map(Line::raw));
    }
    let Some(text) = &sample.text else {
        lines.push(Line::styled("its text was not captured", DIM));
        return lines;
    };
    let shown = printable(text, sample.settings, literals);
    lines.extend(sql::lines(&shown, modes(sample.settings), width).into_iter().map(Line::raw));
    let cut = sample.text_length.saturating_sub(text.len() as u64);
    if cut > 0 {
        lines.push(Line::styled(format!("… and {cut} bytes more"), DIM));
    }
    if !literals {
        lines.push(Line::styled("literals are not shown; --no-redact shows them", DIM));
    }
    lines
}

fn waits(session: &Session) -> String {
    let whom = WaitsFor::seen(&session.state, session.now.map(|(class, _)| class));
    let whom = whom.unwrap_or(WaitsFor::Unknown).whom();
    match (session.now, session.wait) {
        // It naps, again and again: only the length of the last nap is known.
        (Some((TimeClass::InnodbTicket, _)), Wait::NoLock) => format!("for {whom}"),
        (Some((_, ns)), Wait::NoLock) => format!("for {whom}, for {}", age(ns)),
        (None, Wait::NoLock) => format!("for no lock, but for {whom}"),
        (Some((TimeClass::Cpu, _)), _) => "for nothing: it is on a processor".to_owned(),
        (Some((class, ns)), _) => format!("{}, for {}", class.name(), age(ns)),
        (None, Wait::Lock) => "for a lock; `waggle locks` shows who holds it".to_owned(),
        (None, Wait::Row) => {
            "probably for a row lock; `waggle locks` shows who holds it".to_owned()
        }
        (None, Wait::None) => "no sign of a lock".to_owned(),
    }
}

/// That the session does not run this statement in the interval that is shown.
fn not_now(end_ns: u64, frame: &Frame) -> String {
    let apart = age(end_ns.abs_diff(frame.end_ns));
    let when = if end_ns < frame.end_ns { "before" } else { "after" };
    format!("It does not run this statement now. What follows is as it was {apart} {when}.")
}

fn session(session: &Session, literals: bool, width: usize) -> Vec<Line<'static>> {
    let waits = waits(session);
    let title = format!("SESSION {}", session.connection_id);
    let mut lines = vec![Line::styled(fit(&title, width), TITLE)];
    let age = session.age_ns.map_or("not measured".to_owned(), age);
    let facts: [(&str, &str); 6] = [
        ("User", &session.user),
        ("Host", &session.host),
        ("Database", &session.database),
        ("State", &session.state),
        ("Waits", &waits),
        ("Runs for", &age),
    ];
    for (name, fact) in facts {
        lines.extend(named(name, fact, width));
    }
    lines.extend(holder::of_session(session, literals, width));
    lines.push(Line::default());
    let text = sql::lines(&session.text, session.modes, width);
    lines.extend(text.into_iter().map(|line| Line::styled(line, PLAIN)));
    if session.is_cut {
        lines.push(Line::styled("… and more that was not read", DIM));
    }
    lines
}
