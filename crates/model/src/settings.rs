//! Session settings that change how the server reads its statements.

/// Longest name of a character set (`MY_CS_NAME_SIZE` is 32; the servers' own have 8 at most).
const NAME_MAX: usize = 16;

/// The settings of a session under which a statement was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionSettings {
    /// The bits of `@@sql_mode`.
    pub sql_mode: u64,
    /// `@@character_set_client`.
    pub charset: CharsetName,
}

/// The name of a character set, such as `utf8mb4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CharsetName([u8; NAME_MAX]);

impl CharsetName {
    /// From the bytes of the name; `None` if they are none: empty, longer than 16, or other
    /// characters than letters, digits and `_`.
    pub fn new(name: &[u8]) -> Option<CharsetName> {
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let mut bytes = [0; NAME_MAX];
        let place = bytes.get_mut(..name.len()).filter(|place| !place.is_empty())?;
        if !name.iter().all(is_name) {
            return None;
        }
        place.copy_from_slice(name);
        Some(CharsetName(bytes))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(NAME_MAX);
        // Only letters, digits and `_` got in.
        std::str::from_utf8(&self.0[..end]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_out_as_it_went_in_and_nonsense_is_none() {
        assert_eq!(CharsetName::new(b"utf8mb4").unwrap().as_str(), "utf8mb4");
        assert_eq!(CharsetName::new(&[b'a'; 16]).unwrap().as_str(), "a".repeat(16));
        for nonsense in [&b""[..], &[b'a'; 17], b"la tin1", b"gbk\0", b"\xff"] {
            assert_eq!(CharsetName::new(nonsense), None);
        }
    }
}
