//! A line of CSV per interval, server and digest, for spreadsheets and for loading into a table.
//! `docs/reference/watch-csv.md` documents the columns; an empty field was not measured.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;
use waggle_model::visible::{self, in_cell};
use waggle_model::{Age, DigestTotals, ProcessState, Record, Unread};

use super::output::{Entry, Output};
use super::{spent, time_of};

/// The names of the columns, in the order of the fields of a row; those of [`spent::columns`] and [`OF_SERVER`] follow.
const COLUMNS: [&str; 24] = [
    "time",
    "pid",
    "flavour",
    "version",
    "interval_s",
    "digest",
    "schema",
    "digest_text",
    "calls",
    "errors",
    "active_sessions",
    "latency_sum_us",
    "latency_p50_us",
    "latency_p95_us",
    "latency_p99_us",
    "latency_max_us",
    "lock_us",
    "rows_sent",
    "rows_examined",
    "rows_affected",
    "bytes_sent",
    "no_index",
    "server_digest",
    "digest_cut",
];

/// The names of the columns behind those: of the server as a whole.
const OF_SERVER: [&str; 8] = [
    "logins_under_way",
    "logins_oldest_s",
    "logins_oldest_is_at_least",
    "unread_requests",
    "unread_oldest_s",
    "connections_to_accept",
    "state",
    "ended",
];

/// Lines of CSV, the names of the columns first.
pub(crate) struct Csv<W: Write> {
    out: csv::Writer<W>,
    limit: usize,
    has_head: bool,
}

impl<W: Write> Csv<W> {
    /// Writes to `out` at most `limit` digests per interval and server, and one line for the rest.
    pub(crate) fn new(out: W, limit: usize) -> Csv<W> {
        let out = csv::WriterBuilder::new().has_headers(false).from_writer(out);
        Csv { out, limit, has_head: false }
    }

    /// Writes a line, and the names of the columns before the first one.
    fn write(&mut self, row: &Row<'_>) -> io::Result<()> {
        if !self.has_head {
            self.has_head = true;
            let names = COLUMNS.map(str::to_owned).into_iter().chain(spent::columns());
            let names = names.chain(OF_SERVER.map(str::to_owned));
            self.out.write_record(names).map_err(plain)?;
        }
        self.out.serialize(row).map_err(plain)
    }
}

impl<W: Write + Send> Output for Csv<W> {
    fn take(&mut self, entries: &[Entry]) -> io::Result<()> {
        for entry in entries {
            let record = &*entry.record;
            let Record { interval, end_wall_ns, .. } = record;
            let time = time_of(*end_wall_ns).to_string();
            let (digests, other) = super::ranked(interval, self.limit);
            let is_rest = other.calls > 0 || other.active_ns > 0 || other.starts_unknown > 0;
            // Where nothing ran, no other line says why.
            let is_explained = digests.is_empty() && says_why_nothing_ran(record);
            for (hash, totals) in digests {
                self.write(&Row::new(&time, record, Some(hash), totals))?;
            }
            if is_rest || is_explained {
                self.write(&Row::new(&time, record, None, &other))?;
            }
        }
        self.out.flush()
    }

    fn close(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Whether clients wait before any statement of theirs has begun, or the server has ended or stands still.
fn says_why_nothing_ran(record: &Record) -> bool {
    let is_still = record.state.value().is_some_and(|state| !matches!(state, ProcessState::Runs));
    let logins = record.logins.value().is_some_and(|logins| logins.under_way > 0);
    let has_unread = |unread: &Unread| unread.requests > 0 || unread.to_accept > 0;
    is_still || record.ended.is_some() || logins || record.unread.value().is_some_and(has_unread)
}

/// The error of the file behind it, where it is one.
fn plain(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// One digest in one interval: the columns, in their order.
#[derive(Debug, Serialize)]
struct Row<'a> {
    time: &'a str,
    pid: u32,
    flavour: String,
    version: Cow<'a, str>,
    interval_s: f64,
    /// Empty for the sum of the other digests.
    digest: Option<String>,
    schema: Option<Cow<'a, str>>,
    digest_text: Option<Cow<'a, str>>,
    calls: u64,
    errors: Option<u64>,
    active_sessions: Option<f64>,
    latency_sum_us: Option<u64>,
    latency_p50_us: Option<f64>,
    latency_p95_us: Option<f64>,
    latency_p99_us: Option<f64>,
    latency_max_us: Option<f64>,
    lock_us: Option<u64>,
    rows_sent: Option<u64>,
    rows_examined: Option<u64>,
    rows_affected: Option<u64>,
    bytes_sent: Option<u64>,
    no_index: Option<u64>,
    server_digest: Option<Cow<'a, str>>,
    digest_cut: Option<bool>,
    /// As many cells.
    spent: Vec<Option<u64>>,
    logins_under_way: Option<usize>,
    logins_oldest_s: Option<f64>,
    logins_oldest_is_at_least: Option<bool>,
    unread_requests: Option<usize>,
    unread_oldest_s: Option<f64>,
    connections_to_accept: Option<usize>,
    state: Option<&'static str>,
    ended: Option<Cow<'a, str>>,
}

impl<'a> Row<'a> {
    fn new(
        time: &'a str,
        record: &'a Record,
        hash: Option<u64>,
        totals: &'a DigestTotals,
    ) -> Row<'a> {
        let Record { server, interval, .. } = record;
        let length_ns = interval.end_ns.saturating_sub(interval.start_ns);
        let (logins, unread) = (record.logins.value(), record.unread.value());
        let seconds = |age: Option<Age>| age.as_ref().map(Age::seconds);
        let name = totals.name.as_ref();
        let latency = &totals.latency_ns;
        let us = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e3);
        Row {
            time,
            pid: server.pid,
            flavour: server.flavour.to_string(),
            version: in_cell(&server.version),
            interval_s: length_ns as f64 / 1e9,
            digest: hash.map(|hash| format!("{hash:016x}")),
            schema: name.and_then(|name| name.schema.as_deref()).map(name_in_cell),
            digest_text: name.map(|name| in_cell(&name.text)),
            calls: totals.calls,
            errors: totals.errors.get(),
            active_sessions: totals.active_sessions(length_ns),
            latency_sum_us: (latency.count() > 0).then(|| latency.sum() / 1000),
            latency_p50_us: us(latency.quantile(0.50)),
            latency_p95_us: us(latency.quantile(0.95)),
            latency_p99_us: us(latency.quantile(0.99)),
            latency_max_us: us(latency.max()),
            lock_us: totals.lock_ns.get().map(|ns| ns / 1000),
            rows_sent: totals.rows_sent.get(),
            rows_examined: totals.rows_examined.get(),
            rows_affected: totals.rows_affected.get(),
            bytes_sent: totals.bytes_sent.get(),
            no_index: totals.no_index.get(),
            server_digest: totals
                .server_digest
                .as_ref()
                .and_then(|it| it.value())
                .map(|it| in_cell(it)),
            digest_cut: name.map(|name| name.cut),
            spent: spent::cells(&totals.spent),
            logins_under_way: logins.map(|logins| logins.under_way),
            logins_oldest_s: logins.and_then(|logins| seconds(logins.oldest)),
            logins_oldest_is_at_least: logins.and_then(|logins| Some(logins.oldest?.is_at_least)),
            unread_requests: unread.map(|unread| unread.requests),
            unread_oldest_s: unread.and_then(|unread| seconds(unread.oldest)),
            connections_to_accept: unread.map(|unread| unread.to_accept),
            state: record.state.value().map(ProcessState::key),
            ended: record.ended.as_ref().map(|ended| in_cell(&ended.why)),
        }
    }
}

/// A name in a cell.
fn name_in_cell(name: &str) -> Cow<'_, str> {
    Cow::Owned(in_cell(&visible::name(name)).into_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;
    use waggle_model::{Ending, Logins, Reading};

    use super::super::output::tests::record;
    use super::*;

    fn stuck() -> Record {
        let oldest = Some(Age { ns: 1_500_000_000, is_at_least: false });
        let logins = Reading::Value(Logins { under_way: 3, oldest });
        Record { logins, ..Arc::unwrap_or_clone(record(7)) }
    }

    #[test]
    fn where_nobody_gets_in_there_is_a_line_although_nothing_ran() {
        let lines = |record: Record| {
            let mut csv = Csv::new(Vec::new(), 1);
            csv.take(&[Entry { record: Arc::new(record), left_out: 0 }]).unwrap();
            String::from_utf8(csv.out.into_inner().unwrap()).unwrap()
        };
        let text = lines(stuck());
        assert!(text.trim_end().contains(",3,1.5,false,,,,"), "{text}");
        let running = Arc::unwrap_or_clone(record(7));
        let stopped = Record { state: Reading::Value(ProcessState::Stopped), ..running.clone() };
        assert!(lines(stopped).trim_end().ends_with(",stopped,"));
        let ended = Some(Ending { why: "gone,\n".to_owned(), ..Ending::default() });
        let ended = Record { state: Reading::absent("gone"), ended, ..running };
        let text = lines(ended);
        assert!(text.trim_end().ends_with(",,\"gone, \""), "{text}");
        assert_eq!(lines(Arc::unwrap_or_clone(record(7))), "");
    }

    #[test]
    fn every_cell_stands_under_its_name() {
        let record = stuck();
        let totals = DigestTotals { calls: 3, ..DigestTotals::default() };
        let row = Row::new("now", &record, Some(1), &totals);
        let mut csv = Csv::new(Vec::new(), 1);
        (0..2).for_each(|_| csv.write(&row).unwrap());
        let text = String::from_utf8(csv.out.into_inner().unwrap()).unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let names = reader.headers().unwrap().clone();
        assert_eq!(names.len(), COLUMNS.len() + spent::columns().len() + OF_SERVER.len());
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2);
        let cell = |name| rows[0].get(names.iter().position(|it| it == name).unwrap()).unwrap();
        assert_eq!((cell("calls"), cell("no_index"), cell("time_other_us")), ("3", "0", ""));
        assert_eq!((cell("logins_under_way"), cell("unread_requests")), ("3", ""));
        // The fields have the names that the head has.
        let Value::Object(fields) = serde_json::to_value(&row).unwrap() else { unreachable!() };
        assert_eq!(fields.len(), COLUMNS.len() + 1 + OF_SERVER.len());
        assert!(
            COLUMNS.iter().chain(&OF_SERVER).all(|name| fields.contains_key(*name)),
            "{fields:?}"
        );
    }
}
