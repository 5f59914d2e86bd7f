//! Templates of statements: text with slots, choices and parts that may be missing. The marks are
//! explained in `grammar/rules.txt`.

use std::collections::HashMap;

/// A part of a template.
#[derive(Debug)]
pub(crate) enum Piece {
    /// As it stands, except for the case of its words and what is blank in it.
    Text(String),
    /// A rule or something built in.
    Slot(String),
    /// One of them.
    Choice(Vec<Template>),
    /// Perhaps one of them.
    Maybe(Vec<Template>),
}

pub(crate) type Template = Vec<Piece>;

/// The rules and the statements.
pub(crate) struct Grammar {
    pub(crate) rules: HashMap<&'static str, Vec<Template>>,
    /// Each statement with its line.
    pub(crate) statements: Vec<(&'static str, Template)>,
}

const RULES: &str = include_str!("grammar/rules.txt");
const STATEMENTS: [&str; 3] = [
    include_str!("grammar/dml.txt"),
    include_str!("grammar/ddl.txt"),
    include_str!("grammar/administration.txt"),
];

impl Grammar {
    pub(crate) fn read() -> Grammar {
        let mut rules: HashMap<&'static str, Vec<Template>> = HashMap::new();
        let mut name = "";
        for line in lines(RULES) {
            let text = match line.strip_prefix("| ") {
                Some(text) => text,
                None => {
                    let (rule, text) = line.split_once(" = ").expect(line);
                    name = rule;
                    text
                }
            };
            rules.entry(name).or_default().push(parse(text));
        }
        let statements = STATEMENTS.iter().flat_map(|text| lines(text));
        let statements = statements.map(|line| (line, parse(line))).collect();
        Grammar { rules, statements }
    }
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with("# "))
}

fn parse(text: &str) -> Template {
    let mut rest = text.chars().peekable();
    let template = sequence(&mut rest, "");
    assert!(rest.next().is_none(), "a mark closes nothing in: {text}");
    template
}

/// Reads alternatives and the mark after the last; `marks` are that between two and that one.
fn choices(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, marks: &str) -> Vec<Template> {
    let mut choices = vec![sequence(rest, marks)];
    while rest.next().expect("a mark is open") == '|' {
        choices.push(sequence(rest, marks));
    }
    choices
}

/// Reads up to one of the characters of `ends`, which is left.
fn sequence(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, ends: &str) -> Template {
    let mut template = Vec::new();
    let mut text = String::new();
    while let Some(next) = rest.next_if(|next| !ends.contains(*next)) {
        let piece = match next {
            '\\' => {
                text.extend(rest.next());
                continue;
            }
            '$' => {
                let mut name = String::new();
                while let Some(letter) = rest.next_if(char::is_ascii_lowercase) {
                    name.push(letter);
                }
                Piece::Slot(name)
            }
            '[' => Piece::Maybe(choices(rest, "|]")),
            '{' => Piece::Choice(choices(rest, "|}")),
            other => {
                text.push(other);
                continue;
            }
        };
        if !text.is_empty() {
            template.push(Piece::Text(std::mem::take(&mut text)));
        }
        template.push(piece);
    }
    if !text.is_empty() {
        template.push(Piece::Text(text));
    }
    template
}
