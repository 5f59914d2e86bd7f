//! Where time went: letters, colours and bars. A letter says all that a colour does.

use ratatui_core::style::{Color, Style};
use ratatui_core::text::Span;
use waggle_model::TimeClass;

use super::look::{DIM, PLAIN};
use crate::state::ByClass;

/// What stands for time that no class has: the statement still runs, and tells it at its end.
pub(crate) const NOT_TOLD: char = '.';
/// The same in words.
pub(crate) const NOT_TOLD_NAME: &str = "not told yet";

/// A part of a bar.
pub(crate) struct Part {
    pub(crate) letter: char,
    pub(crate) name: &'static str,
    pub(crate) style: Style,
    pub(crate) amount: f64,
}

/// The letter of a class.
pub(crate) fn letter(class: TimeClass) -> char {
    match class {
        TimeClass::Cpu => 'C',
        TimeClass::RunQueue => 'Q',
        TimeClass::Stopped => 'H',
        TimeClass::DiskRead => 'R',
        TimeClass::DiskWrite => 'W',
        TimeClass::Sync => 'S',
        TimeClass::Commit => 'G',
        TimeClass::Parked => 'P',
        TimeClass::NetworkRead => 'I',
        TimeClass::NetworkWrite => 'O',
        TimeClass::RowLock => 'L',
        TimeClass::MetadataLock => 'M',
        TimeClass::TableLock => 'T',
        TimeClass::UserLock => 'U',
        TimeClass::Sleep => 'Z',
        TimeClass::InnodbTicket => 'E',
        TimeClass::Latch => 'X',
        TimeClass::Other => '?',
        TimeClass::BeforeAttach => 'B',
    }
}

const BLACK: u8 = 16;
const WHITE: u8 = 231;

/// The colour of a class and that of a letter on it, of the 256 that nearly every terminal has. They are those of
/// the page, which gives eight groups of classes a hue each; the comments have its exact ones.
fn colours(class: TimeClass) -> (u8, u8) {
    match class {
        TimeClass::Cpu => (28, WHITE),                             // #1f7f1f
        TimeClass::RunQueue | TimeClass::Stopped => (221, BLACK),  // #f7da59
        TimeClass::DiskRead | TimeClass::DiskWrite => (33, BLACK), // #2288ff
        TimeClass::Sync | TimeClass::Commit | TimeClass::Parked => (116, BLACK), // #81d6da
        TimeClass::NetworkRead | TimeClass::NetworkWrite => (97, WHITE), // #8761bd
        TimeClass::RowLock => (209, BLACK),                        // #fd834c
        TimeClass::MetadataLock | TimeClass::TableLock | TimeClass::UserLock => (132, BLACK), // #b53b7f
        TimeClass::Sleep
        | TimeClass::InnodbTicket
        | TimeClass::Latch
        | TimeClass::Other
        | TimeClass::BeforeAttach => (247, BLACK), // #9da2aa
    }
}

/// How the letter of a class is drawn.
pub(crate) fn style(class: TimeClass) -> Style {
    let (ground, letter) = colours(class);
    Style::new().bg(Color::Indexed(ground)).fg(Color::Indexed(letter))
}

/// The parts of a load, in the order of the classes. What they lack of all of it is not told yet.
pub(crate) fn parts(by: &ByClass, all: f64) -> Vec<Part> {
    let part = |(class, amount): (TimeClass, f64)| Part {
        letter: letter(class),
        name: class.name(),
        style: style(class),
        amount,
    };
    let not_told = (all - by.sum()).max(0.0);
    let rest = Part { letter: NOT_TOLD, name: NOT_TOLD_NAME, style: DIM, amount: not_told };
    by.iter().map(part).chain([rest]).collect()
}

/// A bar of `width` columns, which `whole` fills: a letter per column. A part ends at the nearest column, so that
/// no part takes the place of another; where they are more than `whole`, each has its share of the columns. `mark` is
/// the place of a mark.
pub(crate) fn bar(
    parts: &[Part],
    whole: f64,
    width: usize,
    mark: Option<usize>,
) -> Vec<Span<'static>> {
    let whole = whole.max(parts.iter().map(|part| part.amount).sum());
    let column = |amount: f64| match whole > 0.0 {
        true => (amount / whole * width as f64).round().clamp(0.0, width as f64) as usize,
        false => 0,
    };
    let mut cells: Vec<(char, Style)> = Vec::with_capacity(width);
    let mut sum = 0.0;
    for part in parts {
        sum += part.amount;
        cells.resize(column(sum).max(cells.len()), (part.letter, part.style));
    }
    cells.resize(width, (' ', PLAIN));
    if let Some(cell) = mark.and_then(|at| cells.get_mut(at)) {
        *cell = ('┃', PLAIN);
    }
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (letter, style) in cells {
        match spans.last_mut().filter(|span| span.style == style) {
            Some(span) => span.content.to_mut().push(letter),
            None => spans.push(Span::styled(letter.to_string(), style)),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_class_has_a_letter_of_its_own_that_any_terminal_shows() {
        let letters: BTreeSet<char> = TimeClass::ALL.map(letter).into_iter().collect();
        assert_eq!(letters.len(), TimeClass::ALL.len());
        assert!(letters.iter().all(char::is_ascii) && !letters.contains(&NOT_TOLD));
        let page = include_str!("../../../../docs/reference/watch-numbers.md");
        for class in TimeClass::ALL {
            let line = format!("| `{}` | {} |", class.key(), letter(class));
            assert!(page.contains(&line), "{line}");
        }
    }

    /// Relative luminance of a colour of the 6 × 6 × 6 cube or the greys (WCAG 2.2, xterm's palette).
    fn luminance(colour: u8) -> f64 {
        let level = |step: u8| if step == 0 { 0.0 } else { f64::from(step) * 40.0 + 55.0 };
        let rgb = match colour {
            232.. => [f64::from(colour - 232) * 10.0 + 8.0; 3],
            _ => [36, 6, 1].map(|place| level((colour - 16) / place % 6)),
        };
        let linear = rgb.map(|value| match value / 255.0 {
            low if low <= 0.04045 => low / 12.92,
            high => ((high + 0.055) / 1.055_f64).powf(2.4),
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    #[test]
    fn letters_stand_out_from_their_colours() {
        for class in TimeClass::ALL {
            let (ground, letter) = colours(class);
            let (one, other) = (luminance(ground), luminance(letter));
            let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
            assert!(contrast >= 4.5, "{class:?}: {contrast:.1}");
        }
    }

    fn text(amounts: &[(char, f64)], whole: f64, width: usize, mark: Option<usize>) -> String {
        let part = |(letter, amount): &(char, f64)| Part {
            letter: *letter,
            name: "",
            style: DIM,
            amount: *amount,
        };
        let parts: Vec<Part> = amounts.iter().map(part).collect();
        let spans = bar(&parts, whole, width, mark);
        spans.iter().map(|span| span.content.as_ref()).collect()
    }

    #[test]
    fn a_bar_has_its_width_and_each_part_its_share() {
        let parts = [('C', 1.0), ('L', 0.5), ('.', 0.5)];
        assert_eq!(text(&parts, 4.0, 8, None), "CCL.    ");
        assert_eq!(text(&parts, 4.0, 8, Some(4)), "CCL.┃   ");
        assert_eq!(
            text(&parts, 1.0, 4, Some(2)),
            "CC┃.",
            "more than the whole is shown by its shares"
        );
        assert_eq!(text(&[], 1.0, 3, None), "   ");
        assert_eq!(text(&[('C', 0.0)], 0.0, 3, None), "   ", "nothing is a share of nothing");
        // Many parts of less than a column each still fill their sum.
        assert_eq!(text(&[('C', 0.3); 10], 3.0, 3, None), "CCC");
    }
}
