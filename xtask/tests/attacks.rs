//! The table of attacks names tests that exist.
#![cfg(test)]
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn add_sources(directory: &Path, sources: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_sources(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

/// The names of all tests: what follows an attribute.
fn tests(sources: &str) -> BTreeSet<&str> {
    let after = |mark: &'static str| sources.split(mark).skip(1);
    let functions = after("#[test]\n").filter_map(|rest| rest.trim_start().strip_prefix("fn "));
    let functions = functions.filter_map(|rest| rest.split('(').next());
    // Each of these makes a test for every server.
    let checks = after("on_each_server!(").chain(after("on_each_build!("));
    functions.chain(checks.filter_map(|rest| rest.trim_start().split([')', ':']).next())).collect()
}

#[test]
fn every_attack_names_a_test_that_exists() {
    let mut sources = String::new();
    ["crates", "xtask"].iter().for_each(|room| add_sources(&root().join(room), &mut sources));
    let tests = tests(&sources);
    let page = fs::read_to_string(root().join("docs/attacks.md")).unwrap();
    let lines = page.lines().filter(|line| line.starts_with("| "));
    let mut named = 0;
    for line in lines {
        let last = line.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        if last == "test" {
            continue;
        }
        let names: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test is named: {line}");
        for name in &names {
            assert!(tests.contains(name), "there is no test {name}: {line}");
        }
        named += names.len();
    }
    assert!(named > 20, "{named} tests are named");
}
