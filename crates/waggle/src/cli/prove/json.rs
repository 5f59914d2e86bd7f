//! A trial as one JSON object. `docs/reference/prove-json.md` documents the shape; `null` was not measured.

use serde::Serialize;
use waggle_model::{DigestKey, DigestName, Times};
use waggle_prove::{ALPHA, ArmSeen, DigestPrice, Price, TRIM};

use super::Report;
use crate::server_json::ServerJson;

/// The object.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ProveJson {
    server: ServerJson,
    length_s: f64,
    within_ns: u64,
    confidence: f64,
    trimmed: f64,
    statements: u64,
    left_out: u64,
    captured: u64,
    lost: u64,
    ended_unseen: u64,
    /// All that is collected, beside nothing.
    total: Option<PriceJson>,
    steps: Vec<StepJson>,
    carried_over: Option<PriceJson>,
    arms: Vec<ArmJson>,
    course: Vec<MomentJson>,
    /// The busiest digests.
    digests: Option<Vec<DigestJson>>,
    digests_others: Option<u64>,
    digests_without_room: Option<u64>,
    own_ns_per_statement: Option<f64>,
    entry_ns: Option<f64>,
    rss_bytes: Option<u64>,
    injected_ns: Option<f64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PriceJson {
    ns: f64,
    half_width_ns: f64,
    percent: f64,
    base_ns: f64,
    statements: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StepJson {
    collector: &'static str,
    price: Option<PriceJson>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ArmJson {
    collectors: Vec<&'static str>,
    share: f64,
    statements: u64,
    processor_ns: QuantilesJson,
    latency_ns: QuantilesJson,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct QuantilesJson {
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DigestJson {
    digest: Option<String>,
    digest_text: Option<String>,
    digest_cut: Option<bool>,
    schema: Option<String>,
    begin_alike: usize,
    statements: u64,
    price: Option<PriceJson>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MomentJson {
    after_s: f64,
    ns: f64,
    half_width_ns: f64,
}

impl QuantilesJson {
    pub(super) fn of(times: &Times) -> QuantilesJson {
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|share| times.quantile(share));
        QuantilesJson { p50, p95, p99 }
    }
}

impl From<&Price> for PriceJson {
    fn from(price: &Price) -> PriceJson {
        PriceJson {
            ns: price.ns,
            half_width_ns: price.half_width_ns,
            percent: price.percent(price.ns),
            base_ns: price.base_ns,
            statements: price.statements,
        }
    }
}

impl DigestJson {
    fn of((price, names): &(DigestPrice<DigestKey>, Vec<DigestName>)) -> DigestJson {
        let (key, name) = (price.digests.first(), names.first());
        DigestJson {
            digest: key.map(|key| format!("{:016x}", key.text)),
            digest_text: name.map(|name| name.text.to_string()),
            digest_cut: name.map(|name| name.cut),
            schema: name.and_then(|name| name.schema.as_ref()).map(ToString::to_string),
            begin_alike: price.digests.len().saturating_sub(1),
            statements: price.statements,
            price: price.price.as_ref().map(PriceJson::from),
        }
    }
}

pub(super) fn of(report: &Report) -> ProveJson {
    let proof = &report.proof;
    let by_digest = report.by_digest.as_ref();
    let price = |price: &Option<Price>| price.as_ref().map(PriceJson::from);
    let arm = |(seen, share): (&ArmSeen, f64)| ArmJson {
        collectors: seen.collectors.iter().map(|collector| collector.name()).collect(),
        share,
        statements: seen.statements,
        processor_ns: QuantilesJson::of(&seen.processor),
        latency_ns: QuantilesJson::of(&seen.latency),
    };
    let shares = report.trial.arms.iter().map(|arm| arm.share);
    let steps = proof
        .steps()
        .map(|step| StepJson { collector: step.collector.name(), price: price(&step.price) });
    let course = report.course.iter().map(|moment| MomentJson {
        after_s: moment.after.as_secs_f64(),
        ns: moment.price.ns,
        half_width_ns: moment.price.half_width_ns,
    });
    ProveJson {
        server: ServerJson::from(&report.server),
        length_s: report.length.as_secs_f64(),
        within_ns: report.within_ns,
        confidence: 1.0 - ALPHA,
        trimmed: TRIM,
        statements: proof.statements(),
        left_out: proof.left_out(),
        captured: report.seen.captured,
        lost: report.seen.losses.statements(),
        ended_unseen: report.seen.ended_unseen,
        total: price(&proof.total),
        steps: steps.collect(),
        carried_over: price(&proof.carried_over),
        arms: proof.arms.iter().zip(shares).map(arm).collect(),
        course: course.collect(),
        digests: by_digest.map(|all| all.rows.iter().map(DigestJson::of).collect()),
        digests_others: by_digest.map(|all| all.others),
        digests_without_room: by_digest.map(|all| all.without_room),
        own_ns_per_statement: report.seen.own_ns(),
        entry_ns: report.entry.map(|(ns, _)| ns),
        rss_bytes: report.seen.rss_bytes,
        injected_ns: proof.injected_ns,
    }
}

#[cfg(test)]
mod tests {
    use schemars::schema_for;

    use super::ProveJson;
    use crate::schema::{assert_explained, assert_kept};

    #[test]
    fn the_reference_documents_every_property_of_the_json() {
        let schema = schema_for!(ProveJson);
        assert_kept("prove", &schema);
        assert_explained("prove", &schema, 30);
    }
}
