//! The small form of the bench, whole, on a real server.
#![cfg(test)]

use waggle_bench_frame::Quick;

#[test]
fn the_small_form_injects_costs_and_prices_waggle() {
    let Quick { summary, page } =
        Quick::run(env!("CARGO_BIN_EXE_waggle-bench-prove"), &[]).unwrap();
    let truth = summary["truth"].as_array().unwrap();
    let costs: Vec<_> = truth.iter().map(|one| one["cost_ns"].as_u64()).collect();
    assert_eq!(costs, [Some(0), Some(5000)], "{truth:#?}");
    for one in truth {
        let trials = one["trials"].as_array().unwrap();
        assert_eq!(trials.len(), 1, "{one:#}");
        assert!(trials[0]["half_width_ns"].as_f64().unwrap() > 0.0, "{one:#}");
        let injected = trials[0]["injected_ns"].as_f64().unwrap();
        assert_eq!(injected > 0.0, one["cost_ns"] == 5000, "{one:#}");
    }
    let prices = summary["prices"].as_array().unwrap();
    let loads: Vec<_> = prices.iter().map(|one| one["load"].as_str().unwrap()).collect();
    assert_eq!(loads, ["point select", "row update", "range of 100 rows"]);
    for one in prices {
        assert!(one["prove"]["total"]["base_ns"].as_f64().unwrap() > 0.0, "{one:#}");
    }
    assert!(page.contains("| 4 | 0 | ") && page.contains("| point select | "), "{page}");
}
