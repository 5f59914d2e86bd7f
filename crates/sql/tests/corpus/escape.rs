//! The corpora have a statement a line: line ends and tabs in it are escaped.

/// A statement as it was before it was escaped.
pub(crate) fn unescape(statement: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = statement.bytes();
    while let Some(byte) = bytes.next() {
        let escaped = if byte == b'\\' { bytes.next() } else { None };
        out.push(match escaped {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(other) => other,
            None => byte,
        });
    }
    out
}
