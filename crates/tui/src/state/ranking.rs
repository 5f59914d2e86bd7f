//! The ways to sort digests.

use std::cmp::Ordering;

use waggle_model::TimeClass;

use super::frame::Row;

/// By what digests are ranked, the largest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Average active sessions.
    #[default]
    Load,
    /// Statements that ended.
    Calls,
    /// 95th percentile of the latency.
    P95,
    /// 99th percentile of the latency.
    P99,
    /// Rows examined in all.
    Examined,
    /// Statements with an error.
    Errors,
    /// Average active sessions in this class.
    Time(TimeClass),
}

impl Sort {
    /// The orders that there always are.
    pub(crate) const ALWAYS: [Sort; 6] =
        [Sort::Load, Sort::Calls, Sort::P95, Sort::P99, Sort::Examined, Sort::Errors];

    /// What it is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Sort::Load => "load",
            Sort::Calls => "calls",
            Sort::P95 => "p95",
            Sort::P99 => "p99",
            Sort::Examined => "rows examined",
            Sort::Errors => "errors",
            Sort::Time(class) => class.name(),
        }
    }

    /// The order `by` places further in `orders`, around the end.
    pub(crate) fn moved(self, by: isize, orders: &[Sort]) -> Sort {
        let at = orders.iter().position(|one| *one == self).unwrap_or(0);
        let to = (at as isize + by).rem_euclid(orders.len().max(1) as isize);
        orders.get(to as usize).copied().unwrap_or_default()
    }

    fn of(self, row: &Row) -> Option<f64> {
        match self {
            Sort::Load => row.load.get(),
            Sort::Calls => Some(row.calls as f64),
            Sort::P95 => row.p95_ns.get(),
            Sort::P99 => row.p99_ns.get(),
            Sort::Examined => row.rows_examined.get(),
            Sort::Errors => row.errors.get(),
            Sort::Time(class) => row.load_in(class),
        }
    }

    /// The larger first, what was not measured last; ties by load, calls and key, so that rows do
    /// not jump.
    fn compare(self, one: &Row, other: &Row) -> Ordering {
        let value = |row: &Row| self.of(row).unwrap_or(f64::NEG_INFINITY);
        let load = |row: &Row| row.load.get().unwrap_or(f64::NEG_INFINITY);
        let ties = || load(other).total_cmp(&load(one)).then(other.calls.cmp(&one.calls));
        value(other).total_cmp(&value(one)).then_with(ties).then_with(|| one.key.cmp(&other.key))
    }
}

/// The places of those rows that pass, in order.
pub(crate) fn ranked(rows: &[Row], sort: Sort, passes: impl Fn(&Row) -> bool) -> Vec<u32> {
    let mut order: Vec<u32> =
        (0_u32..).zip(rows).filter(|(_, row)| passes(row)).map(|it| it.0).collect();
    order.sort_unstable_by(|one, other| compare(rows, sort, *one, *other));
    order
}

/// The places of the first `n` rows, without order.
pub(crate) fn top(rows: &[Row], sort: Sort, n: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0_u32..).zip(rows).map(|it| it.0).collect();
    if order.len() > n {
        order.select_nth_unstable_by(n, |one, other| compare(rows, sort, *one, *other));
        order.truncate(n);
    }
    order
}

fn compare(rows: &[Row], sort: Sort, one: u32, other: u32) -> Ordering {
    match (rows.get(one as usize), rows.get(other as usize)) {
        (Some(one), Some(other)) => sort.compare(one, other),
        _ => Ordering::Equal,
    }
}
