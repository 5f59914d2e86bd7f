//! Which cells and blocks fit into a time.

use super::*;

#[test]
fn the_middle_and_the_ends_come_first() {
    let levels = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
    assert_eq!(spread(&levels)[..3], [32, 1, 1024]);
    assert_eq!(spread(&levels).len(), levels.len());
    assert_eq!(spread(&[7]), [7]);
    assert!(spread(&[]).is_empty());
}

/// A suite at a scale, on servers of our own.
fn estimate(suite: &Suite, scale: Scale) -> TimeEstimate<'_> {
    let lengths = Lengths::of(scale);
    TimeEstimate { suite, scale, lengths, is_in_use: false, has_load: true }
}

/// Cells of a suite with a closed load.
fn closed(suite: &Suite, is_it: impl Fn(&Cell) -> bool) -> Vec<Cell> {
    let cells = suite.cells().into_iter();
    cells.filter(|cell| !cell.load.is_open() && is_it(cell)).collect()
}

#[test]
fn what_is_set_and_settles_takes_its_time_in_each_turn_that_there_is() {
    let suite = Suite::find("rds").unwrap();
    let estimate = estimate(&suite, Scale::Tiny);
    let foreign = TimeEstimate { is_in_use: true, ..estimate };
    let beside = closed(&suite, |cell| cell.threads == 32).remove(0);
    let open = suite.cells().into_iter().find(|cell| cell.load.is_open()).unwrap();
    assert_eq!(open.threads, 32);
    // Each session takes 0.8 ms to stop, twice in a turn.
    let (set, stops) = (0.045, 0.0016 * 32.0);
    let in_turns = 0.4 + 5.0 * (set + 0.06 + stops);
    let at_once = 0.4 + set + 0.3 + stops;
    for (got, want) in [
        (estimate.window_s(&beside), in_turns),
        // It settles as long as its window is.
        (estimate.window_s(&open), at_once + 0.1),
        (foreign.window_s(&beside), at_once),
    ] {
        assert!((got - want).abs() < 1e-6, "{got} s is not {want} s");
    }
}

#[test]
fn the_redo_log_is_copied_for_each_server_and_a_server_that_is_there_is_not_started() {
    let text = Suite::text("line").unwrap();
    let (small, large) = ("full = 1024 }", "full = 4096 }");
    let with_redo = |size: &str| {
        let from = "redo_log_mib = { tiny = 64, small = 256, ";
        let text = text.replace(&format!("{from}{small}"), &format!("{from}{size}"));
        Suite::parse("line", &text).unwrap()
    };
    let suites = [small, large].map(with_redo);
    let [less, more] = [&suites[0], &suites[1]].map(|suite| estimate(suite, Scale::Full));
    // 3 GiB at 300 MB/s, and written through at 280 MB/s twice.
    let copy = 3.0 * 1024.0 * MIB * (1.0 / 300e6 + 1.0 / 140e6);
    assert!((more.server_s() - less.server_s() - copy).abs() < 1e-6, "{}", more.server_s());
    let cells = closed(less.suite, |_| true);
    let longer = more.seconds(&cells, 8) - less.seconds(&cells, 8);
    // Ten arms, each on a server of its own, in eight blocks.
    assert!((longer - 80.0 * copy).abs() < 1e-3, "{longer} s");
    assert_eq!(TimeEstimate { is_in_use: true, ..more }.server_s(), 0.0);
}

#[test]
fn loads_of_few_sessions_are_warm_at_the_same_time_and_that_of_others_takes_none() {
    let suite = Suite::find("rds").unwrap();
    let estimate = estimate(&suite, Scale::Tiny);
    let schedule = Schedule::new(&suite, &suite.cells(), 1, 0);
    let (arms, servers) = (8.0, 4.0);
    let loads_s = |threads: u32, estimate: &TimeEstimate<'_>| {
        let cell = closed(&suite, |cell| cell.threads == threads).remove(0);
        estimate.cell_s(&schedule, &cell) - arms * estimate.window_s(&cell)
    };
    let lengths = estimate.lengths;
    for (threads, times) in [(1, 1.0), (64, 1.0), (128, 2.0), (256, servers), (1024, servers)] {
        let want = servers * start_s(threads) + times * warm_s(lengths, threads);
        let got = loads_s(threads, &estimate);
        assert!((got - want).abs() < 1e-6, "{threads}: {got} s is not {want} s");
    }
    let of_others = TimeEstimate { is_in_use: true, has_load: false, ..estimate };
    assert!(loads_s(64, &of_others).abs() < 1e-6);
    // However many there are, nobody stops them.
    let many = closed(&suite, |cell| cell.threads == 1024).remove(0);
    assert!((of_others.window_s(&many) - (0.4 + 0.3 + SET_S)).abs() < 1e-6);
    assert_eq!(of_others.data_s(), 0.0);
}

#[test]
fn what_the_baseline_can_do_takes_its_time_once_in_a_run() {
    let suite = Suite::find("rds").unwrap();
    let lengths = Lengths::of(Scale::Tiny);
    let (open, closed): (Vec<Cell>, Vec<Cell>) =
        suite.cells().into_iter().partition(|cell| cell.load.is_open());
    let looks = look(&open, lengths, 10.0) - 10.0;
    let of_one = look(&open[..3], lengths, 10.0) - 10.0;
    // Three workloads, each at three rates.
    assert!((looks - 3.0 * of_one).abs() < 1e-9 && of_one > LOOK_FOR.as_secs_f64(), "{looks}");
    assert_eq!(look(&closed, lengths, 10.0), 0.0);
    let before_blocks = estimate(&suite, Scale::Tiny).seconds(&open, 0);
    assert!(before_blocks > looks, "{before_blocks}");
}

#[test]
fn a_budget_takes_levels_before_it_takes_blocks() {
    let suite = Suite::find("rds").unwrap();
    let asked = suite.cells();
    let estimate = estimate(&suite, Scale::Tiny);
    let choose =
        |budget: Option<u64>| estimate.choose(&asked, None, budget.map(Duration::from_secs));
    let (whole, tight) = (choose(None), choose(Some(600)));
    assert_eq!(whole.cells.len(), asked.len());
    assert!(whole.left_out.is_empty());
    assert!(tight.seconds <= 600.0 && tight.blocks >= BLOCKS_MIN, "{tight:?}");
    // Levels before workloads, and more than one workload.
    let levels =
        |workload: &str| tight.cells.iter().filter(|cell| cell.workload == workload).count();
    assert!(levels("read-only") >= 2 && levels("read-write") >= 1, "{tight:?}");
    assert_eq!(tight.cells.len() + tight.left_out.len(), asked.len());
    // Too short for anything: one cell at least.
    assert_eq!(choose(Some(1)).cells.len(), 1);
}
