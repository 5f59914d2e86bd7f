//! A statement without its data. waggle shows this unless you ask for literals.

use crate::SessionSettings;
use crate::lexer::{Lexeme, Lexer, Reading};
use crate::mask::{ends_elsewhere, mask_secrets};

/// A text as it may be shown: without secrets always, without literals where `redacted` says so.
/// `settings` are those of its session, where they are known.
pub fn printable(sql: &[u8], settings: Option<SessionSettings>, redacted: bool) -> String {
    let masked = mask_secrets(sql, settings);
    if !redacted {
        return String::from_utf8_lossy(&masked).into_owned();
    }
    let mut out = Vec::new();
    redact(&masked, settings, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes `sql` into `out` (which is cleared) with every literal as `?` and without comments,
/// which may hold data; the rest stays as typed. What stands in executable comments stays, their
/// marks go.
///
/// `settings` are those of the session. Where they are not known, the text is read under the default
/// ones, and nothing is written of what stands after a string that may end elsewhere: `...` stands
/// for it.
pub fn redact(sql: &[u8], settings: Option<SessionSettings>, out: &mut Vec<u8>) {
    out.clear();
    let mut end = 0;
    for token in Lexer::with_settings(sql, Reading::EVERYTHING, settings.unwrap_or_default()) {
        let gap = sql.get(end..token.start).unwrap_or_default();
        if gap.iter().all(u8::is_ascii_whitespace) {
            out.extend_from_slice(gap);
        } else {
            out.push(b' ');
        }
        end = token.end;
        if settings.is_none() && ends_elsewhere(&token, sql) {
            out.push(b'?');
            out.extend_from_slice(if end < sql.len() { b"..." } else { b"" });
            return;
        }
        match token.lexeme {
            Lexeme::Integer | Lexeme::Number | Lexeme::Text | Lexeme::Hex | Lexeme::Bits => {
                out.push(b'?')
            }
            Lexeme::Repeated => {}
            _ => out.extend_from_slice(token.bytes(sql)),
        }
    }
}
