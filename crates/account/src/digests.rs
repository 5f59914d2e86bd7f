//! The digest of every statement, by the rules of the server that ran it.

use std::sync::Arc;

use waggle_model::{
    Command, DigestKey, DigestName, Flavour, RunningStatement, Server, ServerVersion,
    SessionSettings, Statement, Text,
};
use waggle_sql::{
    DIGEST_LENGTH, Dialect, Digest, Fingerprinter, Normaliser, mask_secrets, stable_hash,
};

/// By which text statements are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// The server's own digest text.
    #[default]
    Digest,
    /// The fingerprint of `pt-query-digest`.
    Fingerprint,
}

/// Turns statements into digests. Nothing is allocated for a digest that is known.
pub struct Digests {
    normaliser: Normaliser,
    /// Bytes of a digest of the normaliser.
    length: usize,
    /// Where fingerprints take the place of digests.
    fingerprinter: Option<Fingerprinter>,
    /// The settings that were met last, as the normaliser takes them: most sessions have the same.
    settings: Option<(SessionSettings, waggle_sql::SessionSettings)>,
}

/// By what a statement is put with others.
#[derive(Clone, Copy)]
enum Group<'a> {
    Digest(Digest<'a>),
    Fingerprint { text: &'a str, cut: bool },
}

impl<'a> Group<'a> {
    fn hash(self) -> u64 {
        match self {
            Group::Digest(digest) => digest.hash,
            Group::Fingerprint { text, .. } => stable_hash(text),
        }
    }

    fn text(self) -> &'a str {
        match self {
            Group::Digest(digest) => digest.text(),
            Group::Fingerprint { text, .. } => text,
        }
    }

    fn is_cut(self) -> bool {
        match self {
            Group::Digest(digest) => digest.cut,
            Group::Fingerprint { cut, .. } => cut,
        }
    }
}

impl Digests {
    /// By the rules of one server.
    pub fn of(server: &Server, grouping: Grouping) -> Digests {
        let is_digest = grouping == Grouping::Digest;
        let length = length_of(server);
        Digests {
            normaliser: Normaliser::with_length(dialect_of(server), length),
            length,
            fingerprinter: (!is_digest).then(Fingerprinter::new),
            settings: None,
        }
    }

    /// Makes digests as long as the server keeps them: one that starts has not read its options yet.
    pub fn follow(&mut self, server: &Server) {
        let length = length_of(server);
        if length != self.length {
            self.length = length;
            self.normaliser = Normaliser::with_length(dialect_of(server), length);
        }
    }

    /// The key of a statement, and a way to its name for the first time that it is met.
    pub fn digest<'a>(
        &'a mut self,
        statement: &'a Statement<'_>,
    ) -> (DigestKey, impl FnOnce() -> DigestName + 'a) {
        let database = statement.identity.database.as_deref();
        self.digest_of(statement.text, statement.settings, statement.command, database)
    }

    /// The same for a statement that still runs.
    pub fn digest_running<'a>(
        &'a mut self,
        running: &'a RunningStatement,
    ) -> (DigestKey, impl FnOnce() -> DigestName + 'a) {
        let database = running.identity.database.as_deref();
        self.digest_of(running.text(), running.settings, Some(running.command), database)
    }

    /// The digest text of a statement.
    pub fn text_of(&mut self, text: Text<'_>, settings: Option<SessionSettings>) -> &str {
        self.normalise(text, settings).text()
    }

    fn normalise(&mut self, text: Text<'_>, settings: Option<SessionSettings>) -> Digest<'_> {
        let settings = settings.and_then(|settings| self.settings(settings));
        let Text { bytes, .. } = text;
        match (settings, text.is_truncated()) {
            (Some(settings), true) => self.normaliser.digest_truncated_in(bytes, settings),
            (Some(settings), false) => self.normaliser.digest_in(bytes, settings),
            (None, true) => self.normaliser.digest_truncated(bytes),
            (None, false) => self.normaliser.digest(bytes),
        }
    }

    /// `None` for a character set that we do not know.
    fn settings(&mut self, settings: SessionSettings) -> Option<waggle_sql::SessionSettings> {
        let known = self.settings.filter(|(met, _)| *met == settings);
        if known.is_none() {
            let read = waggle_sql::SessionSettings::of_session(
                settings.sql_mode,
                settings.charset.as_str(),
            )?;
            self.settings = Some((settings, read));
        }
        self.settings.map(|(_, settings)| settings)
    }

    /// By what a statement is put with others.
    fn group(&mut self, text: Text<'_>, settings: Option<SessionSettings>) -> Group<'_> {
        if self.fingerprinter.is_none() {
            return Group::Digest(self.normalise(text, settings));
        }
        let settings = settings.and_then(|settings| self.settings(settings));
        let masked = mask_secrets(text.bytes, settings);
        let settings = settings.unwrap_or_default();
        let Some(fingerprinter) = &mut self.fingerprinter else {
            return Group::Fingerprint { text: "", cut: true };
        };
        if text.is_truncated() {
            let (text, is_whole) = fingerprinter.fingerprint_cut_in(&masked, settings);
            return Group::Fingerprint { text, cut: !is_whole };
        }
        Group::Fingerprint { text: fingerprinter.fingerprint_in(&masked, settings), cut: false }
    }

    fn digest_of<'a>(
        &'a mut self,
        text: Option<Text<'_>>,
        settings: Option<SessionSettings>,
        command: Option<Command>,
        database: Option<&'a [u8]>,
    ) -> (DigestKey, impl FnOnce() -> DigestName + 'a) {
        let group = text.map(|text| self.group(text, settings));
        let hash = match group {
            Some(group) => group.hash(),
            None => stable_hash(without_text(command)),
        };
        let key = DigestKey { text: hash, schema: database.map_or(0, stable_hash) };
        let name = move || DigestName {
            text: match group {
                Some(group) => Arc::from(group.text()),
                None => Arc::from(without_text(command)),
            },
            schema: database.map(|name| Arc::from(String::from_utf8_lossy(name))),
            cut: group.is_some_and(Group::is_cut),
        };
        (key, name)
    }
}

fn without_text(command: Option<Command>) -> String {
    match command {
        Some(command) if command.is_statement() => "(text not captured)".to_owned(),
        Some(command) => format!("({command})"),
        None => "(unknown command)".to_owned(),
    }
}

/// Bytes of a digest on a server. Where that is not known, and where the server makes none, as many as
/// by default.
fn length_of(server: &Server) -> usize {
    let length = server.max_digest_length.value().filter(|length| **length > 0);
    length.and_then(|length| usize::try_from(*length).ok()).unwrap_or(DIGEST_LENGTH)
}

/// Whose rules a server follows.
fn dialect_of(server: &Server) -> Dialect {
    let [major, minor, ..] = ServerVersion::parse(server.flavour, &server.version).number;
    match (server.flavour, major) {
        (Flavour::Mariadb, 1..=10) => Dialect::Mariadb,
        (Flavour::Mariadb, 11) if minor <= 4 => Dialect::Mariadb11,
        (Flavour::Mariadb, _) => Dialect::Mariadb118,
        (Flavour::Mysql, 1..=5) => Dialect::Mysql57,
        (Flavour::Mysql, 8) => Dialect::Mysql80,
        (Flavour::Mysql, _) => Dialect::Mysql9,
    }
}
