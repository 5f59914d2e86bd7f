//! The statements that read the counters, one function per table.

use std::collections::BTreeMap;

use waggle_model::{Flavour, Reading};

use super::sums::COLUMNS;
use super::{Bucket, ConnectionCounts, DigestKey, DigestRow, Sums};
use crate::connection::{Connection, ConnectionError, MARK, Row, absent_or, optional_text, text};

/// Not a name of the server: whether the event scheduler runs, which `Threads_running` counts
/// (tried on all five servers).
pub(super) const SCHEDULER: &str = "waggle_event_scheduler";

type ByEvent = BTreeMap<String, Sums>;

fn number(row: &Row, at: usize) -> Result<u64, ConnectionError> {
    let text = text(row, at);
    text.parse().map_err(|_| ConnectionError::Unexpected {
        what: format!("{text:?} where a number should be"),
    })
}

fn sums(row: &Row, from: usize) -> Result<Sums, ConnectionError> {
    let numbers = (from..from + COLUMNS.len()).map(|at| number(row, at));
    let numbers = numbers.collect::<Result<Vec<u64>, _>>()?;
    Sums::from_columns(&mut numbers.into_iter())
        .ok_or_else(|| ConnectionError::Unexpected { what: "too few columns".to_owned() })
}

/// The global status, and how many of its `Questions` are ours: the server counts a statement when
/// it begins, so this one is among them.
pub(super) fn status(
    connection: &mut Connection,
) -> Result<(BTreeMap<String, u64>, u64), ConnectionError> {
    let schema = match connection.server_identity().flavour {
        Flavour::Mysql => "performance_schema",
        Flavour::Mariadb => "information_schema",
    };
    let rows = connection.rows(&format!(
        "SELECT VARIABLE_NAME AS {MARK}, VARIABLE_VALUE FROM {schema}.global_status \
             UNION ALL SELECT '{SCHEDULER}', IF(@@GLOBAL.event_scheduler = 'ON', 1, 0)"
    ))?;
    let counters = rows
        .iter()
        .filter_map(|row| Some((text(row, 0).to_ascii_lowercase(), text(row, 1).parse().ok()?)));
    Ok((counters.collect(), connection.statements()))
}

/// The sums of all threads by event name, and those of our own thread in the same statement.
pub(super) fn events(
    connection: &mut Connection,
) -> Result<(Reading<ByEvent>, ByEvent), ConnectionError> {
    let columns = COLUMNS.join(", ");
    let table = "performance_schema.events_statements_summary";
    let rows = connection.rows(&format!(
        "SELECT 'all' AS {MARK}, EVENT_NAME, {columns} FROM {table}_global_by_event_name \
           WHERE COUNT_STAR > 0 \
         UNION ALL SELECT 'own', EVENT_NAME, {columns} FROM {table}_by_thread_by_event_name \
           WHERE COUNT_STAR > 0 AND THREAD_ID = (SELECT THREAD_ID FROM performance_schema.threads \
             WHERE PROCESSLIST_ID = CONNECTION_ID())"
    ));
    let rows = match absent_or(connection, "the statement tables by event name", rows)? {
        Reading::Value(rows) => rows,
        Reading::Absent(why) => return Ok((Reading::Absent(why), ByEvent::new())),
    };
    let (mut all, mut own) = (ByEvent::new(), ByEvent::new());
    for row in &rows {
        let target = if text(row, 0) == "own" { &mut own } else { &mut all };
        target.insert(text(row, 1), sums(row, 2)?);
    }
    Ok((Reading::Value(all), own))
}

pub(super) fn connections(
    connection: &mut Connection,
) -> Result<Reading<BTreeMap<u64, ConnectionCounts>>, ConnectionError> {
    let rows = connection.rows(&format!(
        "SELECT t.PROCESSLIST_ID AS {MARK}, t.TYPE, s.EVENT_NAME, s.COUNT_STAR \
         FROM performance_schema.events_statements_summary_by_thread_by_event_name s \
         JOIN performance_schema.threads t ON t.THREAD_ID = s.THREAD_ID \
         WHERE s.COUNT_STAR > 0 AND t.PROCESSLIST_ID IS NOT NULL"
    ));
    let rows = match absent_or(connection, "the statement table by thread", rows)? {
        Reading::Value(rows) => rows,
        Reading::Absent(why) => return Ok(Reading::Absent(why)),
    };
    let mut connections = BTreeMap::<u64, ConnectionCounts>::new();
    for row in &rows {
        let counts = connections.entry(number(row, 0)?).or_default();
        counts.background = text(row, 1) == "BACKGROUND";
        counts.events.insert(text(row, 2), number(row, 3)?);
    }
    Ok(Reading::Value(connections))
}

pub(super) fn digests(
    connection: &mut Connection,
) -> Result<Reading<BTreeMap<DigestKey, DigestRow>>, ConnectionError> {
    let columns = COLUMNS.join(", ");
    let rows = connection.rows(&format!(
        "SELECT SCHEMA_NAME AS {MARK}, DIGEST, DIGEST_TEXT, {columns} \
         FROM performance_schema.events_statements_summary_by_digest"
    ));
    let rows = match absent_or(connection, "the statement table by digest", rows)? {
        Reading::Value(rows) => rows,
        Reading::Absent(why) => return Ok(Reading::Absent(why)),
    };
    let mut digests = BTreeMap::new();
    for row in &rows {
        digests.insert(key(row), DigestRow { text: text(row, 2), sums: sums(row, 3)? });
    }
    Ok(Reading::Value(digests))
}

pub(super) fn histograms(
    connection: &mut Connection,
) -> Result<Reading<BTreeMap<DigestKey, Vec<Bucket>>>, ConnectionError> {
    let rows = connection.rows(&format!(
        "SELECT SCHEMA_NAME AS {MARK}, DIGEST, BUCKET_TIMER_LOW, BUCKET_TIMER_HIGH, COUNT_BUCKET \
         FROM performance_schema.events_statements_histogram_by_digest \
         WHERE COUNT_BUCKET > 0 ORDER BY BUCKET_NUMBER"
    ));
    let rows = match absent_or(connection, "histograms by digest", rows)? {
        Reading::Value(rows) => rows,
        Reading::Absent(why) => return Ok(Reading::Absent(why)),
    };
    let mut histograms = BTreeMap::<DigestKey, Vec<Bucket>>::new();
    for row in &rows {
        let bucket =
            Bucket { low_ps: number(row, 2)?, high_ps: number(row, 3)?, count: number(row, 4)? };
        histograms.entry(key(row)).or_default().push(bucket);
    }
    Ok(Reading::Value(histograms))
}

fn key(row: &Row) -> DigestKey {
    DigestKey { schema: optional_text(row, 0), digest: optional_text(row, 1) }
}
