//! Decides from the surrounding tokens what the server's grammar knows: whether a `NULL` is a
//! value, and whether a number is a column.

use super::context::Context;
use super::table::{Id, Role};
use super::{Dialect, Normaliser, table};
use crate::letters::Letters;
use crate::lexer::{Lexeme, Token};

impl Normaliser {
    /// Whether a `NULL` here is a value: the grammar's `literal`, not an attribute of a column,
    /// `IS NULL`, `SET NULL` or, as `on_empty` tells, `NULL ON EMPTY`.
    pub(super) fn is_value(&self, context: &Context<'_>, on_empty: bool) -> bool {
        let last = self.stack.peek(0);
        if last == 0 || self.stack.ends_operand() {
            return false;
        }
        let role = self.table.role(last);
        let ddl = context.defines_columns();
        match role {
            Role::Is => false,
            _ if on_empty => false,
            _ if last == Id::from(b'=') && !context.classifier.kind().is_data() => {
                self.table.role(self.stack.peek(1)) != Role::NullOption
            }
            Role::Not => !ddl && self.table.role(self.stack.peek(1)) != Role::Is,
            Role::Expression | Role::By => true,
            Role::Binary if self.table.starts(self.stack.peek(1)) => true,
            _ if !ddl || last < table::VALUE => true,
            _ => self.table.starts(last),
        }
    }

    /// MySQL 9 keeps the number of a column in `ORDER BY 1`, as these are not values. A plus after a
    /// comma goes without a trace.
    pub(super) fn begins_element(&self, context: &Context<'_>) -> bool {
        if self.dialect != Dialect::Mysql9 || context.columns & context.level() == 0 {
            return false;
        }
        let mut back = 0;
        while self.stack.peek(back) == Id::from(b'+') {
            back += 1;
        }
        let values = matches!(self.stack.peek(back + 1), table::VALUE | table::VALUES);
        let fresh = self.stack.peek(back) == Id::from(b',') && !values;
        let nested = self.stack.peek(back) == Id::from(b'(');
        fresh || nested || self.table.role(self.stack.peek(0)) == Role::By
    }

    /// Decides about the number before `token`.
    pub(super) fn settle_number(&mut self, digits: &[u8], token: Token, sql: &[u8]) {
        let bytes = token.bytes(sql);
        let next = match token.lexeme {
            Lexeme::Symbol => bytes.first().filter(|byte| matches!(byte, b',' | b')' | b';')),
            _ => None,
        };
        let next = match next {
            Some(symbol) => Some(Id::from(*symbol)),
            None if token.lexeme == Lexeme::Word => {
                let found = self.table.keyword(bytes, Letters::of(sql, token.start, bytes.len()));
                found.filter(|it| !it.function).map(|it| it.id).filter(|id| {
                    use Role::{In, Is, Not, Operator};
                    !matches!(self.table.role(*id), Operator | In | Is | Not)
                })
            }
            None => None,
        };
        if next.is_some() {
            self.stack.column_number(digits, next, &self.table);
        }
    }
}
