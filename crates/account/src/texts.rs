//! What is kept of the text of a statement.

use waggle_model::{SAMPLE_TEXT_MAX, SessionSettings, Text};
use waggle_sql::mask_secrets;

/// The settings under which a text is read; `None` where they are not known.
pub fn settings_of(settings: Option<SessionSettings>) -> Option<waggle_sql::SessionSettings> {
    let settings = settings?;
    waggle_sql::SessionSettings::of_session(settings.sql_mode, settings.charset.as_str())
}

/// The first [`SAMPLE_TEXT_MAX`] bytes of a text without its secrets, and the length of the whole text
/// without them. The whole of it is searched, for the word that tells a secret may stand behind it.
pub fn head_without_secrets(text: Text<'_>, settings: Option<SessionSettings>) -> (Vec<u8>, u64) {
    let masked = mask_secrets(text.bytes, settings_of(settings));
    let not_captured = text.length.saturating_sub(text.bytes.len() as u64);
    let head = masked.get(..SAMPLE_TEXT_MAX).unwrap_or(&masked).to_vec();
    (head, masked.len() as u64 + not_captured)
}
