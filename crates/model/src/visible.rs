//! Texts from outside as they may be shown: names, statements and messages hold whatever somebody put
//! into them, and a terminal obeys escape sequences, also where it prints a file.
//!
//! What may not be shown stands on a line by its number, so that two names that differ never look the same
//! ([`name`]). JSON keeps every character, as an escape.

use std::borrow::Cow;

/// What is shown for `c` where there is room for one character: a blank for what moves to another line or column, U+FFFD for every other control
/// character (C0, DEL and C1, ECMA-48) and for what is not seen by itself, `c` for all else.
pub fn visible(c: char) -> char {
    match c {
        '\t'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => ' ',
        c if c.is_control() || is_unseen(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// Characters that take no place and hide or turn what stands beside them: `Default_Ignorable_Code_Point` of
/// Unicode 16, which has the joiners and the marks of direction, and the interlinear annotations.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// A text on one line: a blank for what moves to another line or column, and the number of every other
/// character that may not be shown: `<U+202E>`.
pub fn on_a_line(text: &str) -> Cow<'_, str> {
    replaced(
        text,
        |c| visible(c) == c,
        |c, shown| match visible(c) {
            ' ' => shown.push(' '),
            _ => number(c, shown),
        },
    )
}

/// A name on one line, with the numbers of all that may not be shown and of every white space but the blank. What
/// looks like such a number has one, too: no other name is shown in the same way.
pub fn name(name: &str) -> Cow<'_, str> {
    const NUMBER: &str = "<U+";
    let stays = |c: char| c == ' ' || visible(c) == c && !c.is_whitespace();
    match name.contains(NUMBER) {
        false => replaced(name, stays, number),
        true => {
            Cow::Owned(replaced(&name.replace(NUMBER, "<U+003C>U+"), stays, number).into_owned())
        }
    }
}

fn number(c: char, shown: &mut String) {
    shown.push_str(&format!("<U+{:04X}>", u32::from(c)));
}

/// A text that has lines of its own: its ends of lines and tabs stay.
pub fn in_lines(text: &str) -> Cow<'_, str> {
    let stays = |c| matches!(c, '\n' | '\t') || visible(c) == c;
    replaced(text, stays, |c, shown| shown.push(visible(c)))
}

/// How a cell begins that a spreadsheet takes for a formula, in any of its languages.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// A text in a cell of CSV: on one line, and behind an apostrophe where a spreadsheet would take it for a
/// formula. One that has an apostrophe there gets a second one, so that it stays another text.
pub fn in_cell(text: &str) -> Cow<'_, str> {
    let line = on_a_line(text);
    match line.trim_start_matches(['\'', ' ', '\u{a0}']).starts_with(FORMULA) {
        true => Cow::Owned(format!("'{line}")),
        false => line,
    }
}

/// JSON in which every character that may not be shown is an escape: it says the same as before.
pub fn in_json(json: &str) -> Cow<'_, str> {
    // Outside of its strings JSON has no such character but the ends of its lines.
    let stays = |c| c == '\n' || visible(c) == c;
    replaced(json, stays, |c, shown| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            shown.push_str(&format!("\\u{unit:04x}"));
        }
    })
}

/// The text with something else in place of what may not stay.
fn replaced(
    text: &str,
    stays: impl Fn(char) -> bool,
    replace: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if text.bytes().all(is_plain) || text.chars().all(&stays) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match stays(c) {
            true => shown.push(c),
            false => replace(c, &mut shown),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A title, a C1 sequence, a line that goes back, a turn of direction, what is not seen, and a second line.
    const EVIL: &str =
        "a\x1b]0;t\x07\u{9b}2J\r\u{202e}b\u{2066}c\u{200b}\u{e0041}d\x7f\u{2028}e\u{ad}\u{85}\n\tf";

    #[test]
    fn nothing_that_moves_turns_or_hides_is_left_on_a_line() {
        let line = on_a_line(EVIL);
        assert_eq!(
            line,
            "a<U+001B>]0;t<U+0007><U+009B>2J <U+202E>b<U+2066>c<U+200B><U+E0041>d<U+007F> e<U+00AD>   f"
        );
        for c in '\0'..=char::MAX {
            assert_eq!(visible(visible(c)), visible(c), "{c:?}");
            assert!(!visible(c).is_control(), "{c:?}");
        }
    }

    #[test]
    fn what_people_write_stays() {
        for text in ["SELECT 1", "größe", "数据库", "e\u{301}", "😀", "שלום", "a\u{a0}b"]
        {
            assert!(matches!(on_a_line(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn two_names_stay_two() {
        let names = [
            "ab",
            "a b",
            "a\tb",
            "a\nb",
            "a\u{2028}b",
            "a\u{a0}b",
            "a\u{3000}b",
            "a\u{200b}b",
            "a\u{202e}b",
            "a\u{fffd}b",
            "a<U+202E>b",
            "a<U+003C>U+202E>b",
            "a'b",
            "'=a",
            "=a",
            "''=a",
            " =a",
            "\t=a",
            "＝a",
        ];
        let of = |shown: fn(&str) -> Cow<'_, str>| {
            names.iter().map(|name| shown(name).into_owned()).collect::<BTreeSet<_>>()
        };
        assert_eq!(of(name).len(), names.len());
        assert_eq!(of(|text| Cow::Owned(in_cell(&name(text)).into_owned())).len(), names.len());
        assert_eq!(name("a<U+202E>b"), "a<U+003C>U+202E>b");
        assert!(of(name).iter().flat_map(|shown| shown.chars()).all(|c| visible(c) == c));
    }

    #[test]
    fn a_text_keeps_its_lines_and_tabs() {
        assert_eq!(in_lines("a\n\tb\r\nc\x1b[m"), "a\n\tb \nc\u{fffd}[m");
    }

    #[test]
    fn no_cell_is_a_formula() {
        for (text, cell) in [
            ("=HYPERLINK(\"x\")", "'=HYPERLINK(\"x\")"),
            ("@a := ?", "'@a := ?"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("\t=1", "' =1"),
            ("＝1", "'＝1"),
            ("'=1", "''=1"),
            ("'a'", "'a'"),
            ("SELECT ?", "SELECT ?"),
        ] {
            assert_eq!(in_cell(text), cell);
        }
    }

    #[test]
    fn json_says_the_same_in_characters_that_may_be_shown() {
        let json = in_json("{\n\"a\": \"\u{9b}\u{202e}\u{e0041}é\x7f\\u001b\"}\n");
        assert_eq!(json, "{\n\"a\": \"\\u009b\\u202e\\udb40\\udc41é\\u007f\\u001b\"}\n");
    }
}
