//! A statement in lines, one per clause.

use waggle_sql::{Lexeme, Lexer, Reading, SessionSettings, SqlModes};

use super::text::wrapped;

/// Words that begin a line.
const CLAUSES: [&str; 17] = [
    "SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "VALUES", "SET",
    "JOIN", "LEFT", "RIGHT", "INNER", "CROSS", "NATURAL", "ON",
];
/// Words that begin a line further right.
const CONDITIONS: [&str; 2] = ["AND", "OR"];
/// Words after which `JOIN` does not begin a line, `OUTER` among them.
const BEFORE_JOIN: [&str; 6] = ["LEFT", "RIGHT", "INNER", "CROSS", "NATURAL", "OUTER"];

/// The lines of a statement of a session under these modes, none wider than `width`. The character set
/// of the session does not matter, since the text is UTF-8 here.
pub(crate) fn lines(sql: &str, modes: SqlModes, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    let (mut depth, mut end) = (0_u32, 0);
    let (mut before, mut between) = (String::new(), false);
    let settings = SessionSettings { modes, ..SessionSettings::default() };
    let lexer = Lexer::with_settings(sql.as_bytes(), Reading::EVERYTHING, settings);
    let mut tokens = lexer.peekable();
    while let Some(token) = tokens.next() {
        let word = sql.get(token.start..token.end).unwrap_or_default();
        let gap = sql.get(end..token.start).unwrap_or_default();
        end = token.end;
        let upper = match token.lexeme {
            Lexeme::Word => word.to_ascii_uppercase(),
            _ => word.to_owned(),
        };
        // `LEFT (` is a function.
        let is_called =
            tokens.peek().is_some_and(|next| sql.get(next.start..next.end) == Some("("));
        let is_function = is_called && matches!(upper.as_str(), "LEFT" | "RIGHT");
        let is_word = token.lexeme == Lexeme::Word && depth == 0 && !is_function;
        let breaks = is_word && CLAUSES.contains(&upper.as_str()) && !continues(&before, &upper);
        let indents = is_word && CONDITIONS.contains(&upper.as_str()) && !between;
        let is_first = lines.len() == 1 && lines.iter().all(String::is_empty);
        if (breaks || indents) && !is_first {
            lines.push(if indents { "  ".to_owned() } else { String::new() });
        } else if let Some(line) = lines.last_mut() {
            line.push_str(if gap.trim().is_empty() && !gap.is_empty() { " " } else { gap });
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
        }
        match word {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        between = match upper.as_str() {
            "BETWEEN" => true,
            "AND" => false,
            _ => between,
        };
        before = upper;
    }
    if let (Some(line), Some(rest)) = (lines.last_mut(), sql.get(end..)) {
        line.push_str(rest);
    }
    lines.iter().flat_map(|line| indented(line, width)).collect()
}

/// Whether a word goes on with the clause that the word before began.
fn continues(before: &str, word: &str) -> bool {
    match word {
        "JOIN" => BEFORE_JOIN.contains(&before),
        "SET" => matches!(before, "CHARACTER" | "CHAR"),
        "VALUES" => before == "=",
        "FROM" => matches!(before, "DISTINCT"),
        _ => false,
    }
}

/// A line that is too wide goes on further right.
fn indented(line: &str, width: usize) -> Vec<String> {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let room = width.saturating_sub(indent + 4);
    let broken = wrapped(text, room).into_iter().enumerate();
    let blanks = |at: usize| " ".repeat(if at == 0 { indent } else { indent + 4 });
    broken.map(|(at, part)| blanks(at) + &part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_begin_lines_and_conditions_stand_further_right() {
        let sql = "SELECT `a` FROM `t` LEFT JOIN `u` ON `t` . `id` = `u` . `id` \
                   WHERE `b` BETWEEN ? AND ? AND `c` IN ( SELECT `d` FROM `e` ) ORDER BY `a`";
        assert_eq!(
            lines(sql, SqlModes::default(), 80),
            [
                "SELECT `a`",
                "FROM `t`",
                "LEFT JOIN `u`",
                "ON `t` . `id` = `u` . `id`",
                "WHERE `b` BETWEEN ? AND ?",
                "  AND `c` IN ( SELECT `d` FROM `e` )",
                "ORDER BY `a`",
            ]
        );
    }

    #[test]
    fn nothing_of_a_text_is_lost_whatever_it_is() {
        let odd =
            ["", "   ", "/* c */ select 'a\x1b[2J' --", "((((", "insert into t values (1)", "é'"];
        for text in odd {
            // What may not be shown has a sign in its place.
            let squeezed = |text: &str| text.replace(' ', "").replace('\x1b', "\u{fffd}");
            assert_eq!(
                squeezed(&lines(text, SqlModes::default(), 20).concat()),
                squeezed(text),
                "{text:?}"
            );
        }
    }
}
