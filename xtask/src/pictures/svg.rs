//! Turns a screen into SVG. It reads the output of `tmux capture-pane -e`: text and SGR sequences
//! (ECMA-48 8.3.117) for bold, dim, underlined, reversed and the eight colours.

use std::fmt::Write;

/// Pixels of a character.
const CELL: (f64, f64) = (8.4, 18.0);
const MARGIN: f64 = 12.0;
const BACKGROUND: &str = "#14181d";
const FOREGROUND: &str = "#d7dde4";
/// Black to white, each readable on the background.
const COLOURS: [&str; 8] =
    ["#3b4048", "#ff6b68", "#7fc27f", "#e5c07b", "#61afef", "#c678dd", "#56c8d8", "#d7dde4"];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Style {
    colour: Option<u8>,
    bold: bool,
    dim: bool,
    underlined: bool,
    reversed: bool,
}

/// The picture of a screen with this many columns.
pub(super) fn of_screen(screen: &str, columns: usize) -> String {
    let lines: Vec<&str> = screen.trim_end().lines().collect();
    let width = columns as f64 * CELL.0 + 2.0 * MARGIN;
    let height = lines.len() as f64 * CELL.1 + 2.0 * MARGIN;
    // Writing to a `String` cannot fail.
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" \
         font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14\" \
         fill=\"{FOREGROUND}\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>"
    );
    let mut style = Style::default();
    for (at, line) in lines.iter().enumerate() {
        let y = MARGIN + at as f64 * CELL.1;
        let mut column = 0;
        for (text, style) in spans(line, &mut style) {
            let cells = text.chars().count();
            span(&mut out, &text, style, MARGIN + column as f64 * CELL.0, y, cells);
            column += cells;
        }
    }
    out.push_str("</svg>\n");
    out
}

fn span(out: &mut String, text: &str, style: Style, x: f64, y: f64, cells: usize) {
    let width = cells as f64 * CELL.0;
    let colour = style.colour.and_then(|at| COLOURS.get(usize::from(at)).copied());
    let mut fill = colour.unwrap_or(FOREGROUND);
    if style.reversed {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{fill}\"/>",
            CELL.1
        );
        fill = BACKGROUND;
    }
    if text.trim().is_empty() {
        return;
    }
    let mut attributes = String::new();
    if fill != FOREGROUND {
        let _ = write!(attributes, " fill=\"{fill}\"");
    }
    for (is_so, attribute) in [
        (style.bold, " font-weight=\"bold\""),
        (style.dim, " opacity=\"0.65\""),
        (style.underlined, " text-decoration=\"underline\""),
    ] {
        attributes.push_str(if is_so { attribute } else { "" });
    }
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{:.1}\" xml:space=\"preserve\" textLength=\"{width:.1}\" \
         lengthAdjust=\"spacingAndGlyphs\"{attributes}>{escaped}</text>",
        y + CELL.1 * 0.76
    );
}

/// The pieces of a line, each with its style. A style goes on into the next line.
fn spans(line: &str, style: &mut Style) -> Vec<(String, Style)> {
    let mut spans: Vec<(String, Style)> = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("\x1b[") {
        let (text, sequence) = rest.split_at(at);
        spans.push((text.to_owned(), *style));
        let Some(end) = sequence.find('m') else { break };
        change(style, sequence.get(2..end).unwrap_or_default());
        rest = sequence.get(end + 1..).unwrap_or_default();
    }
    spans.push((rest.to_owned(), *style));
    spans.retain(|(text, _)| !text.is_empty());
    spans
}

fn change(style: &mut Style, parameters: &str) {
    let mut numbers = parameters.split(';').map(|number| number.parse().unwrap_or(0_u8));
    while let Some(number) = numbers.next() {
        match number {
            0 => *style = Style::default(),
            1 => style.bold = true,
            2 => style.dim = true,
            4 => style.underlined = true,
            7 => style.reversed = true,
            22 => (style.bold, style.dim) = (false, false),
            24 => style.underlined = false,
            27 => style.reversed = false,
            30..=37 => style.colour = Some(number - 30),
            // 38 ; 5 ; n: a colour by its number.
            38 => style.colour = numbers.nth(1),
            39 => style.colour = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_go_on_until_they_are_changed() {
        let mut style = Style::default();
        let first = spans("a\x1b[1;38;5;2mb\x1b[39mc", &mut style);
        let green = Style { colour: Some(2), bold: true, ..Style::default() };
        let bold = Style { bold: true, ..Style::default() };
        assert_eq!(
            first,
            [("a".into(), Style::default()), ("b".into(), green), ("c".into(), bold)]
        );
        assert_eq!(spans("d\x1b[0m", &mut style), [("d".into(), bold)]);
        assert_eq!(style, Style::default());
    }

    #[test]
    fn text_is_escaped() {
        let picture = of_screen("a < b & c > d\n", 20);
        assert!(picture.contains("a &lt; b &amp; c &gt; d</text>"), "{picture}");
    }
}
