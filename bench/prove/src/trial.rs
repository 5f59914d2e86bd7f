//! One trial: `waggle prove` on a server under load.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use waggle_bench_frame::waggle;
use waggle_testkit::Server;

/// What it says, as JSON.
pub(crate) fn of(server: &Server, arguments: &[String]) -> Result<Value> {
    let pid = server.pid().to_string();
    let words = ["prove", "--json", "--pid", &pid];
    let ended = Command::new(waggle()?).args(words).args(arguments).output()?;
    let said = String::from_utf8_lossy(&ended.stderr);
    ensure!(ended.status.success(), "waggle prove failed: {said}");
    serde_json::from_slice(&ended.stdout).context("the JSON of waggle prove")
}

/// A number of it.
pub(crate) fn number(json: &Value, path: &str) -> Result<f64> {
    json.pointer(path).and_then(Value::as_f64).with_context(|| format!("no {path} in {json}"))
}
