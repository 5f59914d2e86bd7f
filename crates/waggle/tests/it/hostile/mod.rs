//! Hostile users, servers and files, by real processes. The table of all
//! attacks and their tests is `docs/attacks.md`.

mod answers;
mod forged;
mod held_up;
mod journals;
mod logins;
mod private_servers;
mod processes;
mod silent_files;
mod thief;
mod wire;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::watching::{Ended, Waggle};

/// The user and the group that have nothing.
const NOBODY: u32 = 65_534;
/// A login begins with so much that has always the same length (`Protocol::HandshakeResponse41`); a client that wants
/// TLS and gets none takes its leave with less.
const LOGIN_BYTES_MIN: usize = 32;
/// What nobody may learn.
const PASSWORD: &str = "hUnTeR2zQ";

/// Writes an option file that only we may read.
fn option_file(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, format!("[client]\n{text}\n")).unwrap();
    open_to(&path, 0o600);
    path
}

/// Sets who may do what with a file.
fn open_to(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Runs waggle to its end with an option file.
fn run(words: &[&str], option_file: &Path) -> Ended {
    let file = ["--defaults-file", option_file.to_str().unwrap()];
    Waggle::start(&[words, &file].concat()).end()
}

/// That waggle ended with one of its own codes and told all of `words`.
fn assert_told(ended: &Ended, about: &str, code: i32, words: &[&str]) {
    let said = &ended.err;
    assert!(!said.contains("panicked"), "{about}: {said}");
    assert_eq!(ended.code, Some(code), "{about}: {said}");
    for word in words {
        assert!(said.contains(word), "{about}: no {word:?} in {said}");
    }
}
