//! How much the tests do: little in `cargo test`, much in `cargo xtask soak`.

use std::env;
use std::fs::File;
use std::io::Write;

use serde_json::Value;

/// Statements per server of the exactness runs, set by `cargo xtask soak`.
const STATEMENTS: &str = "WAGGLE_SOAK_STATEMENTS";
/// The file to which results are appended, one JSON object per line.
const RESULTS: &str = "WAGGLE_SOAK_RESULTS";

/// Whether this is the long form.
pub(crate) fn is_soak() -> bool {
    env::var_os(STATEMENTS).is_some()
}

/// `short` in `cargo test`, `long` in a soak.
pub(crate) fn choose<T>(short: T, long: T) -> T {
    if is_soak() { long } else { short }
}

/// Statements per server of the exactness runs.
pub(crate) fn statements() -> u64 {
    env::var(STATEMENTS).map_or(10_000, |number| number.parse().unwrap())
}

/// Prints a result, and keeps it where a soak asks for that.
pub(crate) fn keep(result: &Value) {
    println!("{result}");
    let Some(path) = env::var_os(RESULTS) else { return };
    let mut file = File::options().create(true).append(true).open(path).unwrap();
    // One write, since tests run side by side.
    file.write_all(format!("{result}\n").as_bytes()).unwrap();
}
