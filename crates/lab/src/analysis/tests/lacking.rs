//! Windows that are void, or lack something.

use super::*;

#[test]
fn a_void_window_of_the_baseline_takes_the_block_from_all_arms_and_that_of_an_arm_one_pair() {
    let void = |window: &mut Window| window.void = Some("steal".to_owned());
    let run = three_arms(0.02, 0.0, 1.1).change("off", |block| block < 3, void);
    let analysis = run.change("on", |block| block == 7, void).analyse(&[&closed()], 1.0);
    let on = found(&analysis, "on", Metric::CpuPerStatement);
    let all = found(&analysis, "all", Metric::CpuPerStatement);
    assert_eq!((on.pairs, on.void, all.pairs, all.void), (16, 4, 17, 3));
    assert_eq!((analysis.void, analysis.windows), (4, 80));
}

#[test]
fn an_arm_that_lacks_more_blocks_than_its_baseline_is_not_judged_by_the_others() {
    let void = |window: &mut Window| window.void = Some("overloaded".to_owned());
    let of_20 = |arm: u32, baseline: u32| {
        let run = three_arms(0.02, 0.0, 1.1).change("on", move |block| block < arm, void);
        let run = run.change("off", move |block| block >= 20 - baseline, void);
        found(&run.analyse(&[&closed()], 1.0), "on", Metric::CpuPerStatement).clone()
    };
    assert_eq!(of_20(4, 0).verdict, Verdict::Cost);
    assert_eq!(of_20(6, 2).verdict, Verdict::Cost);
    for lacking in [of_20(5, 0), of_20(0, 5)] {
        let Verdict::Void(why) = &lacking.verdict else { panic!("{lacking:?}") };
        assert!(why.contains("of 20 blocks") && why.contains("no fair choice"), "{why}");
        assert_eq!((lacking.pairs, lacking.void), (15, 5));
    }
    // What the hypervisor took is no doing of the arm.
    let stolen = |window: &mut Window| {
        void(window);
        window.measured.as_mut().unwrap().steal_share = Some(0.2);
    };
    let run = three_arms(0.02, 0.0, 1.1).change("on", |block| block < 9, stolen);
    let analysis = run.analyse(&[&closed()], 1.0);
    assert_eq!(found(&analysis, "on", Metric::CpuPerStatement).verdict, Verdict::Cost);
}

#[test]
fn an_interruption_takes_the_pairs_that_it_parts_and_no_others() {
    let later = |window: &mut Window| window.part = 1;
    // The run was interrupted in block 12, after its windows of the baseline and of "all".
    let mut run = three_arms(0.02, 0.0, 1.1);
    for (arm, from) in [("off", 13), ("all", 13), ("on", 12), (Window::AGAIN, 12)] {
        run = run.change(arm, move |block| block >= from, later);
    }
    let analysis = run.analyse(&[&closed()], 1.0);
    let counts = |arm| {
        let found = found(&analysis, arm, Metric::CpuPerStatement);
        (found.pairs, found.void)
    };
    assert_eq!([counts("all"), counts("on"), counts(Window::AGAIN)], [(20, 0), (19, 1), (19, 1)]);
    // Its windows count for themselves.
    assert_eq!((analysis.void, analysis.windows), (0, 80));
}

#[test]
fn too_few_pairs_are_void_and_what_has_no_window_was_not_run() {
    let void = |window: &mut Window| window.measured = None;
    let run = three_arms(0.02, 0.0, 1.1).change("on", |block| block >= 5, void);
    let other = cell(16, Load::Closed);
    let analysis = run.analyse(&[&closed(), &other], 1.0);
    let on = found(&analysis, "on", Metric::Qps);
    assert!(matches!(&on.verdict, Verdict::Void(why) if why.contains("count: 5")), "{on:?}");
    assert!(!on.percent.is_known() && on.p_holm.is_nan());
    let unseen = analysis.find("off", &other, "on", Metric::Qps).unwrap();
    assert_eq!(unseen.verdict, Verdict::NotRun(Verdict::NOT_YET.to_owned()));
}

#[test]
fn what_cannot_keep_up_with_a_fixed_rate_is_overloaded_and_not_what_is_left_of_it() {
    let late = |window: &mut Window| {
        let measured = window.measured.as_mut().unwrap();
        measured.behind_s = Some([0.0, measured.seconds]);
        window.void = Some("overloaded".to_owned());
    };
    let first = |block: u32| block == 0;
    let run = || three_arms(0.02, 0.0, 1.1).change("on", first, late);
    let verdict = |run: Run| {
        let analysis = run.analyse(&[&closed()], 1.0);
        found(&analysis, "on", Metric::CpuPerStatement).verdict.clone()
    };
    let overloaded = verdict(run());
    let is_said = matches!(&overloaded, Verdict::Overloaded(why) if why.starts_with("in 1 of"));
    assert!(is_said, "{overloaded:?}");
    // Where the baseline cannot either, or the hypervisor took the processors, that says nothing of the arm.
    assert!(verdict(run().change("off", first, late)).is_known());
    let stolen = |window: &mut Window| window.measured.as_mut().unwrap().steal_share = Some(0.2);
    assert!(verdict(run().change("on", first, stolen)).is_known());
}

#[test]
fn what_no_window_has_was_not_measured_and_is_neither_void_nor_zero() {
    let elsewhere = |window: &mut Window| {
        let measured = window.measured.as_mut().unwrap();
        (measured.server_cpu_ns, measured.latency) = (None, None);
    };
    let run = three_arms(0.02, 0.0, 1.1).change("off", |_| true, elsewhere);
    let analysis = run.change("on", |_| true, elsewhere).analyse(&[&closed()], 1.0);
    for metric in [Metric::CpuPerStatement, Metric::LatencyP95] {
        let on = found(&analysis, "on", metric);
        assert_eq!(on.verdict, Verdict::NotRun("not measured".to_owned()), "{on:?}");
    }
    assert!(found(&analysis, "on", Metric::Qps).verdict.is_known());
    // Also where it is the baseline alone that lacks it.
    let run = three_arms(0.02, 0.0, 1.1).change("off", |_| true, elsewhere);
    let on = found(&run.analyse(&[&closed()], 1.0), "on", Metric::LatencyP95).clone();
    assert_eq!(on.verdict, Verdict::NotRun("not measured".to_owned()), "{on:?}");
}

#[test]
fn a_cell_with_half_of_the_pairs_has_no_part_in_the_mean() {
    let cells = [1, 2, 4].map(|threads| cell(threads, Load::Closed));
    let of = |lacking: u32| {
        let arms = [("off", 1.0), ("on", 1.04)];
        let run = cells.iter().fold(Run::new(0.01, 0.0), |run, cell| run.cell(cell, &arms));
        // In both arms alike, as a host does it.
        let void = |window: &mut Window| {
            if window.cell == cells[2] {
                window.void = Some("steal".to_owned());
            }
        };
        let run = run.change("off", move |block| block < lacking, void);
        let run = run.change("on", move |block| block < lacking, void);
        let analysis = run.analyse(&cells.iter().collect::<Vec<_>>(), 1.0);
        analysis.pooled.into_iter().find(|it| it.metric == Metric::CpuPerStatement).unwrap()
    };
    assert_eq!([0, 9, 10].map(|lacking| of(lacking).cells), [3, 3, 2]);
    assert!(of(10).percent.holds(4.0), "{:?}", of(10));
}
