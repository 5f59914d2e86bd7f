//! Joins our digests with the server's.

use std::collections::BTreeMap;

use waggle_model::{Flavour, ServerVersion};

use super::{Captured, CapturedDigest};
use crate::Difference;
use crate::counters::{Bucket, Sums};

/// The first major version whose digest texts follow the rules that ours follow.
const OUR_RULES_SINCE: u32 = 8;
/// The first major version that gives prepared statements digests of their own.
const PREPARED_SINCE: u32 = 9;

/// What two digest texts are compared by: the servers differ in spaces only (5.7 and MariaDB end
/// every text with one), and no two statements differ in nothing but spaces between their tokens.
pub fn join_text(digest_text: &str) -> String {
    digest_text.split_whitespace().collect()
}

/// Schema and joined text.
pub(super) type Key = (Option<String>, String);

/// The server's rows of one key.
#[derive(Clone, Debug, Default)]
pub(super) struct Theirs {
    pub text: String,
    pub sums: Sums,
    pub histogram: Vec<Bucket>,
}

/// Our rows of one key.
#[derive(Clone, Debug)]
pub(super) struct Ours {
    pub text: String,
    pub digest: CapturedDigest,
}

/// Both sides by key, and what stays out.
#[derive(Default)]
pub(super) struct Joined {
    pub ours: BTreeMap<Key, Ours>,
    pub theirs: BTreeMap<Key, Theirs>,
    /// SQL EXECUTE statements that the server files under their own text.
    pub sql_executes: u64,
    /// Texts that hold more than one statement of a packet.
    pub packets: u64,
    /// Statements without a place in the digest table.
    pub without_digest: u64,
    /// Captured statements that were longer than the capture limit.
    pub truncated: u64,
    /// Captured statements beyond the maximum number of digests.
    pub unkept: u64,
    pub not_compared: Vec<String>,
}

pub(super) fn join(captured: &Captured, server: &Difference) -> Joined {
    let mut joined = Joined::default();
    let prepared_have_digests = have_prepared_digests(server);
    joined.take_theirs(server);
    joined.take_ours(captured, prepared_have_digests);
    joined.shorten_ours();
    joined
}

/// Whether this server's digest texts are made by the rules that ours are made by.
pub(super) fn has_our_rules(server: &Difference) -> bool {
    server.flavour == Flavour::Mysql && major(server) >= OUR_RULES_SINCE
}

pub(super) fn major(server: &Difference) -> u32 {
    ServerVersion::parse(server.flavour, &server.version).number[0]
}

fn have_prepared_digests(server: &Difference) -> bool {
    let rows = server.digests.value().into_iter().flatten();
    (server.flavour == Flavour::Mysql && major(server) >= PREPARED_SINCE)
        || rows.into_iter().any(|row| inner_of("EXECUTE ", &row.text).is_some())
}

/// The statement inside `EXECUTE statement`; `None` for SQL's own ``EXECUTE `name` ``: no statement
/// begins with a quoted name.
fn inner_of<'a>(prefix: &str, text: &'a str) -> Option<&'a str> {
    text.strip_prefix(prefix).filter(|inner| !inner.starts_with('`'))
}

impl Joined {
    /// The number of statements that the server's rows together lack.
    pub(super) fn short(&self) -> u64 {
        let ours: u64 = self.ours.values().map(|ours| ours.digest.parsed()).sum();
        let theirs: u64 = self.theirs.values().map(|theirs| theirs.sums.count).sum();
        (ours + self.truncated + self.unkept).saturating_sub(theirs)
    }

    fn take_theirs(&mut self, server: &Difference) {
        let mut prepares = 0;
        for row in server.digests.value().into_iter().flatten() {
            let text = inner_of("EXECUTE ", &row.text).unwrap_or(&row.text);
            if row.key.digest.is_none() {
                self.without_digest += row.sums.count;
                continue;
            }
            if inner_of("PREPARE ", text).is_some() || inner_of("DEALLOCATE ", text).is_some() {
                let own_form = text.starts_with("DEALLOCATE PREPARE ");
                if !own_form {
                    prepares += row.sums.count;
                    continue;
                }
            }
            if text.starts_with("EXECUTE ") {
                self.sql_executes += row.sums.count;
                continue;
            }
            let text = match text.trim_end().strip_suffix(';') {
                Some(first) => {
                    self.packets += row.sums.count;
                    first
                }
                None => text,
            };
            let key = (row.key.schema.clone(), join_text(text));
            let entry = self.theirs.entry(key).or_default();
            entry.text = text.trim_end().to_owned();
            entry.sums = entry.sums.plus(&row.sums);
            entry.histogram.extend(&row.histogram);
        }
        if prepares > 0 {
            self.not_compared.push(format!(
                "digests of {prepares} PREPARE and DEALLOCATE: the server files them under the \
                 inner statement, and a close has no reply"
            ));
        }
        for row in self.theirs.values_mut() {
            row.histogram.sort_by_key(|bucket| bucket.low_ps);
        }
    }

    fn take_ours(&mut self, captured: &Captured, prepared_have_digests: bool) {
        let (mut prepared, mut truncated, mut textless) = (0, 0, 0);
        for (key, digest) in &captured.digests {
            let calls = digest.calls.all();
            let joined = join_text(&key.text);
            if key.prepared && !prepared_have_digests {
                prepared += calls;
            } else if digest.truncated {
                truncated += calls;
            } else if joined.is_empty() {
                textless += calls;
            } else if prepared_have_digests
                && (key.text.starts_with("PREPARE ") || key.text.starts_with("DEALLOCATE "))
            {
                // Filed by the server under the inner statement, as above.
            } else {
                let ours = self.ours.entry((key.schema.clone(), joined)).or_insert_with(|| Ours {
                    text: key.text.clone(),
                    digest: CapturedDigest::empty(),
                });
                ours.digest.merge(digest);
            }
        }
        self.truncated = truncated;
        self.unkept = captured.unkept;
        for (count, why) in [
            (prepared, "COM_STMT_EXECUTE: this server gives prepared statements no digest"),
            (truncated, "statements longer than the capture limit: their digest text is not whole"),
            (captured.unkept, "statements whose digests came when 100,000 were kept already"),
            (textless, "statements without tokens or whose text could not be read"),
        ] {
            if count > 0 {
                self.not_compared.push(format!("digests of {count} {why}"));
            }
        }
    }

    /// The server cuts long texts and ends them with `...`. All our texts that begin like that
    /// belong to this row.
    fn shorten_ours(&mut self) {
        let cut: Vec<Key> =
            self.theirs.keys().filter(|(_, text)| text.ends_with("...")).cloned().collect();
        for (schema, text) in cut {
            if self.ours.contains_key(&(schema.clone(), text.clone())) {
                continue;
            }
            let start = text.trim_end_matches('.').to_owned();
            let longer: Vec<Key> = self
                .ours
                .keys()
                .filter(|(ours, long)| *ours == schema && long.starts_with(&start))
                .cloned()
                .collect();
            for key in longer {
                let Some(long) = self.ours.remove(&key) else { continue };
                let entry = self.ours.entry((schema.clone(), text.clone()));
                let short = || Ours { text: long.text.clone(), digest: CapturedDigest::empty() };
                entry.or_insert_with(short).digest.merge(&long.digest);
            }
        }
    }
}
