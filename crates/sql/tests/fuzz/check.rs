//! What holds for every input.

use waggle_sql::{
    Ddl, Dialect, Fingerprinter, Lexeme, Lexer, Normaliser, Reading, SessionSettings, SqlModes,
    SqlPrepared, TableName, Tables, format, kind, mask_secrets, redact,
};

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

        let fingerprint = self.fingerprinter.fingerprint(sql).to_owned();
        assert!(fingerprint.len() <= 3 * sql.len() + 20, "{} bytes", fingerprint.len());
        assert_eq!(self.fingerprinter.fingerprint(sql), fingerprint);
        let (cut, _) = self.fingerprinter.fingerprint_cut_in(beginning, SessionSettings::default());
        assert!(cut.len() <= 3 * beginning.len() + 20, "{} bytes", cut.len());
        let tables = self.tables(sql, beginning);
        self.laid_out(sql, number as usize % DIALECTS.len(), number as usize % 100);
        (complete, tables)
    }

    fn tables(&self, sql: &[u8], beginning: &[u8]) -> u64 {
        let tables = Tables::of(sql, Reading::EVERYTHING, SessionSettings::default());
        assert!(tables.names.len() <= 32);
        if let Ok(text) = std::str::from_utf8(sql)
            && !text.contains("``")
        {
            // A name that holds a secret is not shown.
            let is_there =
                |table: &TableName| text.contains(&table.name) || table.name == "<secret>";
            assert!(tables.names.iter().all(is_there), "{text:?}\n{:?}", tables.names);
        }
        let some =
            Tables::of_beginning(beginning, Dialect::Mariadb.reading(), SessionSettings::default());
        assert!(some.names.len() <= 32);
        tables.names.len() as u64
    }

    fn laid_out(&mut self, sql: &[u8], dialect: usize, width: usize) {
        let text = String::from_utf8_lossy(sql);
        let reading = DIALECTS[dialect].reading();
        let laid = format(&text, reading, SqlModes::default(), width);
        // Each byte is a token on a line of its own at most, half a line in.
        assert!(laid.len() <= text.len() * (width.max(20) / 2 + 2), "{} bytes", laid.len());
        let same = tokens(text.as_bytes(), reading).eq(tokens(laid.as_bytes(), reading));
        assert!(same, "{text:?}\n{laid:?}");
        // What is laid out was masked before: a line may end inside a secret.
        if mask_secrets(text.as_bytes(), None) != text.as_bytes() {
            return;
        }
        let normaliser = &mut self.normalisers[dialect];
        let before = normaliser.digest(text.as_bytes()).text().to_owned();
        assert_eq!(before, normaliser.digest(laid.as_bytes()).text(), "{text:?}\n{laid:?}");
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
