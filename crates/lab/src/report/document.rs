//! What a report holds, before it is HTML or Markdown.

use crate::analysis::Verdict;
use crate::report::bar::{Bar, Scale};
use crate::report::chart::Figure;
use crate::report::words;

/// A piece of the report.
pub(super) enum Block {
    /// A heading of the second level.
    Heading(String),
    /// A heading of the third level.
    Subheading(String),
    Paragraph(String),
    List(Vec<String>),
    Table(Table),
    /// Pictures that belong together; Markdown links to their files.
    Figures(Vec<Figure>),
    /// Pictures that a page shows when they are asked for; Markdown has the title only.
    Folded(String, Vec<Figure>),
}

/// A table, with notes below it.
pub(super) struct Table {
    /// What it shows.
    pub(super) caption: String,
    /// The heads of the columns, with units.
    pub(super) heads: Vec<String>,
    pub(super) rows: Vec<Vec<Datum>>,
    /// The scale of the bars in its last column, where it has them.
    pub(super) scale: Option<Scale>,
    pub(super) notes: Notes,
}

/// What stands in one place of a table.
#[derive(Clone, Debug)]
pub(super) struct Datum {
    pub(super) text: String,
    pub(super) kind: Kind,
    /// In place of the text.
    pub(super) bar: Option<Bar>,
    /// Numbers of notes below the table.
    pub(super) notes: Vec<usize>,
}

/// How it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    /// What the source printed.
    Published,
    Cost,
    Gain,
    Change,
    Below,
    Free,
    Void,
    NotRun,
}

impl Kind {
    pub(super) fn of(verdict: &Verdict) -> Kind {
        match verdict {
            Verdict::Cost => Kind::Cost,
            Verdict::Gain => Kind::Gain,
            Verdict::Change => Kind::Change,
            Verdict::Below { .. } => Kind::Below,
            Verdict::Free { .. } => Kind::Free,
            Verdict::Overloaded(_) | Verdict::Void(_) => Kind::Void,
            Verdict::NotRun(_) => Kind::NotRun,
        }
    }

    /// Its class in `style.css`.
    pub(super) fn class(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Number => "number",
            Kind::Published => "published",
            Kind::Cost => "cost",
            Kind::Gain => "gain",
            Kind::Change => "change",
            Kind::Below => "below",
            Kind::Free => "free",
            Kind::Void => "void",
            Kind::NotRun => "not-run",
        }
    }
}

impl Datum {
    pub(super) fn text(text: impl Into<String>) -> Datum {
        Datum::new(text, Kind::Text)
    }

    pub(super) fn number(text: impl Into<String>) -> Datum {
        Datum::new(text, Kind::Number)
    }

    pub(super) fn published(text: impl Into<String>) -> Datum {
        Datum::new(text, Kind::Published)
    }

    pub(super) fn new(text: impl Into<String>, kind: Kind) -> Datum {
        Datum { text: text.into(), kind, bar: None, notes: Vec::new() }
    }

    pub(super) fn bar(bar: Bar) -> Datum {
        Datum { bar: Some(bar), ..Datum::text("") }
    }

    /// A verdict in its colour.
    pub(super) fn verdict(verdict: &Verdict) -> Datum {
        Datum::new(words::verdict(verdict), Kind::of(verdict))
    }

    pub(super) fn note(mut self, number: usize) -> Datum {
        self.notes.push(number);
        self
    }
}

impl Table {
    pub(super) fn new(caption: impl Into<String>, heads: Vec<String>) -> Table {
        let caption = caption.into();
        Table { caption, heads, rows: Vec::new(), scale: None, notes: Notes::default() }
    }
}

/// What is said below a table. Each note stands there once.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(Vec<String>);

impl Notes {
    /// The number of a note, from 1.
    pub(super) fn number(&mut self, note: &str) -> usize {
        let known = self.0.iter().position(|other| other == note);
        let at = known.unwrap_or_else(|| {
            self.0.push(note.to_owned());
            self.0.len() - 1
        });
        at + 1
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &str)> {
        self.0.iter().enumerate().map(|(at, note)| (at + 1, note.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_is_said_twice_stands_there_once() {
        let mut notes = Notes::default();
        assert_eq!(["a", "b", "a"].map(|note| notes.number(note)), [1, 2, 1]);
        assert_eq!(notes.iter().collect::<Vec<_>>(), [(1, "a"), (2, "b")]);
    }
}
