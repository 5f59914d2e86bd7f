//! The JSON of a report.

use std::collections::BTreeMap;

use serde::Serialize;
use waggle_model::Loss;

use super::{Field, Report, Source};

/// A report as JSON: stable keys, sorted where they are data.
#[derive(Clone, Debug, Serialize)]
pub struct ReportJson {
    passed: bool,
    captured: u64,
    server_counted: Option<u64>,
    source: Option<&'static str>,
    missing: u64,
    extra: u64,
    in_flight: u64,
    lost: BTreeMap<&'static str, u64>,
    nested: u64,
    digests_compared: u64,
    digests_differing: u64,
    in_doubt: u64,
    share_in_doubt: Option<f64>,
    fields: BTreeMap<&'static str, FieldJson>,
    differing: Vec<DifferingJson>,
    not_compared: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct FieldJson {
    compared: u64,
    equal: u64,
    differing: u64,
}

#[derive(Clone, Debug, Serialize)]
struct DifferingJson {
    schema: Option<String>,
    digest_text: String,
    field: &'static str,
    ours: u64,
    theirs: u64,
    why: Option<String>,
}

impl From<&Report> for ReportJson {
    fn from(report: &Report) -> ReportJson {
        let field = |field: Field| {
            let summary = report.fields.get(&field).copied().unwrap_or_default();
            let json = FieldJson {
                compared: summary.compared,
                equal: summary.equal,
                differing: summary.differing,
            };
            (field.name(), json)
        };
        let mut differing: Vec<_> = report.differing.iter().collect();
        differing.sort_by_key(|one| (&one.schema, &one.digest_text, one.field));
        ReportJson {
            passed: report.passed(),
            captured: report.captured,
            server_counted: report.server_counted,
            source: report.source.map(Source::name),
            missing: report.missing,
            extra: report.extra,
            in_flight: report.in_flight,
            lost: Loss::ALL.iter().map(|kind| (kind.name(), report.lost(*kind))).collect(),
            nested: report.nested,
            digests_compared: report.digests_compared,
            digests_differing: report.digests_differing,
            in_doubt: report.in_doubt,
            share_in_doubt: report.share_in_doubt(),
            fields: Field::ALL.into_iter().map(field).collect(),
            differing: differing
                .into_iter()
                .map(|one| DifferingJson {
                    schema: one.schema.clone(),
                    digest_text: one.digest_text.clone(),
                    field: one.field.name(),
                    ours: one.ours,
                    theirs: one.theirs,
                    why: one.why.map(|why| why.to_string()),
                })
                .collect(),
            not_compared: report.not_compared.clone(),
        }
    }
}
