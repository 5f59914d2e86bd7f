//! A statement without its data: what is shown of it unless its literals are asked for.

use crate::lexer::Lexeme;
use crate::lexer::Lexer;
use crate::lexer::Reading;
use crate::mask::mask_secrets;

/// A text as it may be shown: without secrets always, without literals where `redacted` says so.
pub fn printable(sql: &[u8], redacted: bool) -> String {
    let masked = mask_secrets(sql);
    if !redacted {
        return String::from_utf8_lossy(&masked).into_owned();
    }
    let mut out = Vec::new();
    redact(&masked, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes `sql` into `out` (which is cleared) with every literal as `?` and without comments,
/// which may hold data; the rest stays as typed. What stands in executable comments stays, their
/// marks go.
pub fn redact(sql: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut end = 0;
    for token in Lexer::new(sql, Reading::EVERYTHING) {
        let gap = sql.get(end..token.start).unwrap_or_default();
        if gap.iter().all(u8::is_ascii_whitespace) {
            out.extend_from_slice(gap);
        } else {
            out.push(b' ');
        }
        end = token.end;
        match token.lexeme {
            Lexeme::Integer | Lexeme::Number | Lexeme::Text | Lexeme::Hex | Lexeme::Bits => {
                out.push(b'?')
            }
            Lexeme::Repeated => {}
            _ => out.extend_from_slice(token.bytes(sql)),
        }
    }
}
