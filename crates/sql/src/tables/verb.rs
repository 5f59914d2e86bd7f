//! What a statement does with tables, by its first words.

use super::walk::Place;

/// A word that matters, unquoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Select,
    Insert,
    Update,
    Delete,
    Truncate,
    Create,
    Alter,
    Drop,
    Rename,
    Show,
    Describe,
    Handler,
    /// `LOCK`, `FLUSH`, `ANALYZE` and others that a list of tables may follow.
    Maintain,
    /// `GRANT`, `REVOKE`, `UNLOCK`: nothing of interest follows.
    Other,
    Nothing,
    With,
    Recursive,
    Values,
    Table,
    Tables,
    View,
    Index,
    Trigger,
    /// What is no table: `PROCEDURE`, `DATABASE`, `USER`.
    Object,
    Columns,
    From,
    In,
    Join,
    StraightJoin,
    Using,
    On,
    As,
    To,
    For,
    Share,
    Like,
    References,
    Into,
    Order,
    Group,
    /// A word that may stand before a name.
    Modifier,
    /// A word that ends a list of tables.
    Clause,
}

impl Word {
    pub(super) fn of(word: &[u8]) -> Word {
        let mut buffer = [0; 16];
        let Some(upper) = buffer.get_mut(..word.len()) else { return Word::Other };
        upper.copy_from_slice(word);
        upper.make_ascii_uppercase();
        match &*upper {
            b"SELECT" => Word::Select,
            b"INSERT" | b"REPLACE" => Word::Insert,
            b"UPDATE" => Word::Update,
            b"DELETE" => Word::Delete,
            b"TRUNCATE" => Word::Truncate,
            b"CREATE" => Word::Create,
            b"ALTER" => Word::Alter,
            b"DROP" => Word::Drop,
            b"RENAME" => Word::Rename,
            b"SHOW" => Word::Show,
            b"EXPLAIN" | b"DESCRIBE" | b"DESC" => Word::Describe,
            b"HANDLER" => Word::Handler,
            b"LOCK" | b"FLUSH" | b"ANALYZE" | b"CHECK" | b"CHECKSUM" | b"OPTIMIZE" | b"REPAIR" => {
                Word::Maintain
            }
            b"GRANT" | b"REVOKE" | b"UNLOCK" => Word::Nothing,
            b"WITH" => Word::With,
            b"RECURSIVE" => Word::Recursive,
            b"VALUES" => Word::Values,
            b"TABLE" => Word::Table,
            b"TABLES" => Word::Tables,
            b"VIEW" => Word::View,
            b"INDEX" => Word::Index,
            b"TRIGGER" => Word::Trigger,
            b"PROCEDURE" | b"FUNCTION" | b"EVENT" | b"PACKAGE" | b"DATABASE" | b"SCHEMA"
            | b"USER" | b"ROLE" | b"SERVER" | b"TABLESPACE" => Word::Object,
            b"COLUMNS" | b"FIELDS" | b"INDEXES" | b"KEYS" => Word::Columns,
            b"FROM" => Word::From,
            b"IN" => Word::In,
            b"JOIN" => Word::Join,
            b"STRAIGHT_JOIN" => Word::StraightJoin,
            b"USING" => Word::Using,
            b"ON" => Word::On,
            b"AS" => Word::As,
            b"TO" => Word::To,
            b"FOR" => Word::For,
            b"SHARE" => Word::Share,
            b"LIKE" => Word::Like,
            b"REFERENCES" => Word::References,
            b"INTO" => Word::Into,
            b"ORDER" => Word::Order,
            b"GROUP" => Word::Group,
            b"LOW_PRIORITY" | b"HIGH_PRIORITY" | b"DELAYED" | b"IGNORE" | b"IF" | b"NOT"
            | b"EXISTS" | b"LATERAL" => Word::Modifier,
            b"WHERE" | b"SET" | b"HAVING" | b"LIMIT" | b"UNION" | b"EXCEPT" | b"INTERSECT"
            | b"WINDOW" | b"RETURNING" => Word::Clause,
            _ => Word::Other,
        }
    }

    /// Whether the word is never the name of a table without quotes: of all reserved words those
    /// that stand where a name could.
    pub(super) fn is_reserved(self) -> bool {
        use Word::{
            Columns, Handler, Nothing, Object, Other, Recursive, Share, Tables, Truncate, View,
        };
        let free =
            [Columns, Handler, Nothing, Object, Other, Recursive, Share, Tables, Truncate, View];
        !free.contains(&self)
    }

    /// Whether a statement that `EXPLAIN` explains begins with it.
    pub(super) fn is_explained(self) -> bool {
        use Word::{Delete, Insert, Select, Table, Update, Values, With};
        matches!(self, Delete | Insert | Select | Table | Update | Values | With)
    }
}

/// How far the first words of the statement are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// Nothing is read yet.
    Begin,
    /// A query, or anything in which queries may stand.
    Query,
    Insert,
    Update,
    Delete,
    /// `CREATE`, `ALTER`, `DROP` and `RENAME`, as long as it is open what.
    CreateWhat,
    AlterWhat,
    DropWhat,
    RenameWhat,
    Create,
    Alter,
    Rename,
    /// `CREATE INDEX` and `DROP INDEX`: the table follows `ON`.
    Index,
    Trigger,
    /// A statement that lists tables, before and after `TABLE`.
    Maintain,
    List,
    /// `SHOW`, `SHOW COLUMNS` and `SHOW CREATE`.
    ShowWhat,
    Show,
    ShowCreate,
    Describe,
}

/// What a word makes of a verb.
pub(super) enum Step {
    /// Nothing: it is a word inside the statement.
    Inside,
    To(Verb, Place),
    /// Nothing of interest can follow.
    End,
}

impl Verb {
    /// What the next word outside of parentheses does; `again` where a verb may follow, after the
    /// list of a `WITH`.
    pub(super) fn step(self, word: Word, again: bool) -> Step {
        use Place::{Elsewhere, Table, Tables};
        use Step::{End, Inside, To};
        match (self, word) {
            (Verb::Begin, _) => first(word),
            (Verb::Query, Word::Insert | Word::Update | Word::Delete) if again => first(word),
            (Verb::Describe | Verb::Maintain, word)
                if word.is_explained() && word != Word::Table =>
            {
                first(word)
            }
            (Verb::Describe, Word::Table) => To(Verb::Query, Table),
            (Verb::Describe, Word::For) => End,
            (Verb::Maintain, Word::Table | Word::Tables) => To(Verb::List, Tables),
            (Verb::CreateWhat, Word::Table) => To(Verb::Create, Table),
            (Verb::AlterWhat, Word::Table) => To(Verb::Alter, Table),
            (Verb::DropWhat, Word::Table | Word::View) => To(Verb::List, Tables),
            (Verb::RenameWhat, Word::Table) => To(Verb::Rename, Tables),
            (Verb::Rename, Word::To) => To(Verb::Rename, Tables),
            (Verb::CreateWhat | Verb::AlterWhat, Word::View) => To(Verb::Query, Table),
            (Verb::CreateWhat | Verb::DropWhat, Word::Index) => To(Verb::Index, Elsewhere),
            (Verb::CreateWhat, Word::Trigger) => To(Verb::Trigger, Elsewhere),
            (Verb::Index | Verb::Trigger, Word::On) => To(self, Table),
            (
                Verb::CreateWhat
                | Verb::AlterWhat
                | Verb::DropWhat
                | Verb::RenameWhat
                | Verb::ShowCreate,
                Word::Object | Word::Trigger,
            ) => End,
            (Verb::ShowWhat, Word::Columns | Word::Index) => To(Verb::Show, Elsewhere),
            (Verb::ShowWhat, Word::Create) => To(Verb::ShowCreate, Elsewhere),
            (Verb::ShowWhat, Word::Table | Word::Tables | Word::From | Word::In) => End,
            (Verb::ShowCreate, Word::Table | Word::View) => To(Verb::List, Table),
            (Verb::Show, Word::From | Word::In) => To(Verb::List, Table),
            _ => Inside,
        }
    }
}

fn first(word: Word) -> Step {
    let (verb, place) = match word {
        Word::Insert => (Verb::Insert, Place::Table),
        Word::Update => (Verb::Update, Place::Tables),
        Word::Delete => (Verb::Delete, Place::Elsewhere),
        Word::Truncate | Word::Handler => (Verb::List, Place::Table),
        Word::Create => (Verb::CreateWhat, Place::Elsewhere),
        Word::Alter => (Verb::AlterWhat, Place::Elsewhere),
        Word::Drop => (Verb::DropWhat, Place::Elsewhere),
        Word::Rename => (Verb::RenameWhat, Place::Elsewhere),
        Word::Maintain => (Verb::Maintain, Place::Elsewhere),
        Word::Show => (Verb::ShowWhat, Place::Elsewhere),
        Word::Describe => (Verb::Describe, Place::Elsewhere),
        Word::Nothing => return Step::End,
        _ => return Step::Inside,
    };
    Step::To(verb, place)
}
