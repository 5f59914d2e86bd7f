//! The letters of a word, held in one processor register.

/// The first 16 bytes of a word as one number, the first byte lowest; what is after the word is 0.
///
/// Most words are no longer than that: they are looked up and written without a loop over bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Letters(u128);

/// The bytes of a [`Letters`].
pub(crate) const LETTERS: usize = 16;

/// By the length of a word, the bits of its letters.
const OWN: [u128; LETTERS + 1] = {
    let mut masks = [0; LETTERS + 1];
    let mut length = 1;
    while length <= LETTERS {
        masks[length] = u128::MAX >> (8 * (LETTERS - length));
        length += 1;
    }
    masks
};

impl Letters {
    /// Those of the word that begins at `start`.
    #[inline]
    pub(crate) fn of(text: &[u8], start: usize, length: usize) -> Letters {
        let Some(rest) = text.get(start..) else { return Letters(0) };
        let bytes = match (rest.first_chunk(), text.last_chunk()) {
            (Some(first), _) => u128::from_le_bytes(*first),
            (None, Some(last)) => Letters::behind(*last, LETTERS - rest.len()),
            (None, None) => Letters::of_short(rest),
        };
        Letters(bytes & OWN[length.min(LETTERS)])
    }

    /// Without this many bytes before it.
    fn behind(bytes: [u8; LETTERS], before: usize) -> u128 {
        u128::from_le_bytes(bytes).checked_shr(8 * before as u32).unwrap_or_default()
    }

    #[cold]
    fn of_short(text: &[u8]) -> u128 {
        text.iter().rfold(0, |sum, byte| sum << 8 | u128::from(*byte))
    }

    /// The bytes, and zeros after them.
    #[inline]
    pub(crate) fn bytes(self) -> [u8; LETTERS] {
        self.0.to_le_bytes()
    }

    /// The first byte.
    #[inline]
    pub(crate) fn first(self) -> u8 {
        self.0 as u8
    }

    /// All of them in eight bytes: a bit that one has is set. 0 if there is none.
    #[inline]
    pub(crate) fn together(self) -> u64 {
        self.0 as u64 | (self.0 >> 64) as u64
    }

    /// In capitals, where all are letters; other bytes may change, but not into letters.
    #[inline]
    pub(crate) fn upper(self) -> [u8; LETTERS] {
        (self.0 & (u128::MAX / 0xff * 0xdf)).to_le_bytes()
    }

    /// Without the case of letters. Where two words of one length have the same number, their bytes
    /// differ by a case bit at most: that is one letter, or one of the bytes is in no keyword.
    #[inline]
    pub(crate) fn folded(self) -> (u64, u64) {
        const CASE: u64 = 0xdfdf_dfdf_dfdf_dfdf;
        (self.0 as u64 & CASE, (self.0 >> 64) as u64 & CASE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded(word: &[u8]) -> [u8; LETTERS] {
        let mut bytes = [0; LETTERS];
        let length = word.len().min(LETTERS);
        bytes[..length].copy_from_slice(&word[..length]);
        bytes
    }

    #[test]
    fn the_letters_of_every_part_of_a_text_of_any_length_are_its_first_bytes() {
        let text: Vec<u8> = (b'0'..=b'z').collect();
        for length in 0..=text.len() {
            let text = &text[..length];
            for start in 0..=length {
                for end in start..=length {
                    let word = &text[start..end];
                    assert_eq!(Letters::of(text, start, word.len()).bytes(), padded(word));
                }
            }
        }
        assert_eq!(Letters::of(b"a", 2, 1).bytes(), padded(b""));
        assert_eq!(Letters::of(&text, text.len() + 1, 1).bytes(), padded(b""));
    }

    #[test]
    fn what_one_letter_has_all_have_together() {
        let together = |word: &str| Letters::of(word.as_bytes(), 0, word.len()).together();
        assert_eq!(together(""), 0);
        assert_eq!(together("ab12ab12AC12"), u64::from_le_bytes(*b"ac12ab12"));
        assert_eq!(together("abcdefghijklmno") & 0x8080_8080_8080_8080, 0);
        assert_ne!(together("abcdefghijklmn\u{e9}") & 0x8080_8080_8080_8080, 0);
    }

    #[test]
    fn words_fold_to_one_number_where_they_are_the_same_but_for_case() {
        let folded = |word: &[u8]| Letters::of(word, 0, word.len()).folded();
        assert_eq!(folded(b"Group_By_1"), folded(b"gROUP_bY_1"));
        assert_ne!(folded(b"sixteen_letters1"), folded(b"sixteen_letters2"));
        assert_ne!(folded(b"eight_01"), folded(b"eight_02"));
    }
}
