//! One interval of one server as one line of JSON. The shape is documented in
//! `docs/reference/watch-json.md`; what was not measured is `null`.

use std::collections::BTreeMap;

use serde::Serialize;
use waggle_model::{
    Cost, DigestTotals, Histogram, Interval, Loss, RunningStatement, Sample, Server,
};

use super::{Shown, printable};

/// One line.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Line {
    time: String,
    server: ServerJson,
    interval_s: f64,
    statements: u64,
    running: Option<usize>,
    active_sessions: Option<f64>,
    errors: Option<u64>,
    latency_us: Latency,
    lost: BTreeMap<&'static str, u64>,
    truncated: u64,
    own_statements: u64,
    digests: Vec<DigestJson>,
    other: DigestJson,
    nested: Option<NestedJson>,
    sessions: Option<Vec<SessionJson>>,
    cost: CostJson,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ServerJson {
    pid: u32,
    flavour: String,
    version: String,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DigestJson {
    digest: Option<String>,
    digest_text: Option<String>,
    /// What the server itself says.
    server_digest: Option<String>,
    /// Why there is none, where the server was to be asked.
    server_digest_absent: Option<String>,
    schema: Option<String>,
    calls: u64,
    errors: Option<u64>,
    rows_sent: Option<u64>,
    rows_examined: Option<u64>,
    rows_affected: Option<u64>,
    bytes_sent: Option<u64>,
    no_index: Option<u64>,
    lock_us: Option<u64>,
    latency_us: Latency,
    active_sessions: Option<f64>,
    users: BTreeMap<String, u64>,
    samples: SamplesJson,
}

/// Statements of a digest as they were.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SamplesJson {
    slowest: Option<SampleJson>,
    random: Option<SampleJson>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SampleJson {
    connection_id: u64,
    user: Option<String>,
    host: Option<String>,
    schema: Option<String>,
    age_s: f64,
    latency_us: Option<f64>,
    rows_sent: Option<u64>,
    rows_examined: Option<u64>,
    rows_affected: Option<u64>,
    lock_us: Option<u64>,
    error: Option<u32>,
    text: Option<String>,
    text_bytes: u64,
}

/// What ran inside other statements.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NestedJson {
    statements: u64,
    errors: Option<u64>,
    digests: Vec<DigestJson>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Latency {
    sum: Option<u64>,
    avg: Option<f64>,
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SessionJson {
    connection_id: u64,
    user: Option<String>,
    host: Option<String>,
    schema: Option<String>,
    command: String,
    state: Option<String>,
    age_s: Option<f64>,
    text: Option<String>,
    text_bytes: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CostJson {
    bpf_ns_per_statement: Option<f64>,
    agent_cores: Option<f64>,
    rss_bytes: Option<u64>,
    host_sends_per_s: Option<f64>,
}

impl Line {
    /// The line of an interval.
    pub(super) fn new(
        time: String,
        server: &Server,
        interval: &Interval,
        shown: Shown,
        cost: &Cost,
    ) -> Line {
        let length_ns = interval.end_ns.saturating_sub(interval.start_ns);
        let (digests, other) = super::ranked(interval, shown.limit);
        Line {
            time,
            server: ServerJson {
                pid: server.pid,
                flavour: server.flavour.to_string(),
                version: server.version.clone(),
            },
            interval_s: length_ns as f64 / 1e9,
            statements: interval.statements,
            running: shown.sessions_known.then_some(interval.running.len()),
            active_sessions: interval.active_sessions().filter(|_| shown.sessions_known),
            errors: interval.errors.get(),
            latency_us: Latency::of(&interval.latency_ns),
            lost: Loss::ALL.map(|kind| (kind.name(), interval.losses.get(kind))).into(),
            truncated: interval.truncated,
            own_statements: interval.own_statements,
            digests: digests
                .into_iter()
                .map(|(key, totals)| DigestJson::new(Some(key), totals, interval, shown.redact))
                .collect(),
            other: DigestJson::new(None, &other, interval, shown.redact),
            nested: shown.nested.then(|| NestedJson::of(interval.nested.as_deref(), shown)),
            sessions: shown.sessions_known.then(|| {
                let session = |running| SessionJson::new(running, interval.end_ns, shown.redact);
                interval.running.iter().map(session).collect()
            }),
            cost: CostJson {
                bpf_ns_per_statement: cost.bpf_ns_per_statement,
                agent_cores: cost.agent_cores,
                rss_bytes: cost.rss_bytes,
                host_sends_per_s: cost.host_sends_per_s,
            },
        }
    }
}

impl NestedJson {
    fn of(interval: Option<&Interval>, shown: Shown) -> NestedJson {
        let Some(interval) = interval else {
            return NestedJson { errors: Some(0), ..NestedJson::default() };
        };
        let (digests, _) = super::ranked(interval, shown.limit);
        let digest = |(key, totals)| DigestJson::new(Some(key), totals, interval, shown.redact);
        NestedJson {
            statements: interval.statements,
            errors: interval.errors.get(),
            digests: digests.into_iter().map(digest).collect(),
        }
    }
}

impl DigestJson {
    fn new(
        key: Option<u64>,
        totals: &DigestTotals,
        interval: &Interval,
        redact: bool,
    ) -> DigestJson {
        let length_ns = interval.end_ns.saturating_sub(interval.start_ns);
        let sample = |sample: &Option<Box<Sample>>| {
            sample.as_ref().map(|sample| SampleJson::new(sample, interval.end_ns, redact))
        };
        let name = totals.name.as_ref();
        let server = totals.server_digest.as_ref();
        let user = |name: &Vec<u8>| String::from_utf8_lossy(name).into_owned();
        DigestJson {
            digest: key.map(|hash| format!("{hash:016x}")),
            digest_text: name.map(|name| name.text.to_string()),
            server_digest: server.and_then(|it| it.value()).map(ToString::to_string),
            server_digest_absent: server.and_then(|it| it.why()).map(str::to_owned),
            schema: name.and_then(|name| name.schema.as_ref().map(ToString::to_string)),
            calls: totals.calls,
            errors: totals.errors.get(),
            rows_sent: totals.rows_sent.get(),
            rows_examined: totals.rows_examined.get(),
            rows_affected: totals.rows_affected.get(),
            bytes_sent: totals.bytes_sent.get(),
            no_index: totals.no_index.get(),
            lock_us: totals.lock_ns.get().map(|ns| ns / 1000),
            latency_us: Latency::of(&totals.latency_ns),
            active_sessions: (length_ns > 0).then(|| totals.active_ns as f64 / length_ns as f64),
            users: totals.users.iter().map(|(name, calls)| (user(name), *calls)).collect(),
            samples: SamplesJson {
                slowest: sample(&totals.samples.slowest),
                random: sample(&totals.samples.random),
            },
        }
    }
}

impl Latency {
    fn of(histogram: &Histogram) -> Latency {
        let us = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1000.0);
        let is_known = histogram.count() > 0;
        Latency {
            sum: is_known.then(|| histogram.sum() / 1000),
            avg: histogram.mean().map(|ns| (ns / 10.0).round() / 100.0),
            p50: us(histogram.quantile(0.50)),
            p95: us(histogram.quantile(0.95)),
            p99: us(histogram.quantile(0.99)),
            max: us(histogram.max()),
        }
    }
}

/// Bytes of the server as text.
fn lossy(bytes: &Option<Vec<u8>>) -> Option<String> {
    bytes.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

impl SampleJson {
    fn new(sample: &Sample, now_ns: u64, redact: bool) -> SampleJson {
        SampleJson {
            connection_id: sample.statement.connection_id,
            user: lossy(&sample.identity.user),
            host: lossy(&sample.identity.host),
            schema: lossy(&sample.identity.database),
            age_s: now_ns.saturating_sub(sample.end_ns) as f64 / 1e9,
            latency_us: sample.latency_ns.map(|ns| ns as f64 / 1e3),
            rows_sent: sample.rows_sent,
            rows_examined: sample.rows_examined,
            rows_affected: sample.rows_affected,
            lock_us: sample.lock_ns.map(|ns| ns / 1000),
            error: sample.error,
            text: sample.text.as_deref().map(|text| printable(text, sample.settings, redact)),
            text_bytes: sample.text_length,
        }
    }
}

impl SessionJson {
    fn new(running: &RunningStatement, now_ns: u64, redact: bool) -> SessionJson {
        SessionJson {
            connection_id: running.connection_id,
            user: lossy(&running.identity.user),
            host: lossy(&running.identity.host),
            schema: lossy(&running.identity.database),
            command: running.command.to_string(),
            state: lossy(&running.state),
            age_s: running.start_ns.map(|start| now_ns.saturating_sub(start) as f64 / 1e9),
            text: running.text.as_deref().map(|text| printable(text, running.settings, redact)),
            text_bytes: running.text_length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Line;
    use crate::schema;

    #[test]
    fn the_schema_of_the_reference_is_that_of_the_types() {
        schema::assert_kept("watch", &schemars::schema_for!(Line));
    }

    #[test]
    fn every_key_of_the_schema_is_explained() {
        schema::assert_explained("watch", &schemars::schema_for!(Line), 40);
    }
}
