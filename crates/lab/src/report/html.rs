//! The report as one file of HTML that needs nothing beside it and no JavaScript.

use crate::report::chart::Figure;
use crate::report::document::{Block, Datum, Kind, Table};
use crate::report::element::Element;

const STYLE: &str = include_str!("style.css");

pub(super) fn of(title: &str, blocks: &[Block]) -> String {
    let sections: Vec<&str> = blocks.iter().filter_map(heading).collect();
    let mut number = 0;
    let mut main =
        Element::new("main").add(Element::new("h1").text(title)).add(contents(&sections));
    for block in blocks {
        main = main.add(element(block, &mut number));
    }
    let meta = |name, value| Element::new("meta").with("name", name).with("content", value);
    let head = Element::new("head")
        .add(Element::new("meta").with("charset", "utf-8"))
        .add(meta("viewport", "width=device-width, initial-scale=1"))
        .add(meta("color-scheme", "light dark"))
        .add(Element::new("title").text(title))
        .add(Element::style(STYLE))
        .add(Element::style(super::chart::STYLE));
    let page = Element::new("html").with("lang", "en").add(head);
    format!("<!DOCTYPE html>\n{}\n", page.add(Element::new("body").add(main)))
}

fn heading(block: &Block) -> Option<&str> {
    match block {
        Block::Heading(title) => Some(title),
        _ => None,
    }
}

/// Links to the sections.
fn contents(sections: &[&str]) -> Element {
    let link = |(at, title): (usize, &&str)| {
        Element::new("a").with("href", format!("#section-{}", at + 1)).text(*title)
    };
    Element::new("nav").all(sections.iter().enumerate().map(link))
}

/// `number` counts the sections.
fn element(block: &Block, number: &mut usize) -> Element {
    match block {
        Block::Heading(title) => {
            *number += 1;
            Element::new("h2").with("id", format!("section-{number}")).text(title)
        }
        Block::Subheading(title) => Element::new("h3").text(title),
        Block::Paragraph(text) => Element::new("p").text(text),
        Block::List(items) => {
            Element::new("ul").all(items.iter().map(|item| Element::new("li").text(item)))
        }
        Block::Table(table) => self::table(table),
        Block::Figures(pictures) => figures(pictures),
        Block::Folded(title, pictures) => {
            Element::new("details").add(Element::new("summary").text(title)).add(figures(pictures))
        }
    }
}

fn figures(figures: &[Figure]) -> Element {
    Element::new("div").class("figures").all(figures.iter().map(figure))
}

fn figure(figure: &Figure) -> Element {
    let caption = Element::new("figcaption")
        .add(Element::new("strong").text(&figure.title))
        .text(format!(". {}", figure.caption));
    let picture = Element::new("div").class("scroll").add(figure.picture.element());
    Element::new("figure").with("id", &figure.name).add(picture).add(caption)
}

fn table(table: &Table) -> Element {
    let head = |text: &String| Element::new("th").with("scope", "col").text(text);
    let heads = table.heads.iter().map(head);
    let axis = table.scale.iter().map(|scale| head(&String::new()).class("bar").add(scale.axis()));
    let body = Element::new("tbody").all(table.rows.iter().map(|data| row(data)));
    let caption = (!table.caption.is_empty()).then(|| Element::new("caption").text(&table.caption));
    let grid = Element::new("table")
        .all(caption)
        .add(Element::new("thead").add(Element::new("tr").all(heads).all(axis)))
        .add(body);
    let notes = table.notes.iter().map(|(number, note)| {
        let mark = Element::new("sup").text(number.to_string());
        Element::new("p").class("note").add(mark).text(format!(" {note}"))
    });
    let scroll = Element::new("div").class("scroll").add(grid);
    Element::new("section").class("table").add(scroll).all(notes)
}

fn row(row: &[Datum]) -> Element {
    Element::new("tr").all(row.iter().enumerate().map(|(at, one)| datum(at, one)))
}

/// What stands in a column; the first one names the row.
fn datum(at: usize, datum: &Datum) -> Element {
    if let Some(bar) = &datum.bar {
        return Element::new("td").class("bar").add(bar.picture());
    }
    let element = match (at, datum.kind) {
        (0, Kind::Text) => Element::new("th").with("scope", "row"),
        (_, kind) => Element::new("td").class(kind.class()),
    };
    let marks = datum.notes.iter().map(|note| Element::new("sup").text(note.to_string()));
    element.text(&datum.text).all(marks)
}
