//! Prices by the coin: `waggle prove` of each arm, under the load that is at work.

use anyhow::Result;
use serde_json::Value;
use waggle_bench_frame::prove;

use crate::arm::Arm;
use crate::load::Load;
use crate::settings::Settings;

/// What an arm costs under a load.
pub(crate) struct Priced {
    pub(crate) arm: Arm,
    pub(crate) load: Load,
    /// What `waggle prove --json` said.
    pub(crate) json: Value,
}

impl Priced {
    /// What one collector adds; null where it was not priced.
    pub(crate) fn step(&self, collector: &str) -> &Value {
        let mut steps = self.json["steps"].as_array().into_iter().flatten();
        steps
            .find(|step| step["collector"] == collector)
            .map_or(&Value::Null, |step| &step["price"])
    }
}

/// Prices those of the arms of which a coin can decide.
pub(crate) fn measure(
    pid: u32,
    arms: &[Arm],
    load: Load,
    settings: &Settings,
) -> Result<Vec<Priced>> {
    let told = arms.iter().filter_map(|arm| Some((*arm, arm.words()?)));
    told.map(|(arm, words)| {
        let json = prove(pid, &[settings.words(), words].concat())?;
        Ok(Priced { arm, load, json })
    })
    .collect()
}
