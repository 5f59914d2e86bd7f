//! Counts what each subject allocates per statement after one round over all of them. A program of
//! its own, since an allocator that counts slows down whoever allocates.
//!
//! `waggle-bench-sql-allocations BYTES SEED` prints one object of JSON for each load and subject.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the other program reads it")]

use std::alloc::System;

use anyhow::{Context, Result};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use waggle_bench_sql::load::Load;
use waggle_bench_sql::subject::Subject;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|it| it.parse::<u64>());
    let bytes = arguments.next().context("BYTES is missing")??;
    let seed = arguments.next().context("SEED is missing")??;
    for load in Load::ALL {
        let statements = load.statements(usize::try_from(bytes)?, seed);
        for mut subject in Subject::all() {
            subject.work(&statements);
            let region = Region::new(ALLOCATOR);
            subject.work(&statements);
            let change = region.change();
            let line = serde_json::json!({
                "load": load.name(),
                "subject": subject.name(),
                "ours": subject.is_ours(),
                "statements": statements.len(),
                "allocations": change.allocations + change.reallocations,
                "bytes": change.bytes_allocated,
            });
            println!("{line}");
        }
    }
    Ok(())
}
