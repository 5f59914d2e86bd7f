//! What stands in the picture: texts that are as short as their place, and that nobody takes for a part of the drawing.

use waggle_model::visible::visible;
use waggle_profile::{Counts, Flame, Frame, Kind, Label};

use crate::lacking::plural;
use crate::text::cut;

/// Longest name of a function, in letters; templates have much longer ones.
const NAME_MAX: usize = 300;

/// A text in XML, on one line: it ends neither its element nor its attribute, and holds only what can be seen and what
/// XML allows (<https://www.w3.org/TR/xml/#charsets>: no U+FFFE and no U+FFFF).
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().map(visible) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

/// The begin of a text that fits into so many places; empty where next to nothing does. What is not ASCII may take two.
pub(super) fn fitted(text: &str, places: usize) -> String {
    const FEWEST: usize = 3;
    let width = |c: char| if c.is_ascii() { 1 } else { 2 };
    if places < FEWEST {
        return String::new();
    }
    if text.chars().map(width).sum::<usize>() <= places {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += width(*c);
        used <= places
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// What is written on a frame where there is room: a function without its arguments, a digest with its id.
pub(super) fn on_frame(flame: &Flame, frame: &Frame, label: &Label, counts: Counts) -> String {
    match label.kind {
        Kind::All => format!("{}   {}", label.name, amount(frame.samples, counts)),
        Kind::Server => format!("{}   {}", label.name, percent(flame.share(frame.samples))),
        Kind::Digest => format!("{}   {}", label.name, label.note),
        Kind::Program | Kind::Library | Kind::Kernel => without_arguments(&label.name).to_owned(),
        _ => label.name.to_string(),
    }
}

pub(super) fn without_arguments(name: &str) -> &str {
    let begins = |(at, _): &(usize, &str)| {
        let (before, after) = name.split_at(*at);
        // `(anonymous namespace)::` and `operator()` are parts of a name.
        !before.is_empty() && !after.starts_with("(anon") && !before.ends_with("operator")
    };
    match name.match_indices('(').find(begins) {
        Some((at, _)) => name[..at].trim_end(),
        None => name,
    }
}

/// What a frame says when one points at it, in lines.
pub(super) fn pointed_at(flame: &Flame, frame: &Frame, label: &Label, counts: Counts) -> String {
    let share = |samples: u64| percent(flame.share(samples));
    let mut lines = vec![escaped(&cut(&label.name, NAME_MAX))];
    let note = escaped(&label.note);
    match label.kind {
        Kind::Digest => lines.push(format!("digest {note}")),
        _ if note.is_empty() => {}
        _ => lines.push(note),
    }
    let itself = match frame.itself {
        0 => String::new(),
        all if all == frame.samples => String::new(),
        itself => format!("; itself {}", share(itself)),
    };
    lines.push(format!("{}, {}{itself}", amount(frame.samples, counts), share(frame.samples)));
    lines.join("\n")
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// So many samples, or so much time.
pub(super) fn amount(count: u64, counts: Counts) -> String {
    match (counts, count as f64) {
        (Counts::Ticks, _) => plural(count, "sample"),
        (Counts::Waits, us) if us < 1e3 => format!("{us} µs"),
        (Counts::Waits, us) if us < 1e6 => format!("{} ms", figures(us / 1e3)),
        (Counts::Waits, us) => format!("{} s", figures(us / 1e6)),
    }
}

/// A number with three figures.
fn figures(number: f64) -> String {
    let decimals = if number < 10.0 { 2 } else { usize::from(number < 100.0) };
    format!("{number:.decimals$}")
}
