//! What texts have in common that begin alike.

/// As in `shared.h`.
const SHAPE_BYTES: usize = 128;
const SHAPE_FACTOR: u64 = 0x100_0000_01b3;

/// The shape of a text, as the kernel's half makes it (`tap/shape.bpf.h`): a hash of its first bytes without numbers and without
/// what stands in quotes. Digits within a name count. It is quick rather than exact: texts of one digest may have several shapes,
/// and texts of several digests one.
pub fn shape_of(text: &[u8]) -> u64 {
    let (mut hash, mut quote, mut escapes, mut in_word) = (0_u64, None, false, false);
    for byte in text.iter().copied().take(SHAPE_BYTES) {
        let is_quote = matches!(byte, b'\'' | b'"') && !escapes;
        escapes = byte == b'\\' && !escapes;
        quote = match quote {
            None if is_quote => Some(byte),
            Some(open) if is_quote && open == byte => None,
            other => other,
        };
        let is_digit = byte.is_ascii_digit();
        in_word = byte.is_ascii_alphabetic() || byte == b'_' || is_digit && in_word;
        if quote.is_none() && (!is_digit || in_word) {
            hash = hash.wrapping_mul(SHAPE_FACTOR).wrapping_add(u64::from(byte) + 1);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_makes_it_of_as_many_bytes() {
        let kernel = include_str!("../carrier/shared.h");
        assert!(kernel.contains(&format!("#define SHAPE_BYTES {SHAPE_BYTES}\n")));
        assert!(kernel.contains(&format!("#define SHAPE_FACTOR {SHAPE_FACTOR:#x}ULL ")));
    }

    #[test]
    fn numbers_and_what_is_quoted_make_no_difference_and_names_do() {
        let same = |one: &str, other: &str| shape_of(one.as_bytes()) == shape_of(other.as_bytes());
        assert!(same("SELECT c FROM t1 WHERE id=5", "SELECT c FROM t1 WHERE id=4711"));
        assert!(same("SELECT 'a5' , \"b\"", "SELECT 'it' , \"\""));
        assert!(same(r"SELECT 'it\'s', 1", r#"SELECT 'a "word', 22"#));
        assert!(!same("SELECT c FROM t1", "SELECT c FROM t2"));
        assert!(!same("SELECT c FROM t_1", "SELECT c FROM t_2"));
        assert!(!same("SELECT 1", "SELECT a"));
        let long = "x".repeat(SHAPE_BYTES);
        assert!(same(&long, &format!("{long} and more")) && !same(&long, &long[1..]));
        assert_eq!(shape_of(b""), 0);
    }
}
