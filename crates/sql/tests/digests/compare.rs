//! The statements of the generator, as a server and as waggle see them.

use std::collections::HashSet;

use waggle_sql::{Charset, Dialect, Normaliser, SessionSettings, SqlModes, mask_secrets};
use waggle_stats::Random;

use crate::classes::Classes;
use crate::expand;
use crate::server::Reply;
use crate::template::Grammar;

const SEED: u64 = 0x77a9_91e5_0d16_e575;
/// Statements over which a server may end: defects of its STATEMENT_DIGEST_TEXT().
const ENDS_MAX: usize = 20;

/// The first word of what 5.7 parses for a generated column.
const LATER: &str = "PARSE_GCOL_EXPR (";

/// A statement and the session that it belongs to.
pub(crate) struct Case {
    /// Number of its template.
    pub(crate) template: usize,
    pub(crate) settings: SessionSettings,
    pub(crate) statement: Vec<u8>,
}

/// Sessions, each with as many statements by each template as `counts` has for the default, for
/// each mode, and for each of the character sets.
pub(crate) fn sessions(
    counts: [usize; 3],
    charsets: impl Iterator<Item = Charset>,
) -> Vec<(SessionSettings, usize)> {
    let default = SessionSettings::default();
    let [plain, by_mode, by_charset] = counts;
    let mut sessions = vec![(default, plain)];
    for modes in [
        SqlModes::ANSI_QUOTES,
        SqlModes::NO_BACKSLASH_ESCAPES,
        SqlModes::PIPES_AS_CONCAT,
        SqlModes::IGNORE_SPACE,
        SqlModes::HIGH_NOT_PRECEDENCE,
        SqlModes::ANSI,
        SqlModes::ANSI.with(SqlModes::NO_BACKSLASH_ESCAPES).with(SqlModes::HIGH_NOT_PRECEDENCE),
    ] {
        sessions.push((SessionSettings { modes, ..default }, by_mode));
    }
    for charset in charsets {
        sessions.push((SessionSettings { charset, ..default }, by_charset));
    }
    for name in ["gbk", "sjis", "big5"] {
        let charset = Charset::from_name(name).unwrap();
        let modes = SqlModes::ANSI_QUOTES.with(SqlModes::NO_BACKSLASH_ESCAPES);
        sessions.push((SessionSettings { charset, modes }, by_charset));
    }
    sessions
}

/// The statements of these sessions. `DIGESTS_SEED` makes others than those of every run.
pub(crate) fn cases(
    grammar: &Grammar,
    sessions: &[(SessionSettings, usize)],
    wanted: impl Fn(&str) -> bool,
) -> Vec<Case> {
    let seed = std::env::var("DIGESTS_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = Random::seeded(seed.unwrap_or(SEED));
    let mut cases = Vec::new();
    for (settings, count) in sessions.iter().copied() {
        for (template, (line, pieces)) in grammar.statements.iter().enumerate() {
            if wanted(line) {
                for _ in 0..count {
                    let statement = expand::statement(grammar, pieces, settings, &mut random);
                    cases.push(Case { template, settings, statement });
                }
            }
        }
    }
    cases
}

/// What came of a comparison.
pub(crate) struct Tally {
    normaliser: Normaliser,
    pub(crate) classes: Classes,
    pub(crate) equal: usize,
    /// Digests that waggle makes without a secret that the server's show.
    masked: Vec<String>,
    /// Digests to which the server has added what it parsed later: 5.7 the expressions of generated
    /// columns, when it opens the new table.
    longer: Vec<String>,
    different: Vec<String>,
    pub(crate) texts: HashSet<Vec<u8>>,
    /// Accepted statements of each template, and the last that was not.
    accepted: Vec<(usize, String)>,
    ends: Vec<String>,
}

impl Tally {
    pub(crate) fn new(dialect: Dialect, grammar: &Grammar) -> Tally {
        Tally {
            normaliser: Normaliser::new(dialect),
            classes: Classes::default(),
            equal: 0,
            masked: Vec::new(),
            longer: Vec::new(),
            different: Vec::new(),
            texts: HashSet::new(),
            accepted: vec![(0, String::new()); grammar.statements.len()],
            ends: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, case: &Case, reply: Reply) {
        let statement = || String::from_utf8_lossy(&case.statement).into_owned();
        let answer = match reply {
            Reply::Answer(answer) => answer,
            Reply::Refused(error) => {
                self.accepted[case.template].1 = format!("{error}\n    {}", statement());
                return;
            }
            Reply::Lost => {
                self.ends.push(statement());
                assert!(self.ends.len() <= ENDS_MAX, "the server ended over {}", statement());
                return;
            }
        };
        let digest = self.normaliser.digest_in(&case.statement, case.settings);
        let text = String::from_utf8_lossy(&answer.text);
        if answer.failed && digest.text() != text && digest.text().starts_with(&*text) {
            // The server gave up before it had parsed all of it.
            self.accepted[case.template].1 = statement();
            return;
        }
        self.accepted[case.template].0 += 1;
        let difference = || {
            format!(
                "{:?}\n  statement {}\n  server    {text}\n  waggle    {}",
                case.settings,
                statement(),
                digest.text()
            )
        };
        if digest.text() == text {
            self.equal += 1;
            self.classes.add(&answer.hash, digest.hash, &case.statement);
        } else if text.starts_with(&format!("{} {LATER}", digest.text())) {
            self.longer.push(difference());
        } else if mask_secrets(&case.statement, None) != case.statement {
            self.masked.push(difference());
        } else {
            self.different.push(difference());
            self.classes.add(&answer.hash, digest.hash, &case.statement);
        }
        self.texts.insert(answer.text);
    }

    /// Statements that the server has a digest for.
    pub(crate) fn total(&self) -> usize {
        self.equal + self.masked.len() + self.longer.len() + self.different.len()
    }

    /// Prints what was found; all of it goes to the file that `DIGESTS_REPORT` names.
    pub(crate) fn print(&self, name: &str) {
        println!(
            "{name}: {} statements, {} distinct digest texts, {}; {} equal, {} without a secret, \
             {} with later tokens, {} different; ended the server: {}",
            self.total(),
            self.texts.len(),
            self.classes.summary(),
            self.equal,
            self.masked.len(),
            self.longer.len(),
            self.different.len(),
            self.ends.len()
        );
        for text in self.ends.iter().take(5) {
            println!("ends the server: {text}");
        }
        for text in self.masked.iter().take(5) {
            println!("a word behind the name of a secret is masked: {text}");
        }
        for text in self.longer.iter().take(2) {
            println!("the server adds what it parses of its own accord: {text}");
        }
        for text in self.different.iter().take(10) {
            println!("{text}");
        }
        if let Ok(path) = std::env::var("DIGESTS_REPORT") {
            let parts = [&self.different, &self.masked].map(|part| part.join("\n"));
            let report = format!("{}\n\n{}", parts.join("\n"), self.classes.report());
            std::fs::write(format!("{path}.{name}"), report).unwrap();
        }
    }

    /// Templates that the server has accepted no statement of.
    pub(crate) fn never_accepted(&self, grammar: &Grammar) -> Vec<String> {
        let lines = grammar.statements.iter().zip(&self.accepted);
        let never = lines.filter(|(_, (count, _))| *count == 0);
        never.map(|((line, _), (_, last))| format!("{line}\n    {last}")).collect()
    }

    /// How many in a hundred thousand are equal.
    pub(crate) fn share(&self) -> usize {
        self.equal * 100_000 / self.total().max(1)
    }
}
