//! Session settings that change how statements are read.

use crate::Charset;

/// What changes the tokens of a statement, beside the server. The default is that of a server
/// without a mode that matters, with clients that speak `utf8mb4`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SessionSettings {
    /// `sql_mode`.
    pub modes: SqlModes,
    /// `character_set_client`.
    pub charset: Charset,
}

impl SessionSettings {
    /// From what a server keeps of a session: the number of its `sql_mode`, and the name of its
    /// `character_set_client`. `None` for a character set that is not known here.
    pub fn of_session(sql_mode: u64, charset: &str) -> Option<SessionSettings> {
        let charset = Charset::from_name(charset)?;
        Some(SessionSettings { modes: SqlModes::from_bits(sql_mode), charset })
    }
}

/// The modes of `sql_mode` that change the tokens of a statement; the others are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SqlModes(u8);

/// Name and bit of each mode (`MODE_*` in `sql/sql_const.h`, `sql/sql_class.h` of MariaDB: the same
/// bits in all versions).
const MODES: [(&str, u64, SqlModes); 5] = [
    ("PIPES_AS_CONCAT", 1 << 1, SqlModes::PIPES_AS_CONCAT),
    ("ANSI_QUOTES", 1 << 2, SqlModes::ANSI_QUOTES),
    ("IGNORE_SPACE", 1 << 3, SqlModes::IGNORE_SPACE),
    ("NO_BACKSLASH_ESCAPES", 1 << 20, SqlModes::NO_BACKSLASH_ESCAPES),
    ("HIGH_NOT_PRECEDENCE", 1 << 29, SqlModes::HIGH_NOT_PRECEDENCE),
];

/// Names that turn on what `ANSI` does, all but the first in 5.7 and MariaDB only
/// (`expand_sql_mode` in `sql/sys_vars.cc`).
const COMBINED: [&str; 6] = ["ANSI", "ORACLE", "MSSQL", "POSTGRESQL", "DB2", "MAXDB"];

impl SqlModes {
    /// `||` joins strings.
    pub const PIPES_AS_CONCAT: SqlModes = SqlModes(1);
    /// `"` quotes an identifier.
    pub const ANSI_QUOTES: SqlModes = SqlModes(2);
    /// A blank may stand between the name of a function and its parenthesis.
    pub const IGNORE_SPACE: SqlModes = SqlModes(4);
    /// A backslash in a string is a character like any other.
    pub const NO_BACKSLASH_ESCAPES: SqlModes = SqlModes(8);
    /// `NOT` binds as `!`.
    pub const HIGH_NOT_PRECEDENCE: SqlModes = SqlModes(16);
    /// What `ANSI` turns on.
    pub const ANSI: SqlModes = SqlModes(1 | 2 | 4);

    /// From the number that a server keeps (`THD::variables.sql_mode`).
    pub fn from_bits(bits: u64) -> SqlModes {
        let set = MODES.iter().filter(|(_, bit, _)| bits & bit != 0);
        set.fold(SqlModes::default(), |modes, (_, _, mode)| modes.with(*mode))
    }

    /// From the text of `@@sql_mode`: names with commas between. Unknown names say nothing.
    pub fn from_text(text: &str) -> SqlModes {
        let mut modes = SqlModes::default();
        for name in text.split(',').map(str::trim) {
            if COMBINED.iter().any(|it| it.eq_ignore_ascii_case(name)) {
                modes = modes.with(SqlModes::ANSI);
            }
            for (_, _, mode) in MODES.iter().filter(|(it, ..)| it.eq_ignore_ascii_case(name)) {
                modes = modes.with(*mode);
            }
        }
        modes
    }

    /// These modes and those.
    #[must_use]
    pub const fn with(self, other: SqlModes) -> SqlModes {
        SqlModes(self.0 | other.0)
    }

    /// Whether all of `other` are on.
    #[inline]
    pub const fn contains(self, other: SqlModes) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names, as `SET sql_mode` takes them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        MODES.iter().filter(move |(_, _, mode)| self.contains(*mode)).map(|(name, ..)| *name)
    }
}
