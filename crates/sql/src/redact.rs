//! A statement without its data: what `--redact` shows.

use crate::lexer::Lexeme;
use crate::lexer::Lexer;
use crate::lexer::Reading;

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
