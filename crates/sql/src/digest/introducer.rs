//! Names of character sets: `_name` before a literal is an introducer.

const NAMES: [&str; 42] = [
    "armscii8", "ascii", "big5", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850",
    "cp852", "cp866", "cp932", "dec8", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "geostd8",
    "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7",
    "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis", "utf16", "utf16le", "utf32",
    "utf8", "utf8mb3", "utf8mb4",
];

/// Whether a word is an introducer such as `_utf8mb4` (`SHOW CHARACTER SET`).
#[inline(never)]
pub(super) fn is_introducer(word: &[u8]) -> bool {
    match word {
        [b'_', name @ ..] => NAMES.iter().any(|it| it.as_bytes().eq_ignore_ascii_case(name)),
        _ => false,
    }
}
