//! Digests of the statements on standard input, one a line:
//! `cargo run -p waggle-sql --example digest_lines -- mysql9 < statements`.
//! In a line `\n`, `\t`, `\0` and `\\` stand for these bytes.
#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use std::io::BufRead;
use waggle_sql::Dialect;
use waggle_sql::Normaliser;

fn main() -> std::io::Result<()> {
    let dialect = match std::env::args().nth(1).as_deref() {
        Some("mysql57") => Dialect::Mysql57,
        Some("mysql80") => Dialect::Mysql80,
        Some("mariadb") => Dialect::Mariadb,
        _ => Dialect::Mysql9,
    };
    let mut normaliser = Normaliser::new(dialect);
    for line in std::io::stdin().lock().split(b'\n') {
        println!("{}", normaliser.digest(&unescape(&line?)).text());
    }
    Ok(())
}

fn unescape(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = line.iter();
    while let Some(byte) = bytes.next() {
        let plain = match (byte, (*byte == b'\\').then(|| bytes.next()).flatten()) {
            (_, Some(b'n')) => b'\n',
            (_, Some(b't')) => b'\t',
            (_, Some(b'0')) => 0,
            (_, Some(other)) => *other,
            (byte, None) => *byte,
        };
        out.push(plain);
    }
    out
}
