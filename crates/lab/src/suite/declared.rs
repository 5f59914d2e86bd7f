//! The effects that a suite declares detectable.

use std::collections::BTreeMap;

use crate::metric::Metric;

use super::Suite;
use super::error::Mistake;

const KEY: &str = "detectable_percent";
/// By what a run is always judged.
const REQUIRED: Metric = Metric::CpuPerStatement;

impl Suite {
    /// The effect on a metric that a run shall be able to show, %; `None` where nothing is declared of
    /// the metric.
    pub fn declared_percent(&self, metric: Metric) -> Option<f64> {
        self.detectable_percent.get(&metric).copied()
    }
}

/// What a file declares, in which metrics have their keys.
pub(super) fn detectable(file: &BTreeMap<String, f64>) -> Result<BTreeMap<Metric, f64>, Mistake> {
    let mut declared = BTreeMap::new();
    for (key, percent) in file {
        let Some(metric) = Metric::ALL.into_iter().find(|metric| metric.key() == key) else {
            let keys = Metric::ALL.map(Metric::key).join(", ");
            let reason = format!("there is no metric {key}");
            return Err(Mistake::new(KEY, reason, format!("name one of {keys}")));
        };
        effect(&format!("{KEY}.{key}"), *percent)?;
        declared.insert(metric, *percent);
    }
    if !declared.contains_key(&REQUIRED) {
        let reason = format!("{} is missing, on which verdicts are", REQUIRED.key());
        let remedy = "give the effect on it that a run shall be able to show, %";
        return Err(Mistake::new(KEY, reason, remedy));
    }
    Ok(declared)
}

/// That an effect in % can be looked for.
pub(super) fn effect(key: &str, percent: f64) -> Result<(), Mistake> {
    if percent > 0.0 && percent <= 100.0 {
        return Ok(());
    }
    let reason = format!("{percent} % is no effect that can be looked for");
    Err(Mistake::new(key, reason, "give more than 0, at most 100"))
}
