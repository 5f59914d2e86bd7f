//! The standard streams. What others wrote into a text reaches them without control characters, wherever in
//! waggle it is printed: the only escape sequences are waggle's own.

use std::borrow::Cow;
use std::fmt::Arguments;
use std::io::{self, BufWriter, Stderr, Stdout, Write};

use waggle_model::visible::in_lines;

/// Writes text to `W` as it may be shown.
pub(crate) struct Plain<W> {
    to: W,
    /// The begin of a character that is not whole yet.
    begun: Vec<u8>,
}

/// The standard output; each line is out when it ends.
pub(crate) fn stdout() -> Plain<Stdout> {
    Plain::new(io::stdout())
}

/// The standard output for much at once; it is out when it is flushed.
pub(crate) fn buffered_stdout() -> Plain<BufWriter<Stdout>> {
    Plain::new(BufWriter::new(io::stdout()))
}

/// The standard error.
pub(crate) fn stderr() -> Plain<Stderr> {
    Plain::new(io::stderr())
}

/// Says something on the standard error: see the macro `tell`.
pub(crate) fn say(words: Arguments<'_>) {
    let words = words.to_string().replace('\n', "\n  ");
    // Nobody is left who could be told of a failure.
    let _ = stderr().write_all((words + "\n").as_bytes());
}

/// Says something on the standard error, as `eprintln` does. What has several lines is indented from the second
/// on: no name with an end of a line in it looks like another message. A closed terminal ends nothing.
macro_rules! tell {
    ($($words:tt)*) => { $crate::streams::say(format_args!($($words)*)) };
}
pub(crate) use tell;

impl<W: Write> Plain<W> {
    /// Writes to `to`.
    pub(crate) fn new(to: W) -> Plain<W> {
        Plain { to, begun: Vec::new() }
    }

    /// Writes an escape sequence of waggle's own.
    pub(crate) fn styled(&mut self, sequence: &'static str) -> io::Result<()> {
        self.to.write_all(sequence.as_bytes())
    }
}

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend_from_slice(bytes);
        let (text, rest) = text_of(&self.begun);
        let rest = rest.to_vec();
        self.to.write_all(in_lines(&text).as_bytes())?;
        self.begun = rest;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Bytes as text, and the begin of a character at their end.
fn text_of(bytes: &[u8]) -> (Cow<'_, str>, &[u8]) {
    let cut = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let is_begin = std::str::from_utf8(cut).is_err_and(|error| error.error_len().is_none());
    let (text, rest) = bytes.split_at(bytes.len() - if is_begin { cut.len() } else { 0 });
    (String::from_utf8_lossy(text), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_sequences_pass() {
        let mut out = Plain::new(Vec::new());
        out.styled("\x1b[H").unwrap();
        let name = "\x1b]0;x\x07\u{9b}1m\u{202e}";
        writeln!(out, "a\t{name}").unwrap();
        // The single byte of a C1 control character, as an 8-bit terminal would obey it.
        out.write_all(b"\x9b2J\xff\n").unwrap();
        let expected = "\x1b[Ha\t\u{fffd}]0;x\u{fffd}\u{fffd}1m\u{fffd}\n\u{fffd}2J\u{fffd}\n";
        assert_eq!(String::from_utf8(out.to).unwrap(), expected);
    }

    #[test]
    fn a_character_may_come_in_pieces() {
        for text in ["a数据é\n", "x\u{9b}y", "\u{202e}", "😀\x1b"] {
            let mut out = Plain::new(Vec::new());
            text.bytes().for_each(|byte| out.write_all(&[byte]).unwrap());
            assert_eq!(String::from_utf8(out.to).unwrap(), in_lines(text));
        }
    }
}
