//! No statement of the list shows its secret, in whatever form waggle prints or keeps it.
#![cfg(test)]

use waggle_sql::{
    Ddl, Dialect, Fingerprinter, Normaliser, Reading, SessionSettings, SqlModes, Tables, format,
    mask_secrets, printable,
};
use waggle_testkit::secrets::{SECRET, shown, statements, told_before};

const ANSI_QUOTES: u64 = 1 << 2;
const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;

/// Not known, the default, and modes in which strings end elsewhere.
fn settings() -> [Option<SessionSettings>; 4] {
    let of = |mode| SessionSettings::of_session(mode, "utf8mb4");
    [None, of(0), of(ANSI_QUOTES), of(NO_BACKSLASH_ESCAPES)]
}

/// A statement cut by a limit of the capture within its secret and soon after it.
fn cuts(sql: &str) -> impl Iterator<Item = &[u8]> {
    let secret = sql.find(SECRET).unwrap_or(sql.len());
    let ends = secret + 5..sql.len().min(secret + SECRET.len() + 4);
    ends.map(|end| &sql.as_bytes()[..end])
}

/// What makes texts of a statement.
struct Forms {
    normalisers: [Normaliser; 4],
    fingerprinter: Fingerprinter,
}

impl Forms {
    fn new() -> Forms {
        let dialects = [Dialect::Mysql57, Dialect::Mysql9, Dialect::Mariadb, Dialect::Mariadb11];
        Forms { normalisers: dialects.map(Normaliser::new), fingerprinter: Fingerprinter::new() }
    }

    /// Everything that is made of a text, with its name.
    fn of(&mut self, sql: &[u8], settings: Option<SessionSettings>) -> Vec<(&'static str, String)> {
        let known = settings.unwrap_or_default();
        let masked = mask_secrets(sql, settings);
        let with_literals = printable(sql, settings, false);
        let mut forms = vec![
            ("masked", String::from_utf8_lossy(&masked).into_owned()),
            ("laid out", format(&with_literals, Reading::EVERYTHING, known.modes, 80)),
            ("with literals", with_literals),
            ("redacted", printable(sql, settings, true)),
        ];
        for normaliser in &mut self.normalisers {
            let whole = match settings {
                Some(settings) => normaliser.digest_in(sql, settings),
                None => normaliser.digest(sql),
            };
            forms.push(("digest", whole.text().to_owned()));
            let cut = match settings {
                Some(settings) => normaliser.digest_truncated_in(sql, settings),
                None => normaliser.digest_truncated(sql),
            };
            forms.push(("digest, cut", cut.text().to_owned()));
        }
        let names = format!(
            "{:?} {:?} {:?} {:?}",
            Ddl::of(sql, known),
            Ddl::of_beginning(sql, known),
            Tables::of(sql, Reading::EVERYTHING, known),
            Tables::of_beginning(sql, Reading::EVERYTHING, known)
        );
        forms.push(("names", names));
        let fingerprint = self.fingerprinter.fingerprint_in(&masked, known).to_owned();
        let (cut, _) = self.fingerprinter.fingerprint_cut_in(&masked, known);
        forms.extend([("fingerprint", fingerprint), ("fingerprint, cut", cut.to_owned())]);
        forms
    }
}

#[test]
fn no_form_of_a_statement_shows_its_secret_wherever_it_is_cut() {
    let statements = statements();
    assert!(statements.len() >= 160, "{}", statements.len());
    let (mut forms, mut found) = (Forms::new(), Vec::new());
    let told_before = told_before();
    let whole = statements.iter().map(String::as_bytes);
    for sql in whole.chain(told_before.iter().flat_map(|sql| cuts(sql))) {
        for settings in settings() {
            for (form, text) in forms.of(sql, settings) {
                let modes = settings.map(|settings| settings.modes);
                // There it is a name, which a digest keeps as the server does.
                let is_name = modes == Some(SqlModes::ANSI_QUOTES)
                    && String::from_utf8_lossy(sql).contains(&format!("\"{}", &SECRET[..5]));
                if let Some(place) =
                    shown(&text).filter(|_| !(is_name && form.starts_with("digest")))
                {
                    found.push(format!(
                        "{form}, {modes:?}, {}\n    {place}",
                        String::from_utf8_lossy(sql)
                    ));
                }
            }
        }
    }
    assert!(found.is_empty(), "{} shown:\n  {}", found.len(), found.join("\n  "));
}
