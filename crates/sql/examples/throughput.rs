//! How fast digests are made: `cargo run -p waggle-sql --example throughput`.
#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use std::hint::black_box;
use std::time::Instant;
use waggle_sql::Dialect;
use waggle_sql::Normaliser;
use waggle_sql::mask_secrets;

const STATEMENTS: [&str; 6] = [
    "SELECT c FROM sbtest1 WHERE id=5013",
    "SELECT c FROM sbtest1 WHERE id BETWEEN 4990 AND 5089",
    "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 1 AND 100 ORDER BY c",
    "UPDATE sbtest1 SET k=k+1 WHERE id=5010",
    "UPDATE sbtest1 SET c='68487932199-96439406143-93774651418-41631865787-96406072701-\
     20604855487-25459966574-28203206787-41238978918-19503783441' WHERE id=5014",
    "INSERT INTO sbtest1 (id, k, c, pad) VALUES (4999, 5034, '68487932199-96439406143-\
     93774651418-41631865787-96406072701-20604855487-25459966574-28203206787-41238978918-\
     19503783441', '22195207048-70116052123-74140395089-76317954521-98694025897')",
];
const ROUNDS: u32 = 200_000;

fn main() {
    let mut normaliser = Normaliser::new(Dialect::Mysql9);
    let bytes: usize = STATEMENTS.iter().map(|it| it.len()).sum();
    report("digest, all six", bytes, STATEMENTS.len(), || {
        for statement in STATEMENTS {
            black_box(normaliser.digest(black_box(statement.as_bytes())).hash);
        }
    });
    for statement in STATEMENTS {
        report("digest", statement.len(), 1, || {
            black_box(normaliser.digest(black_box(statement.as_bytes())).hash);
        });
    }
    report("mask, point select", STATEMENTS[0].len(), 1, || {
        black_box(mask_secrets(black_box(STATEMENTS[0].as_bytes()), None).len());
    });
}

fn report(name: &str, bytes: usize, statements: usize, mut work: impl FnMut()) {
    let start = Instant::now();
    for _ in 0..ROUNDS {
        work();
    }
    let nanoseconds = start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS);
    let (each, rate) = (nanoseconds / statements as f64, bytes as f64 * 1e3 / nanoseconds);
    println!("{name:20} {bytes:5} bytes  {each:7.1} ns/statement  {rate:7.1} MB/s");
}
