//! A profile as one JSON object. `docs/reference/profile-json.md` documents the shape; `null` was not measured.

use serde::Serialize;
use waggle_model::Loss;
use waggle_profile::{Chain, Work};

use super::Report;
use crate::server_json::ServerJson;

/// The object.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ProfileJson {
    length_s: f64,
    /// Whether samples are microseconds off the processor, and not ticks.
    off_cpu: bool,
    hz: Option<u32>,
    processors: Option<usize>,
    servers: Vec<ServerJson>,
    digest: Option<String>,
    samples_of_all: u64,
    samples: u64,
    cores: f64,
    lost: u64,
    left_out: u64,
    attributed: Attributed,
    callers: Callers,
    in_kernel: u64,
    without_name: u64,
    nameless: Vec<String>,
    ns_per_sample: Option<f64>,
    digests: Vec<DigestJson>,
    threads: Vec<ThreadJson>,
    functions: Vec<FunctionJson>,
    conversion: ConversionJson,
}

/// Samples by what is known of their work.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Attributed {
    to_digests: u64,
    to_threads: u64,
    unmatched: u64,
}

/// Samples by what is known of the callers.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Callers {
    known: u64,
    broken: u64,
    cut: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DigestJson {
    pid: u32,
    digest: String,
    digest_text: Option<String>,
    digest_cut: Option<bool>,
    schema: Option<String>,
    samples: u64,
    share: f64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ThreadJson {
    pid: u32,
    thread: String,
    samples: u64,
    share: f64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FunctionJson {
    function: String,
    file: String,
    named: bool,
    caller: Option<String>,
    self_samples: u64,
    self_share: f64,
    total_samples: u64,
    total_share: f64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ConversionJson {
    samples: u64,
    share: f64,
    converting: Vec<ConvertingJson>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ConvertingJson {
    function: String,
    samples: u64,
    share: f64,
}

pub(super) fn of(report: &Report) -> ProfileJson {
    let profile = &report.profile;
    let [to_digests, to_threads, unmatched] = report.by_kind();
    let [known, broken, cut] =
        [Chain::Whole, Chain::Broken, Chain::Cut].map(|chain| profile.with_chain(chain));
    ProfileJson {
        length_s: report.length.as_secs_f64(),
        off_cpu: report.is_off_cpu,
        hz: (!report.is_off_cpu).then_some(report.per_second),
        processors: report.processors,
        servers: report.servers.iter().map(ServerJson::from).collect(),
        digest: report.only.map(|digest| format!("{digest:016x}")),
        samples_of_all: report.samples,
        samples: profile.samples(),
        cores: report.cores(profile.samples()),
        lost: report.losses.get(Loss::ProfileSample),
        left_out: profile.left_out,
        attributed: Attributed { to_digests, to_threads, unmatched },
        callers: Callers { known, broken, cut },
        in_kernel: profile.in_kernel(),
        without_name: profile.without_name(),
        nameless: report.nameless.clone(),
        ns_per_sample: report.ns_per_sample,
        digests: digests(report),
        threads: threads(report),
        functions: functions(report),
        conversion: conversion(report),
    }
}

fn digests(report: &Report) -> Vec<DigestJson> {
    let digest = |(owner, samples): (&waggle_profile::Owner, u64)| {
        let Work::Digest { key, name } = &owner.work else { return None };
        Some(DigestJson {
            pid: owner.pid,
            digest: format!("{:016x}", key.text),
            digest_text: name.as_ref().map(|name| name.text.to_string()),
            digest_cut: name.as_ref().map(|name| name.cut),
            schema: name.as_ref().and_then(|name| Some(name.schema.as_ref()?.to_string())),
            samples,
            share: report.share(samples),
        })
    };
    report.profile.by_owner().into_iter().filter_map(digest).take(report.limit).collect()
}

fn threads(report: &Report) -> Vec<ThreadJson> {
    let thread = |(owner, samples): (&waggle_profile::Owner, u64)| {
        let Work::Thread(name) = &owner.work else { return None };
        let (pid, share) = (owner.pid, report.share(samples));
        Some(ThreadJson { pid, thread: name.to_string(), samples, share })
    };
    report.profile.by_owner().into_iter().filter_map(thread).take(report.limit).collect()
}

fn functions(report: &Report) -> Vec<FunctionJson> {
    let all = &report.profile.functions;
    let function = |used: waggle_profile::Used| {
        let function = all.get(used.function)?;
        Some(FunctionJson {
            function: function.name.to_string(),
            file: function.file.to_string(),
            named: function.is_named,
            caller: used.caller.and_then(|at| Some(all.get(at)?.name.to_string())),
            self_samples: used.itself,
            self_share: report.share(used.itself),
            total_samples: used.total,
            total_share: report.share(used.total),
        })
    };
    report.profile.used().into_iter().filter_map(function).take(report.limit).collect()
}

fn conversion(report: &Report) -> ConversionJson {
    let conversion = report.profile.conversion();
    let one = |(function, samples): &(usize, u64)| {
        let function = report.profile.functions.get(*function)?.name.to_string();
        Some(ConvertingJson { function, samples: *samples, share: report.share(*samples) })
    };
    ConversionJson {
        samples: conversion.samples,
        share: report.share(conversion.samples),
        converting: conversion.functions.iter().filter_map(one).take(report.limit).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn the_json_of_a_profile_is_that_of_the_reference_and_every_key_is_explained() {
        let schema = schemars::schema_for!(ProfileJson);
        schema::assert_kept("profile", &schema);
        schema::assert_explained("profile", &schema, 41);
    }
}
