//! Colours. They repeat what words and marks say; nothing is said by a colour alone.

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
    for span in line.spans.iter_mut().filter(|span| span.style != BAR) {
        span.style = span.style.patch(SELECTED);
    }
    line
}

impl Look {
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
