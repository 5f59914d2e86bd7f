//! Colours. A colour only repeats what a word or mark already says.

use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Line;

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Colours; without them bold, dim and reversed stay.
    pub colour: bool,
    /// Characters beyond ASCII.
    pub unicode: bool,
}

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(crate) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(crate) const TITLE: Style = Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD);
pub(crate) const SORTED: Style =
    Style::new().add_modifier(Modifier::BOLD.union(Modifier::UNDERLINED));
pub(crate) const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
pub(crate) const WARN: Style = Style::new().fg(Color::Yellow);
pub(crate) const BAR: Style = Style::new().fg(Color::Green);
pub(crate) const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Marks a line as selected. Bars stay as they are: reversed, they would show the opposite.
pub(crate) fn selected(mut line: Line<'static>) -> Line<'static> {
    let is_bar = |style: Style| style == BAR || style.bg.is_some();
    for span in line.spans.iter_mut().filter(|span| !is_bar(span.style)) {
        span.style = span.style.patch(SELECTED);
    }
    line
}

impl Look {
    /// A text without what the terminal cannot show.
    pub(crate) fn text(self, text: String) -> String {
        if self.unicode || text.is_ascii() {
            return text;
        }
        text.chars().map(|c| if c.is_ascii() { c } else { ascii(c) }).collect()
    }

    /// Takes away what the terminal cannot show.
    pub(crate) fn apply(self, buffer: &mut Buffer) {
        if self.colour && self.unicode {
            return;
        }
        for cell in &mut buffer.content {
            if !self.colour {
                cell.set_fg(Color::Reset).set_bg(Color::Reset);
            }
            if !self.unicode && !cell.symbol().is_ascii() {
                let shown = cell.symbol().chars().next().map_or(' ', ascii);
                cell.set_char(shown);
            }
        }
    }
}

/// The nearest ASCII character.
fn ascii(c: char) -> char {
    match c {
        '█' | '▇' => '#',
        '▉' | '▊' | '▋' | '▌' | '▆' => '=',
        '▍' | '▎' | '▏' | '▅' | '▄' => '-',
        '▁' => '_',
        '▂' | '▃' => '.',
        '┃' | '│' => '|',
        '─' => '-',
        '…' => '.',
        'µ' => 'u',
        _ => '?',
    }
}
