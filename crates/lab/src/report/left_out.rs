//! What was left out: cells that were not asked for, that did not fit into the time or that the run has
//! not come to, as groups of many cells; and what was run and is void.

use crate::analysis::Verdict;
use crate::report::{Report, void, words};
use crate::run_info::NotRun;
use crate::suite::Suite;
use crate::window::{Cell, Load};

/// From this many numbers of sessions in a row on, the first and the last stand for all.
const ROW_MIN: usize = 3;

/// Cells that have one reason: every workload with every load.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LeftOut {
    pub(super) why: String,
    /// The order of the scenarios; absent where the suite has only one.
    pub(super) order: Option<String>,
    /// Absent for all scenarios.
    pub(super) scenario: Option<String>,
    pub(super) workloads: Vec<String>,
    /// Sessions, and how the load is offered; all closed or all at a fixed rate.
    pub(super) loads: Vec<(u32, Load)>,
}

/// Every cell that was not run stands in exactly one group.
pub(super) fn groups(report: Report<'_>) -> Vec<LeftOut> {
    grouped(not_run(report))
}

/// Cells of a suite in words, a line for those that are alike.
pub fn cells_in_words(suite: &Suite, cells: &[Cell]) -> Vec<String> {
    let of_cell = |cell: &Cell| NotRun { cell: cell.clone(), scenario: None, why: String::new() };
    grouped(cells.iter().map(of_cell).collect()).iter().map(|group| group.what(suite)).collect()
}

fn grouped(not_run: Vec<NotRun>) -> Vec<LeftOut> {
    let mut lines: Vec<LeftOut> = Vec::new();
    for one in not_run {
        let line = LeftOut::of(one);
        match lines.iter_mut().find(|it| it.workloads == line.workloads && it.is_like(&line)) {
            Some(known) => known.loads.extend(line.loads),
            None => lines.push(line),
        }
    }
    let mut groups: Vec<LeftOut> = Vec::new();
    for line in lines {
        match groups.iter_mut().find(|it| it.loads == line.loads && it.is_like(&line)) {
            Some(known) => known.workloads.extend(line.workloads),
            None => groups.push(line),
        }
    }
    groups
}

/// What the run says that it left out, and what it has not come to.
fn not_run(report: Report<'_>) -> Vec<NotRun> {
    let mut not_run = report.info.not_run.clone();
    let run = report.cells_run();
    let is_known = |cell: &Cell| not_run.iter().any(|one| one.cell == *cell) || run.contains(&cell);
    let open: Vec<Cell> = report.suite.cells().into_iter().filter(|it| !is_known(it)).collect();
    let not_yet = |cell| NotRun { cell, scenario: None, why: Verdict::NOT_YET.to_owned() };
    not_run.extend(open.into_iter().map(not_yet));
    not_run
}

/// Everything that was left out in words, what was not asked for in one line and first.
pub(super) fn in_words(report: Report<'_>) -> Vec<String> {
    let (not_asked, others): (Vec<LeftOut>, Vec<LeftOut>) =
        groups(report).into_iter().partition(|group| group.why == NotRun::NOT_ASKED);
    let count: usize = not_asked.iter().map(LeftOut::cells).sum();
    let only: String = report.info.run.only.iter().map(|word| format!(" --only {word}")).collect();
    let cells = words::count(count, "cell", "cells");
    let not_asked = (count > 0).then(|| format!("not asked:{only} leaves out {cells}"));
    let others = others.iter().map(|group| group.in_words(report.suite));
    not_asked.into_iter().chain(others).chain(void::lines(report)).collect()
}

impl LeftOut {
    fn of(one: NotRun) -> LeftOut {
        let NotRun { cell, scenario, why } = one;
        let loads = vec![(cell.threads, cell.load)];
        LeftOut { why, order: cell.order, scenario, workloads: vec![cell.workload], loads }
    }

    /// Whether both have the same reason, in the same order, and the same kind of load.
    fn is_like(&self, other: &LeftOut) -> bool {
        self.why == other.why
            && self.order == other.order
            && self.scenario == other.scenario
            && self.is_open() == other.is_open()
    }

    /// How many cells it stands for.
    pub(super) fn cells(&self) -> usize {
        self.workloads.len() * self.loads.len()
    }

    /// Whether its loads have a fixed rate.
    pub(super) fn is_open(&self) -> bool {
        self.loads.iter().any(|(_, load)| *load != Load::Closed)
    }

    /// The shares of the processors at which the rates are fixed.
    pub(super) fn shares(&self) -> Vec<f64> {
        self.loads.iter().filter_map(|(_, load)| load.share()).collect()
    }

    /// Its numbers of sessions, each once.
    pub(super) fn threads(&self) -> Vec<u32> {
        let mut threads: Vec<u32> = self.loads.iter().map(|(threads, _)| *threads).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    fn in_words(&self, suite: &Suite) -> String {
        words::not_run(&format!("{}: {}", self.why, self.what(suite)))
    }

    /// Its loads, workloads and scenario, and how many cells they are.
    fn what(&self, suite: &Suite) -> String {
        let loads = match self.is_open() {
            true => {
                let shares = self.shares().into_iter().map(|share| words::share(100.0 * share));
                format!("fixed rates of {} CPU", shares.collect::<Vec<_>>().join(", "))
            }
            false => threads_in_words(&self.threads(), &suite.threads),
        };
        let is_all = self.workloads.len() == suite.workloads.len() && suite.workloads.len() > 1;
        let workloads = if is_all { "all workloads".to_owned() } else { self.workloads.join(", ") };
        let order = self.order.as_ref().map_or_else(String::new, |it| format!(", order {it}"));
        let scenario = self.scenario.as_ref().map_or_else(String::new, |it| format!(", {it}"));
        let cells = words::count(self.cells(), "cell", "cells");
        format!("{loads}, {workloads}{order}{scenario} ({cells})")
    }
}

/// Numbers of sessions, where those that follow each other in the suite are one range.
fn threads_in_words(threads: &[u32], all: &[u32]) -> String {
    let place = |one: &u32| all.iter().position(|other| other == one);
    let follow = |one: &u32, next: &u32| place(one).is_some_and(|at| place(next) == Some(at + 1));
    let mut parts = Vec::new();
    for row in threads.chunk_by(follow) {
        match row {
            [first, .., last] if row.len() >= ROW_MIN => parts.push(format!("{first} to {last}")),
            _ => parts.extend(row.iter().map(u32::to_string)),
        }
    }
    let threads = if threads == [1] { "thread" } else { "threads" };
    format!("{} {threads}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use crate::analysis::Analysis;
    use crate::report::sample::{analysis, info, suite, windows};
    use crate::run_info::RunInfo;

    use super::*;

    fn left_out(suite: &Suite, why: impl Fn(&Cell) -> Option<&'static str>) -> RunInfo {
        let of = |cell: Cell| {
            let why = why(&cell)?.to_owned();
            Some(NotRun { cell, scenario: None, why })
        };
        let not_run = suite.cells().into_iter().filter_map(of).collect();
        RunInfo { not_run, ..info() }
    }

    fn said(suite: &Suite, info: &RunInfo) -> Vec<String> {
        let analysis = Analysis::default();
        in_words(Report { suite, info, windows: &[], analysis: &analysis })
    }

    #[test]
    fn many_cells_with_one_reason_are_one_line() {
        let suite = Suite::find("rds").unwrap();
        let mut info = left_out(&suite, |cell| match (cell.load, cell.threads) {
            (Load::Closed, 1 | 32) => Some(NotRun::NOT_ASKED),
            (Load::Closed, 4) if cell.workload == "read-write" => Some(NotRun::NOT_ASKED),
            _ => Some(NotRun::BUDGET),
        });
        info.run.only = vec!["2".to_owned(), "open".to_owned()];
        assert_eq!(
            said(&suite, &info),
            [
                "not asked: --only 2 --only open leaves out 7 cells",
                "not run: budget: 2 to 16, 64 to 1024 threads, read-only, write-only (18 cells)",
                "not run: budget: 2, 8, 16, 64 to 1024 threads, read-write (8 cells)",
                "not run: budget: fixed rates of 30 %, 60 %, 80 % CPU, all workloads (9 cells)",
            ]
        );
    }

    #[test]
    fn what_an_unfinished_run_has_not_come_to_is_told_by_order() {
        let suite = Suite::find("modb").unwrap();
        let info = left_out(&suite, |cell| {
            (cell.order.as_deref() == Some("cumulative")).then_some(NotRun::NOT_ASKED)
        });
        let not_yet = |what: &str| format!("not run: {}: {what}", Verdict::NOT_YET);
        assert_eq!(
            said(&suite, &info),
            [
                "not asked: leaves out 1 cell".to_owned(),
                not_yet("256 threads, read-update, order random (1 cell)"),
                not_yet("256 threads, read-update, order memory (1 cell)"),
                not_yet("256 threads, read-update, order one-factor (1 cell)"),
                not_yet("fixed rates of 30 %, 60 %, 80 % CPU, read-update, order random (3 cells)"),
            ]
        );
    }

    #[test]
    fn what_is_void_is_told_with_its_reason_and_a_cell_that_was_run_is_not_left_out() {
        let (suite, info, windows, analysis) = (suite(), info(), windows(), analysis());
        let report = Report { suite: &suite, info: &info, windows: &windows, analysis: &analysis };
        assert_eq!(
            in_words(report),
            [
                "not run: budget: fixed rates of 60 % CPU, read-only (1 cell)",
                "not run: the run has not come to it: 1 thread, read-only (1 cell)",
                "void: read-only, 32 threads, pfson_conon_inson (the hypervisor took 9 %)",
            ]
        );
    }
}
