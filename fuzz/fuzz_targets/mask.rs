//! No password of a statement that manages users is in its masked text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use waggle_sql::mask_secrets;

/// Letters that the input must not have by itself.
const MARKER: &[u8] = b"hUnTeR2zQ";

fuzz_target!(|input: &[u8]| {
    let _ = mask_secrets(input, None);
    if contains(input) || input.iter().any(|byte| matches!(byte, b'\'' | b'"' | b'`' | b'\\')) {
        return;
    }
    // What stands before may be a comment or anything else that does not open a string.
    let mut sql = input.to_vec();
    sql.extend_from_slice(b"\n*/ CREATE USER u IDENTIFIED BY '");
    sql.extend_from_slice(MARKER);
    sql.extend_from_slice(b"' ");
    sql.extend_from_slice(input);
    assert!(!contains(&mask_secrets(&sql, None)));
});

fn contains(text: &[u8]) -> bool {
    text.windows(MARKER.len()).any(|window| window == MARKER)
}
