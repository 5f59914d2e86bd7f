#![forbid(unsafe_code)]
//! waggle: every query of a running MySQL or MariaDB server, and what looking cost.
fn main() {}
