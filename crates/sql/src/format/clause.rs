//! Which words begin a new line.

use crate::lexer::{Lexeme, Token};

/// The most parentheses that are told apart.
const DEPTH_MAX: usize = 64;

/// How a token begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// On the line before it, where there is room.
    Inside,
    /// On a line of its own.
    Line,
    /// On a line of its own, below its clause.
    Condition,
}

/// What is known inside one pair of parentheses.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// A query or a whole statement: its clauses begin lines.
    query: bool,
    indent: usize,
    /// A `SELECT` was here: `FROM` is a clause.
    select: bool,
    /// The next `AND` belongs to a `BETWEEN`.
    between: bool,
    /// Open `CASE`s.
    cases: usize,
}

/// Follows the tokens of a statement.
#[derive(Debug)]
pub(super) struct Clauses {
    here: Group,
    outer: Vec<Group>,
    beyond: usize,
    /// The token before: a word in capitals, or a mark.
    before: Before,
    opened: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    #[default]
    Nothing,
    /// `LEFT`, `CROSS`: a `JOIN` belongs to it.
    JoinSide,
    /// `FOR`, `CHARACTER`, `DELETE`: the next word is no clause.
    Binding,
    /// A name, a value or a closing parenthesis.
    Operand,
    Other,
}

impl Default for Clauses {
    fn default() -> Self {
        let here = Group { query: true, ..Group::default() };
        let (outer, beyond) = (Vec::new(), 0);
        Clauses { here, outer, beyond, before: Before::Nothing, opened: false }
    }
}

impl Clauses {
    /// Indentation of the present clauses, in steps.
    pub(super) fn indent(&self) -> usize {
        self.here.indent
    }

    /// How `token` begins; `following` is the text of the next one.
    pub(super) fn start(&mut self, token: &Token, text: &str, following: Option<&str>) -> Start {
        let opened = std::mem::take(&mut self.opened);
        let mut before = Before::Other;
        let start = match (token.lexeme, text) {
            (Lexeme::Symbol, "(") => {
                self.open(following);
                // Its own line is the one before.
                return self.here_before(Before::Other, Start::Inside);
            }
            (Lexeme::Symbol, ")") => {
                let query = self.close();
                return self
                    .here_before(Before::Operand, if query { Start::Line } else { Start::Inside });
            }
            (Lexeme::Word, _) if self.beyond == 0 => {
                let start = self.word(text, following, &mut before);
                if self.before == Before::Nothing { Start::Inside } else { start }
            }
            (Lexeme::Symbol | Lexeme::HintOpen, _) => Start::Inside,
            _ => {
                before = Before::Operand;
                Start::Inside
            }
        };
        self.here_before(before, if opened { Start::Line } else { start })
    }

    fn here_before(&mut self, before: Before, start: Start) -> Start {
        self.before = before;
        start
    }

    fn open(&mut self, following: Option<&str>) {
        if self.outer.len() >= DEPTH_MAX {
            self.beyond += 1;
            return;
        }
        let query = following.is_some_and(|next| is_one(next, &["SELECT", "WITH"]));
        let indent = self.here.indent + usize::from(query);
        self.outer.push(self.here);
        self.here = Group { query, indent, ..Group::default() };
        self.opened = query;
    }

    /// Whether a query ended.
    fn close(&mut self) -> bool {
        if self.beyond > 0 {
            self.beyond -= 1;
            return false;
        }
        let query = self.here.query;
        match self.outer.pop() {
            Some(outer) => {
                self.here = outer;
                query
            }
            // It closes nothing.
            None => false,
        }
    }

    fn word(&mut self, word: &str, following: Option<&str>, before: &mut Before) -> Start {
        let mut buffer = [0; 13];
        let Some(upper) = buffer.get_mut(..word.len()) else {
            *before = Before::Operand;
            return Start::Inside;
        };
        upper.copy_from_slice(word.as_bytes());
        upper.make_ascii_uppercase();
        let leads = |words: &[&str]| following.is_some_and(|next| is_one(next, words));
        let bound = matches!(self.before, Before::Binding | Before::JoinSide);
        let clause = match &*upper {
            b"SELECT" => {
                self.here.select = true;
                true
            }
            b"FROM" => self.here.select,
            b"WHERE" | b"HAVING" | b"LIMIT" | b"UNION" | b"EXCEPT" | b"INTERSECT"
            | b"RETURNING" => true,
            b"ORDER" | b"GROUP" => leads(&["BY"]),
            b"WINDOW" => leads(&["AS"]) || self.before == Before::Operand,
            b"VALUES" => self.before == Before::Operand,
            b"SET" => self.before == Before::Operand,
            b"ON" if leads(&["DUPLICATE"]) => true,
            b"FOR" if leads(&["UPDATE", "SHARE"]) => true,
            b"LOCK" => leads(&["IN"]),
            b"JOIN" | b"STRAIGHT_JOIN" => self.before == Before::Operand,
            b"LEFT" | b"RIGHT" => leads(&["JOIN", "OUTER"]),
            b"INNER" | b"CROSS" | b"NATURAL" => leads(&["JOIN", "LEFT", "RIGHT", "INNER"]),
            b"AND" | b"OR" | b"XOR" => return self.condition(&*upper == b"AND"),
            b"BETWEEN" => {
                self.here.between = true;
                false
            }
            b"CASE" => {
                self.here.cases += 1;
                false
            }
            b"END" => {
                self.here.cases = self.here.cases.saturating_sub(1);
                false
            }
            _ => false,
        };
        *before = match &*upper {
            b"LEFT" | b"RIGHT" | b"OUTER" | b"INNER" | b"CROSS" | b"NATURAL" => Before::JoinSide,
            b"FOR" | b"CHARACTER" | b"DELETE" | b"UPDATE" => Before::Binding,
            _ if clause => Before::Other,
            _ => Before::Operand,
        };
        if clause && !bound && self.here.query {
            self.here.between = false;
            Start::Line
        } else {
            Start::Inside
        }
    }

    fn condition(&mut self, and: bool) -> Start {
        if and && std::mem::take(&mut self.here.between) {
            return Start::Inside;
        }
        let own = self.here.query && self.here.cases == 0;
        if own { Start::Condition } else { Start::Inside }
    }
}

fn is_one(word: &str, words: &[&str]) -> bool {
    words.iter().any(|it| word.eq_ignore_ascii_case(it))
}
