//! The text of one MySQL option file.
//!
//! The grammar is that of the clients themselves (`search_default_file_with_ext` in
//! `mysys/my_default.cc`; "Using Option Files" in the MySQL Reference Manual).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::Secret;

/// One line of an option file that says something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// An option in a group.
    Setting(Setting),
    /// `!include FILE`: its groups and options belong here.
    Include {
        /// The line, from 1.
        line: usize,
        /// The file as it is written.
        path: PathBuf,
    },
    /// `!includedir FOLDER`: every `*.cnf` file of the folder belongs here.
    IncludeFolder {
        /// The line, from 1.
        line: usize,
        /// The folder as it is written.
        path: PathBuf,
    },
}

/// An option in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The line, from 1.
    pub line: usize,
    /// The name between the brackets.
    pub group: String,
    /// The name as the clients compare it: lower case as written, `_` turned into `-`, without
    /// `loose-`.
    pub key: String,
    /// The value without quotes and with its escapes resolved; `None` if there is no `=`. It may
    /// be a password, so it is never printed.
    pub value: Option<Secret>,
}

/// Why the text is not an option file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Malformed {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it, and what it should be.
    pub reason: &'static str,
}

/// Reads the text of an option file. Any bytes give either entries or the first line that is wrong.
/// The error never contains the line, because it may hold a password.
///
/// # Errors
/// A group without `]`, an option before the first group, or an unknown `!` directive.
pub fn parse(text: &[u8]) -> Result<Vec<Entry>, Malformed> {
    let mut entries = Vec::new();
    let mut group: Option<String> = None;
    for (index, bytes) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = index + 1;
        let bytes = bytes.trim_ascii();
        match bytes.first() {
            None | Some(b'#' | b';') => {}
            Some(b'!') => entries.push(directive(line, &bytes[1..])?),
            Some(b'[') => group = Some(group_name(line, &bytes[1..])?),
            Some(_) => {
                let group = group.clone().ok_or(Malformed {
                    line,
                    reason: "an option stands before the first group; \
                             write a group such as [client] above it",
                })?;
                entries.push(Entry::Setting(setting(line, group, bytes)));
            }
        }
    }
    Ok(entries)
}

fn directive(line: usize, bytes: &[u8]) -> Result<Entry, Malformed> {
    let unknown = Malformed {
        line,
        reason: "an unknown directive; after `!` only `include FILE` or `includedir FOLDER` \
                 may stand",
    };
    let end = bytes.iter().position(u8::is_ascii_whitespace).unwrap_or(bytes.len());
    let (word, path) = (&bytes[..end], bytes[end..].trim_ascii());
    let path = PathBuf::from(OsString::from_vec(path.to_vec()));
    match word {
        _ if path.as_os_str().is_empty() => Err(unknown),
        b"include" => Ok(Entry::Include { line, path }),
        b"includedir" => Ok(Entry::IncludeFolder { line, path }),
        _ => Err(unknown),
    }
}

fn group_name(line: usize, bytes: &[u8]) -> Result<String, Malformed> {
    let end = bytes
        .iter()
        .position(|byte| *byte == b']')
        .ok_or(Malformed { line, reason: "a group is not closed; end its name with `]`" })?;
    Ok(String::from_utf8_lossy(bytes[..end].trim_ascii_end()).into_owned())
}

fn setting(line: usize, group: String, bytes: &[u8]) -> Setting {
    let bytes = without_end_comment(bytes);
    let (key, value) = match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => (&bytes[..at], Some(Secret::new(unquote(bytes[at + 1..].trim_ascii())))),
        None => (bytes, None),
    };
    let key = String::from_utf8_lossy(key.trim_ascii()).replace('_', "-");
    let key = key.strip_prefix("loose-").map(str::to_owned).unwrap_or(key);
    Setting { line, group, key, value }
}

/// The line up to a `#` that stands outside quotes; a `;` begins a comment only at the start of a
/// line.
fn without_end_comment(bytes: &[u8]) -> &[u8] {
    let (mut quote, mut escaped) = (None, false);
    for (at, byte) in bytes.iter().enumerate() {
        match (byte, quote) {
            (b'\'' | b'"', _) if escaped => {}
            (b'\'' | b'"', None) => quote = Some(*byte),
            (_, Some(open)) if open == *byte => quote = None,
            (b'#', None) => return &bytes[..at],
            _ => {}
        }
        escaped = quote.is_some() && *byte == b'\\' && !escaped;
    }
    bytes
}

fn unquote(value: &[u8]) -> Vec<u8> {
    let value = match value {
        [open @ (b'"' | b'\''), inner @ .., close] if open == close => inner,
        _ => value,
    };
    let mut out = Vec::with_capacity(value.len());
    let mut bytes = value.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(b'b') => out.push(0x08),
            Some(b's') => out.push(b' '),
            Some(other @ (b'"' | b'\'' | b'\\')) => out.push(other),
            Some(other) => out.extend([b'\\', other]),
            None => out.push(b'\\'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn settings(text: &str) -> Vec<(String, Option<String>)> {
        let entries = parse(text.as_bytes()).unwrap();
        let own = |secret: Secret| String::from_utf8(secret.reveal().to_vec()).unwrap();
        entries
            .into_iter()
            .filter_map(|entry| match entry {
                Entry::Setting(setting) => Some((setting.key.clone(), setting.value.map(own))),
                _ => None,
            })
            .collect()
    }

    fn one(line: &str) -> (String, Option<String>) {
        settings(&format!("[client]\n{line}\n")).remove(0)
    }

    #[test]
    fn values_are_read_as_the_clients_read_them() {
        for (line, key, value) in [
            ("user=ann", "user", Some("ann")),
            ("  user  =  ann  ", "user", Some("ann")),
            ("user=ann\r", "user", Some("ann")),
            ("ssl_mode=REQUIRED", "ssl-mode", Some("REQUIRED")),
            ("loose_ssl-mode=x", "ssl-mode", Some("x")),
            ("password=\"a b # c\" # note", "password", Some("a b # c")),
            ("password=a#b", "password", Some("a")),
            ("password=a;b", "password", Some("a;b")),
            ("password='it\\'s'", "password", Some("it's")),
            ("password=a=b", "password", Some("a=b")),
            ("password=\"\"", "password", Some("")),
            ("password=", "password", Some("")),
            ("password", "password", None),
            ("password=\\s\\\\\\d\\n", "password", Some(" \\\\d\n")),
            ("password=\"x", "password", Some("\"x")),
            ("password=\\", "password", Some("\\")),
        ] {
            let (got_key, got_value) = one(line);
            assert_eq!((got_key.as_str(), got_value.as_deref()), (key, value), "{line}");
        }
    }

    #[test]
    fn comments_and_blank_lines_say_nothing() {
        assert_eq!(settings("# a\n; b\n\n [client]\n #c=1\n;d=2\n"), []);
    }

    #[test]
    fn includes_keep_their_place_between_the_options() {
        let entries = parse(b"!include /a b.cnf\n[x]\n!includedir  /d \nk=v").unwrap();
        assert_eq!(entries[0], Entry::Include { line: 1, path: "/a b.cnf".into() });
        assert_eq!(entries[1], Entry::IncludeFolder { line: 3, path: "/d".into() });
        assert!(matches!(&entries[2], Entry::Setting(s) if s.line == 4 && s.group == "x"));
    }

    #[test]
    fn a_wrong_line_is_named_without_its_content() {
        for (text, line) in
            [("user=x", 1), ("[a]\n[client", 2), ("\n!inclde x", 2), ("[a]\n!include", 2)]
        {
            let error = parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.line, line, "{text}");
        }
        let error = parse(b"password=hunter2").unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&text);
        }

        #[test]
        fn any_lines_of_the_grammar_give_an_answer(text in "([\\[\\]!#;='\"\\\\a-c_\n -]|include){0,80}") {
            let _ = parse(text.as_bytes());
        }

        #[test]
        fn a_quoted_value_comes_back(value in "[ -~]{0,40}") {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
            prop_assert_eq!(one(&format!("password = \"{escaped}\"")).1, Some(value));
        }
    }
}
