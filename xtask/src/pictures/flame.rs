//! The flame graph of the guide: of statements that are different enough to be told apart at a glance.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use anyhow::{Context, Result, ensure};
use waggle_testkit::Server;

use super::{folder, session};

const STATEMENTS: [&str; 3] = [
    "SELECT c, COUNT(*), MAX(pad) FROM sbtest1 WHERE c LIKE '%7-1%' GROUP BY c ORDER BY 2 DESC, c LIMIT 10",
    "SELECT COUNT(DISTINCT SHA2(CONCAT(a.c, b.pad), 256)) FROM sbtest1 a JOIN sbtest1 b ON b.k = a.id \
     WHERE a.id < 2000",
    "UPDATE sbtest1 SET k = k + 1 WHERE id BETWEEN 100 AND 300",
];
/// More than this would be long to load with the page.
const LARGEST: u64 = 150_000;

/// Draws it from a run on a server that has the table of sysbench.
pub(super) fn take(waggle: &Path, server: &Server) -> Result<()> {
    let path = folder()?.join("flame.svg");
    let is_over = AtomicBool::new(false);
    let output = thread::scope(|scope| {
        for sql in STATEMENTS {
            scope.spawn(|| again_and_again(server, sql, &is_over));
        }
        let mut profile = Command::new(waggle);
        profile.args([
            "profile",
            "--for",
            "10s",
            "--hz",
            "499",
            "--pid",
            &server.pid().to_string(),
        ]);
        let output = profile.arg("--svg").arg(&path).output();
        is_over.store(true, Ordering::Relaxed);
        output
    });
    let output = output.context("waggle cannot be run")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "waggle profile: {error}");
    let bytes = fs::metadata(&path)?.len();
    ensure!(bytes <= LARGEST, "docs/pictures/flame.svg has {bytes} bytes");
    println!("docs/pictures/flame.svg");
    Ok(())
}

/// Runs a statement until it is over, or the server fails.
fn again_and_again(server: &Server, sql: &str, is_over: &AtomicBool) -> Result<()> {
    let mut session = session(server)?;
    while !is_over.load(Ordering::Relaxed) {
        session.run(sql)?;
    }
    Ok(())
}
