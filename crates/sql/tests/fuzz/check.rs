//! What holds for every input.

use waggle_sql::Ddl;
use waggle_sql::Dialect;
use waggle_sql::Fingerprinter;
use waggle_sql::Lexeme;
use waggle_sql::Lexer;
use waggle_sql::Normaliser;
use waggle_sql::Reading;
use waggle_sql::SessionSettings;
use waggle_sql::SqlModes;
use waggle_sql::SqlPrepared;
use waggle_sql::Tables;
use waggle_sql::format;
use waggle_sql::kind;
use waggle_sql::mask_secrets;
use waggle_sql::redact;

const DIALECTS: [Dialect; 4] =
    [Dialect::Mysql9, Dialect::Mysql80, Dialect::Mysql57, Dialect::Mariadb];
/// Bytes of a digest text at most: 512 tokens of the longest words.
const DIGEST_MAX: usize = 32 * 1024;

/// Checks inputs one after the other, with buffers that are used again as in the product.
pub(crate) struct Checker {
    normalisers: [Normaliser; 4],
    fingerprinter: Fingerprinter,
    redacted: Vec<u8>,
}

impl Checker {
    pub(crate) fn new() -> Self {
        Checker {
            normalisers: DIALECTS.map(Normaliser::new),
            fingerprinter: Fingerprinter::new(),
            redacted: Vec::new(),
        }
    }

    /// Panics where something does not hold; else how many digests were complete, and the tables.
    pub(crate) fn check(&mut self, sql: &[u8], number: u64) -> (u64, u64) {
        let cut = number as usize % (sql.len() + 1);
        let beginning = &sql[..cut];
        let mut complete = 0;
        for (at, normaliser) in self.normalisers.iter_mut().enumerate() {
            let digest = normaliser.digest(sql);
            assert!(digest.text().len() <= DIGEST_MAX, "{} bytes", digest.text().len());
            complete += u64::from(digest.complete);
            let hash = digest.hash;
            let digest = normaliser.digest_truncated(beginning);
            assert!(!digest.complete && digest.text().len() <= DIGEST_MAX);
            if number as usize % DIALECTS.len() == at {
                // What was made between leaves no trace.
                assert_eq!(normaliser.digest(sql).hash, hash);
            }
        }
        let _ = kind(sql);
        let _ = SqlPrepared::of(sql, SessionSettings::default());
        for ddl in [
            Ddl::of(sql, SessionSettings::default()),
            Ddl::of_beginning(beginning, SessionSettings::default()),
        ] {
            assert!(ddl.is_none_or(|ddl| ddl.objects.len() <= 32));
        }
        redact(sql, None, &mut self.redacted);
        assert!(self.redacted.len() <= sql.len(), "{} bytes", self.redacted.len());
        // A mark of ten bytes may stand for every byte.
        assert!(mask_secrets(sql, None).len() <= 11 * sql.len());

        let length = self.fingerprinter.fingerprint(sql).len();
        assert!(length <= 3 * sql.len() + 20, "{length} bytes");
        let tables = self.tables(sql, beginning);
        self.laid_out(sql, DIALECTS[number as usize % 4].reading(), number as usize % 100);
        (complete, tables)
    }

    fn tables(&self, sql: &[u8], beginning: &[u8]) -> u64 {
        let tables = Tables::of(sql, Reading::EVERYTHING, SessionSettings::default());
        assert!(tables.names.len() <= 32);
        let some =
            Tables::of_beginning(beginning, Dialect::Mariadb.reading(), SessionSettings::default());
        assert!(some.names.len() <= 32);
        tables.names.len() as u64
    }

    fn laid_out(&self, sql: &[u8], reading: Reading, width: usize) {
        let text = String::from_utf8_lossy(sql);
        let laid = format(&text, reading, SqlModes::default(), width);
        // Each byte is a token on a line of its own at most, half a line in.
        assert!(laid.len() <= text.len() * (width.max(20) / 2 + 2), "{} bytes", laid.len());
        let same = tokens(text.as_bytes(), reading).eq(tokens(laid.as_bytes(), reading));
        assert!(same, "{text:?}\n{laid:?}");
    }
}

/// The tokens of a text without what stands between them.
fn tokens(sql: &[u8], reading: Reading) -> impl Iterator<Item = (Lexeme, &[u8])> {
    Lexer::new(sql, reading).map(|token| match token.lexeme {
        // These begin with the gap before them.
        Lexeme::HintOpen | Lexeme::HintClose | Lexeme::Repeated => (token.lexeme, &b""[..]),
        _ => (token.lexeme, token.bytes(sql)),
    })
}
