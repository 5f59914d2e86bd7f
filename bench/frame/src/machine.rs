//! On what a run is measured.

use git_version::git_version;
use serde_json::{Value, json};
use waggle_host::{kernel_release, memory, processors};

/// The version, and the commit that it was built from where that is known.
const VERSION: &str = git_version!(
    prefix = concat!(env!("CARGO_PKG_VERSION"), " "),
    fallback = env!("CARGO_PKG_VERSION")
);

/// On what it is measured, and when it begins. No host name: results are public. `date` is the day in
/// UTC, `YYYY-MM-DD`; `load_before` how many tasks were runnable in the minute before;
/// what cannot be found out is `null`.
pub fn machine() -> Value {
    let now = jiff::Timestamp::now();
    json!({
        "date": now.strftime("%Y-%m-%d").to_string(),
        "time": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "kernel": kernel_release(),
        "processors": processors::online().ok(),
        "model": processors::model(),
        "virtual_machine": processors::are_virtual(),
        "memory_gib": memory::total_bytes().map(|bytes| bytes as f64 / f64::from(1 << 30)),
        "load_before": processors::load_average(),
        "waggle": VERSION,
    })
}

/// The same as part of a sentence.
pub fn in_words(machine: &Value) -> String {
    let text = |name: &str| machine[name].as_str().unwrap_or("unknown");
    let kind = if machine["virtual_machine"] == true { "virtual machine" } else { "machine" };
    let memory = machine["memory_gib"].as_f64();
    format!(
        "{kind} with {} × {}, {}; kernel {}; waggle {}; begun at {} with a load average of {}",
        machine["processors"],
        text("model"),
        memory.map_or_else(|| "memory unknown".to_owned(), |gib| format!("{gib:.1} GiB")),
        text("kernel"),
        text("waggle"),
        text("time"),
        text("load_before"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_told_without_its_name() {
        let machine = machine();
        assert!(machine["processors"].as_u64().unwrap() > 0, "{machine}");
        assert!(machine["memory_gib"].as_f64().unwrap() > 0.0, "{machine}");
        let mut keys: Vec<&str> = machine.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        let told = ["date", "kernel", "load_before", "memory_gib", "model", "processors", "time"];
        assert_eq!(keys, [told.as_slice(), &["virtual_machine", "waggle"]].concat());
        assert_eq!(machine["date"].as_str().unwrap().len(), "2026-11-22".len());
        let absent = in_words(&json!({ "processors": 2 }));
        assert!(absent.starts_with("machine with 2 × unknown, memory unknown;"), "{absent}");
    }
}
