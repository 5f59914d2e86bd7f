//! Finds the text that was executed if the server only says `EXECUTE name`.

use std::collections::{BTreeMap, BTreeSet};

use waggle_mysql::history::{Event, PreparedStatement};
use waggle_sql::{SessionSettings, SqlPrepared};

/// Sessions whose prepared statements are remembered.
const SESSIONS_MAX: usize = 10_000;
/// Prepared statements that are remembered of one session.
const NAMES_MAX: usize = 1_000;

/// The prepared statements of every session, by thread and name.
#[derive(Debug, Default)]
pub(super) struct PreparedNames {
    sessions: BTreeMap<u64, BTreeMap<String, Known>>,
}

#[derive(Clone, Debug)]
struct Known {
    /// The event that prepared it.
    event: u64,
    text: Option<Vec<u8>>,
}

/// What an event executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Executed {
    /// This text.
    Text(Vec<u8>),
    /// Something whose text is not known.
    Unknown,
    /// Nothing: it prepared or freed a statement.
    Nothing,
}

impl PreparedNames {
    /// What an event executed; `there` has the current prepared statements. Events of a session
    /// come in order.
    pub(super) fn follow(&mut self, event: &Event, there: &[PreparedStatement]) -> Executed {
        let settings = SessionSettings::default();
        let Some(text) = &event.text else { return Executed::Unknown };
        let does = SqlPrepared::of(text, settings);
        // MySQL 9 gives these the text of what they prepare and free.
        let prepares = event.name.ends_with("/prepare_sql") || event.name.ends_with("/dealloc_sql");
        match does {
            Some(SqlPrepared::Prepare { name, text }) => {
                if event.error == 0 {
                    self.prepare(event, name, text);
                }
                Executed::Nothing
            }
            Some(SqlPrepared::Deallocate { .. }) => Executed::Nothing,
            Some(SqlPrepared::Execute { name }) => self.executed(event, &name, there),
            Some(SqlPrepared::Immediate { text }) => text.map_or(Executed::Unknown, Executed::Text),
            None if prepares => Executed::Nothing,
            None => Executed::Text(text.clone()),
        }
    }

    fn prepare(&mut self, event: &Event, name: String, text: Option<Vec<u8>>) {
        if self.sessions.len() >= SESSIONS_MAX && !self.sessions.contains_key(&event.thread) {
            return;
        }
        let names = self.sessions.entry(event.thread).or_default();
        if names.len() < NAMES_MAX || names.contains_key(&name) {
            names.insert(name, Known { event: event.id, text });
        }
    }

    fn executed(&self, event: &Event, name: &str, there: &[PreparedStatement]) -> Executed {
        let known = self.sessions.get(&event.thread).and_then(|names| names.get(name));
        let is_it = |one: &&PreparedStatement| {
            one.thread == event.thread
                && one.name == name
                && known.map_or(one.event < event.id, |known| known.event == one.event)
        };
        let text = known.and_then(|known| known.text.clone());
        let text = text.or_else(|| there.iter().find(is_it)?.text.clone());
        // MySQL 5.7 and 8.0.12 do not keep the text of a `PREPARE` with a literal.
        let is_text = |text: &Vec<u8>| SqlPrepared::of(text, SessionSettings::default()).is_none();
        text.filter(is_text).map_or(Executed::Unknown, Executed::Text)
    }

    /// Forgets ended sessions.
    pub(super) fn keep(&mut self, threads: &BTreeSet<u64>) {
        self.sessions.retain(|thread, _| threads.contains(thread));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: u64, name: &str, text: &str) -> Event {
        let name = format!("statement/sql/{name}");
        Event { thread: 7, id, name, text: Some(text.as_bytes().to_vec()), ..Event::default() }
    }

    fn text(sql: &str) -> Executed {
        Executed::Text(sql.as_bytes().to_vec())
    }

    #[test]
    fn an_execute_is_what_was_prepared_last_under_its_name() {
        let mut names = PreparedNames::default();
        let mut follow = |event: Event| names.follow(&event, &[]);
        assert_eq!(
            follow(event(1, "prepare_sql", "prepare s from 'drop table t'")),
            Executed::Nothing
        );
        assert_eq!(follow(event(2, "execute_sql", "execute S")), text("drop table t"));
        assert_eq!(follow(event(3, "prepare_sql", "PREPARE s FROM ...")), Executed::Nothing);
        assert_eq!(follow(event(4, "execute_sql", "execute s")), Executed::Unknown);
        assert_eq!(follow(event(5, "execute_sql", "drop table u")), text("drop table u"));
        assert_eq!(follow(event(6, "prepare_sql", "drop table u")), Executed::Nothing);
        assert_eq!(follow(event(7, "drop_table", "drop table v")), text("drop table v"));
    }

    #[test]
    fn a_prepare_that_the_server_wrote_anew_is_no_text_of_what_it_prepared() {
        let there = [PreparedStatement {
            thread: 7,
            event: 1,
            name: "s".to_owned(),
            text: Some(b"PREPARE s FROM ...".to_vec()),
        }];
        let mut names = PreparedNames::default();
        let mut follow = |event: Event| names.follow(&event, &there);
        follow(event(1, "prepare_sql", "PREPARE s FROM ..."));
        assert_eq!(follow(event(2, "execute_sql", "execute s")), Executed::Unknown);
    }

    #[test]
    fn a_name_that_was_used_again_is_not_mistaken() {
        let mut names = PreparedNames::default();
        let there = [PreparedStatement {
            thread: 7,
            event: 3,
            name: "s".to_owned(),
            text: Some(b"drop table b".to_vec()),
        }];
        let mut follow = |event: Event| names.follow(&event, &there);
        follow(event(1, "prepare_sql", "PREPARE s FROM ..."));
        assert_eq!(follow(event(2, "execute_sql", "execute s")), Executed::Unknown);
        follow(event(3, "prepare_sql", "PREPARE s FROM ..."));
        assert_eq!(follow(event(4, "execute_sql", "execute s")), text("drop table b"));
        // Prepared before we came.
        let mut names = PreparedNames::default();
        assert_eq!(
            names.follow(&event(9, "execute_sql", "execute s"), &there),
            text("drop table b")
        );
    }
}
