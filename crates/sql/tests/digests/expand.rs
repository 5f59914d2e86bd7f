//! Statements out of templates.

use waggle_sql::SessionSettings;
use waggle_stats::Random;

use crate::literal;
use crate::template::{Grammar, Piece, Template};

/// From this depth on the first alternative of a rule is taken, which ends the recursion.
const DEPTH_MAX: u32 = 9;

/// How the words of a statement are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Upper,
    Lower,
    Mixed,
}

/// Writes one statement.
pub(crate) struct Writer<'a> {
    grammar: &'a Grammar,
    pub(crate) settings: SessionSettings,
    pub(crate) random: &'a mut Random,
    pub(crate) out: Vec<u8>,
    case: Case,
    /// Comments and line breaks stand between the words.
    wild: bool,
}

/// A statement by a template, for a session with these settings.
pub(crate) fn statement(
    grammar: &Grammar,
    template: &Template,
    settings: SessionSettings,
    random: &mut Random,
) -> Vec<u8> {
    let case = *random.pick(&[Case::Upper, Case::Lower, Case::Mixed]);
    let wild = random.below(4) == 0;
    let mut writer = Writer { grammar, settings, random, out: Vec::new(), case, wild };
    if writer.random.below(20) == 0 {
        writer.blank();
    }
    writer.template(template, 0);
    if writer.random.below(20) == 0 {
        writer.out.push(b';');
    }
    writer.out
}

impl Writer<'_> {
    fn template(&mut self, template: &Template, depth: u32) {
        for piece in template {
            match piece {
                Piece::Text(text) => self.text(text),
                Piece::Slot(name) => self.slot(name, depth),
                Piece::Maybe(_) if self.random.coin() => {}
                Piece::Choice(choices) | Piece::Maybe(choices) => {
                    let choice = self.random.below(choices.len());
                    self.template(&choices[choice], depth);
                }
            }
        }
    }

    fn slot(&mut self, name: &str, depth: u32) {
        let grammar = self.grammar;
        let Some(rule) = grammar.rules.get(name) else {
            return literal::write(self, name);
        };
        let chosen = if depth >= DEPTH_MAX { 0 } else { self.random.below(rule.len()) };
        self.template(&rule[chosen], depth + 1);
    }

    fn text(&mut self, text: &str) {
        for letter in text.chars() {
            match letter {
                ' ' => self.blank(),
                'A'..='Z' => {
                    let lower = match self.case {
                        Case::Upper => false,
                        Case::Lower => true,
                        Case::Mixed => self.random.coin(),
                    };
                    let letter = if lower { letter.to_ascii_lowercase() } else { letter };
                    self.out.push(letter as u8);
                }
                letter => self.out.push(u8::try_from(letter).unwrap()),
            }
        }
    }

    /// What the server takes for a blank.
    pub(crate) fn blank(&mut self) {
        const BLANKS: [&str; 12] = [
            "  ",
            "\n",
            "\t",
            "\r\n ",
            " /* a comment ' */ ",
            "/**/",
            " -- x '\n",
            "--\t\"\n",
            "# `\n",
            " /*!99999 no */ ",
            "\x0b\x0c",
            "\n\n",
        ];
        let opens = memchr::memmem::rfind(&self.out, b"/*+");
        let in_hint =
            opens.is_some_and(|at| memchr::memmem::find(&self.out[at..], b"*/").is_none());
        let blank = if self.wild && !in_hint && self.random.below(3) == 0 {
            self.random.pick(&BLANKS)
        } else {
            " "
        };
        self.out.extend_from_slice(blank.as_bytes());
    }
}
