//! What every bench keeps of a run: on what it was measured, and where.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use git_version::git_version;
use serde_json::{Value, json};

/// The version, and the commit that it was built from where that is known.
const VERSION: &str = git_version!(
    prefix = concat!(env!("CARGO_PKG_VERSION"), " "),
    fallback = env!("CARGO_PKG_VERSION")
);

/// On what it is measured, and when it begins. No host name: results are public. `date` is the day in
/// UTC, `YYYY-MM-DD`; `load_before` how many tasks were runnable in the minute before (`/proc/loadavg`);
/// what cannot be found out is `null`.
pub fn machine() -> Value {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (cpuinfo, meminfo) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let of = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| Some(line.split_once(':')?.1.trim().to_owned()))
    };
    let kib = of(&meminfo, "MemTotal").and_then(|text| text.strip_suffix(" kB")?.parse().ok());
    let now = jiff::Timestamp::now();
    json!({
        "date": now.strftime("%Y-%m-%d").to_string(),
        "time": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "processors": cpuinfo.lines().filter(|line| line.starts_with("processor")).count(),
        "model": of(&cpuinfo, "model name"),
        "virtual_machine": of(&cpuinfo, "flags").map(|flags| flags.contains("hypervisor")),
        "memory_gib": kib.map(|kib: f64| kib / f64::from(1 << 20)),
        "load_before": read("/proc/loadavg").split(' ').next(),
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

/// Makes a directory for the results of a run: `DATE-NAME` in `output`, with a number where there is one.
///
/// # Errors
/// It cannot be made.
pub fn new_directory(output: &Path, name: &str, machine: &Value) -> Result<PathBuf> {
    let date = machine["date"].as_str().unwrap_or_default();
    fs::create_dir_all(output).with_context(|| output.display().to_string())?;
    for number in 1.. {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let directory = output.join(format!("{date}-{name}{number}"));
        match fs::create_dir(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).context(directory.display().to_string()),
        }
    }
    unreachable!("a number is free")
}

/// Says on standard error how far a run is that began at `begin`.
///
/// # Errors
/// Standard error is closed.
pub fn say(begin: Instant, what: &str) -> Result<()> {
    Ok(writeln!(io::stderr(), "{:5.0} s  {what}", begin.elapsed().as_secs_f64())?)
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

    #[test]
    fn a_second_run_of_a_day_has_a_number() {
        let place = tempfile::TempDir::new().unwrap();
        let machine = json!({ "date": "2026-11-22" });
        let output = place.path().join("results");
        let made = [(); 3].map(|()| new_directory(&output, "tap", &machine).unwrap());
        let names = made.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
        assert_eq!(names, ["2026-11-22-tap", "2026-11-22-tap-2", "2026-11-22-tap-3"]);
        fs::write(place.path().join("file"), "").unwrap();
        let error = new_directory(&place.path().join("file"), "tap", &machine).unwrap_err();
        assert!(error.to_string().contains("file"), "{error}");
    }
}
