//! Whether consumers write, judged by what arrived in their tables.
//!
//! [`crate::activity`] counts by instrument. Only the tables of the consumers show which history
//! received an event.

use std::collections::{BTreeMap, BTreeSet};

use waggle_model::Reading;
use waggle_mysql::connection::{MARK, absent_or, text};
use waggle_mysql::{Connection, ConnectionError};

use crate::plan::{dead_consumers, is_on};
use crate::state::State;
use crate::table::Table;

/// Kinds of events that consumers keep: so the names of their instruments begin, and with an `s` it is that of the kind
/// in the name of a consumer.
const KINDS: [&str; 4] = ["wait", "stage", "statement", "transaction"];
/// What a consumer keeps of a kind. The table has its name ("Performance Schema Events Tables" of the MySQL manual).
const KEPT: [&str; 3] = ["current", "history", "history_long"];
/// The consumer that has another table, which says how often each statement was run. Not every server has digests of
/// prepared statements: nothing can be asked of it where it is on.
const DIGESTS: &str = "statements_digest";
/// The consumer whose table has no row of a session that rests: its last stage has ended.
const STAGES: &str = "events_stages_current";

/// What has arrived so far, by consumer: the start of the last event of another session, ps; for
/// digests the number of counted statements, including our own. 0 if nothing arrived, and for
/// events without a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written(BTreeMap<String, u64>);

impl Written {
    /// Reads it of the consumers that the server has. A table that may not be read tells nothing.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn read(connection: &mut Connection, state: &State) -> Result<Written, ConnectionError> {
        let mut written = BTreeMap::new();
        for (key, _) in state.rows(Table::Consumers) {
            let Some(select) = select(&key[0]) else { continue };
            let rows = connection.rows(&select);
            let Reading::Value(rows) = absent_or(connection, &key[0], rows)? else { continue };
            let came = rows.first().and_then(|row| text(row, 0).parse().ok());
            written.insert(key[0].clone(), came.unwrap_or(0));
        }
        Ok(Written(written))
    }

    /// The proof that consumers were not set as `state` says between this reading and a later one,
    /// while other sessions ended at least this many transactions that make events of the
    /// instruments in `is_fed`. `None` if there is no such proof.
    pub fn disproof(
        &self,
        later: &Written,
        state: &State,
        transactions: u64,
        is_fed: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let dead: BTreeSet<String> =
            dead_consumers(state).into_iter().map(|(name, _)| name).collect();
        self.0.iter().find_map(|(consumer, before)| {
            let came = later.0.get(consumer)?.saturating_sub(*before);
            let settings = state.row(Table::Consumers, &vec![consumer.clone()])?;
            if !is_on(&settings[0]) {
                return (came > 0).then(|| format!("{consumer} is off, and events came into it"));
            }
            // What began when those above it were on may still come.
            if dead.contains(consumer) {
                return None;
            }
            let instruments = fed_by(consumer)?;
            let is_open = [DIGESTS, STAGES].contains(&consumer.as_str());
            let is_fed = !is_open && transactions > 0 && is_fed(instruments);
            (is_fed && came == 0 && are_timed(state, instruments))
                .then(|| format!("{consumer} is on, and no event came into it"))
        })
    }
}

/// How the names of the instruments begin whose events a consumer keeps; `None` if it has no table.
fn fed_by(consumer: &str) -> Option<&'static str> {
    if consumer == DIGESTS {
        return Some("statement");
    }
    let (kind, kept) = consumer.strip_prefix("events_")?.split_once('_')?;
    let instruments = kind.strip_suffix('s')?;
    KINDS.into_iter().find(|kind| *kind == instruments && KEPT.contains(&kept))
}

fn select(consumer: &str) -> Option<String> {
    fed_by(consumer)?;
    Some(match consumer {
        DIGESTS => format!(
            "SELECT SUM(COUNT_STAR) AS {MARK} \
             FROM performance_schema.events_statements_summary_by_digest"
        ),
        _ => format!(
            "SELECT MAX(TIMER_START) AS {MARK} FROM performance_schema.{consumer} \
             WHERE THREAD_ID <> (SELECT THREAD_ID FROM performance_schema.threads \
             WHERE PROCESSLIST_ID = CONNECTION_ID())"
        ),
    })
}

/// Whether all instruments of these names that are on have a time.
fn are_timed(state: &State, instruments: &str) -> bool {
    let mut rows = state.rows(Table::Instruments);
    rows.all(|(key, settings)| {
        !key[0].starts_with(instruments) || !is_on(&settings[0]) || is_on(&settings[1])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instruments with whether they are timed, all on, and consumers with whether they are on.
    fn state(instruments: &[(&str, bool)], consumers: &[(&str, bool)]) -> State {
        let yes = |is: bool| Some(if is { "YES" } else { "NO" }.to_owned());
        let key = |name: &str| vec![name.to_owned()];
        let instrument = |(name, timed): &(&str, bool)| (key(name), vec![yes(true), yes(*timed)]);
        let consumer = |(name, on): &(&str, bool)| (key(name), vec![yes(*on)]);
        State::of([
            (Table::Instruments, instruments.iter().map(instrument).collect()),
            (Table::Consumers, consumers.iter().map(consumer).collect()),
        ])
    }

    fn written(consumers: &[(&str, u64)]) -> Written {
        Written(consumers.iter().map(|(name, came)| ((*name).to_owned(), *came)).collect())
    }

    #[test]
    fn consumers_have_tables_of_their_names_but_for_digests() {
        assert_eq!(fed_by("events_waits_history_long"), Some("wait"));
        assert_eq!(fed_by("events_transactions_current"), Some("transaction"));
        assert_eq!(fed_by(DIGESTS), Some("statement"));
        for other in ["events_statements_cpu", "global_instrumentation", "thread_instrumentation"] {
            assert_eq!(select(other), None, "{other}");
        }
    }

    #[test]
    fn one_that_is_on_has_to_write_where_it_is_fed_and_one_that_is_off_must_not() {
        let (long, digests) = ("events_statements_history_long", DIGESTS);
        let timed = [("statement/com/Execute", true)];
        let says = |state: &State, transactions, long_came: u64, digests_came: u64| {
            let before = written(&[(long, 7), (digests, 7)]);
            let later = written(&[(long, 7 + long_came), (digests, 7 + digests_came)]);
            before.disproof(&later, state, transactions, |instruments| instruments == "statement")
        };
        let on = state(&timed, &[(long, true), (digests, true)]);
        assert_eq!(says(&on, 5, 100, 5), None);
        assert_eq!(says(&on, 0, 0, 0), None);
        let silent = says(&on, 5, 0, 5).unwrap();
        assert!(silent.contains(long) && silent.contains("is on"), "{silent}");
        assert_eq!(says(&on, 5, 100, 0), None);
        // Without a time nothing can be told.
        let untimed = state(&[("statement/com/Execute", false)], &[(long, true), (digests, true)]);
        assert_eq!(says(&untimed, 5, 0, 5), None);

        let off = state(&timed, &[(long, false), (digests, true)]);
        assert_eq!(says(&off, 5, 0, 5), None);
        let loud = says(&off, 5, 1, 5).unwrap();
        assert!(loud.contains(long) && loud.contains("is off"), "{loud}");
        // What is above it is off.
        let above = ("events_statements_current", false);
        let dead = state(&timed, &[above, (long, true), (digests, true)]);
        assert_eq!([says(&dead, 5, 0, 5), says(&dead, 5, 1, 5)], [None, None]);
    }

    #[test]
    fn one_that_nothing_feeds_does_not_have_to_write() {
        let waits = "events_waits_current";
        let on = state(&[("wait/io/table/sql/handler", true)], &[(waits, true)]);
        let (before, later) = (written(&[(waits, 7)]), written(&[(waits, 7)]));
        assert_eq!(before.disproof(&later, &on, 5, |_| false), None);
        assert!(before.disproof(&later, &on, 5, |instruments| instruments == "wait").is_some());
    }
}
