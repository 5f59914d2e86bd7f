//! A flame graph as one SVG: a picture that any viewer shows, with a small script for browsers. It needs nothing from
//! elsewhere.

mod look;
#[cfg(test)]
mod tests;
mod words;

use std::collections::HashSet;
use std::fmt::Write;

use jiff::Timestamp;
use waggle_model::Loss;
use waggle_profile::{Chain, Counts, Flame, Frame, Kind};

use super::Report;
use crate::lacking::plural;
use crate::text::cut;
use words::{amount, escaped, fitted, on_frame, percent, pointed_at};

/// Width of the picture, in its own units.
const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 16.0;
/// Width of the frames.
const WHOLE: f64 = WIDTH - 2.0 * MARGIN;
/// From one row to the next.
const ROW: f64 = 19.0;
const FRAME_HEIGHT: f64 = 18.0;
/// Where the legend begins, and its rows.
const LEGEND_TOP: f64 = 78.0;
const LEGEND_ROW: f64 = 20.0;
/// Where letters stand in a frame: from its left and from its upper end.
const LETTERS: (f64, f64) = (4.0, 13.0);
/// Width of a letter on a frame: no font of the list is wider.
const CELL: f64 = 6.7;
/// The same beside the frames, on average.
const WORDS_CELL: f64 = 6.6;
/// A frame whose share is smaller is not drawn: about the width of a line.
const NARROWEST: f64 = 0.001;
/// Most servers that are named.
const SERVERS_MAX: usize = 3;
/// Longest version of a server, in letters.
const VERSION_MAX: usize = 40;

const SCRIPT: &str = include_str!("flame.js");
/// What fills frames that stand for what is not known.
const HATCH: &str = "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
                     patternTransform=\"rotate(45)\"><rect class=\"hatch0\" width=\"6\" height=\"6\"/>\
                     <rect class=\"hatch1\" width=\"2\" height=\"6\"/></pattern></defs>";

/// The picture of a profile.
pub(super) fn of(report: &Report) -> String {
    let flame = Flame::of(&report.profile, NARROWEST);
    drawn(&flame, report.profile.counts, &head(report))
}

/// What stands above the frames.
struct Head {
    title: &'static str,
    lines: [String; 2],
}

fn head(report: &Report) -> Head {
    let named = report.servers.iter().take(SERVERS_MAX).map(|server| {
        format!("pid {}: {} {}", server.pid, server.flavour, cut(&server.version, VERSION_MAX))
    });
    let mut what: Vec<String> = named.collect();
    if let Some(more) = report.servers.len().checked_sub(SERVERS_MAX).filter(|more| *more > 0) {
        what.push(format!("{more} more"));
    }
    let begin = Timestamp::from_nanosecond(i128::from(report.begin_ns)).unwrap_or_default();
    what.push(begin.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    what.extend(report.only.map(|digest| format!("only digest {digest:016x}")));
    let profile = &report.profile;
    let samples = profile.samples();
    let length = report.length.as_secs_f64();
    what.push(match report.is_off_cpu {
        true => format!("{} of waits in {length:.1} s", amount(samples, Counts::Waits)),
        false => {
            let hz = report.per_second;
            format!("{} in {length:.1} s at {hz} Hz", plural(samples, "sample"))
        }
    });
    let share = |samples: u64| percent(report.share(samples));
    let unknown = profile.with_chain(Chain::Broken) + profile.with_chain(Chain::Cut);
    let lost = plural(report.losses.get(Loss::ProfileSample), "sample");
    let mut how = vec![format!("callers unknown {}", share(unknown)), format!("lost {lost}")];
    if profile.left_out > 0 {
        how.push(format!("no room for {}", profile.left_out));
    }
    if !report.nameless.is_empty() {
        how.push("some names could not be read".to_owned());
    }
    let title = match report.is_off_cpu {
        true => "waggle profile: time off the processor",
        false => "waggle profile: processor time",
    };
    Head { title, lines: [what, how].map(|parts| parts.join("  ·  ")) }
}

fn drawn(flame: &Flame, counts: Counts, head: &Head) -> String {
    let legend = Legend::of(flame);
    let top = LEGEND_TOP + legend.rows as f64 * LEGEND_ROW + 24.0;
    let height = top + flame.rows() as f64 * ROW + 2.0 * MARGIN + 8.0;
    let mut out = String::new();
    line(
        &mut out,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\" xml:space=\"preserve\">\n<title>{}</title>",
            escaped(head.title)
        ),
    );
    line(&mut out, format_args!("<style><![CDATA[\n{}]]></style>", look::style_sheet()));
    line(&mut out, format_args!("{HATCH}"));
    line(&mut out, format_args!("<rect class=\"ground\" width=\"100%\" height=\"100%\"/>"));
    text(&mut out, "head", MARGIN, 30.0, head.title);
    for (y, words) in [52.0, 70.0].into_iter().zip(&head.lines) {
        text(&mut out, "line", MARGIN, y, words);
    }
    legend.draw(&mut out);
    text(&mut out, "told", MARGIN, top - 9.0, how_to_read(flame, counts));
    frames(&mut out, flame, counts, top);
    let narrow = match flame.narrow {
        0 => String::new(),
        count => {
            format!("{} narrower than {} not shown", plural(count, "frame"), percent(NARROWEST))
        }
    };
    text(&mut out, "line", MARGIN, height - MARGIN, &narrow);
    line(&mut out, format_args!("<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>"));
    out
}

fn how_to_read(flame: &Flame, counts: Counts) -> &'static str {
    match counts {
        _ if flame.samples == 0 => "There are no samples.",
        Counts::Ticks => {
            "Wide is much time, with all that a function calls, which is below it. Percentages of colours are SELF. \
             From left to right is by name."
        }
        Counts::Waits => {
            "Wide is a long wait, with all that a function calls, which is below it; at the end is why. From left to \
             right is by name."
        }
    }
}

/// What the colours say, and how many of the samples were in each itself.
struct Legend {
    /// The class of a colour, its place and what it says.
    entries: Vec<(&'static str, f64, f64, String)>,
    rows: usize,
}

impl Legend {
    const SWATCH: f64 = 12.0;
    const NAMES: [(Kind, &'static str); 5] = [
        (Kind::Program, "program of the server"),
        (Kind::Library, "library"),
        (Kind::Kernel, "kernel"),
        (Kind::Nameless, "function without a name"),
        (Kind::Gap, "callers unknown"),
    ];

    fn of(flame: &Flame) -> Legend {
        let labels = flame.frames.iter().filter_map(|frame| flame.labels.get(frame.label));
        let drawn: HashSet<Kind> = labels.map(|label| label.kind).collect();
        let waits = flame.innermost.iter().filter_map(|(kind, _)| match kind {
            Kind::Wait(class) => Some((*kind, class.name())),
            _ => None,
        });
        let mut legend = Legend { entries: Vec::new(), rows: 1 };
        let mut x = MARGIN;
        let kinds = Legend::NAMES.into_iter().chain(waits);
        for (kind, name) in kinds.filter(|(kind, _)| drawn.contains(kind)) {
            let itself = flame.innermost.iter().find(|(one, _)| *one == kind);
            let share = itself.map(|(_, samples)| format!("  {}", percent(flame.share(*samples))));
            let words = format!("{name}{}", share.unwrap_or_default());
            let width = Legend::SWATCH + 6.0 + words.chars().count() as f64 * WORDS_CELL + 16.0;
            if x + width > WIDTH {
                (x, legend.rows) = (MARGIN, legend.rows + 1);
            }
            let y = LEGEND_TOP + (legend.rows - 1) as f64 * LEGEND_ROW;
            legend.entries.push((look::class(kind, ""), x, y, words));
            x += width;
        }
        legend
    }

    fn draw(&self, out: &mut String) {
        for (class, x, y, words) in &self.entries {
            let (side, top) = (Legend::SWATCH, y + 4.0);
            line(
                out,
                format_args!(
                    "<g class=\"{class}\"><rect x=\"{x:.1}\" y=\"{top}\" width=\"{side}\" \
                     height=\"{side}\" rx=\"2\"/></g>"
                ),
            );
            text(out, "line", x + side + 6.0, top + 10.0, words);
        }
    }
}

fn frames(out: &mut String, flame: &Flame, counts: Counts, top: f64) {
    line(
        out,
        format_args!(
            "<g class=\"frames\" data-left=\"{MARGIN}\" data-width=\"{WHOLE}\" data-cell=\"{CELL}\">"
        ),
    );
    for frame in &flame.frames {
        self::frame(out, flame, frame, counts, top);
    }
    line(out, format_args!("</g>"));
}

/// A frame with its name where it fits. The script has the whole name from an attribute where neither the picture nor the
/// title tells it.
fn frame(out: &mut String, flame: &Flame, frame: &Frame, counts: Counts, top: f64) {
    let Some(label) = flame.labels.get(frame.label) else { return };
    let (x, width) = (MARGIN + flame.x(frame) * WHOLE, flame.width(frame) * WHOLE);
    let y = top + frame.depth as f64 * ROW;
    let whole = on_frame(flame, frame, label, counts);
    let places = ((width - 2.0 * LETTERS.0) / CELL).max(0.0) as usize;
    let shown = fitted(&whole, places);
    let is_told = shown == whole || (whole == *label.name && shown.is_empty());
    let class = look::class(label.kind, &label.name);
    let attribute =
        if is_told { String::new() } else { format!(" data-label=\"{}\"", escaped(&whole)) };
    let title = pointed_at(flame, frame, label, counts);
    // A text takes whatever is written.
    let _ = write!(
        out,
        "<g class=\"{class}\"{attribute}><title>{title}</title>\
         <rect x=\"{x:.3}\" y=\"{y}\" width=\"{width:.3}\" height=\"{FRAME_HEIGHT}\"/>"
    );
    if !shown.is_empty() {
        let (x, y) = (x + LETTERS.0, y + LETTERS.1);
        let _ = write!(out, "<text x=\"{x:.1}\" y=\"{y}\">{}</text>", escaped(&shown));
    }
    line(out, format_args!("</g>"));
}

fn text(out: &mut String, class: &str, x: f64, y: f64, words: &str) {
    let words = escaped(words);
    line(out, format_args!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y}\">{words}</text>"));
}

fn line(out: &mut String, words: std::fmt::Arguments<'_>) {
    // A text takes whatever is written.
    let _ = out.write_fmt(words);
    out.push('\n');
}
