//! How much data a load has, by the scale of a run.

use serde::{Deserialize, Serialize};

/// The tables of the load, and room for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Number of tables.
    pub tables: u32,
    /// Rows of each.
    pub rows: ByScale<u32>,
    /// The workload that uses the new tables until they are no longer new, before they are copied; absent where
    /// they are measured as they were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_with: Option<String>,
    /// Size of the buffer pool, MiB.
    pub buffer_pool_mib: ByScale<u32>,
    /// Size of the redo log, MiB.
    pub redo_log_mib: ByScale<u32>,
}

/// How large an experiment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Minutes: it shows that everything works, and large effects.
    Tiny,
    /// An hour or so.
    Small,
    /// The size of the source, where it says it.
    Full,
}

/// A value for each [`Scale`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByScale<T> {
    tiny: T,
    small: T,
    full: T,
}

impl Scale {
    /// All, the smallest first.
    pub const ALL: [Scale; 3] = [Scale::Tiny, Scale::Small, Scale::Full];

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Tiny => "tiny",
            Scale::Small => "small",
            Scale::Full => "full",
        }
    }
}

impl Data {
    /// Size of the buffer pool, bytes.
    pub fn buffer_pool_bytes(&self, scale: Scale) -> u64 {
        u64::from(self.buffer_pool_mib.of(scale)) << 20
    }
}

impl<T: Copy> ByScale<T> {
    /// The value for a scale.
    pub fn of(&self, scale: Scale) -> T {
        match scale {
            Scale::Tiny => self.tiny,
            Scale::Small => self.small,
            Scale::Full => self.full,
        }
    }
}
