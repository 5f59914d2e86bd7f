//! The tasks of the project: `cargo xtask --help`.
fn main() {}
