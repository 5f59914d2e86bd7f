//! What Performance Schema does not show of this server, even with everything needed on.
//!
//! The server's own counters (`Com_create_table` and so on) also count what a client prepared. They
//! are not compared with what was seen, because a difference would often be no loss: they include
//! statements inside stored programs or applied by a replica, count twice what is prepared again
//! during its execution, and leave out what cannot be parsed or is refused on a read-only server.
//! Instead, a message says what cannot be seen before anything is listed.

use std::collections::BTreeMap;

use waggle_model::Flavour;

use crate::connection::{Connection, ConnectionError, MARK, ServerIdentity, text};

/// The first MySQL that keeps the text of what the client protocol prepared; MariaDB keeps none.
const PREPARED_TEXT_SINCE: [u32; 3] = [8, 0, 13];

/// Counters of what found no room ("Performance Schema Status Variables" of the MySQL manual):
/// kinds of statements when the server started, sessions of which nothing is recorded, and
/// statements nested too deeply.
const KINDS: &str = "Performance_schema_statement_classes_lost";
const SESSIONS: &str = "Performance_schema_thread_instances_lost";
const NESTED: &str = "Performance_schema_nested_statement_lost";

/// What found no room since the server was started, by the name of its counter.
pub(super) type Lost = BTreeMap<String, u64>;

/// Reads what found no room.
pub(super) fn lost(connection: &mut Connection) -> Result<Lost, ConnectionError> {
    let rows = connection.rows("SHOW GLOBAL STATUS LIKE 'Performance\\_schema\\_%lost'")?;
    let lost = rows.iter().map(|row| (text(row, 0), text(row, 1).parse::<u64>().unwrap_or(0)));
    Ok(lost.filter(|(name, _)| [KINDS, SESSIONS, NESTED].contains(&name.as_str())).collect())
}

/// What found no room between two readings.
pub(super) fn grown(before: &Lost, now: &Lost) -> Lost {
    let before = |name: &String| before.get(name).copied().unwrap_or(0);
    let grown = now.iter().map(|(name, now)| (name.clone(), now.saturating_sub(before(name))));
    grown.filter(|(_, grown)| *grown > 0).collect()
}

/// Whom the settings leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// This connection: what time it is is known from a statement of its own only.
    own: bool,
    /// Its statements are not even counted.
    pub(super) own_uncounted: bool,
    /// Existing sessions.
    sessions: u64,
    /// Rules for new sessions.
    rules: u64,
    /// There is no rule for everybody.
    others: bool,
}

/// Reads whom the settings leave out. `own` is the thread of this connection.
pub(super) fn left_out(connection: &mut Connection, own: u64) -> Result<LeftOut, ConnectionError> {
    let rows = connection.rows(&format!(
        "SELECT (SELECT COUNT(*) FROM performance_schema.threads WHERE TYPE = 'FOREGROUND' AND \
           THREAD_ID <> {own} AND (INSTRUMENTED = 'NO' OR HISTORY = 'NO')) AS {MARK}, \
         (SELECT COUNT(*) FROM performance_schema.setup_actors \
           WHERE ENABLED = 'NO' OR HISTORY = 'NO'), \
         (SELECT COUNT(*) FROM performance_schema.setup_actors WHERE HOST = '%' AND USER = '%'), \
         (SELECT COUNT(*) FROM performance_schema.threads WHERE THREAD_ID = {own} AND \
           (INSTRUMENTED = 'NO' OR HISTORY = 'NO')), \
         (SELECT COUNT(*) FROM performance_schema.threads WHERE THREAD_ID = {own} AND \
           INSTRUMENTED = 'NO')"
    ))?;
    let number = |at| rows.first().and_then(|row| text(row, at).parse::<u64>().ok());
    Ok(LeftOut {
        own: number(3) > Some(0),
        own_uncounted: number(4) > Some(0),
        sessions: number(0).unwrap_or(0),
        rules: number(1).unwrap_or(0),
        others: number(2) == Some(0),
    })
}

/// What is not shown, each in words with its remedy.
pub(super) fn in_words(identity: &ServerIdentity, left_out: LeftOut, lost: &Lost) -> Vec<String> {
    let version = identity.server_version();
    let mut words = Vec::new();
    if version.flavour == Flavour::Mariadb || version.number < PREPARED_TEXT_SINCE {
        let prepared = "statements that a client prepared by its protocol: this server keeps no \
                        text of them, MySQL since 8.0.13 does; the source tap shows them";
        words.push(prepared.to_owned());
    }
    words.extend(left_out.in_words());
    for (counter, what, variable) in [
        (SESSIONS, "sessions", "performance_schema_max_thread_instances"),
        (KINDS, "kinds of statements", "performance_schema_max_statement_classes"),
    ] {
        if let Some(lost) = lost.get(counter).filter(|lost| **lost > 0) {
            words.push(format!(
                "{lost} {what} that found no room since the server was started; start it with a \
                 larger {variable}"
            ));
        }
    }
    words
}

impl LeftOut {
    /// What was excluded since then. A session that begins under a rule that excludes it is not
    /// news.
    pub(super) fn since(self, before: LeftOut) -> LeftOut {
        let has_rules = self.rules > 0 || self.others;
        LeftOut {
            own: self.own && !before.own,
            own_uncounted: self.own_uncounted && !before.own_uncounted,
            sessions: if has_rules { 0 } else { self.sessions.saturating_sub(before.sessions) },
            rules: self.rules.saturating_sub(before.rules),
            others: self.others && !before.others,
        }
    }

    /// Each in words with its remedy.
    pub(super) fn in_words(self) -> Vec<String> {
        let mut words = Vec::new();
        if self.own {
            words.push(
                "when statements began: only a statement of waggle tells the time, and INSTRUMENTED or HISTORY of its \
                 session is NO; leave its account in performance_schema.setup_actors"
                    .to_owned(),
            );
        }
        if self.sessions > 0 {
            words.push(format!(
                "{} of the sessions that are connected: INSTRUMENTED or HISTORY is NO in \
                 performance_schema.threads; set both to YES there",
                self.sessions
            ));
        }
        if self.rules > 0 {
            words.push(format!(
                "who logs in under {} of the rules of performance_schema.setup_actors: ENABLED or \
                 HISTORY is NO; set both to YES there",
                self.rules
            ));
        }
        if self.others {
            words.push(
                "who logs in without a rule in performance_schema.setup_actors; run INSERT INTO \
                 performance_schema.setup_actors VALUES ('%', '%', '%', 'YES', 'YES')"
                    .to_owned(),
            );
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(of: &[(&str, u64)]) -> Lost {
        of.iter().map(|(name, lost)| ((*name).to_owned(), *lost)).collect()
    }

    fn words_of(version: &str) -> Vec<String> {
        let server = ServerIdentity::of_version(version);
        in_words(&server, LeftOut::default(), &lost(&[(SESSIONS, 0)]))
    }

    #[test]
    fn what_a_client_prepared_has_no_text_on_old_servers_and_mariadb() {
        for (version, is_shown) in [
            ("5.7.22", false),
            ("8.0.12", false),
            ("8.0.13", true),
            ("9.7.4", true),
            ("10.11.9-MariaDB", false),
            ("11.4.5-MariaDB", false),
        ] {
            let words = words_of(version);
            assert_eq!(words.is_empty(), is_shown, "{version}: {words:?}");
        }
    }

    #[test]
    fn who_is_left_out_is_counted_with_the_remedy() {
        let server = ServerIdentity::of_version("9.7.4");
        let left_out =
            LeftOut { own: true, own_uncounted: true, sessions: 3, rules: 1, others: true };
        let words = in_words(&server, left_out, &lost(&[(SESSIONS, 7), (KINDS, 0), (NESTED, 5)]));
        let begins = [
            "when statements began",
            "3 of the sessions",
            "who logs in under 1 ",
            "who logs in without",
            "7 sessions",
        ];
        assert_eq!(words.len(), begins.len(), "{words:?}");
        for (words, begin) in words.iter().zip(begins) {
            assert!(words.starts_with(begin) && words.contains("; "), "{begin}: {words}");
        }
    }

    #[test]
    fn who_is_left_out_meanwhile_is_told_once() {
        let before = LeftOut { sessions: 2, ..LeftOut::default() };
        let more = LeftOut { sessions: 3, ..before };
        assert_eq!(more.since(before), LeftOut { sessions: 1, ..LeftOut::default() });
        assert_eq!(more.since(more), LeftOut::default());
        // It begins under a rule that was told.
        let rules = LeftOut { rules: 1, ..before };
        assert_eq!(LeftOut { sessions: 9, ..rules }.since(rules), LeftOut::default());
        assert_eq!(rules.since(before), LeftOut { rules: 1, ..LeftOut::default() });
    }

    #[test]
    fn what_found_no_room_is_told_once() {
        let before = lost(&[(SESSIONS, 7), (NESTED, 5)]);
        let now = lost(&[(SESSIONS, 9), (NESTED, 5)]);
        assert_eq!(grown(&before, &now), lost(&[(SESSIONS, 2)]));
        assert_eq!(grown(&now, &now), Lost::new());
        // Of another life.
        assert_eq!(grown(&now, &before), Lost::new());
    }
}
