//! The small form of the bench, whole, on real servers.
#![cfg(test)]

use std::fs;
use std::path::Path;

use waggle_bench_frame::Quick;

#[test]
fn the_small_form_times_looks_and_measures_what_they_do_to_a_load() {
    let Quick { summary, page } =
        Quick::run(env!("CARGO_BIN_EXE_waggle-bench-locks"), &[]).unwrap();
    let looks = summary["looks"].as_array().unwrap();
    let statements: Vec<u64> =
        looks.iter().map(|one| one["statements"].as_u64().unwrap()).collect();
    assert_eq!(statements.len(), 3, "{looks:#?}");
    assert_eq!(statements[0], 2, "where nothing waits a look is two statements: {looks:#?}");
    assert!(statements[1] > 2 && statements[2] > 2, "{looks:#?}");
    assert!(looks.iter().all(|one| one["median_ms"].as_f64().unwrap() > 0.0), "{looks:#?}");

    let in_memory = summary["in_memory"].as_array().unwrap();
    let numbers = in_memory.iter().map(|one| ["sessions", "waiting"].map(|key| one[key].as_u64()));
    let expected = [[0, 0], [10, 0], [10, 2]].map(|state| state.map(Some));
    assert_eq!(numbers.collect::<Vec<_>>(), expected);
    for one in in_memory {
        assert_eq!((&one["found"], &one["named"]), (&one["waiting"], &one["waiting"]), "{one:#}");
        assert!(one["cpu_ms"].as_f64().unwrap() > 0.0, "{one:#}");
    }
    assert!(
        in_memory[2]["read_kib"].as_f64() > in_memory[0]["read_kib"].as_f64(),
        "{in_memory:#?}"
    );

    let effects = summary["effects"].as_array().unwrap();
    let pauses: Vec<Option<f64>> = effects.iter().map(|one| one["pause_s"].as_f64()).collect();
    assert_eq!(pauses, [None, Some(0.2), Some(0.05)]);
    for one in effects {
        assert!(one["statements_per_s_without"].as_f64().unwrap() > 0.0, "{one:#}");
        assert!(one["statements_per_s_percent"]["high"].is_f64(), "{one:#}");
        assert!(one["added_ns"]["high"].is_f64(), "{one:#}");
    }
    assert_eq!(effects[0]["looks"], 0, "nobody looks where the noise is measured");
    assert!(effects[0]["server_ns_per_look"].is_null(), "{:#}", effects[0]);
    for one in &effects[1..] {
        assert!(one["looks"].as_u64().unwrap() > 0, "{one:#}");
        assert!(one["statements_per_look"].as_f64().unwrap() >= 2.0, "{one:#}");
        assert!(one["server_ns_per_look"].as_f64().unwrap() > 0.0, "{one:#}");
    }
    assert!(page.contains("| 2 | A/A |") && page.contains("| 2 | every 200ms |"), "{page}");
}

/// The head of the table of looks.
const LOOKS: &str = "| server | state | statements | median, ms | longest, ms |";

/// From its head to its last row.
fn table(page: &str) -> Option<&str> {
    let table = &page[page.find(LOOKS)?..];
    Some(table.find("\n\n").map_or(table.trim_end(), |end| &table[..end]))
}

/// Of the newest kept run that has looks. After a new one: `UPDATE=1 cargo test -p waggle-bench-locks`.
#[test]
fn the_guide_shows_the_looks_that_were_kept() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut kept: Vec<_> = fs::read_dir(root.join("bench/results"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    kept.sort();
    let pages = kept.iter().rev().filter_map(|run| fs::read_to_string(run.join("README.md")).ok());
    let page = pages.into_iter().find(|page| table(page).is_some()).unwrap();
    let expected = table(&page).unwrap();
    let path = root.join("docs/guide/locks.md");
    let guide = fs::read_to_string(&path).unwrap();
    let shown = table(&guide).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, guide.replace(shown, expected)).unwrap();
        return;
    }
    assert_eq!(shown, expected);
}
