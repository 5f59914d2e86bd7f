//! The servers' own tables of words: a text file each, with a section per list.

use super::Dialect;

/// Keywords, function words, words of hints, and the tokens behind which an expression begins.
pub(super) fn of(dialect: Dialect) -> [Vec<&'static str>; 4] {
    let text = match dialect {
        Dialect::Mysql9 => include_str!("words/mysql9.txt"),
        Dialect::Mysql80 => include_str!("words/mysql80.txt"),
        Dialect::Mysql57 => include_str!("words/mysql57.txt"),
        Dialect::Mariadb => include_str!("words/mariadb.txt"),
        Dialect::Mariadb11 => include_str!("words/mariadb11.txt"),
        Dialect::Mariadb118 => include_str!("words/mariadb118.txt"),
    };
    ["\n[keywords]", "\n[functions]", "\n[hints]", "\n[starts]"].map(|head| {
        let (_, section) = text.split_once(head).unwrap_or_default();
        // The first line says what the section is.
        let lines = section.lines().skip(1).take_while(|line| !line.starts_with('['));
        lines.flat_map(str::split_ascii_whitespace).collect()
    })
}
