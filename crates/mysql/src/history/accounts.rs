//! Whose session it was that has gone.
//!
//! A row of the ring names a thread, and `threads` names its account only as long as it is there.
//! But the server adds up what each account ran, by event name, also of sessions that have gone
//! (`events_statements_summary_by_account_by_event_name`): where all but one account's statements of
//! that name are accounted for, it was that one.

use std::collections::BTreeMap;

use waggle_model::Reading;

use super::Event;
use super::sessions::{Session, Sessions};
use crate::connection::{Connection, ConnectionError, MARK, absent_or, optional_text, text};

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

    /// Adds to `sessions` who those were that have gone, as far as that is certain.
    pub(super) fn complete(
        &mut self,
        connection: &mut Connection,
        events: &[Event],
        mut sessions: Sessions,
    ) -> Result<Sessions, ConnectionError> {
        let mut unknown: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for event in events {
            match sessions.of(event.thread) {
                Some(Session { user: Some(user), host: Some(host), .. }) => {
                    self.explain(&event.name, (user.clone(), host.clone()), 1);
                }
                Some(_) => {}
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
        for (name, threads) in unknown {
            self.find(name, &threads, &counted, &mut sessions);
        }
        Ok(sessions)
    }

    fn explain(&mut self, name: &str, account: Account, times: i64) {
        *self.explained.entry((name.to_owned(), account)).or_default() += times;
    }

    /// Finds who ran the statements of one name in threads that have gone.
    fn find(&mut self, name: &str, threads: &[u64], counted: &Counts, sessions: &mut Sessions) {
        let unexplained = |((counted_name, account), count): (&(String, Account), &i64)| {
            let known = self.explained.get(&(counted_name.clone(), account.clone()));
            let left = count - known.copied().unwrap_or(0);
            (counted_name == name && left > 0).then(|| account.clone())
        };
        let candidates: Vec<Account> = counted.iter().filter_map(unexplained).collect();
        if let [account] = candidates.as_slice() {
            for thread in threads {
                let (user, host) = account.clone();
                let session = Session { user: Some(user), host: Some(host), ..Session::default() };
                sessions.gone.insert(*thread, session);
                self.explain(name, account.clone(), 1);
            }
            return;
        }
        let why = match (&self.absent, candidates.is_empty()) {
            (Some(why), _) => format!("the session had gone, and {why}"),
            (None, true) => "the session had gone before it was looked at".to_owned(),
            (None, false) => {
                let names = candidates.iter().map(|(user, host)| format!("{user}@{host}"));
                let names = names.collect::<Vec<_>>().join(", ");
                format!("the session had gone before it was looked at; it was one of {names}")
            }
        };
        sessions.unknown.extend(threads.iter().map(|thread| (*thread, why.clone())));
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
