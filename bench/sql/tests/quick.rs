//! The small form of the bench, whole: with every subject under every load.
#![cfg(test)]

use std::fs;

use waggle_bench_frame::Quick;

#[test]
fn the_small_form_measures_every_subject_and_ours_allocate_nothing() {
    // It is built with the tests of this package, and the bench looks for it beside itself.
    assert!(fs::exists(env!("CARGO_BIN_EXE_waggle-bench-sql-allocations")).unwrap());
    let Quick { summary, page } = Quick::run(env!("CARGO_BIN_EXE_waggle-bench-sql"), &[]).unwrap();
    let results = summary["results"].as_array().unwrap();
    assert_eq!(results.len(), 2 * 5, "{summary:#}");
    for one in results {
        let subject = one["subject"].as_str().unwrap();
        assert!(one["mb_per_s"]["value"].as_f64().unwrap() > 0.0, "{one:#}");
        assert_eq!(one["seconds"].as_array().unwrap().len(), 3);
        assert_eq!(one["refused"], 0, "{one:#}");
        let allocations = one["allocations_per_statement"].as_f64();
        match subject {
            "sqlparser" => assert!(allocations.unwrap() > 1.0, "the counter counts: {one:#}"),
            "pt-query-digest" => assert_eq!(allocations, None),
            _ => assert_eq!(allocations, Some(0.0), "{one:#}"),
        }
    }
    assert!(page.contains("| read write | digest, MySQL 9 |"), "{page}");
}
