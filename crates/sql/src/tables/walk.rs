//! One walk over the tokens of a statement.

use std::iter::Peekable;

use super::verb::{Step, Verb, Word};
use super::{TableName, Tables, plain};
use crate::SessionSettings;
use crate::lexer::{Lexeme, Lexer, Reading, Token};

/// The most open parentheses that are looked into.
const DEPTH_MAX: usize = 64;

/// The most common table expressions that are known at one time; the names of others are listed
/// as if they were tables.
const EXPRESSIONS_MAX: usize = 64;

/// What the next token may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// Nothing of interest.
    #[default]
    Elsewhere,
    /// A table, and others after a comma or a `JOIN`.
    Tables,
    /// A table, and none after it.
    Table,
    /// What follows one of several tables: an alias, a condition, a comma.
    BehindTable,
    /// Right after the name in `CREATE TABLE`: `LIKE` may follow.
    Created,
    /// The name of a common table expression.
    Expression,
    /// What follows that name: its columns, `AS`.
    BehindExpression,
    /// The parenthesis of its query.
    Body,
    /// Behind that: a comma leads to the next one.
    BehindBody,
}

/// What is known inside one pair of parentheses.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    place: Place,
    /// `FROM` leads to tables here, as after `SELECT`; in `TRIM(a FROM b)` it does not.
    from: bool,
    /// Common table expressions that were known outside.
    known: usize,
}

struct Walk<'a> {
    sql: &'a [u8],
    /// A token that ends after it may be incomplete.
    limit: usize,
    tokens: Peekable<Lexer<'a>>,
    found: Tables,
    /// Names of the common table expressions that can be meant.
    expressions: Vec<String>,
    /// The name of the one that is being read, and whether it may mean itself.
    reading: Option<String>,
    recursive: bool,
    outer: Vec<Level>,
    /// Parentheses that are open beyond [`DEPTH_MAX`].
    beyond: usize,
    here: Level,
    verb: Verb,
    before: Word,
}

pub(super) fn walk(
    sql: &[u8],
    reading: Reading,
    settings: SessionSettings,
    limit: usize,
) -> Tables {
    let mut walk = Walk {
        sql,
        limit,
        tokens: Lexer::with_settings(sql, reading, settings).peekable(),
        found: Tables::default(),
        expressions: Vec::new(),
        reading: None,
        recursive: false,
        outer: Vec::new(),
        beyond: 0,
        here: Level::default(),
        verb: Verb::Begin,
        before: Word::Other,
    };
    while let Some(token) = walk.tokens.next() {
        if !walk.take(&token) {
            break;
        }
    }
    walk.found
}

impl Walk<'_> {
    /// Takes a token; `false` when nothing of interest can follow.
    fn take(&mut self, token: &Token) -> bool {
        let bytes = token.bytes(self.sql);
        match token.lexeme {
            Lexeme::Symbol => return self.symbol(bytes),
            Lexeme::Word if self.beyond == 0 => {
                let word = Word::of(bytes);
                let name = !word.is_reserved() && self.takes_name();
                let goes_on = if name { self.name(token) } else { self.word(word) };
                self.before = word;
                return goes_on;
            }
            Lexeme::Name | Lexeme::Quoted if self.beyond == 0 && self.takes_name() => {
                self.before = Word::Other;
                return self.name(token);
            }
            Lexeme::HintOpen => {
                while self.tokens.next_if(|next| next.lexeme != Lexeme::HintClose).is_some() {}
            }
            Lexeme::HintClose => {}
            _ => self.other(),
        }
        true
    }

    fn takes_name(&self) -> bool {
        matches!(self.here.place, Place::Tables | Place::Table | Place::Expression)
            || (self.verb == Verb::Describe && self.outer.is_empty())
    }

    /// A token that is neither word nor mark: what was expected does not come.
    fn other(&mut self) {
        self.before = Word::Other;
        match self.here.place {
            Place::BehindTable | Place::Elsewhere => {}
            _ => self.here.place = Place::Elsewhere,
        }
    }

    fn symbol(&mut self, symbol: &[u8]) -> bool {
        use Place::{BehindBody, BehindTable, Expression};
        match symbol {
            b"(" => self.open(),
            b")" => self.close(),
            b";" => return false,
            _ if self.beyond > 0 => {}
            b"," if self.here.place == BehindTable => self.here.place = Place::Tables,
            b"," if self.here.place == BehindBody => self.here.place = Expression,
            b"." => {}
            b"{" => {
                // `{ OJ a LEFT JOIN b ON … }`
                self.tokens.next_if(is_name);
            }
            _ => self.other(),
        }
        true
    }

    fn open(&mut self) {
        if self.outer.len() >= DEPTH_MAX {
            self.beyond += 1;
            self.found.truncated = true;
            return;
        }
        let place = match self.here.place {
            place @ (Place::Tables | Place::Created) => place,
            _ => Place::Elsewhere,
        };
        if self.verb == Verb::Describe {
            self.verb = Verb::Query;
        }
        self.outer.push(self.here);
        self.here = Level { place, from: false, known: self.expressions.len() };
        self.before = Word::Other;
    }

    fn close(&mut self) {
        if self.beyond > 0 {
            self.beyond -= 1;
            return;
        }
        self.expressions.truncate(self.here.known);
        let Some(outer) = self.outer.pop() else { return };
        self.here = outer;
        self.before = Word::Other;
        self.here.place = match outer.place {
            Place::Tables => Place::BehindTable,
            Place::Body => {
                if !self.recursive {
                    self.know_expression();
                }
                Place::BehindBody
            }
            Place::BehindExpression | Place::BehindTable => outer.place,
            _ => Place::Elsewhere,
        };
    }

    fn know_expression(&mut self) {
        if self.expressions.len() < EXPRESSIONS_MAX {
            self.expressions.extend(self.reading.take());
        }
    }

    /// Reads a name that stands where one was expected.
    fn name(&mut self, first: &Token) -> bool {
        let mut last = *first;
        let mut schema = None;
        while self.symbol_follows(b".") {
            self.tokens.next();
            let Some(part) = self.tokens.next_if(is_name) else { break };
            schema = Some(last);
            last = part;
        }
        // `t.*` in a DELETE of several tables.
        if self.symbol_follows(b"*") {
            self.tokens.next();
        }
        if self.here.place == Place::Expression {
            if Word::of(last.bytes(self.sql)) == Word::Recursive {
                self.recursive = true;
                return true;
            }
            self.reading = Some(plain(last.bytes(self.sql)));
            self.here.place = Place::BehindExpression;
            return true;
        }
        if self.verb == Verb::Describe && self.is_option() {
            return true;
        }
        let several = self.here.place == Place::Tables;
        self.here.place = if several { Place::BehindTable } else { Place::Elsewhere };
        // `JSON_TABLE(…)`; only a table in a list can be one.
        let function = several && self.symbol_follows(b"(");
        if !function && last.end <= self.limit {
            self.add(schema, &last);
        }
        if self.verb == Verb::Create && self.outer.is_empty() {
            self.here.place = Place::Created;
        }
        !matches!(self.verb, Verb::Describe | Verb::Trigger)
    }

    /// Whether what stands after `EXPLAIN` is an option: `FORMAT = JSON`, `EXTENDED`.
    fn is_option(&mut self) -> bool {
        if self.symbol_follows(b"=") {
            self.tokens.nth(1);
            return true;
        }
        let sql = self.sql;
        self.tokens
            .peek()
            .is_some_and(|next| is_name(next) && Word::of(next.bytes(sql)).is_explained())
    }

    fn symbol_follows(&mut self, symbol: &[u8]) -> bool {
        let sql = self.sql;
        self.tokens
            .peek()
            .is_some_and(|next| next.lexeme == Lexeme::Symbol && next.bytes(sql) == symbol)
    }

    fn add(&mut self, schema: Option<Token>, name: &Token) {
        let schema = schema.map(|schema| plain(schema.bytes(self.sql)));
        let name = TableName { schema, name: plain(name.bytes(self.sql)) };
        let is_expression =
            |known: &String| name.schema.is_none() && known.eq_ignore_ascii_case(&name.name);
        let dual = name.schema.is_none() && name.name.eq_ignore_ascii_case("dual");
        if !dual && !self.expressions.iter().any(is_expression) {
            self.found.add(name);
        }
    }

    /// A word that is no name here. `false` when nothing of interest can follow.
    fn word(&mut self, word: Word) -> bool {
        if self.outer.is_empty() {
            match self.verb.step(word, self.here.place == Place::BehindBody) {
                Step::End => return false,
                Step::To(verb, place) => {
                    self.verb = verb;
                    self.here.place = place;
                    self.here.from = verb == Verb::Delete;
                    return true;
                }
                Step::Inside if matches!(self.verb, Verb::Begin | Verb::Describe) => {
                    self.verb = Verb::Query;
                }
                Step::Inside => {}
            }
        }
        self.here.place = self.inside(word);
        true
    }

    /// Where a word inside a statement leads.
    fn inside(&mut self, word: Word) -> Place {
        use Place::Elsewhere;
        let place = self.here.place;
        match word {
            Word::Select => {
                self.here.from = true;
                Elsewhere
            }
            Word::With => {
                self.recursive = false;
                Place::Expression
            }
            Word::As if place == Place::BehindExpression => {
                if self.recursive {
                    self.know_expression();
                }
                Place::Body
            }
            // Once after every verb: the next is a part of a condition.
            Word::From if self.here.from => {
                self.here.from = false;
                Place::Tables
            }
            // `USE INDEX FOR JOIN (i)`, and `FOR UPDATE OF t, u`, which are aliases.
            Word::Join | Word::Order | Word::Group if self.before == Word::For => place,
            Word::Update | Word::Share if self.before == Word::For => Elsewhere,
            Word::Join => Place::Tables,
            Word::StraightJoin if place == Place::BehindTable => Place::Tables,
            Word::Using if self.verb == Verb::Delete && !self.symbol_follows(b"(") => {
                // `DELETE FROM a USING t AS a`: what stood before were aliases.
                self.found = Tables::default();
                Place::Tables
            }
            Word::Table => Place::Table,
            Word::Like if place == Place::Created => Place::Table,
            Word::References if matches!(self.verb, Verb::Create | Verb::Alter) => Place::Table,
            Word::Into if place == Place::Table => place,
            Word::Modifier => place,
            Word::Clause
            | Word::Order
            | Word::Group
            | Word::Update
            | Word::From
            | Word::Into
            | Word::Values => Elsewhere,
            _ if place == Place::BehindTable => place,
            _ => Elsewhere,
        }
    }
}

fn is_name(token: &Token) -> bool {
    matches!(token.lexeme, Lexeme::Word | Lexeme::Name | Lexeme::Quoted)
}
