//! Finds the account of a session that has ended.
//!
//! A row of the ring names a thread, and `threads` names its account only while the thread exists.
//! But the server sums up what each account ran, by event name, also for sessions that have ended
//! (`events_statements_summary_by_account_by_event_name`). If the statements of that name are
//! explained for all accounts but one, it was that one.

use std::collections::BTreeMap;

use waggle_model::Reading;

use super::Event;
use super::sessions::Sessions;
use crate::connection::{Connection, ConnectionError, MARK, absent_or, optional_text, text};

const NO_ACCOUNT: &str = "the thread has no account: an event, or a replica";

type Account = (String, String);
/// By event name and account.
type Counts = BTreeMap<(String, Account), i64>;

/// What each account ran, less what is known to be its own.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    explained: Counts,
    /// Why nothing is known.
    absent: Option<String>,
}

impl Accounts {
    pub(super) fn begin(connection: &mut Connection) -> Result<Accounts, ConnectionError> {
        Ok(match read(connection)? {
            Reading::Value(explained) => Accounts { explained, absent: None },
            Reading::Absent(why) => Accounts { explained: Counts::new(), absent: Some(why) },
        })
    }

    /// Adds the accounts of ended sessions to `sessions`, if they are certain.
    pub(super) fn complete(
        &mut self,
        connection: &mut Connection,
        events: &[Event],
        mut sessions: Sessions,
    ) -> Result<Sessions, ConnectionError> {
        let mut unknown: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for event in events {
            match sessions.account(event.thread) {
                Some(account) => self.explain(&event.name, account, 1),
                None => unknown.entry(&event.name).or_default().push(event.thread),
            }
        }
        if unknown.is_empty() {
            return Ok(sessions);
        }
        let counted = match read(connection)? {
            Reading::Value(counted) => counted,
            Reading::Absent(why) => {
                self.absent = Some(why);
                Counts::new()
            }
        };
        for (name, mut threads) in unknown {
            // Another of their statements may have told.
            threads.retain(|thread| match sessions.account(*thread) {
                Some(account) => {
                    self.explain(name, account, 1);
                    false
                }
                None => true,
            });
            if threads.is_empty() {
                continue;
            }
            self.find(name, &threads, &counted, &mut sessions);
        }
        Ok(sessions)
    }

    fn explain(&mut self, name: &str, account: Account, times: i64) {
        let explained = self.explained.entry((name.to_owned(), account)).or_default();
        *explained = explained.saturating_add(times);
    }

    /// Finds the accounts that ran the statements of one name in ended threads.
    fn find(&mut self, name: &str, threads: &[u64], counted: &Counts, sessions: &mut Sessions) {
        let unexplained = |((counted_name, account), count): (&(String, Account), &i64)| {
            let known = self.explained.get(&(counted_name.clone(), account.clone()));
            let left = count.saturating_sub(known.copied().unwrap_or(0));
            (counted_name == name && left > 0).then(|| (account.clone(), left))
        };
        let candidates: Vec<(Account, i64)> = counted.iter().filter_map(unexplained).collect();
        // With fewer than there are, some are of threads without an account, such as events.
        if let [(account, left)] = candidates.as_slice()
            && usize::try_from(*left).is_ok_and(|left| left >= threads.len())
        {
            for thread in threads {
                sessions.name(*thread, account.clone());
                self.explain(name, account.clone(), 1);
            }
            return;
        }
        let why = match (&self.absent, candidates.is_empty()) {
            (Some(why), _) => format!("the session had gone, and {why}"),
            (None, true) => "the session had gone before it was looked at".to_owned(),
            (None, false) => {
                let names = candidates.iter().map(|((user, host), _)| format!("{user}@{host}"));
                let names = names.collect::<Vec<_>>().join(", ");
                format!(
                    "the session had gone before it was looked at; perhaps it was one of {names}"
                )
            }
        };
        for thread in threads {
            let why = match sessions.now.contains_key(thread) {
                true => NO_ACCOUNT.to_owned(),
                false => why.clone(),
            };
            sessions.unknown.insert(*thread, why);
        }
        // Nobody can say later who it was.
        for ((counted_name, account), count) in counted {
            if counted_name == name {
                self.explained.insert((counted_name.clone(), account.clone()), *count);
            }
        }
    }
}

fn read(connection: &mut Connection) -> Result<Reading<Counts>, ConnectionError> {
    let table = "performance_schema.events_statements_summary_by_account_by_event_name";
    let rows = connection.rows(&format!(
        "SELECT EVENT_NAME AS {MARK}, USER, HOST, COUNT_STAR FROM {table} WHERE COUNT_STAR > 0 AND \
         USER IS NOT NULL AND HOST IS NOT NULL"
    ));
    Ok(match absent_or(connection, table, rows)? {
        Reading::Absent(why) => Reading::Absent(why),
        Reading::Value(rows) => Reading::Value(
            rows.iter()
                .map(|row| {
                    let account = (text(row, 1), text(row, 2));
                    let count = optional_text(row, 3).and_then(|count| count.parse().ok());
                    ((text(row, 0), account), count.unwrap_or(0))
                })
                .collect(),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: &[(&str, i64)]) -> Counts {
        let count = |(user, count): &(&str, i64)| {
            (("drop".to_owned(), ((*user).to_owned(), "h".to_owned())), *count)
        };
        of.iter().map(count).collect()
    }

    #[test]
    fn the_only_account_with_more_than_is_known_was_it() {
        let mut accounts = Accounts { explained: counts(&[("a", 3), ("b", 5)]), absent: None };
        let mut sessions = Sessions::default();
        accounts.find("drop", &[7, 8], &counts(&[("a", 3), ("b", 7)]), &mut sessions);
        assert_eq!(sessions.of(7).unwrap().user.as_deref(), Some("b"));
        assert_eq!(sessions.of(8).unwrap().user.as_deref(), Some("b"));
        accounts.find("drop", &[9], &counts(&[("a", 4), ("b", 7)]), &mut sessions);
        assert_eq!(sessions.of(9).unwrap().user.as_deref(), Some("a"));
    }

    #[test]
    fn an_account_is_not_blamed_for_more_than_it_ran() {
        let mut accounts = Accounts::default();
        let mut sessions = Sessions::default();
        accounts.find("drop", &[7, 8], &counts(&[("a", 1)]), &mut sessions);
        assert_eq!((sessions.of(7), sessions.of(8)), (None, None));
        assert!(sessions.unknown[&7].ends_with("a@h"), "{:?}", sessions.unknown);
    }

    #[test]
    fn of_several_accounts_nobody_is_blamed() {
        let mut accounts = Accounts::default();
        let mut sessions = Sessions::default();
        let counted = counts(&[("a", 1), ("b", 1)]);
        accounts.find("drop", &[7, 8], &counted, &mut sessions);
        assert_eq!(sessions.of(7), None);
        assert!(sessions.unknown[&7].ends_with("one of a@h, b@h"), "{:?}", sessions.unknown);
        let mut later = Sessions::default();
        accounts.find("drop", &[9], &counts(&[("a", 1), ("b", 2)]), &mut later);
        assert_eq!(later.of(9).unwrap().user.as_deref(), Some("b"));
    }
}
