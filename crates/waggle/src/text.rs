//! Texts of a server as they may be shown.

use std::io;

use serde::Serialize;
use waggle_account::settings_of;
use waggle_model::SessionSettings;
use waggle_model::visible::in_json;

/// A statement without secrets, and without literals where that is asked for.
pub(crate) fn printable(text: &[u8], settings: Option<SessionSettings>, redact: bool) -> String {
    waggle_sql::printable(text, settings_of(settings), redact)
}

/// The begin of a text, with a sign where something is left out.
pub(crate) fn cut(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Bytes of the server as text.
pub(crate) fn lossy(bytes: &Option<Vec<u8>>) -> Option<String> {
    bytes.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// A value as JSON on one line, in which every character may be shown.
///
/// # Errors
/// The value is none that JSON has, such as a map whose keys are no texts.
pub(crate) fn json(value: &impl Serialize) -> io::Result<String> {
    Ok(in_json(&serde_json::to_string(value)?).into_owned())
}
