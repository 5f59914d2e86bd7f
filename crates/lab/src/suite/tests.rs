//! The suites that come with waggle.

use waggle_model::Flavour;

use super::{Figure, Must, Published, Scale, Sequence, Servers, Suite};
use crate::metric::Metric;
use crate::window::{Cell, Load, Window};

/// A row with its indexes, bytes: LINE names 2.4 GB for 10 tables of 1,000,000 rows.
const ROW_BYTES: u64 = 260;
const MIB: u64 = 1 << 20;

fn suite(name: &str) -> Suite {
    Suite::find(name).unwrap()
}

fn baseline<'a>(suite: &'a Suite, of: &Published) -> &'a Published {
    let is_base = |one: &&Published| {
        (&one.table, &one.workload, one.threads) == (&of.table, &of.workload, of.threads)
            && one.scenario == suite.baseline
    };
    suite.published.iter().find(is_base).unwrap()
}

fn closed(workload: &str, threads: u32) -> Cell {
    Cell { workload: workload.to_owned(), threads, load: Load::Closed, order: None }
}

#[test]
fn every_suite_that_comes_with_waggle_can_be_read() {
    for (name, text) in Suite::builtin() {
        let suite = Suite::parse(name, text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(suite.name, name);
        assert_eq!(suite, Suite::find(name).unwrap());
        assert!(!suite.source.caveats.is_empty(), "{name}");
        // `suites/rds.toml` says why it declares nothing of these.
        let is_declared = |metric: &Metric| suite.declared_percent(*metric).is_some();
        let left_out = [Metric::WrittenBytesPerStatement, Metric::PerformanceSchemaMemory];
        let mut declared = Metric::ALL.iter().filter(|it| !left_out.contains(it));
        assert!(declared.all(is_declared), "{name}");
        for scenario in &suite.scenarios {
            let is_on = scenario.start == ["--performance-schema=ON"];
            assert_eq!(is_on, scenario.profile.is_some(), "{name} {}", scenario.name);
        }
    }
}

#[test]
fn rds_has_the_198_cells_of_its_source_and_open_ones() {
    let suite = suite("rds");
    let (closed, open): (Vec<Cell>, Vec<Cell>) =
        suite.cells().into_iter().partition(|cell| !cell.load.is_open());
    assert_eq!((closed.len(), open.len()), (33, 9));
    let mut printed = 0;
    for cell in &closed {
        for scenario in &suite.scenarios {
            let published = suite.published(cell, &scenario.name).unwrap();
            assert!(published.figures.contains_key(&Figure::Qps));
            assert_eq!(published.changes.is_empty(), scenario.name == suite.baseline);
            printed += 1;
        }
    }
    assert_eq!(printed, 198);
    assert!(open.iter().all(|cell| suite.published(cell, "pfsoff").is_none()));
    assert!(open.iter().all(|cell| cell.threads == 32));
    assert_eq!(suite.published.len(), 198 + 18);
}

#[test]
fn figures_stand_in_the_cells_that_the_sources_have_them_in() {
    let rds = suite("rds");
    for (workload, threads, scenario, qps, percent) in [
        ("read-only", 1, "pfson_conoff_insoff", 3209.0, -7.16),
        ("read-write", 1, "pfson_conoff_insoff", 2754.0, -8.1),
        ("read-only", 1024, "pfson_conon_inson", 33696.0, -29.11),
        ("write-only", 8, "pfson_conon_ins_sqlon", 22360.0, -12.82),
        ("write-only", 1024, "pfson_conon_inson", 32256.0, -32.18),
        ("read-write", 128, "pfson_conoff_inson", 35488.0, -14.87),
    ] {
        let published = rds.published(&closed(workload, threads), scenario).unwrap();
        assert_eq!(
            (published.figures[&Figure::Qps], published.changes[&Figure::Qps]),
            (qps, percent)
        );
    }
    let line = suite("line");
    let fastest = line.published(&closed("read-write", 10), "instruments-off-metrics-off").unwrap();
    assert_eq!(fastest.figures, [(Figure::Tps, 3506.25), (Figure::Latency, 2.28)].into());
    assert!((fastest.changes[&Figure::Tps] - 3.1).abs() < 1e-9);
    let modb = suite("modb");
    let last = modb.published(&closed("read-update", 256), "all-events-memory").unwrap();
    let figures = [
        (Figure::Qps, 105_600.0),
        (Figure::Tps, 21_120.0),
        (Figure::Latency, 16.1),
        (Figure::Cpu, 97.0),
        (Figure::Memory, 1.8e9),
    ];
    assert_eq!(last.figures, figures.into());
    let [of_default] = modb.published_ranges.as_slice() else { panic!("modb has one range") };
    assert_eq!((of_default.scenario.as_str(), of_default.figure), ("default", Figure::Qps));
    assert_eq!((of_default.low_percent, of_default.high_percent), (-5.0, -2.5));
    assert_eq!(last.changes[&Figure::Cpu], 24.0);
    assert!(!last.contradictions.contains_key(&Figure::Cpu));
}

/// Reckoned anew, without the code that marks.
#[test]
fn every_printed_change_follows_from_its_figures_or_is_marked() {
    for (name, of_print) in [("rds", 0.006), ("line", 0.051), ("modb", 0.06)] {
        let suite = suite(name);
        let figure = suite.metric.figure();
        for published in &suite.published {
            let Some(printed) = published.changes.get(&figure) else { continue };
            let base = baseline(&suite, published);
            let recomputed = published.recomputed_percent(base, figure).unwrap();
            // Figures are rounded as well: half of the last digit of both, relative to the baseline.
            let of_figures = if name == "rds" { 100.0 / base.figures[&Figure::Qps] } else { 0.0 };
            let agrees = (recomputed - printed).abs() < of_print + of_figures;
            let is_marked = published.contradictions.contains_key(&figure);
            assert!(agrees || is_marked, "{published:?}: {recomputed}");
        }
    }
}

#[test]
fn the_cells_that_contradict_their_source_are_these() {
    let marked = |name: &str| -> Vec<(String, String, u32, String)> {
        let suite = suite(name);
        let figure = suite.metric.figure();
        let marked = suite.published.iter();
        marked
            .filter(|one| one.contradictions.contains_key(&figure))
            .map(|one| {
                let Published { table, workload, threads, scenario, .. } = one.clone();
                (table, workload, threads, scenario)
            })
            .collect()
    };
    let expected = [
        ("by sessions", "read-only", 16, "pfson_conon_ins_sqlon"),
        ("by sessions", "read-only", 32, "pfson_conoff_inson"),
        ("by sessions", "read-only", 512, "pfson_conoff_insoff"),
        ("by sessions", "read-write", 16, "pfson_conon_inson"),
        ("by sessions", "read-write", 256, "pfson_conon_insoff"),
        ("by sessions", "write-only", 32, "pfson_conoff_insoff"),
        ("by sessions", "write-only", 32, "pfson_conon_insoff"),
        ("by sessions", "write-only", 32, "pfson_conon_inson"),
        ("by sessions", "write-only", 64, "pfson_conoff_inson"),
        ("summary", "read-only", 32, "pfson_conoff_inson"),
        ("summary", "write-only", 32, "pfson_conoff_insoff"),
        ("summary", "write-only", 32, "pfson_conon_insoff"),
        ("summary", "write-only", 32, "pfson_conon_inson"),
    ];
    let expected = expected.map(|(table, workload, threads, scenario)| {
        (table.to_owned(), workload.to_owned(), threads, scenario.to_owned())
    });
    assert_eq!(marked("rds"), expected);
    // Theirs are latencies, not throughputs.
    assert!(marked("line").is_empty() && marked("modb").is_empty());
    for (name, count) in [("line", 9), ("modb", 4)] {
        let suite = suite(name);
        let wrong = suite.published.iter().flat_map(|one| one.contradictions.keys());
        assert!(wrong.clone().all(|figure| *figure == Figure::Latency));
        assert_eq!(wrong.count(), count, "{name}");
    }
}

#[test]
fn a_digit_that_is_changed_in_a_suite_is_noticed() {
    let text = Suite::builtin()[0].1;
    for (from, to, key) in [
        ("41111", "41117", "read-only, 32 threads, pfson_conoff_insoff"),
        ("-16.97", "-16.79", "read-only, 32 threads, pfson_conon_inson"),
        ("[49230,", "[49330,", "read-only, 64 threads"),
        // A number that was marked as wrong and is right now.
        ("-13.14", "-14.27", "read-only, 16 threads, pfson_conon_ins_sqlon"),
    ] {
        assert!(text.contains(from), "{from}");
        let error = Suite::parse("rds", &text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(key) && error.contains("contradictions"), "{error}");
    }
}

#[test]
fn the_buffer_pool_holds_the_data_at_every_scale() {
    for (name, _) in Suite::builtin() {
        let data = suite(name).data;
        for scale in Scale::ALL {
            let rows = u64::from(data.rows.of(scale)) * u64::from(data.tables);
            let pool = u64::from(data.buffer_pool_mib.of(scale)) * MIB;
            // A tenth of it is for what else the server keeps there.
            assert!(rows * ROW_BYTES * 10 / 9 < pool, "{name} {scale:?}");
        }
    }
}

#[test]
fn what_needs_a_restart_and_what_does_not_is_told_apart() {
    let on = ["--performance-schema=ON".to_owned()];
    let off = ["--performance-schema=OFF".to_owned()];
    assert_eq!(suite("rds").starts(), [&off[..], &on[..]]);
    assert_eq!(suite("modb").starts(), [&off[..], &on[..]]);
    assert_eq!(suite("line").starts(), [&on[..]]);
    assert_eq!(suite("line").servers, Servers::OneAfterAnother);
    let settings = suite("line").settings(Scale::Full, Flavour::Mysql);
    assert!(settings.contains(&"--innodb-buffer-pool-load-at-startup=OFF".to_owned()));
    assert!(settings.contains(&"--innodb-buffer-pool-size=4096M".to_owned()), "{settings:?}");
}

#[test]
fn commits_are_durable_unless_a_suite_says_otherwise() {
    let settings = |options: &[&str]| {
        let mut suite = suite("rds");
        suite.options = options.iter().map(|option| (*option).to_owned()).collect();
        let settings = suite.settings(Scale::Tiny, Flavour::Mysql).into_iter();
        settings.filter(|it| it.contains("trx_commit")).collect::<Vec<String>>()
    };
    assert_eq!(settings(&[]), ["--innodb_flush_log_at_trx_commit=1"]);
    let said = "--innodb_flush_log_at_trx_commit=2";
    assert_eq!(settings(&[said]), [said]);
}

#[test]
fn the_log_and_the_pool_have_the_size_of_the_suite_on_every_server() {
    let settings = |scale, family| suite("rds").settings(scale, family);
    let has = |settings: &[String], option: &str| settings.iter().any(|it| it == option);
    let mysql = settings(Scale::Full, Flavour::Mysql);
    assert!(has(&mysql, "--loose-innodb-log-file-size=512M"), "{mysql:?}");
    assert!(has(&mysql, "--loose-innodb-redo-log-capacity=1024M"), "{mysql:?}");
    assert!(has(&mysql, "--loose-innodb-buffer-pool-instances=8"), "{mysql:?}");
    let mariadb = settings(Scale::Tiny, Flavour::Mariadb);
    assert!(has(&mariadb, "--loose-innodb-log-file-size=64M"), "{mariadb:?}");
    assert!(has(&mariadb, "--loose-innodb-buffer-pool-instances=1"), "{mariadb:?}");
}

#[test]
fn who_shares_a_server_while_it_runs_follows_from_the_starts_and_the_orders() {
    let shares = |name: &str| -> Vec<bool> {
        let suite = suite(name);
        suite.scenarios.iter().map(|one| suite.shares_server(one)).collect()
    };
    assert_eq!(shares("rds"), [false, true, true, true, true, true]);
    assert!(shares("line").iter().all(|shares| !shares));
}

#[test]
fn who_shares_a_server_in_one_of_two_runs_is_told_where_both_have_its_cells() {
    let whole = suite("rds");
    let mut few = whole.clone();
    few.scenarios.retain(|one| ["pfsoff", "pfson_conon_inson"].contains(&one.name.as_str()));
    assert_eq!(whole.served_otherwise(&few, &whole.cells()), ["pfson_conon_inson"]);
    assert!(whole.served_otherwise(&whole, &whole.cells()).is_empty());
    assert!(whole.served_otherwise(&few, &[]).is_empty());
}

#[test]
fn an_arm_that_is_no_scenario_sets_one() {
    let rds = suite("rds");
    for (arm, scenario) in [
        (Window::AGAIN, "pfsoff"),
        (Window::ALONE, "pfson_conoff_insoff"),
        ("pfson_conon_inson", "pfson_conon_inson"),
    ] {
        assert_eq!(rds.set_by(arm), scenario);
    }
}

#[test]
fn counters_of_innodb_are_proven_where_scenarios_switch_them() {
    for (name, _) in Suite::builtin() {
        let suite = suite(name);
        let mut profiles = suite.scenarios.iter().filter_map(|one| one.profile.as_deref());
        let are_switched = profiles.any(|profile| profile.contains("metrics"));
        assert_eq!(are_switched, !suite.counters.is_empty(), "{name}");
    }
}

#[test]
fn modb_is_read_in_four_orders_and_the_others_in_a_random_one() {
    let orders = suite("modb").orders;
    let names: Vec<&str> = orders.iter().map(|order| order.name.as_str()).collect();
    assert_eq!(names, ["cumulative", "random", "memory", "one-factor"]);
    let restarts: Vec<bool> = orders.iter().map(|order| order.restart).collect();
    assert_eq!(restarts, [false, false, true, false]);
    assert_eq!(orders[0].sequence, Sequence::AsListed);
    assert_eq!(orders[0].against, ["off", "all-events-history"]);
    assert_eq!(orders[3].against, ["off", "default", "basic"]);
    let rds = suite("rds");
    assert!(rds.cells().iter().all(|cell| cell.order.is_none()));
    assert_eq!(rds.orders.len(), 1);
    // Which shares a server with all others but the baseline.
    assert_eq!(rds.orders[0].against, ["pfsoff", "pfson_conoff_insoff"]);
    assert_eq!(suite("line").orders[0].against, ["default"]);
    assert_eq!((rds.orders[0].sequence, rds.orders[0].scenarios.len()), (Sequence::Random, 6));
}

#[test]
fn modb_has_all_that_its_source_has_at_a_fixed_rate_too() {
    let suite = suite("modb");
    let open: Vec<Cell> = suite.cells().into_iter().filter(|cell| cell.load.is_open()).collect();
    assert_eq!(open.len(), 3);
    for (cell, published) in
        open.iter().flat_map(|cell| suite.published.iter().map(move |published| (cell, published)))
    {
        assert!(suite.has(cell, &published.scenario), "{cell:?}: {}", published.scenario);
    }
}

#[test]
fn what_events_have_to_show_follows_from_the_profile_of_a_scenario() {
    let rds = suite("rds");
    let grown = |name: &str| -> Vec<String> {
        let scenario = rds.scenarios.iter().find(|one| one.name == name).unwrap();
        let grows = scenario.expects.iter().filter(|one| one.must == Must::Grow);
        grows.map(|one| one.class.clone()).collect()
    };
    assert!(rds.scenarios[0].expects.is_empty());
    assert_eq!(grown("pfson_conon_ins_sqlon"), ["statement"]);
    assert_eq!(grown("pfson_conon_inson").len(), rds.feeds.len());
    assert!(grown("pfson_conoff_inson").is_empty());
}
