//! What a statement does, by its first words.

use crate::letters::Letters;

/// The kind of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `SELECT`, also `TABLE`, `VALUES` and a `WITH` before one of them.
    Select,
    /// `INSERT`.
    Insert,
    /// `UPDATE`.
    Update,
    /// `DELETE`.
    Delete,
    /// `REPLACE`.
    Replace,
    /// `CALL`.
    Call,
    /// `SET`, of anything but passwords and roles.
    Set,
    /// `SHOW`, `DESCRIBE`, `EXPLAIN`, `HELP`.
    Show,
    /// `BEGIN`, `START TRANSACTION`.
    Begin,
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK`.
    Rollback,
    /// `CREATE`, `ALTER`, `DROP`, `RENAME`, `TRUNCATE` of anything but users and roles.
    Ddl,
    /// Users, roles, passwords and privileges.
    UserManagement,
    /// `PREPARE`, `DEALLOCATE`.
    Prepare,
    /// `EXECUTE`.
    Execute,
    /// `LOAD DATA`, `LOAD XML`.
    Load,
    /// Anything else.
    #[default]
    Other,
}

impl Kind {
    /// Whether a word after `password =` is a column in such statements.
    pub(crate) fn is_data(self) -> bool {
        use Kind::{Call, Delete, Insert, Load, Replace, Select, Show, Update};
        matches!(self, Select | Insert | Update | Delete | Replace | Call | Load | Show)
    }
}

/// Finds the kind from the words of a statement as they come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Classifier {
    kind: Kind,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    First,
    /// Behind `CREATE`, `ALTER`, `DROP`, `RENAME`: users and roles are to be told from the rest.
    Object,
    /// Behind `SET`.
    Setting,
    /// Behind `START`.
    Start,
    /// Behind `WITH`: the first verb outside of parentheses counts.
    With,
    Done,
}

/// What the first word of a statement says of its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct First(Kind, State);

impl First {
    /// Of a word in capitals.
    pub(crate) fn of(word: &str) -> First {
        let (kind, state) = first(word.as_bytes());
        First(kind, state)
    }
}

impl Classifier {
    #[inline]
    pub(crate) fn is_first(self) -> bool {
        self.state == State::First
    }

    /// Takes the first word.
    #[inline]
    pub(crate) fn begin(&mut self, first: First) {
        (self.kind, self.state) = (first.0, first.1);
    }

    pub(crate) fn kind(self) -> Kind {
        self.kind
    }

    #[inline]
    pub(crate) fn is_done(self) -> bool {
        self.state == State::Done
    }

    /// Takes the next word with its length in bytes; `depth` counts the parentheses around it.
    pub(crate) fn word(&mut self, letters: Letters, length: usize, depth: u32) {
        let upper = letters.upper();
        let Some(upper) = upper.get(..length) else {
            self.long_word();
            return;
        };
        (self.kind, self.state) = match self.state {
            State::First => first(upper),
            State::With if depth == 0 => match first(upper) {
                (Kind::Other, _) => (self.kind, State::With),
                verb => verb,
            },
            State::Object => match upper {
                b"USER" | b"ROLE" => (Kind::UserManagement, State::Done),
                b"OR" | b"REPLACE" => (Kind::Ddl, State::Object),
                _ => (Kind::Ddl, State::Done),
            },
            State::Setting => match upper {
                b"PASSWORD" | b"ROLE" | b"DEFAULT" => (Kind::UserManagement, State::Done),
                _ => (Kind::Set, State::Done),
            },
            State::Start if upper == b"TRANSACTION" => (Kind::Begin, State::Done),
            State::Start => (Kind::Other, State::Done),
            state => (self.kind, state),
        };
    }

    /// A word or a name that is no word of any rule.
    fn long_word(&mut self) {
        if self.state != State::With {
            self.state = State::Done;
        }
    }
}

fn first(word: &[u8]) -> (Kind, State) {
    let kind = match word {
        b"SELECT" | b"TABLE" | b"VALUES" => Kind::Select,
        b"INSERT" => Kind::Insert,
        b"UPDATE" => Kind::Update,
        b"DELETE" => Kind::Delete,
        b"REPLACE" => Kind::Replace,
        b"CALL" => Kind::Call,
        b"SHOW" | b"DESCRIBE" | b"DESC" | b"EXPLAIN" | b"HELP" => Kind::Show,
        b"BEGIN" => Kind::Begin,
        b"COMMIT" => Kind::Commit,
        b"ROLLBACK" => Kind::Rollback,
        b"TRUNCATE" => Kind::Ddl,
        b"GRANT" | b"REVOKE" => Kind::UserManagement,
        b"PREPARE" | b"DEALLOCATE" => Kind::Prepare,
        b"EXECUTE" => Kind::Execute,
        b"LOAD" => Kind::Load,
        b"CREATE" | b"ALTER" | b"DROP" | b"RENAME" => return (Kind::Ddl, State::Object),
        b"SET" => return (Kind::Set, State::Setting),
        b"START" => return (Kind::Other, State::Start),
        b"WITH" => return (Kind::Other, State::With),
        _ => Kind::Other,
    };
    (kind, State::Done)
}

/// The kind of a statement from its text.
pub fn kind(sql: &[u8]) -> Kind {
    use crate::lexer::{Lexeme, Lexer, Reading};
    let mut classifier = Classifier::default();
    let mut depth = 0_u32;
    for token in Lexer::new(sql, Reading::EVERYTHING) {
        match (token.lexeme, token.bytes(sql)) {
            (Lexeme::Word | Lexeme::Name, word) => {
                let letters = Letters::of(sql, token.start, word.len());
                classifier.word(letters, word.len(), depth);
            }
            (Lexeme::Symbol, b"(") => depth += 1,
            (Lexeme::Symbol, b")") => depth = depth.saturating_sub(1),
            _ => {}
        }
        if classifier.is_done() {
            break;
        }
    }
    classifier.kind()
}
