//! The servers' own tables of words.

mod mariadb;
mod mariadb11;
mod mysql57;
mod mysql80;
mod mysql9;

use super::Dialect;

type List = &'static [&'static str];

/// Keywords, function words, words of hints, and the tokens behind which an expression begins.
pub(super) fn of(dialect: Dialect) -> (List, List, List, List) {
    use Dialect::Mariadb;
    use Dialect::Mariadb11;
    use Dialect::Mysql9;
    use Dialect::Mysql57;
    use Dialect::Mysql80;
    match dialect {
        Mysql9 => (mysql9::KEYWORDS, mysql9::FUNCTIONS, mysql9::HINTS, mysql9::STARTS),
        Mysql80 => (mysql80::KEYWORDS, mysql80::FUNCTIONS, mysql80::HINTS, mysql80::STARTS),
        Mysql57 => (mysql57::KEYWORDS, mysql57::FUNCTIONS, mysql57::HINTS, mysql57::STARTS),
        Mariadb => (mariadb::KEYWORDS, mariadb::FUNCTIONS, mariadb::HINTS, mariadb::STARTS),
        Mariadb11 => {
            (mariadb11::KEYWORDS, mariadb11::FUNCTIONS, mariadb11::HINTS, mariadb11::STARTS)
        }
    }
}
