//! Reading the first words of a statement.

use std::iter::Peekable;

use super::{Ddl, DdlKind, Object, ObjectType};
use crate::SessionSettings;
use crate::lexer::{Lexeme, Lexer, Reading, Token};
use crate::mask::{HIDDEN, hides_secret_in_name};
use crate::tables::plain;

/// Tokens between `CREATE` and the word that says what is created, at most: `OR REPLACE ALGORITHM =
/// MERGE DEFINER = u@h SQL SECURITY DEFINER` are twelve.
const BETWEEN_MAX: usize = 24;
/// Tokens between the name of a trigger or an index and its table, at most.
const BEFORE_TABLE_MAX: usize = 16;

/// A reader of one statement.
#[derive(Clone)]
pub(super) struct Walk<'a> {
    sql: &'a [u8],
    /// A name that ends after it may be a part of one.
    limit: usize,
    tokens: Peekable<Lexer<'a>>,
    /// Behind `SET STATEMENT … FOR`, which does not stand in itself.
    inside_set: bool,
}

pub(super) fn walk(sql: &[u8], settings: SessionSettings, limit: usize) -> Option<Ddl> {
    if !may_begin(sql) {
        return None;
    }
    let tokens = Lexer::with_settings(sql, Reading::EVERYTHING, settings).peekable();
    let mut walk = Walk { sql, limit, tokens, inside_set: false };
    let mut ddl = walk.statement()?;
    // Where the walk came to the cut, objects may stand after it.
    let is_at_the_end = walk.tokens.peek().is_none_or(|token| token.end > limit);
    ddl.truncated |= limit < sql.len() && is_at_the_end;
    Some(ddl)
}

/// Whether the first letters can be those of a definition: most statements are none, and are passed
/// by one look. What is no letter may be a blank in the character set of the session, or begin a comment.
pub(super) fn may_begin(sql: &[u8]) -> bool {
    let sql = sql.trim_ascii_start();
    let upper = |at: usize| sql.get(at).map(u8::to_ascii_uppercase);
    match upper(0) {
        Some(b'S') => (upper(1), upper(2)) == (Some(b'E'), Some(b'T')),
        Some(first) => {
            !first.is_ascii_alphabetic() || matches!(first, b'A' | b'C' | b'D' | b'G' | b'R' | b'T')
        }
        None => false,
    }
}

/// A word in capitals; an empty one where it is longer than any that matters.
fn upper<'b>(word: &[u8], buffer: &'b mut [u8; 16]) -> &'b [u8] {
    let Some(upper) = buffer.get_mut(..word.len()) else { return &[] };
    upper.copy_from_slice(word);
    upper.make_ascii_uppercase();
    upper
}

impl<'a> Walk<'a> {
    fn statement(&mut self) -> Option<Ddl> {
        let first = self.tokens.next().filter(|token| token.lexeme == Lexeme::Word)?;
        match upper(first.bytes(self.sql), &mut [0; 16]) {
            b"CREATE" => self.create(),
            b"ALTER" => self.alter(),
            b"DROP" => self.drop(),
            b"RENAME" => self.rename(),
            b"TRUNCATE" => {
                self.take("TABLE");
                let mut ddl = Ddl::new(DdlKind::Truncate);
                self.names(&mut ddl, ObjectType::Table);
                Some(ddl)
            }
            b"GRANT" => self.grant(),
            b"REVOKE" => self.revoke(),
            b"SET" => self.set(),
            _ => None,
        }
    }

    fn create(&mut self) -> Option<Ddl> {
        let (object, temporary) = self.object()?;
        let mut ddl = Ddl { temporary, ..Ddl::new(DdlKind::create(object)?) };
        self.skip_condition();
        match object {
            ObjectType::User => self.users(&mut ddl),
            ObjectType::Role => self.accounts(&mut ddl, object),
            ObjectType::Index | ObjectType::Trigger => {
                self.name(&mut ddl, object);
                self.table_behind_on(&mut ddl);
            }
            _ => {
                self.name(&mut ddl, object);
            }
        }
        // `CREATE FUNCTION f RETURNS STRING SONAME 'lib.so'`
        if object == ObjectType::Function && self.take("RETURNS") {
            self.tokens.next();
            if self.take("SONAME") {
                ddl.kind = DdlKind::CreateUdf;
            }
        }
        Some(ddl)
    }

    fn alter(&mut self) -> Option<Ddl> {
        let (object, _) = self.object()?;
        let mut ddl = Ddl::new(DdlKind::alter(object)?);
        self.skip_condition();
        match object {
            ObjectType::User => {
                self.users(&mut ddl);
                if self.take("DEFAULT") && self.take("ROLE") {
                    ddl.kind = DdlKind::AlterUserDefaultRole;
                }
            }
            // `ALTER DATABASE COLLATE …` is about the default one.
            ObjectType::Schema if !self.is_option() => {
                self.name(&mut ddl, object);
                if self.take("UPGRADE") {
                    ddl.kind = DdlKind::AlterDbUpgrade;
                }
            }
            ObjectType::Schema | ObjectType::Instance => {}
            _ => {
                self.name(&mut ddl, object);
            }
        }
        Some(ddl)
    }

    fn drop(&mut self) -> Option<Ddl> {
        let (object, temporary) = self.object()?;
        let mut ddl = Ddl { temporary, ..Ddl::new(DdlKind::drop(object)?) };
        self.skip_condition();
        match object {
            ObjectType::User | ObjectType::Role => self.accounts(&mut ddl, object),
            ObjectType::Index => {
                self.name(&mut ddl, object);
                self.table_behind_on(&mut ddl);
            }
            _ => self.names(&mut ddl, object),
        }
        Some(ddl)
    }

    fn rename(&mut self) -> Option<Ddl> {
        let (object, _) = self.object()?;
        let kind = match object {
            ObjectType::Table => DdlKind::RenameTable,
            ObjectType::User => DdlKind::RenameUser,
            _ => return None,
        };
        let mut ddl = Ddl::new(kind);
        self.skip_condition();
        loop {
            match object {
                ObjectType::User => self.accounts(&mut ddl, object),
                _ => self.names(&mut ddl, object),
            }
            if !self.take("TO") && !self.take_symbol(b",") {
                return Some(ddl);
            }
        }
    }

    fn set(&mut self) -> Option<Ddl> {
        if !self.inside_set && self.take("STATEMENT") {
            self.inside_set = true;
            // MariaDB: `SET STATEMENT max_statement_time = 5 FOR ALTER TABLE …`
            while !self.take("FOR") {
                self.tokens.next()?;
            }
            return self.statement();
        }
        if self.take("DEFAULT") && self.take("ROLE") {
            let mut ddl = Ddl::new(DdlKind::AlterUserDefaultRole);
            while !self.take("TO") && !self.take("FOR") {
                if self.tokens.next().is_none() {
                    return Some(ddl);
                }
            }
            self.accounts(&mut ddl, ObjectType::User);
            return Some(ddl);
        }
        if !self.take("PASSWORD") {
            return None;
        }
        let mut ddl = Ddl::new(DdlKind::SetPassword);
        if self.take("FOR") {
            self.accounts(&mut ddl, ObjectType::User);
        }
        Some(ddl)
    }

    /// The word that says what is defined, and whether `TEMPORARY` stands before it.
    fn object(&mut self) -> Option<(ObjectType, bool)> {
        let mut temporary = false;
        for _ in 0..BETWEEN_MAX {
            let token = self.tokens.next()?;
            if token.lexeme != Lexeme::Word {
                continue;
            }
            match upper(token.bytes(self.sql), &mut [0; 16]) {
                b"TEMPORARY" => temporary = true,
                b"DEFINER" if self.take_symbol(b"=") => {
                    self.account();
                }
                word => match ObjectType::of_word(word) {
                    Some(ObjectType::Package) if self.take("BODY") => {
                        return Some((ObjectType::PackageBody, temporary));
                    }
                    Some(object) => {
                        let rest = match word {
                            b"LOGFILE" | b"RESOURCE" => "GROUP",
                            b"REFERENCE" => "SYSTEM",
                            b"MASKING" => "POLICY",
                            _ => "",
                        };
                        self.take(rest);
                        return Some((object, temporary));
                    }
                    None => {}
                },
            }
        }
        None
    }

    /// `IF EXISTS`, `IF NOT EXISTS`.
    pub(super) fn skip_condition(&mut self) {
        if self.take("IF") {
            self.take("NOT");
            self.take("EXISTS");
        }
    }

    /// Whether an option of a schema follows, and no name.
    fn is_option(&mut self) -> bool {
        const OPTIONS: [&[u8]; 7] =
            [b"CHARACTER", b"CHARSET", b"COLLATE", b"COMMENT", b"DEFAULT", b"ENCRYPTION", b"READ"];
        let sql = self.sql;
        self.tokens.peek().is_some_and(|token| {
            let word = token.bytes(sql);
            token.lexeme == Lexeme::Word
                && OPTIONS.iter().any(|option| word.eq_ignore_ascii_case(option))
        })
    }

    /// Skips to `ON`, and reads the table after it.
    fn table_behind_on(&mut self, ddl: &mut Ddl) {
        for _ in 0..BEFORE_TABLE_MAX {
            if self.take("ON") {
                self.name(ddl, ObjectType::Table);
                return;
            }
            if self.tokens.next().is_none() {
                return;
            }
        }
    }

    /// Names with commas between.
    fn names(&mut self, ddl: &mut Ddl, object: ObjectType) {
        while self.name(ddl, object) && self.take_symbol(b",") {}
    }

    /// Reads a name, with its schema if that is given; `false` if none follows.
    pub(super) fn name(&mut self, ddl: &mut Ddl, object: ObjectType) -> bool {
        let is_number = object == ObjectType::SpatialReferenceSystem;
        let is_first =
            |token: &Token| is_name(token) || is_number && token.lexeme == Lexeme::Integer;
        let Some(mut last) = self.tokens.next_if(is_first) else { return false };
        let mut schema = None;
        while self.take_symbol(b".") {
            let Some(part) = self.tokens.next_if(is_name) else { break };
            schema = Some(plain(last.bytes(self.sql)));
            last = part;
        }
        if last.end <= self.limit {
            let name = Some(plain(last.bytes(self.sql)));
            let (schema, name) =
                if object == ObjectType::Schema { (name, None) } else { (schema, name) };
            ddl.add(Object { object_type: object, schema, name });
        }
        true
    }

    /// Accounts with commas between.
    pub(super) fn accounts(&mut self, ddl: &mut Ddl, object: ObjectType) {
        loop {
            let Some((name, end)) = self.account() else { return };
            if end <= self.limit {
                ddl.add(Object { object_type: object, schema: None, name: Some(name) });
            }
            if !self.take_symbol(b",") {
                return;
            }
        }
    }

    /// Accounts with commas between, each with what belongs to it, such as `IDENTIFIED BY 'x'`.
    fn users(&mut self, ddl: &mut Ddl) {
        loop {
            self.accounts(ddl, ObjectType::User);
            let mut depth = 0_u32;
            while depth > 0 || !self.take_symbol(b",") {
                let sql = self.sql;
                let ends = |token: &Token| {
                    let bytes = token.bytes(sql);
                    bytes == b";" || bytes.eq_ignore_ascii_case(b"DEFAULT")
                };
                // The roles after `DEFAULT ROLE` have commas of their own.
                let Some(token) = self.tokens.next_if(|token| !ends(token)) else { return };
                match token.bytes(sql) {
                    b"(" => depth += 1,
                    b")" => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
        }
    }

    /// `user@host` or `user`, and where it ends.
    pub(super) fn account(&mut self) -> Option<(String, usize)> {
        let is_part = |token: &Token| is_name(token) || token.lexeme == Lexeme::Text;
        let user = self.tokens.next_if(is_part)?;
        let mut name = unquoted(user.bytes(self.sql));
        let mut end = user.end;
        if self.take_symbol(b"@") {
            name.push('@');
            let host = |token: &Token| is_part(token) || token.lexeme == Lexeme::Host;
            if let Some(host) = self.tokens.next_if(host) {
                name.push_str(&unquoted(host.bytes(self.sql)));
                end = host.end;
            }
        } else if self.take_symbol(b"(") {
            // `CURRENT_USER()`, `USER()`
            self.take_symbol(b")");
        }
        Some((name, end))
    }

    /// Takes the next token where it is this word.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let sql = self.sql;
        let is_word = |token: &Token| {
            token.lexeme == Lexeme::Word && token.bytes(sql).eq_ignore_ascii_case(word.as_bytes())
        };
        self.tokens.next_if(is_word).is_some()
    }

    /// Takes the next token where it is this mark.
    pub(super) fn take_symbol(&mut self, symbol: &[u8]) -> bool {
        let sql = self.sql;
        let is_symbol =
            |token: &Token| token.lexeme == Lexeme::Symbol && token.bytes(sql) == symbol;
        self.tokens.next_if(is_symbol).is_some()
    }

    /// Takes the next token; `None` at the end.
    pub(super) fn skip(&mut self) -> Option<Token> {
        self.tokens.next()
    }

    /// The bytes of a token.
    pub(super) fn bytes(&self, token: &Token) -> &'a [u8] {
        token.bytes(self.sql)
    }
}

fn is_name(token: &Token) -> bool {
    matches!(token.lexeme, Lexeme::Word | Lexeme::Name | Lexeme::Quoted)
}

/// A part of an account without its quotes, whichever they are.
fn unquoted(part: &[u8]) -> String {
    match part {
        [b'\'', ..] if hides_secret_in_name(part) => HIDDEN.to_owned(),
        [b'\'', ..] => {
            let inside = part.get(1..).unwrap_or_default();
            let inside = inside.strip_suffix(b"'").unwrap_or(inside);
            String::from_utf8_lossy(inside).replace("''", "'")
        }
        _ => plain(part),
    }
}
