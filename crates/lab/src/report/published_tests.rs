//! What the page of published effects says of runs of which the effects are known.

use crate::analysis::{Analysis, analyse_all};
use crate::metric::Metric;
use crate::report::sample::{info, report, window};
use crate::report::words;
use crate::suite::{Figure, Suite};
use crate::window::Window;

/// Noise from window to window, a share; the same of all arms in the mean.
const NOISE: [f64; 8] = [0.004, -0.004, -0.004, 0.004, 0.004, -0.004, -0.004, 0.004];

/// The suite `rds` under one workload with 32 sessions.
fn suite() -> Suite {
    suite_of(1)
}

/// The same under this many workloads.
fn suite_of(workloads: usize) -> Suite {
    let mut suite = Suite::find("rds").unwrap();
    suite.threads = vec![32];
    suite.open_shares.clear();
    suite.workloads.truncate(workloads);
    suite
}

/// Eight blocks in which arms have this many times the throughput of the baseline.
fn windows(arms: &[(&str, f64)]) -> Vec<Window> {
    let mut windows = Vec::new();
    for block in 0..8 {
        for (at, (arm, factor)) in arms.iter().enumerate() {
            let noise = NOISE[(block as usize + at) % NOISE.len()];
            let mut one = window(windows.len() as u32, arm, 40.0);
            one.block = block;
            if let Some(measured) = &mut one.measured {
                measured.seconds /= factor * (1.0 + noise);
            }
            windows.push(one);
        }
    }
    windows
}

/// All arms under a workload, of which consumers without instruments, and everything, have this many times the throughput of
/// the baseline.
fn under(workload: &str, [consumers, everything]: [f64; 2]) -> Vec<Window> {
    let mut windows = windows(&[
        ("pfsoff", 1.0),
        ("pfson_conoff_insoff", 0.96),
        ("pfson_conon_insoff", consumers),
        ("pfson_conon_ins_sqlon", 1.02),
        ("pfson_conoff_inson", 0.7),
        ("pfson_conon_inson", everything),
        (Window::AGAIN, 1.0),
    ]);
    windows.iter_mut().for_each(|one| one.cell.workload = workload.to_owned());
    windows
}

/// The row of a scenario, column by column.
fn row(text: &str, scenario: &str) -> Vec<String> {
    let begin = format!("| {scenario} ");
    let line = text.lines().find(|line| line.starts_with(&begin)).unwrap();
    line.trim_matches('|').split('|').map(|datum| datum.trim().to_owned()).collect()
}

/// The page.
fn effects(suite: &Suite, windows: &[Window]) -> String {
    report(suite, &info(), windows, &analyse_all(suite, windows)).effects()
}

/// The source: −12.9 %, −11.5 %, −15.4 %, one that contradicts itself, −17.0 %. Of ours the first would
/// be there with the consumers of the second, under both workloads.
fn rendered() -> String {
    let suite = suite_of(2);
    let read_only = under("read-only", [41_111.0, 39_168.0].map(|qps| qps / 47_176.0));
    let read_write = under("read-write", [33_170.0, 32_280.0].map(|qps| qps / 37_999.0));
    let windows = [read_only, read_write].concat();
    effects(&suite, &windows)
}

#[test]
fn the_page_of_a_small_run() {
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("effects", rendered());
    });
}

#[test]
fn every_effect_has_its_direction() {
    let text = rendered();
    for (scenario, direction) in [
        ("pfson_conoff_insoff", "same"),
        ("pfson_conon_insoff", "same"),
        ("pfson_conon_ins_sqlon", "other"),
        ("pfson_conoff_inson", "source contradicts itself"),
        ("pfson_conon_inson", "same"),
    ] {
        assert_eq!(row(&text, scenario)[4], direction, "{text}");
    }
    let said = "\n10 published effects: 7 in the same direction as ours, 2 in the other direction, 1 where the source \
                contradicts itself.\n";
    assert!(text.contains(said), "{text}");
    assert!(!text.contains("explain"), "{text}");
}

#[test]
fn what_cannot_be_told_from_zero_or_was_not_run_is_said_so() {
    let suite = suite();
    let windows = windows(&[("pfsoff", 1.0), ("pfson_conon_insoff", 1.0)]);
    let text = effects(&suite, &windows);
    assert_eq!(row(&text, "pfson_conon_insoff")[4], "none shown");
    let not_run = row(&text, "pfson_conon_inson");
    assert!(not_run[3] == "not run" && not_run[4].starts_with("not run: "), "{text}");
}

#[test]
fn a_mean_stands_with_its_range_and_without_the_cells_that_contradict() {
    let mut suite = suite();
    suite.threads = vec![8, 16, 32];
    let text = report(&suite, &info(), &[], &Analysis::default()).effects();
    // 8 and 32 threads: -10.14 and -16.60 %, which contradicts itself; 16 threads: -13.95 %.
    let row = row(&text, "pfson_conoff_inson");
    assert_eq!(row[2], "0 of 3");
    assert!(row[3].starts_with("−13.9 % to −10.1 %, mean −12.1 % ¹"), "{text}");
    assert!(text.contains("1 of 3 cells contradict the source: left out"), "{text}");
}

#[test]
fn a_mean_over_cells_has_the_interval_of_its_blocks_however_alike_the_cells_are() {
    let mut suite = suite();
    suite.threads = vec![16, 32];
    let mut windows = windows(&[("pfsoff", 1.0), ("pfson_conon_insoff", 0.96)]);
    let mut of_fewer = windows.clone();
    for one in &mut of_fewer {
        one.number += windows.len() as u32;
        one.cell.threads = 16;
    }
    windows.extend(of_fewer);
    let analysis = analyse_all(&suite, &windows);
    let text = report(&suite, &info(), &windows, &analysis).effects();
    let of_both = row(&text, "pfson_conon_insoff");
    assert_eq!(of_both[2], "2 of 2");
    // Both cells have the same mean, and an interval over cells would have no length.
    for cell in suite.cells() {
        let one = analysis.find("pfsoff", &cell, "pfson_conon_insoff", Metric::Qps).unwrap();
        assert_eq!(words::percent(one.percent.value), "−4.00 %");
    }
    let pooled = analysis.pooled.iter().find(|one| {
        one.arm == "pfson_conon_insoff" && one.metric == Metric::Qps && one.workload.is_some()
    });
    let percent = pooled.unwrap().percent;
    assert!(percent.half_width() > 0.1, "{percent:?}");
    assert!(of_both[4].starts_with(&words::percent_interval(&percent)), "{of_both:?}");
    assert!(text.contains("the sign-flip test over the blocks"), "{text}");
}

#[test]
fn every_figure_of_the_source_has_a_row_and_memory_is_in_mib() {
    let suite = Suite::find("modb").unwrap();
    let text = report(&suite, &info(), &[], &Analysis::default()).effects();
    let begin = "| all-events-memory ";
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with(begin)).collect();
    // Memory is beside the order for it, the other figures beside two in which servers stay.
    assert_eq!(rows.len(), 2 * (Figure::ALL.len() - 1) + 1, "{text}");
    let of = |order: &str| {
        let (_, rest) = text.split_once(&format!("\nread-update, order {order}\n")).unwrap();
        let table = rest.lines().skip_while(|line| line.is_empty());
        table
            .take_while(|line| !line.is_empty())
            .filter(|line| line.starts_with(begin))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("cumulative"), rows[..4]);
    assert_eq!(of("random"), rows[4..8]);
    assert_eq!(of("memory"), rows[8..]);
    assert!(rows[8].contains("+1,717 MiB"), "{text}");
    assert!(!text.contains("basic-history"), "the source has no such scenario: {text}");
}

/// Eight blocks of `modb` in two orders. In `cumulative` all but `off` share a server; in `memory` every
/// window has one of its own.
fn windows_with_memory() -> Vec<Window> {
    let mut windows = Vec::new();
    for order in ["cumulative", "memory"] {
        for block in 0..8 {
            for (at, arm) in ["off", "basic", "all-events-memory"].into_iter().enumerate() {
                let number = windows.len() as u32;
                let mut one = window(number, arm, 40.0);
                one.block = block;
                one.cell.workload = "read-update".to_owned();
                one.cell.threads = 256;
                one.cell.order = Some(order.to_owned());
                one.server_start = if order == "memory" { 2 + number } else { at.min(1) as u32 };
                let (at, block) = (at as u64, u64::from(block));
                if let Some(measured) = &mut one.measured {
                    measured.rss_bytes = Some((1024 + at * (100 + block)) << 20);
                    measured.performance_schema_bytes = Some(at * (61 << 20) + at * (block << 10));
                }
                windows.push(one);
            }
        }
    }
    windows
}

#[test]
fn published_memory_stands_beside_the_order_in_which_every_scenario_has_a_server_of_its_own() {
    let (suite, windows) = (Suite::find("modb").unwrap(), windows_with_memory());
    let analysis = analyse_all(&suite, &windows);
    let text = report(&suite, &info(), &windows, &analysis).effects();
    let is_memory = |line: &&str| {
        line.starts_with("| all-events-memory ") && line.contains("| memory of the server (RSS) ")
    };
    let [row] = text.lines().filter(is_memory).collect::<Vec<_>>()[..] else { panic!("{text}") };
    for part in ["+1,717 MiB", "+207 (", "| same "] {
        assert!(row.contains(part), "{part}: {row}");
    }
    assert!(text.split_once(row).unwrap().0.contains("\nread-update, order memory\n"), "{text}");
    // Of arms that share a server nothing is known, and 122.0 MiB is what Performance Schema said it used.
    let info = info();
    let report = report(&suite, &info, &windows, &analysis);
    let csv = report.csv();
    let rss = |order: &str| {
        let is_it =
            |line: &&str| line.contains(order) && line.contains(",all-events-memory,off,rss,");
        csv.lines().find(is_it).unwrap()
    };
    assert!(rss(",cumulative,").contains("memory of arms that share a server"), "{csv}");
    assert!(!rss(",memory,").contains("memory of arms that share a server"), "{csv}");
    let of_schema = |line: &&str| {
        line.contains(",memory,all-events-memory,") && line.contains(",performance_schema_memory,")
    };
    assert!(csv.lines().find(of_schema).unwrap().contains("127933"), "{csv}");
    let text = report.markdown();
    let row = text
        .lines()
        .find(|line| line.starts_with("| all-events-memory ") && line.contains("MiB"))
        .unwrap();
    assert!(row.contains("+207 (") && row.contains("| +1,717 MiB "), "{row}");
}

/// The page of `modb` where the default has this many times the throughput of the baseline, in the order
/// `random`.
fn with_default(factor: f64) -> String {
    let suite = Suite::find("modb").unwrap();
    let mut windows = windows(&[("off", 1.0), ("default", factor)]);
    for one in &mut windows {
        one.cell.workload = "read-update".to_owned();
        one.cell.threads = 256;
        one.cell.order = Some("random".to_owned());
    }
    effects(&suite, &windows)
}

#[test]
fn what_a_source_says_without_figures_stands_beside_ours() {
    for (factor, ours, direction) in [
        (0.97, "−3.00 % (", "same"),
        (0.90, "−10.0 % (", "same"),
        (1.03, "+3.00 % (", "other"),
        (1.0, "0.00 % (", "none shown"),
    ] {
        let text = with_default(factor);
        // Of the orders `random` and `one-factor`; `cumulative` lacks it, and `memory` is for memory.
        assert_eq!(text.matches("\n| default ").count(), 2, "{text}");
        let row = row(&text, "default");
        assert_eq!(row[..2], ["default", "QPS, said"]);
        assert!(row[2].starts_with("−5.00 % to −2.50 % ¹"), "{row:?}");
        assert!(row[3].starts_with(ours), "{row:?}");
        assert_eq!(row[4], direction, "{row:?}");
        assert!(text.contains("about 2.5 to 5 %"), "{text}");
    }
}

#[test]
fn what_a_source_says_without_figures_is_there_also_where_it_was_not_run() {
    let suite = Suite::find("modb").unwrap();
    let text = report(&suite, &info(), &[], &Analysis::default()).effects();
    let row = row(&text, "default");
    assert!(row[3] == "not run" && row[4].starts_with("not run: "), "{row:?}");
}

#[test]
fn what_sharing_a_server_does_stands_beside_the_baseline_against_itself() {
    let suite = suite();
    let line = |arms: &[(&str, f64)]| {
        let windows = windows(arms);
        let analysis = analyse_all(&suite, &windows);
        let text = report(&suite, &info(), &windows, &analysis).markdown();
        text.lines().find(|line| line.starts_with("Where arms share a server")).map(str::to_owned)
    };
    let shared = suite.also_alone().unwrap().name.clone();
    let mut arms = vec![("pfsoff", 1.0), (shared.as_str(), 1.0), (Window::AGAIN, 1.0)];
    assert_eq!(line(&arms), None);
    arms.push((Window::ALONE, 1.0));
    let line = line(&arms).unwrap();
    for part in [&shared, "that shares: read-only 0 %", "against itself: read-only 0 %"] {
        assert!(line.contains(part), "{part}: {line}");
    }
}
