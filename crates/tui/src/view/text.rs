//! Prepares a server's text for the screen. The text is not trusted: a statement can hold anything
//! that a client sends, including terminal escape sequences.

use unicode_width::UnicodeWidthChar;
use waggle_model::visible::visible;

/// Columns of a character that may be shown; 0 for one that takes no column of its own: a combining mark.
pub(crate) fn columns_of(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// Columns of a text that was cleaned.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// The text on one line, as it may be shown; combining marks would share a cell of the screen, and go.
pub(crate) fn clean(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().map(visible).filter(|c| columns_of(*c) > 0)
}

/// At most `width` columns of a text; an ellipsis where something was cut.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let mut line = String::new();
    let (mut used, mut before_last) = (0, (0, 0));
    for c in clean(text) {
        let columns = columns_of(c);
        if used + columns > width {
            return with_ellipsis(line, before_last, width);
        }
        // The last place at which an ellipsis still fits.
        if used < width {
            before_last = (line.len(), used);
        }
        line.push(c);
        used += columns;
    }
    line
}

fn with_ellipsis(mut line: String, (mut end, mut used): (usize, usize), width: usize) -> String {
    if width == 0 {
        return String::new();
    }
    let full = columns(&line);
    if full < width {
        (end, used) = (line.len(), full);
    }
    line.truncate(end);
    line.push('…');
    // A wide character gave way to an ellipsis of one column.
    line.extend(std::iter::repeat_n(' ', width.saturating_sub(used + 1)));
    line
}

/// At most `width` columns, filled up with blanks.
pub(crate) fn left(text: &str, width: usize) -> String {
    let mut line = fit(text, width);
    let used = columns(&line);
    line.extend(std::iter::repeat_n(' ', width.saturating_sub(used)));
    line
}

/// At most `width` columns, filled with blanks before.
pub(crate) fn right(text: &str, width: usize) -> String {
    let line = fit(text, width);
    let blanks = width.saturating_sub(columns(&line));
    " ".repeat(blanks) + &line
}

/// The text in lines of at most `width` columns, broken at blanks where there are any.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let cleaned: String = clean(text).collect();
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in cleaned.split_inclusive(' ') {
        if used > 0 && used + columns(word.trim_end()) > width {
            lines.push(String::new());
            used = 0;
        }
        for c in word.chars() {
            let columns = columns_of(c);
            if used + columns > width && c != ' ' {
                lines.push(String::new());
                used = 0;
            }
            if let Some(line) = lines.last_mut() {
                line.push(c);
            }
            used += columns;
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_and_no_mark_without_a_column_comes_through() {
        let evil = "a\x1b]0;title\x07b\u{9b}31mc\u{202e}d\u{200b}e\r\nf\u{301}\x7fg";
        let shown = fit(evil, 80);
        assert_eq!(shown, "a\u{fffd}]0;title\u{fffd}b\u{fffd}31mc\u{fffd}d\u{fffd}e  f\u{fffd}g");
        assert!(shown.chars().all(|c| columns_of(c) > 0));
    }

    #[test]
    fn a_text_is_cut_at_its_columns_also_where_characters_are_wide() {
        assert_eq!(fit("SELECT 1", 8), "SELECT 1");
        assert_eq!(fit("SELECT 12", 8), "SELECT …");
        for width in 0..12 {
            let cut = fit("数据库テーブル", width);
            assert_eq!(columns(&cut), width, "{cut:?}");
            assert_eq!(columns(&left("数据", width)), width);
            assert_eq!(columns(&right("数据", width)), width);
        }
    }

    #[test]
    fn wrapped_lines_hold_all_of_the_text() {
        let text = "SELECT a FROM t WHERE averyveryverylongname = 数据库数据库";
        let lines = wrapped(text, 12);
        assert!(lines.iter().all(|line| columns(line) <= 12), "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
    }
}
