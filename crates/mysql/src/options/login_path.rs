//! The login path file (`.mylogin.cnf`) that `mysql_config_editor` writes.
//!
//! Format (`client/mysql_config_editor.cc`, `mysys/my_default.cc`, `mysys_ssl/my_aes.cc`): 4 unused
//! bytes, 20 bytes of key, then for each line its length (4 bytes, little endian) and the line
//! encrypted with AES-128 in ECB mode and PKCS#7 padding. The 20 bytes are folded into 16 by
//! exclusive or. This only hides the text from a glance; the mode of the file protects it.

use openssl::symm::{Cipher, decrypt};

const UNUSED_BYTES: usize = 4;
const KEY_BYTES: usize = 20;
const AES_KEY_BYTES: usize = 16;
/// The longest enciphered line that the clients take (`MAX_CIPHER_STORE_LEN` bounds only the length
/// field; a line is at most 4 KiB there, with a block of padding).
const LINE_BYTES_MAX: usize = 4096 + 16;

/// Why a login path file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {reason}")]
pub struct Unreadable {
    /// Offset in the file.
    pub at: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

/// Turns the bytes of a login path file into the text of an option file. Total.
///
/// # Errors
/// The file ends early, a length is out of range, or a line does not decipher.
pub(super) fn decipher(file: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let key = file
        .get(UNUSED_BYTES..UNUSED_BYTES + KEY_BYTES)
        .map(fold_key)
        .ok_or(Unreadable { at: file.len(), reason: "the file ends before its 20 bytes of key" })?;
    let mut text = Vec::new();
    let mut at = UNUSED_BYTES + KEY_BYTES;
    while at < file.len() {
        let length = file
            .get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u32::from_le_bytes)
            .ok_or(Unreadable { at, reason: "the file ends inside the length of a line" })?
            as usize;
        if length > LINE_BYTES_MAX {
            return Err(Unreadable { at, reason: "the length of a line is out of range" });
        }
        at += 4;
        let line = file
            .get(at..at + length)
            .ok_or(Unreadable { at, reason: "the file ends inside a line" })?;
        let plain = decrypt(Cipher::aes_128_ecb(), &key, None, line)
            .map_err(|_| Unreadable { at, reason: "a line does not decipher with the key" })?;
        text.extend(plain);
        at += length;
    }
    Ok(text)
}

fn fold_key(bytes: &[u8]) -> [u8; AES_KEY_BYTES] {
    let mut key = [0; AES_KEY_BYTES];
    for (at, byte) in bytes.iter().enumerate() {
        key[at % AES_KEY_BYTES] ^= byte;
    }
    key
}

#[cfg(test)]
pub(super) mod tests {
    use openssl::symm::encrypt;
    use proptest::prelude::*;

    use super::*;

    /// Writes a login path file as the format above says.
    pub(crate) fn encipher(lines: &[&str]) -> Vec<u8> {
        let key: Vec<u8> = (0..20u8).map(|n| n * 13 % 32).collect();
        let mut file = [&[0; UNUSED_BYTES], key.as_slice()].concat();
        for line in lines {
            let line =
                encrypt(Cipher::aes_128_ecb(), &fold_key(&key), None, line.as_bytes()).unwrap();
            file.extend((line.len() as u32).to_le_bytes());
            file.extend(line);
        }
        file
    }

    /// Written by `mysql_config_editor set --login-path=remote --user=ann --password` of MySQL 9.7
    /// with the password `s3cret "#x`.
    const REAL_FILE: &[u8] = include_bytes!("testdata/mylogin.cnf");

    #[test]
    fn a_file_of_the_real_editor_is_read() {
        let text = String::from_utf8(decipher(REAL_FILE).unwrap()).unwrap();
        assert!(text.starts_with("[remote]\nuser = "), "{text}");
    }

    #[test]
    fn what_was_enciphered_comes_back() {
        let lines = ["[client]\n", "user = ann\n", "password = \"0123456789abcdef\"\n"];
        assert_eq!(decipher(&encipher(&lines)).unwrap(), lines.concat().into_bytes());
    }

    #[test]
    fn a_file_cut_anywhere_but_between_lines_is_refused() {
        let file = encipher(&["[client]\n", "user=x\n"]);
        let whole_lines = [24, 24 + 4 + 16, file.len()];
        for end in 0..=file.len() {
            assert_eq!(decipher(&file[..end]).is_ok(), whole_lines.contains(&end), "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(file in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decipher(&file);
        }
    }
}
