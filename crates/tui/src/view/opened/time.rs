//! Where the time of a digest goes, and what its statements use, per call.

use ratatui_core::text::{Line, Span};
use waggle_model::{AfterReply, TimeClass, Usage};

use super::past::Past;
use super::{head, named};
use crate::state::{Frame, Row};
use crate::view::classes;
use crate::view::look::DIM;
use crate::view::number::{age, ms, percent, plain};
use crate::view::text::{left, right};

/// Columns of the share.
const SHARE_WIDTH: usize = 7;
/// Columns of the largest bar.
const BAR_WIDTH_MAX: usize = 40;
/// From this width on, names and numbers have all the room that they need.
const ROOMY_FROM: usize = 62;

/// Widths of the columns.
struct Columns {
    name: usize,
    number: usize,
    bar: usize,
}

impl Columns {
    fn of(width: usize) -> Columns {
        let name = if width >= ROOMY_FROM { 22 } else { 16 };
        let number = (width.saturating_sub(name + SHARE_WIDTH) / 2).min(14);
        let used = name + 2 * number + SHARE_WIDTH + 1;
        Columns { name, number, bar: width.saturating_sub(used).min(BAR_WIDTH_MAX) }
    }

    /// A name, the number of this interval, and the one of all that is kept.
    fn line(&self, name: &str, now: &str, before: &str) -> Vec<Span<'static>> {
        let numbers = right(now, self.number) + &right(before, self.number);
        vec![Span::raw(left(name, self.name)), Span::raw(numbers)]
    }
}

/// The share of each class; `None` if it was not measured, or there is no time.
type Shares = Option<[f64; TimeClass::ALL.len()]>;

fn shares(sums: Option<[f64; TimeClass::ALL.len()]>) -> Shares {
    let sums = sums?;
    let all: f64 = sums.iter().sum();
    (all > 0.0).then(|| sums.map(|sum| sum / all))
}

/// The block of an opened digest.
pub(super) fn lines(
    frame: &Frame,
    row: Option<&Row>,
    past: &Past,
    width: usize,
) -> Vec<Line<'static>> {
    let now = row.and_then(Row::parts).map(|by| TimeClass::ALL.map(|class| by.get(class)));
    let (now, before) = (shares(now), shares(past.parts));
    if now.is_none() && before.is_none() {
        let has_ended = row.is_some_and(|row| row.calls > 0) || past.calls > 0;
        let why = match (&*frame.spent_absent, has_ended) {
            ("", true) => "of some calls it is not known",
            ("", false) => "no call has ended",
            (why, _) => why,
        };
        return named("Where time goes", &format!("not measured: {why}"), width);
    }
    let columns = Columns::of(width);
    let kept = age((past.seconds * 1e9) as u64);
    let (interval, kept) = match columns.number {
        14.. => ("this interval", format!("last {kept}")),
        _ => ("now", kept),
    };
    let mut titles = columns.line("ms per call", interval, &kept);
    titles.push(Span::raw(right("share", SHARE_WIDTH)));
    let mut lines = vec![head("Where the time goes"), Line::from(titles).style(DIM)];
    let now_avg = row.and_then(|row| row.avg_ns.get());
    let before_avg = past.per_call(past.time_ns);
    for class in TimeClass::ALL {
        let of = |shares: Shares| shares.and_then(|shares| shares.get(class as usize).copied());
        let share = of(before).or(of(now)).unwrap_or(0.0);
        if share > 0.0 || of(now).is_some_and(|share| share > 0.0) {
            let time = |share: Option<f64>, avg: Option<f64>| {
                ms(share.zip(avg).map(|(share, avg)| share * avg))
            };
            let times = (time(of(now), now_avg), time(of(before), before_avg));
            lines.push(class_line(&columns, class, &times, share));
        }
    }
    let known = |shares: Shares, avg: Option<f64>| ms(avg.filter(|_| shares.is_some()));
    let mut sum = columns.line("  sum", &known(now, now_avg), &known(before, before_avg));
    sum.push(Span::raw(right("100%", SHARE_WIDTH)));
    lines.push(Line::from(sum));
    lines.push(Line::default());
    lines.extend(resources(&columns, row, past));
    lines
}

fn class_line(
    columns: &Columns,
    class: TimeClass,
    (now, before): &(String, String),
    share: f64,
) -> Line<'static> {
    let mut spans = vec![Span::styled(classes::letter(class).to_string(), classes::style(class))];
    let name = format!(" {}", class.name());
    let narrower = Columns { name: columns.name - 1, ..*columns };
    spans.extend(narrower.line(&name, now, before));
    spans.push(Span::raw(right(&percent(Some(share)), SHARE_WIDTH) + " "));
    let letters = (share * columns.bar as f64).round() as usize;
    let bar = classes::letter(class).to_string().repeat(letters);
    spans.push(Span::styled(bar, classes::style(class)));
    Line::from(spans)
}

/// What is used beside the latency, and the rest of what was counted.
fn resources(columns: &Columns, row: Option<&Row>, past: &Past) -> Vec<Line<'static>> {
    type Of = fn(&Usage) -> u64;
    let spent = row.and_then(|row| row.spent.as_deref());
    let now_usage = spent.and_then(|it| it.usage);
    let now_calls = row.map_or(0.0, |row| row.calls as f64);
    let now = |of: Of| now_usage.filter(|_| now_calls > 0.0).map(|it| of(&it) as f64 / now_calls);
    let before = |of: Of| past.usage.and_then(|it| past.per_call(of(&it) as f64));
    let told = |after: AfterReply| after.get().map(|ns| ns as f64 / after.statements as f64);
    let after_now = spent.and_then(|it| told(it.after_reply));
    let line =
        |name: &str, now: String, before: String| Line::from(columns.line(name, &now, &before));
    let queue: Of = |it| it.queue_before_start_ns;
    let mut lines = vec![
        Line::styled("Beside it, per call", DIM),
        line("queue before start ms", ms(now(queue)), ms(before(queue))),
        line("CPU after reply ms", ms(after_now), ms(told(past.after_reply))),
    ];
    let kib = |bytes: Option<f64>| plain(bytes.map(|bytes| bytes / 1024.0));
    let bytes: [(&str, Of); 2] =
        [("KiB from disk", |it| it.read_bytes), ("KiB to disk", |it| it.written_bytes)];
    lines.extend(bytes.map(|(name, of)| line(name, kib(now(of)), kib(before(of)))));
    let counts: [(&str, Of); 4] = [
        ("faults from disk", |it| it.major_faults),
        ("faults in memory", |it| it.minor_faults),
        ("switches to wait", |it| it.voluntary_switches),
        ("switches by force", |it| it.involuntary_switches),
    ];
    lines.extend(counts.map(|(name, of)| line(name, plain(now(of)), plain(before(of)))));
    lines
}
