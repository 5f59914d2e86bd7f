//! The sums that Performance Schema keeps per row.

/// Sums of a row of a statement summary table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// `COUNT_STAR`: statements that ended.
    pub count: u64,
    /// `SUM_TIMER_WAIT`, picoseconds.
    pub timer_wait_ps: u64,
    /// `SUM_LOCK_TIME`, picoseconds; its meaning differs by family.
    pub lock_time_ps: u64,
    /// `SUM_ERRORS`.
    pub errors: u64,
    /// `SUM_WARNINGS`.
    pub warnings: u64,
    /// `SUM_ROWS_AFFECTED`.
    pub rows_affected: u64,
    /// `SUM_ROWS_SENT`.
    pub rows_sent: u64,
    /// `SUM_ROWS_EXAMINED`.
    pub rows_examined: u64,
    /// `SUM_NO_INDEX_USED`.
    pub no_index_used: u64,
    /// `SUM_NO_GOOD_INDEX_USED`.
    pub no_good_index_used: u64,
}

/// The columns in the order of [`Sums::from_columns`].
pub(super) const COLUMNS: [&str; 10] = [
    "COUNT_STAR",
    "SUM_TIMER_WAIT",
    "SUM_LOCK_TIME",
    "SUM_ERRORS",
    "SUM_WARNINGS",
    "SUM_ROWS_AFFECTED",
    "SUM_ROWS_SENT",
    "SUM_ROWS_EXAMINED",
    "SUM_NO_INDEX_USED",
    "SUM_NO_GOOD_INDEX_USED",
];

impl Sums {
    pub(super) fn from_columns(next: &mut impl Iterator<Item = u64>) -> Option<Sums> {
        Some(Sums {
            count: next.next()?,
            timer_wait_ps: next.next()?,
            lock_time_ps: next.next()?,
            errors: next.next()?,
            warnings: next.next()?,
            rows_affected: next.next()?,
            rows_sent: next.next()?,
            rows_examined: next.next()?,
            no_index_used: next.next()?,
            no_good_index_used: next.next()?,
        })
    }

    /// Every field combined with the same field of another.
    pub(super) fn zip(&self, other: &Sums, with: impl Fn(u64, u64) -> u64) -> Sums {
        Sums {
            count: with(self.count, other.count),
            timer_wait_ps: with(self.timer_wait_ps, other.timer_wait_ps),
            lock_time_ps: with(self.lock_time_ps, other.lock_time_ps),
            errors: with(self.errors, other.errors),
            warnings: with(self.warnings, other.warnings),
            rows_affected: with(self.rows_affected, other.rows_affected),
            rows_sent: with(self.rows_sent, other.rows_sent),
            rows_examined: with(self.rows_examined, other.rows_examined),
            no_index_used: with(self.no_index_used, other.no_index_used),
            no_good_index_used: with(self.no_good_index_used, other.no_good_index_used),
        }
    }

    /// The growth since an earlier reading; fields that fell count as nothing.
    pub fn since(&self, earlier: &Sums) -> Sums {
        self.zip(earlier, u64::saturating_sub)
    }

    /// Both together.
    pub fn plus(&self, other: &Sums) -> Sums {
        self.zip(other, u64::saturating_add)
    }
}
