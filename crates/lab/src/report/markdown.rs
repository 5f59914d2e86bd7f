//! The report as Markdown, in the dialect with tables (GitHub Flavored Markdown). Columns are padded, so
//! that it can be read as it stands.

use waggle_model::visible::visible;

use crate::report::CHARTS;
use crate::report::chart::Figure;
use crate::report::document::{Block, Datum, Kind, Table};

/// Places of a bar.
const PLACES: usize = 27;

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
            let file = |figure: &Figure| {
                format!("- [{}]({CHARTS}/{}.svg)", escaped(&figure.title), figure.name)
            };
            figures.iter().for_each(|figure| line(text, &[&file(figure)]));
        }
        Block::Folded(title, _) => line(text, &[&escaped(title)]),
    }
}

fn line(text: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| text.push_str(part));
    text.push('\n');
}

fn write_table(text: &mut String, table: &Table) {
    if !table.caption.is_empty() {
        line(text, &[&escaped(&table.caption), "\n"]);
    }
    let axis = table.scale.iter().map(|scale| format!("`{}`", scale.axis_in_text(PLACES)));
    let heads: Vec<String> = table.heads.iter().map(|head| escaped(head)).chain(axis).collect();
    let rows: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.iter().map(datum).collect()).collect();
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
        line(text, &[&format!("\n{} ", mark(number)), &escaped(note)]);
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
    table.rows.iter().filter_map(|row| row.get(at)).any(is_number)
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
    if let Some(bar) = &datum.bar {
        return format!("`{}`", bar.in_text(PLACES));
    }
    let marks: Vec<String> = datum.notes.iter().map(|note| mark(*note)).collect();
    let text = escaped(&datum.text);
    if marks.is_empty() { text } else { format!("{text} {}", marks.join(" ")) }
}

/// The number of a note, raised: it needs one character for each digit.
fn mark(number: usize) -> String {
    let raised = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digits = number.to_string();
    digits.chars().filter_map(|digit| digit.to_digit(10)).map(|at| raised[at as usize]).collect()
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
            c => escaped.push(visible(c)),
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
        table.rows.push(vec![Datum::text("off"), Datum::published("39,940").note(note)]);
        table.rows.push(vec![Datum::text("on"), Datum::number("31,434")]);
        assert_eq!(
            of("t", &[Block::Table(table)]),
            "# t\n\nWhat it shows\n\n\
             | scenario |      QPS |\n\
             |----------|---------:|\n\
             | off      | 39,940 ¹ |\n\
             | on       |   31,434 |\n\
             \n¹ it contradicts its source\n"
        );
    }
}
