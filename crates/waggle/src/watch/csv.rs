//! A line of CSV per interval, server and digest: for spreadsheets and for loading into a table.
//! The columns are documented in `docs/reference/watch-csv.md`; what was not measured is empty.

use std::io::{self, Write};

use serde::Serialize;
use waggle_model::{DigestTotals, Server};

use super::output::{Finished, Output};

/// Lines of CSV, the names of the columns first.
pub(crate) struct Csv<W: Write> {
    out: csv::Writer<W>,
    limit: usize,
}

impl<W: Write> Csv<W> {
    /// Writes to `out` at most `limit` digests per interval and server, and one line for the rest.
    pub(crate) fn new(out: W, limit: usize) -> Csv<W> {
        Csv { out: csv::Writer::from_writer(out), limit }
    }
}

impl<W: Write> Output for Csv<W> {
    fn take(&mut self, finished: Vec<Finished>) -> io::Result<()> {
        let time = jiff::Timestamp::now().to_string();
        for Finished { server, interval, .. } in &finished {
            let length_ns = interval.end_ns.saturating_sub(interval.start_ns);
            let (digests, other) = super::ranked(interval, self.limit);
            for (hash, totals) in digests {
                self.out.serialize(Row::new(&time, server, length_ns, Some(hash), totals))?;
            }
            if other.calls > 0 || other.active_ns > 0 {
                self.out.serialize(Row::new(&time, server, length_ns, None, &other))?;
            }
        }
        self.out.flush()
    }

    fn tell(&mut self, _news: &str) -> io::Result<()> {
        Ok(())
    }
}

/// One digest in one interval. The names of the fields are the names of the columns.
#[derive(Debug, Serialize)]
struct Row<'a> {
    time: &'a str,
    pid: u32,
    flavour: String,
    version: &'a str,
    interval_s: f64,
    /// Empty for the sum of the other digests.
    digest: Option<String>,
    schema: Option<&'a str>,
    digest_text: Option<&'a str>,
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
    server_digest: Option<&'a str>,
}

impl<'a> Row<'a> {
    fn new(
        time: &'a str,
        server: &'a Server,
        length_ns: u64,
        hash: Option<u64>,
        totals: &'a DigestTotals,
    ) -> Row<'a> {
        let name = totals.name.as_ref();
        let latency = &totals.latency_ns;
        let us = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e3);
        Row {
            time,
            pid: server.pid,
            flavour: server.flavour.to_string(),
            version: &server.version,
            interval_s: length_ns as f64 / 1e9,
            digest: hash.map(|hash| format!("{hash:016x}")),
            schema: name.and_then(|name| name.schema.as_deref()),
            digest_text: name.map(|name| &*name.text),
            calls: totals.calls,
            errors: totals.errors.get(),
            active_sessions: (length_ns > 0).then(|| totals.active_ns as f64 / length_ns as f64),
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
            server_digest: totals.server_digest.as_ref().and_then(|it| it.value()).map(|it| &**it),
        }
    }
}
