//! The second half of a fingerprint: patterns on the text after comments and strings are removed.

use std::ops::Range;

use super::phrase;

/// Length of the longest word that matters.
const LONGEST: usize = 6;

const BLANK: u8 = 1;
/// `\w` of a Perl that reads bytes.
const WORD: u8 = 2;
const LETTER: u8 = 4;
/// What begins a number, a sign among it.
const NUMBER: u8 = 8;
/// What goes on with one: hexadecimal digits in small letters, `x` and `b`.
const NUMBER_MORE: u8 = 16;

static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let letter = byte as u8;
        table[byte] = match letter {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0c => BLANK,
            b'0'..=b'9' => WORD | NUMBER | NUMBER_MORE,
            b'+' | b'-' => NUMBER | NUMBER_MORE,
            b'.' => NUMBER_MORE,
            b'a'..=b'f' | b'x' => WORD | LETTER | NUMBER_MORE,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => WORD | LETTER,
            _ => 0,
        };
        byte += 1;
    }
    table
}

fn is(byte: u8, class: u8) -> bool {
    CLASS[usize::from(byte)] & class != 0
}

/// Writes one text as another.
type Rewrite = fn(&[u8], &mut Vec<u8>);

/// Words that begin a pattern over the finished text.
#[derive(Default)]
struct Seen {
    limit: bool,
    union: bool,
    order: bool,
}

/// Writes `plain` to the empty `out`: numbers, `NULL`, `TRUE` and `FALSE` as `?`, lists of values as
/// `(?+)`, blanks as one, letters small; then what concerns several words.
pub(super) fn fold(plain: &mut Vec<u8>, out: &mut Vec<u8>) {
    if let Some(used) = database(plain) {
        out.extend_from_slice(used);
        return;
    }
    let seen = fold_words(plain, out);
    let rewrites: [(bool, Rewrite); 3] = [
        (seen.union, phrase::fold_unions),
        (seen.limit, phrase::fold_limits),
        (seen.order, phrase::drop_ascending),
    ];
    for (_, rewrite) in rewrites.iter().filter(|(seen, _)| *seen) {
        std::mem::swap(plain, out);
        out.clear();
        rewrite(plain, out);
    }
}

fn fold_words(plain: &[u8], out: &mut Vec<u8>) -> Seen {
    let plain = plain.strip_suffix(b"\n").unwrap_or(plain);
    let mut seen = Seen::default();
    let mut lists = Lists::default();
    let mut at = 0;
    while let Some(byte) = plain.get(at).copied() {
        let class = CLASS[usize::from(byte)];
        at = if class & LETTER != 0 {
            let end = run(plain, at, LETTER);
            word(plain, at..end, out, &mut seen, &mut lists);
            end
        } else if class & NUMBER != 0 {
            lists.value(out);
            value(out);
            run(plain, at + 1, NUMBER_MORE)
        } else if class & BLANK != 0 {
            if !out.is_empty() {
                out.push(b' ');
            }
            run(plain, at, BLANK)
        } else if byte == b'?' {
            lists.value(out);
            value(out);
            at + 1
        } else {
            lists.mark(byte, out);
            out.push(byte);
            lists.written(byte, out.len());
            at + 1
        };
    }
    lists.end(out);
    out.make_ascii_lowercase();
    seen
}

/// The end of the bytes of a class from `from` on.
fn run(text: &[u8], from: usize, class: u8) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.iter().position(|byte| !is(*byte, class)).unwrap_or(rest.len())
}

/// `use ?` for the choice of a database.
fn database(plain: &[u8]) -> Option<&'static [u8]> {
    let verb = plain.get(..4)?;
    let name = plain.get(4..)?;
    let name = name.strip_suffix(b"\n").unwrap_or(name);
    let alone = !name.is_empty() && !name.iter().any(u8::is_ascii_whitespace);
    (verb.eq_ignore_ascii_case(b"use ") && alone).then_some(b"use ?")
}

/// A value takes the `x` or `b` before it along, for `x'41'` and `b'1'`, and so for `tab1`; and a
/// point.
fn value(out: &mut Vec<u8>) {
    match out.last_mut() {
        Some(last @ (b'x' | b'b' | b'.')) => *last = b'?',
        _ => out.push(b'?'),
    }
}

/// Writes a run of letters, or `?` for one that is a value.
fn word(plain: &[u8], place: Range<usize>, out: &mut Vec<u8>, seen: &mut Seen, lists: &mut Lists) {
    let before = place.start.checked_sub(1).and_then(|before| plain.get(before));
    let behind = plain.get(place.end);
    let word = plain.get(place).unwrap_or_default();
    let digit = |byte: Option<&u8>| byte.is_some_and(|byte| is(*byte, WORD));
    let mut upper = [0; LONGEST];
    let upper = upper.get_mut(..word.len()).map_or(&[][..], |upper| {
        upper.copy_from_slice(word);
        upper.make_ascii_uppercase();
        upper
    });
    let whole = !out.last().is_some_and(|byte| is(*byte, WORD));
    match upper {
        b"NULL" if whole => {
            lists.value(out);
            return out.push(b'?');
        }
        b"TRUE" | b"FALSE" if whole && !digit(before) && !digit(behind) => {
            lists.value(out);
            return value(out);
        }
        _ if matches!(word, b"x" | b"b") && behind.is_some_and(|byte| is_value(*byte)) => {}
        _ => lists.end(out),
    }
    out.extend_from_slice(word);
    match upper {
        _ if !whole => {}
        b"IN" | b"VALUE" | b"VALUES" => lists.begin(out.len()),
        b"LIMIT" => seen.limit = true,
        b"UNION" => seen.union = true,
        b"ORDER" => seen.order = true,
        _ => {}
    }
}

fn is_value(byte: u8) -> bool {
    byte == b'?' || is(byte, NUMBER)
}

/// The lists of values after `IN` and `VALUES`: `(?, ?), (?, ?)` becomes `(?+)`.
#[derive(Default)]
struct Lists {
    /// Length of the text when the keyword was written; `None` if no list can follow.
    begin: Option<usize>,
    /// Length of the text after the last whole list.
    end: usize,
    inside: bool,
}

impl Lists {
    fn begin(&mut self, length: usize) {
        *self = Lists { begin: Some(length), end: length, inside: false };
    }

    /// Before a value is written.
    fn value(&mut self, out: &mut Vec<u8>) {
        if !self.inside {
            self.end(out);
        }
    }

    /// Before a mark is written.
    fn mark(&mut self, mark: u8, out: &mut Vec<u8>) {
        let fits = match mark {
            b',' => true,
            b'(' => !self.inside,
            b')' => self.inside,
            _ => false,
        };
        if !fits {
            self.end(out);
        }
    }

    /// Behind a mark that was written.
    fn written(&mut self, mark: u8, length: usize) {
        if self.begin.is_none() {
            return;
        }
        match mark {
            b'(' => self.inside = true,
            b')' => (self.inside, self.end) = (false, length),
            _ => {}
        }
    }

    /// The lists are over: folds the complete ones.
    fn end(&mut self, out: &mut Vec<u8>) {
        self.inside = false;
        let Some(begin) = self.begin.take() else { return };
        if self.end > begin {
            drop(out.splice(begin..self.end, b"(?+)".iter().copied()));
        }
    }
}
