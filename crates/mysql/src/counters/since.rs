//! The difference of two readings.

use std::collections::BTreeMap;

use waggle_model::{Command, CommandKind, Flavour, Reading};

use super::tables::SCHEDULER;
use super::{Bucket, ConnectionCounts, Counters, DigestKey, DigestRow, Event, Sums};
use crate::connection::MARK;

const TRUNCATED: &str = "was emptied between the two readings (TRUNCATE TABLE); read again";

/// Why two readings have no difference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SinceError {
    /// The counters were reset.
    #[error("server: it was restarted between the two readings; read again")]
    Restarted,
}

/// What the server counted between two readings, less what waggle sent itself.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The family of the server.
    pub flavour: Flavour,
    /// `VERSION()`.
    pub version: String,
    /// The growth of each global status counter, without counters that fell.
    pub status: BTreeMap<String, u64>,
    /// `Questions`, less our own.
    pub questions: Reading<u64>,
    /// `COM_QUIT`: by event name where that is counted, else derived from the connections that
    /// ended.
    pub quits: Reading<u64>,
    /// The id of the connection that read, which is not in any of these numbers.
    pub own_connection: u64,
    /// Sessions that ran something when the earlier reading began, less our own.
    pub running_before: u64,
    /// Sessions that ran something when the later reading began, less our own.
    pub running_after: u64,
    /// By event name, less our own.
    pub events: Reading<BTreeMap<String, Sums>>,
    /// By connection id, the connections at the later reading, without our own.
    pub connections: Reading<BTreeMap<u64, ConnectionDifference>>,
    /// Digests that counted something, less our own.
    pub digests: Reading<Vec<DigestDifference>>,
    /// Statements that found no place in the digest table.
    pub digests_lost: u64,
}

/// What one connection ran between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionDifference {
    /// Statements that ended.
    pub statements: u64,
    /// A thread of the server itself, such as a replica applier.
    pub background: bool,
}

/// What one digest counted between two readings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DigestDifference {
    /// Schema and hash.
    pub key: DigestKey,
    /// `DIGEST_TEXT`.
    pub text: String,
    /// The sums.
    pub sums: Sums,
    /// Its histogram, by bucket; empty if none was read.
    pub histogram: Vec<Bucket>,
}

impl Counters {
    /// What the server counted since an earlier reading of the same connection.
    ///
    /// # Errors
    /// The server was restarted in between.
    pub fn since(&self, earlier: &Counters) -> Result<Difference, SinceError> {
        let uptime = |reading: &Counters| reading.status.get("uptime").copied().unwrap_or(0);
        if uptime(self) < uptime(earlier) || self.own_questions < earlier.own_questions {
            return Err(SinceError::Restarted);
        }
        let status: BTreeMap<String, u64> = self
            .status
            .iter()
            .filter_map(|(name, later)| {
                let before = earlier.status.get(name).copied().unwrap_or(0);
                Some((name.clone(), later.checked_sub(before)?))
            })
            .collect();
        let events = self
            .events
            .as_ref()
            .zip(earlier.events.as_ref())
            .and_then(|(later, before)| self.events_since(earlier, later, before));
        Ok(Difference {
            flavour: self.flavour,
            version: self.version.clone(),
            own_connection: self.own_connection,
            questions: self.questions_since(earlier, &status),
            quits: match &events {
                Reading::Value(events) => Reading::Value(count_of(events, Command::QUIT)),
                Reading::Absent(_) => self.quits_since(earlier),
            },
            running_before: earlier.running(),
            running_after: self.running(),
            events,
            connections: self
                .connections
                .as_ref()
                .zip(earlier.connections.as_ref())
                .map(|(later, before)| connections_since(later, before, self.own_connection)),
            digests: self
                .digests
                .as_ref()
                .zip(earlier.digests.as_ref())
                .and_then(|(later, before)| self.digests_since(earlier, later, before)),
            digests_lost: status.get("performance_schema_digest_lost").copied().unwrap_or(0),
            status,
        })
    }

    /// Sessions that run something, less our own and the event scheduler.
    fn running(&self) -> u64 {
        let of = |name: &str| self.status.get(name).copied().unwrap_or(0);
        of("threads_running").saturating_sub(of(SCHEDULER).saturating_add(1))
    }

    fn questions_since(&self, earlier: &Counters, status: &BTreeMap<String, u64>) -> Reading<u64> {
        let own = self.own_questions - earlier.own_questions;
        match status.get("questions").and_then(|all| all.checked_sub(own)) {
            Some(questions) => Reading::Value(questions),
            None => Reading::absent("Questions was set back between the two readings; read again"),
        }
    }

    /// A connection that ends sends `COM_QUIT`, unless it is aborted: what was opened, less what is
    /// still open, less what was aborted.
    fn quits_since(&self, earlier: &Counters) -> Reading<u64> {
        let grown = |name: &str| -> Option<i128> {
            Some(i128::from(*self.status.get(name)?) - i128::from(*earlier.status.get(name)?))
        };
        let quits = || {
            let ended = grown("connections")? - grown("threads_connected")?;
            let aborted = grown("aborted_clients")? + grown("aborted_connects")?;
            u64::try_from(ended - aborted).ok()
        };
        quits().map_or_else(
            || Reading::absent("the counters of connections went back; read again"),
            Reading::Value,
        )
    }

    fn events_since(
        &self,
        earlier: &Counters,
        later: &BTreeMap<String, Sums>,
        before: &BTreeMap<String, Sums>,
    ) -> Result<BTreeMap<String, Sums>, String> {
        let zero = Sums::default();
        let grown =
            |later: &BTreeMap<String, Sums>, before: &BTreeMap<String, Sums>, name: &str| {
                let (later, before) =
                    (later.get(name).unwrap_or(&zero), before.get(name).unwrap_or(&zero));
                (later.count >= before.count).then(|| later.since(before))
            };
        let mut events = BTreeMap::new();
        for name in later.keys().chain(before.keys()) {
            let all = grown(later, before, name);
            let own = grown(&self.own_events, &earlier.own_events, name);
            let (Some(all), Some(own)) = (all, own) else {
                return Err(format!("the table by event name {TRUNCATED}"));
            };
            let others = all.since(&own);
            if others.count > 0 {
                events.insert(name.clone(), others);
            }
        }
        Ok(events)
    }

    fn digests_since(
        &self,
        earlier: &Counters,
        later: &BTreeMap<DigestKey, DigestRow>,
        before: &BTreeMap<DigestKey, DigestRow>,
    ) -> Result<Vec<DigestDifference>, String> {
        let emptied = before
            .iter()
            .any(|(key, row)| later.get(key).is_none_or(|later| later.sums.count < row.sums.count));
        if emptied {
            return Err(format!("the digest table {TRUNCATED}"));
        }
        let mut digests = Vec::new();
        for (key, row) in later.iter().filter(|(_, row)| !row.text.contains(MARK)) {
            let earlier_row = before.get(key);
            let sums = row.sums.since(&earlier_row.map(|row| row.sums).unwrap_or_default());
            if sums.count == 0 {
                continue;
            }
            digests.push(DigestDifference {
                key: key.clone(),
                text: row.text.clone(),
                sums,
                histogram: histogram_since(self, earlier, key),
            });
        }
        Ok(digests)
    }
}

fn connections_since(
    later: &BTreeMap<u64, ConnectionCounts>,
    earlier: &BTreeMap<u64, ConnectionCounts>,
    own: u64,
) -> BTreeMap<u64, ConnectionDifference> {
    let statements = |counts: &ConnectionCounts| -> u64 {
        let events = counts.events.iter().filter(|(name, _)| Event::of(name).is_statement());
        events.fold(0, |sum, (_, count)| sum.saturating_add(*count))
    };
    let difference = |(id, now): (&u64, &ConnectionCounts)| {
        let before = earlier.get(id);
        let difference = ConnectionDifference {
            statements: statements(now).saturating_sub(before.map_or(0, statements)),
            background: now.background,
        };
        (*id, difference)
    };
    later.iter().filter(|(id, _)| **id != own).map(difference).collect()
}

fn histogram_since(later: &Counters, earlier: &Counters, key: &DigestKey) -> Vec<Bucket> {
    let of = |counters: &Counters| -> Option<Vec<Bucket>> {
        Some(counters.histograms.value()?.get(key).cloned().unwrap_or_default())
    };
    let (Some(later), Some(earlier)) = (of(later), of(earlier)) else { return Vec::new() };
    let before = |bucket: &Bucket| {
        earlier.iter().find(|old| old.low_ps == bucket.low_ps).map_or(0, |old| old.count)
    };
    later
        .into_iter()
        .map(|bucket| Bucket { count: bucket.count.saturating_sub(before(&bucket)), ..bucket })
        .filter(|bucket| bucket.count > 0)
        .collect()
}

fn count_of(events: &BTreeMap<String, Sums>, command: Command) -> u64 {
    let one = events.iter().filter(|(name, _)| Event::of(name) == Event::Client(command));
    one.fold(0, |sum, (_, sums)| sum.saturating_add(sums.count))
}

impl Difference {
    /// Statements that clients sent, by event name; `None` if the tables are absent.
    pub fn statements_by_event(&self) -> Option<u64> {
        let events = self.events.value()?;
        let background: u64 = match &self.connections {
            Reading::Value(connections) => {
                let background = connections.values().filter(|one| one.background);
                background.fold(0, |sum, one| sum.saturating_add(one.statements))
            }
            Reading::Absent(_) => 0,
        };
        let all = events.iter().filter(|(name, _)| Event::of(name).is_statement());
        let all = all.fold(0_u64, |sum, (_, sums)| sum.saturating_add(sums.count));
        Some(all.saturating_sub(background))
    }

    /// Events of classes that waggle does not know, by name.
    pub fn unknown_events(&self) -> impl Iterator<Item = (&str, u64)> {
        let events = self.events.value().into_iter().flatten();
        let unknown = events.filter(|(name, _)| Event::of(name) == Event::Unknown);
        unknown.map(|(name, sums)| (name.as_str(), sums.count))
    }

    /// Commands that ran SQL where the tap does not see it.
    pub fn blind_spots(&self) -> impl Iterator<Item = (Command, u64)> {
        let events = self.events.value().into_iter().flatten();
        events.filter_map(|(name, sums)| match Event::of(name) {
            Event::Client(command) if command.kind() == Some(CommandKind::BlindSpot) => {
                Some((command, sums.count))
            }
            _ => None,
        })
    }

    /// How often a client sent this command, by event name; `None` if the tables are absent.
    pub fn command(&self, command: Command) -> Option<u64> {
        self.events.value().map(|events| count_of(events, command))
    }

    /// Statements that clients sent: `Questions` less `COM_QUIT`, `COM_STMT_SEND_LONG_DATA` and the
    /// other commands that count there (`captured` says how often each was answered). The server
    /// counts a statement when it begins.
    pub fn statements_by_questions(&self, captured: &BTreeMap<Command, u64>) -> Reading<u64> {
        let long_data = self.status.get("com_stmt_send_long_data").copied().unwrap_or(0);
        let others = captured
            .iter()
            .filter(|(command, _)| {
                command.is_question() && command.kind() == Some(CommandKind::NoStatement)
            })
            .map(|(_, count)| count);
        let not_sent = long_data.saturating_add(others.sum());
        let both = self.questions.as_ref().zip(self.quits.as_ref());
        both.map(|(questions, quits)| questions.saturating_sub(quits.saturating_add(not_sent)))
    }
}

#[cfg(test)]
#[path = "since_tests.rs"]
mod tests;
