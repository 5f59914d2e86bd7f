//! What the host gave to a server in an interval, as JSON.

use serde::Serialize;
use waggle_model::{ProcessorUse, Record, StorageWaits};

/// The part of a line.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct HostUseJson {
    /// Who used the processors that the server may use.
    cpus: Option<CpusJson>,
    /// Why that is not known.
    cpus_absent: Option<String>,
    /// For how much of the interval somebody waited for storage.
    storage_waits: Option<StorageWaitsJson>,
    /// Why that is not known.
    storage_waits_absent: Option<String>,
}

/// In cores: 1 is a whole processor all the time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CpusJson {
    usable: u64,
    busy_cores: f64,
    server_cores: f64,
    stolen_cores: Option<f64>,
    limit_cores: Option<f64>,
    held_back: Option<f64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StorageWaitsJson {
    /// From 0 to 1.
    share: f64,
    /// `group`: tasks of the control group of the server count; `host`: all do.
    of: &'static str,
}

impl HostUseJson {
    /// That of an interval.
    pub(super) fn of(record: &Record) -> HostUseJson {
        HostUseJson {
            cpus: record.processors.value().map(CpusJson::of),
            cpus_absent: record.processors.why().map(str::to_owned),
            storage_waits: record.storage.value().map(StorageWaitsJson::of),
            storage_waits_absent: record.storage.why().map(str::to_owned),
        }
    }
}

impl CpusJson {
    fn of(used: &ProcessorUse) -> CpusJson {
        CpusJson {
            usable: used.processors,
            busy_cores: used.busy,
            server_cores: used.server,
            stolen_cores: used.stolen,
            limit_cores: used.limit.map(|limit| limit.cores),
            held_back: used.limit.map(|limit| limit.held_back),
        }
    }
}

impl StorageWaitsJson {
    fn of(waits: &StorageWaits) -> StorageWaitsJson {
        StorageWaitsJson { share: waits.share, of: if waits.of_group { "group" } else { "host" } }
    }
}
