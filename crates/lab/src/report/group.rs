//! Which cells may stand beside each other in one table or chart.

use crate::report::{Report, words};
use crate::suite::{Order, Scenario, Sequence};
use crate::window::Cell;

/// Cells of one workload, one kind of load and one order of the scenarios. What an order finds is
/// never mixed with what another one finds.
#[derive(Clone, Debug)]
pub(super) struct Group<'a> {
    /// The workload, with the order where the suite has several; of all workloads together the load alone.
    pub(super) name: String,
    /// The workload; absent of all workloads together.
    pub(super) workload: Option<&'a str>,
    /// Whether the load has a fixed rate.
    pub(super) is_open: bool,
    /// The order of the scenarios; absent where it is not one of the suite.
    pub(super) order: Option<&'a Order>,
    /// What is compared in it, the baseline among them.
    pub(super) scenarios: Vec<&'a Scenario>,
    /// By threads.
    pub(super) cells: Vec<Cell>,
}

impl<'a> Group<'a> {
    /// Every group of a report: by workload, the closed loads first, then by order.
    pub(super) fn all(report: Report<'a>) -> Vec<Group<'a>> {
        let mut groups: Vec<Group<'a>> = Vec::new();
        for cell in report.cells() {
            match groups.iter_mut().find(|group| group.holds(&cell)) {
                Some(group) => group.cells.push(cell),
                None => groups.extend(Group::of(report, cell)),
            }
        }
        let workloads = &report.suite.workloads;
        let place = |group: &Group<'_>| {
            let at = workloads
                .iter()
                .position(|workload| Some(workload.name.as_str()) == group.workload);
            (at, group.is_open)
        };
        // Stable: the orders stay as the suite lists them.
        groups.sort_by_key(place);
        groups.iter_mut().for_each(|group| group.cells.sort_by_key(|cell| cell.threads));
        groups
    }

    /// The groups of several workloads put together: one for each kind of load and each order.
    pub(super) fn over_workloads(report: Report<'a>) -> Vec<Group<'a>> {
        let mut all: Vec<Group<'a>> = Vec::new();
        for group in Group::all(report) {
            let is_alike = |it: &&mut Group<'_>| {
                it.is_open == group.is_open && it.order_of_cells() == group.order_of_cells()
            };
            match all.iter_mut().find(is_alike) {
                Some(known) => {
                    known.workload = None;
                    known.cells.extend(group.cells);
                }
                None => all.push(group),
            }
        }
        for group in &mut all {
            let load = if group.is_open { "Loads at a fixed rate" } else { "Closed loads" };
            let of = group.workload.map_or_else(String::new, |workload| format!(" of {workload}"));
            let order = group.order_of_cells();
            let order = order.map_or_else(String::new, |order| format!(", order {order}"));
            group.name = format!("{load}{of}{order}");
        }
        all
    }

    /// `None` where the suite has no such workload, or nothing to compare in such a cell.
    fn of(report: Report<'a>, cell: Cell) -> Option<Group<'a>> {
        let suite = report.suite;
        let workload = suite.workloads.iter().find(|workload| workload.name == cell.workload)?;
        let has = |scenario: &&Scenario| suite.has(&cell, &scenario.name);
        let scenarios: Vec<&Scenario> = suite.scenarios.iter().filter(has).collect();
        if scenarios.iter().all(|one| one.name == suite.baseline) {
            return None;
        }
        let name = match &cell.order {
            Some(order) => format!("{}, order {order}", cell.workload),
            None => cell.workload.clone(),
        };
        Some(Group {
            name,
            workload: Some(&workload.name),
            is_open: cell.load.is_open(),
            order: suite.order(&cell),
            scenarios,
            cells: vec![cell],
        })
    }

    fn holds(&self, cell: &Cell) -> bool {
        let is_same = |own: &Cell| own.workload == cell.workload && own.order == cell.order;
        self.is_open == cell.load.is_open() && self.cells.first().is_some_and(is_same)
    }

    /// The order as cells have it: absent where the suite has only one.
    pub(super) fn order_of_cells(&self) -> Option<&str> {
        self.cells.first()?.order.as_deref()
    }

    /// What is compared with the baseline.
    pub(super) fn others(&self, report: Report<'a>) -> impl Iterator<Item = &'a Scenario> {
        self.scenarios.iter().copied().filter(move |one| one.name != report.suite.baseline)
    }

    /// What has to be said of the order, wherever a number from it stands.
    pub(super) fn warning(&self) -> Option<&'static str> {
        let is_listed = |order: &Order| order.sequence == Sequence::AsListed;
        self.order.is_some_and(is_listed).then_some(words::FIXED_ORDER)
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::Analysis;
    use crate::report::sample::{info, suite};
    use crate::suite::Suite;

    use super::*;

    fn groups(suite: &Suite) -> Vec<(String, bool, usize, usize)> {
        let (info, analysis) = (info(), Analysis::default());
        let report = Report { suite, info: &info, windows: &[], analysis: &analysis };
        let sizes = |group: Group<'_>| {
            (group.name, group.is_open, group.cells.len(), group.scenarios.len())
        };
        Group::all(report).into_iter().map(sizes).collect()
    }

    #[test]
    fn a_suite_with_one_order_has_a_group_for_each_workload_and_kind_of_load() {
        let found = groups(&suite());
        let name = "read-only".to_owned();
        assert_eq!(found, [(name.clone(), false, 2, 6), (name, true, 1, 6)]);
    }

    #[test]
    fn workloads_are_put_together_and_orders_and_kinds_of_load_are_not() {
        let of = |suite: &Suite| {
            let (info, analysis) = (info(), Analysis::default());
            let report = Report { suite, info: &info, windows: &[], analysis: &analysis };
            let sizes = |group: Group<'_>| (group.name, group.cells.len());
            Group::over_workloads(report).into_iter().map(sizes).collect::<Vec<_>>()
        };
        let (closed, fixed) = ("Closed loads".to_owned(), "Loads at a fixed rate".to_owned());
        assert_eq!(of(&Suite::find("rds").unwrap()), [(closed, 33), (fixed, 9)]);
        let modb = of(&Suite::find("modb").unwrap());
        assert_eq!(modb.len(), 5);
        assert_eq!(modb[0].0, "Closed loads of read-update, order cumulative");
    }

    #[test]
    fn what_has_nothing_but_the_baseline_is_no_group() {
        let mut suite = Suite::find("modb").unwrap();
        suite.scenarios.retain(|one| matches!(one.name.as_str(), "off" | "only-memory"));
        let names: Vec<String> = groups(&suite).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["read-update, order one-factor"]);
    }

    #[test]
    fn orders_are_apart_and_have_their_own_scenarios() {
        let suite = Suite::find("modb").unwrap();
        let named = |order: &str| format!("read-update, order {order}");
        let expected = [
            (named("cumulative"), false, 1, 5),
            (named("random"), false, 1, 6),
            (named("memory"), false, 1, 6),
            (named("one-factor"), false, 1, 7),
            (named("random"), true, 3, 6),
        ];
        assert_eq!(groups(&suite), expected);
    }
}
