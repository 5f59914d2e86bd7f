//! One interval of one server as one line of JSON. `docs/reference/watch-json.md` documents the
//! shape; `null` was not measured.

mod ended;

use std::collections::BTreeMap;

use serde::Serialize;
use waggle_model::{
    DigestTotals, Histogram, Interval, Loss, ProcessState, Record, RunningStatement, Sample,
};

use super::before::BeforeJson;
use super::blocker::{self, BlockerJson};
use super::host_use::HostUseJson;
use super::lock_waits::{self, LockWaitJson};
use super::output::Entry;
use super::spent::{ByClass, SpentJson};
use super::{Shown, time_of};
use crate::server_json::ServerJson;
use crate::text::{lossy, printable};
use ended::EndedJson;

/// One line.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Line {
    time: String,
    server: ServerJson,
    /// Whether its process may run: `runs`, `stopped`, `traced` or `frozen`.
    state: Option<&'static str>,
    /// Why nothing goes on in it, and what helps.
    standstill: Option<String>,
    #[serde(flatten)]
    host: HostUseJson,
    #[serde(flatten)]
    before: BeforeJson,
    interval_s: f64,
    /// Those of its server just before it.
    intervals_left_out: u64,
    statements: u64,
    running: Option<usize>,
    active_sessions: Option<f64>,
    starts_unknown: u64,
    errors: Option<u64>,
    latency_us: Latency,
    /// From what latencies run: `start`, as the server notes it, or `request`.
    latency_from: &'static str,
    /// What clients wait for and no latency has: `pool_queue`.
    latency_leaves_out: Vec<&'static str>,
    #[serde(flatten)]
    spent: SpentJson,
    /// Why there is no `time_us`.
    time_us_absent: Option<String>,
    lost: BTreeMap<&'static str, u64>,
    truncated: u64,
    own_statements: u64,
    digests: Vec<DigestJson>,
    other: DigestJson,
    nested: Option<NestedJson>,
    sessions: Option<Vec<SessionJson>>,
    /// The last line of a server has it.
    ended: Option<EndedJson>,
    /// The longest waits for locks of the statements that ended, each by itself.
    lock_waits: Option<Vec<LockWaitJson>>,
    lock_waits_left_out: u64,
    cost: CostJson,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DigestJson {
    digest: Option<String>,
    digest_text: Option<String>,
    digest_cut: Option<bool>,
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
    #[serde(flatten)]
    spent: SpentJson,
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
    #[cfg_attr(test, schemars(with = "Option<BTreeMap<String, f64>>"))]
    time_us: Option<ByClass<f64>>,
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
    /// What it does: a class of time.
    waits_for: Option<&'static str>,
    waits_us: Option<u64>,
    /// What is locked, where it waits for a lock.
    waits_for_object: Option<String>,
    /// Connections that hold it, or stand before it.
    blocked_by: Option<Vec<u64>>,
    /// What is known of the first of them.
    blockers: Option<Vec<BlockerJson>>,
    /// Why that list is empty.
    blocked_by_unknown: Option<String>,
    /// That to which its time belongs.
    digest: Option<String>,
    text: Option<String>,
    text_bytes: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CostJson {
    bpf_ns_per_statement: Option<f64>,
    bpf_switches_cores: Option<f64>,
    agent_cores: Option<f64>,
    rss_bytes: Option<u64>,
    host_sends_per_s: Option<f64>,
}

impl Line {
    /// The line of an interval.
    pub(super) fn new(entry: &Entry, shown: Shown) -> Line {
        let record = &*entry.record;
        let Record { server, state, interval, running, cost, .. } = record;
        let state = state.value();
        let running = running.value();
        let cost = cost.value().copied().unwrap_or_default();
        let length_ns = interval.end_ns.saturating_sub(interval.start_ns);
        let (digests, other) = super::ranked(interval, shown.limit);
        let is_measured = record.parts.value().is_some();
        let digest =
            |(key, totals)| DigestJson::new(Some(key), totals, interval, shown.redact, is_measured);
        let mut spent = SpentJson::new(&interval.spent, interval.active_ns, length_ns, is_measured);
        // Of a part of the load nobody can say that it is all.
        let load = record.active_sessions();
        spent.active_sessions_by = spent.active_sessions_by.filter(|_| load.is_some());
        Line {
            time: time_of(record.end_wall_ns).to_string(),
            server: server.into(),
            state: state.map(ProcessState::key),
            standstill: state.and_then(|state| state.standstill(server.pid)),
            host: HostUseJson::of(record),
            before: BeforeJson::of(record),
            interval_s: length_ns as f64 / 1e9,
            intervals_left_out: entry.left_out,
            statements: interval.statements,
            running: running.map(Vec::len),
            active_sessions: load,
            starts_unknown: interval.starts_unknown,
            errors: interval.errors.get(),
            latency_us: Latency::of(&interval.latency_ns),
            latency_from: if record.starts_known { "start" } else { "request" },
            latency_leaves_out: record.is_pooled.then_some("pool_queue").into_iter().collect(),
            spent,
            time_us_absent: record.parts_absent().map(str::to_owned),
            lost: Loss::ALL.map(|kind| (kind.name(), interval.losses.get(kind))).into(),
            truncated: interval.truncated,
            own_statements: interval.own_statements,
            digests: digests.into_iter().map(digest).collect(),
            other: DigestJson::new(None, &other, interval, shown.redact, is_measured),
            nested: shown.nested.then(|| NestedJson::of(interval.nested.as_deref(), shown)),
            sessions: running.map(|running| {
                let session = |one| SessionJson::new(one, record, shown.redact);
                running.iter().map(session).collect()
            }),
            ended: record.ended.as_ref().map(|ended| EndedJson::new(ended, record, shown.redact)),
            lock_waits: lock_waits::of(record, shown.redact),
            lock_waits_left_out: interval.lock_waits.left_out(),
            cost: CostJson {
                bpf_ns_per_statement: cost.bpf_ns_per_statement,
                bpf_switches_cores: cost.switches_cores,
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
        // Nothing is measured of what runs inside others: it is a part of theirs.
        let digest =
            |(key, totals)| DigestJson::new(Some(key), totals, interval, shown.redact, false);
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
        is_measured: bool,
    ) -> DigestJson {
        let length_ns = interval.end_ns.saturating_sub(interval.start_ns);
        let sample = |sample: &Option<Box<Sample>>| {
            sample.as_ref().map(|sample| SampleJson::new(sample, interval.end_ns, redact))
        };
        let name = totals.name.as_ref();
        let server = totals.server_digest.as_ref();
        let user = |name: &Vec<u8>| String::from_utf8_lossy(name).into_owned();
        let load = totals.active_sessions(length_ns);
        let mut spent = SpentJson::new(&totals.spent, totals.active_ns, length_ns, is_measured);
        spent.active_sessions_by = spent.active_sessions_by.filter(|_| load.is_some());
        DigestJson {
            digest: key.map(|hash| format!("{hash:016x}")),
            digest_text: name.map(|name| name.text.to_string()),
            digest_cut: name.map(|name| name.cut),
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
            active_sessions: load,
            spent,
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

impl SampleJson {
    fn new(sample: &Sample, now_ns: u64, redact: bool) -> SampleJson {
        SampleJson {
            connection_id: sample.statement.connection_id,
            user: lossy(&sample.identity.user),
            host: lossy(&sample.identity.host),
            schema: lossy(&sample.identity.database),
            age_s: now_ns.saturating_sub(sample.end_ns) as f64 / 1e9,
            latency_us: sample.latency_ns.map(|ns| ns as f64 / 1e3),
            time_us: sample.parts.as_ref().map(ByClass::<f64>::of_statement),
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
    fn new(running: &RunningStatement, record: &Record, redact: bool) -> SessionJson {
        let now_ns = record.interval.end_ns;
        let blocked = running.blocked.as_ref();
        SessionJson {
            connection_id: running.connection_id,
            user: lossy(&running.identity.user),
            host: lossy(&running.identity.host),
            schema: lossy(&running.identity.database),
            command: running.command.to_string(),
            state: lossy(&running.state),
            age_s: running.start_ns.map(|start| now_ns.saturating_sub(start) as f64 / 1e9),
            waits_for: running.waits.map(|waits| waits.class.key()),
            waits_us: running.waits.map(|waits| now_ns.saturating_sub(waits.since_ns) / 1000),
            waits_for_object: blocked.and_then(|blocked| blocked.object.clone()),
            blocked_by: blocked.map(|blocked| blocked.by.clone()),
            blockers: blocked.map(|blocked| blocker::of(blocked, record, redact)),
            blocked_by_unknown: blocked.and_then(|blocked| blocked.unknown.clone()),
            digest: running.digest.map(|key| format!("{:016x}", key.text)),
            text: running.text.as_deref().map(|text| printable(text, running.settings, redact)),
            text_bytes: running.text_length,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;
    use waggle_model::Reading;

    use super::super::output::tests::record;
    use super::super::spent::tests::{KEY, interval};
    use super::*;
    use crate::schema;

    const SHOWN: Shown = Shown { limit: 20, redact: true, nested: false };

    fn line(parts: Reading<()>, interval: Interval, shown: Shown) -> Value {
        let record = Record { parts, interval, ..Arc::unwrap_or_clone(record(1)) };
        let entry = Entry { record: Arc::new(record), left_out: 0 };
        serde_json::to_value(Line::new(&entry, shown)).unwrap()
    }

    /// The sum of the numbers in an object.
    fn sum(of: &Value) -> f64 {
        of.as_object().unwrap().values().map(|value| value.as_f64().unwrap()).sum()
    }

    #[test]
    fn the_classes_of_an_interval_of_a_digest_of_the_rest_and_of_a_sample_sum_to_their_latency() {
        let whole = line(Reading::Value(()), interval(), SHOWN);
        let rest = line(Reading::Value(()), interval(), Shown { limit: 0, ..SHOWN });
        for one in [&whole, &whole["digests"][0], &rest["other"]] {
            assert_eq!(sum(&one["time_us"]), one["latency_us"]["sum"].as_f64().unwrap(), "{one}");
        }
        let sample = &whole["digests"][0]["samples"]["slowest"];
        assert_eq!(sum(&sample["time_us"]).round(), sample["latency_us"].as_f64().unwrap().round());
        assert_eq!(whole["time_us_absent"], Value::Null);
        assert_eq!(whole["active_sessions_by"], Value::Null, "the sessions could not be read");
        let digest = &whole["digests"][0];
        let (by, all) = (sum(&digest["active_sessions_by"]), digest["active_sessions"].as_f64());
        assert!((by - all.unwrap()).abs() < 1e-9, "{digest}");
        assert_eq!(digest["after_reply_us"], 7);
    }

    #[test]
    fn what_is_not_measured_is_null_with_the_reason() {
        let mut unknown = interval();
        unknown.spent = waggle_model::Spent::default();
        unknown.digests.get_mut(&KEY).unwrap().spent = waggle_model::Spent::default();
        let line = line(Reading::absent("no tracepoint"), unknown, SHOWN);
        assert_eq!(
            (&line["time_us"], &line["digests"][0]["time_us"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(line["time_us_absent"], "no tracepoint");
        assert_eq!(line["digests"][0]["active_sessions_by"], Value::Null);
    }

    #[test]
    fn the_schema_of_the_reference_is_that_of_the_types_and_every_key_is_explained() {
        let schema = schemars::schema_for!(Line);
        schema::assert_kept("watch", &schema);
        schema::assert_explained("watch", &schema, 40);
    }
}
