//! The report as Markdown, in the dialect with tables (GitHub Flavored Markdown). Columns are padded, so
//! that it can be read as it stands.

use crate::report::document::{Block, Datum, Kind, Table};

pub(super) fn of(title: &str, blocks: &[Block]) -> String {
    let mut text = String::new();
    line(&mut text, &["# ", &escaped(title)]);
    blocks.iter().for_each(|block| write(&mut text, block));
    text
}

/// A part of a page, without a title.
pub(super) fn part(blocks: &[Block]) -> String {
    let mut text = String::new();
    blocks.iter().for_each(|block| write(&mut text, block));
    text.trim_start().to_owned()
}

fn write(text: &mut String, block: &Block) {
    text.push('\n');
    match block {
        Block::Heading(title) => line(text, &["## ", &escaped(title)]),
        Block::Subheading(title) => line(text, &["### ", &escaped(title)]),
        Block::Paragraph(paragraph) => line(text, &[&escaped(paragraph)]),
        Block::List(items) => items.iter().for_each(|item| line(text, &["- ", &escaped(item)])),
        Block::Table(table) => write_table(text, table),
        Block::Figures(figures) => {
            let titles = figures.iter().map(|figure| escaped(&figure.title));
            titles.for_each(|title| line(text, &["- in the HTML report: ", &title]));
        }
        Block::Folded(title, blocks) => {
            line(text, &[&escaped(title)]);
            blocks.iter().for_each(|block| write(text, block));
        }
    }
}

fn line(text: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| text.push_str(part));
    text.push('\n');
}

fn write_table(text: &mut String, table: &Table) {
    line(text, &[&escaped(&table.caption), "\n"]);
    let heads: Vec<String> = table.heads.iter().map(|head| escaped(head)).collect();
    let rows: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.data.iter().map(datum).collect()).collect();
    let width = |at: usize| {
        let column = rows.iter().filter_map(|row| row.get(at)).chain(heads.get(at));
        column.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let columns: Vec<Column> = (0..heads.len())
        .map(|at| Column { width: width(at).max(3), is_right: is_right(table, at) })
        .collect();
    write_row(text, &heads, &columns);
    let rules = columns.iter().map(|column| match column.is_right {
        true => format!("{}:", "-".repeat(column.width + 1)),
        false => "-".repeat(column.width + 2),
    });
    line(text, &["|", &rules.collect::<Vec<_>>().join("|"), "|"]);
    rows.iter().for_each(|row| write_row(text, row, &columns));
    for (number, note) in table.notes.iter() {
        line(text, &[&format!("\n<sup>{number}</sup> "), &escaped(note)]);
    }
}

/// How a column is laid out.
struct Column {
    width: usize,
    is_right: bool,
}

/// Numbers stand at the right.
fn is_right(table: &Table, at: usize) -> bool {
    let is_number = |datum: &Datum| matches!(datum.kind, Kind::Number | Kind::Published);
    table.rows.iter().filter_map(|row| row.data.get(at)).any(is_number)
}

fn write_row(text: &mut String, data: &[String], columns: &[Column]) {
    for (datum, column) in data.iter().zip(columns) {
        let width = column.width;
        text.push_str(&match column.is_right {
            true => format!("| {datum:>width$} "),
            false => format!("| {datum:<width$} "),
        });
    }
    text.push_str("|\n");
}

fn datum(datum: &Datum) -> String {
    let marks = datum.notes.iter().map(|note| format!(" <sup>{note}</sup>"));
    marks.fold(escaped(&datum.text), |text, mark| text + &mark)
}

/// A text in which nothing is markup, in one line.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '`' | '*' | '|' | '[' | ']' => escaped.extend(['\\', c]),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_from_outside_is_no_markup_and_breaks_no_table() {
        let hostile = "a|b\n<b>*c*</b> [d](e) `f` & \\";
        assert_eq!(
            escaped(hostile),
            "a\\|b &lt;b&gt;\\*c\\*&lt;/b&gt; \\[d\\](e) \\`f\\` &amp; \\\\"
        );
    }

    #[test]
    fn a_table_is_aligned_and_has_its_notes_below() {
        let mut table = Table::new("What it shows", vec!["scenario".into(), "QPS".into()]);
        let note = table.notes.number("it contradicts its source");
        table.row(vec![Datum::text("off"), Datum::published("39,940").note(note)]);
        table.row(vec![Datum::text("on"), Datum::number("31,434")]);
        assert_eq!(
            of("t", &[Block::Table(table)]),
            "# t\n\nWhat it shows\n\n\
             | scenario |                 QPS |\n\
             |----------|--------------------:|\n\
             | off      | 39,940 <sup>1</sup> |\n\
             | on       |              31,434 |\n\
             \n<sup>1</sup> it contradicts its source\n"
        );
    }
}
