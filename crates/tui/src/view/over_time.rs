//! The last minutes in a few columns.

use std::sync::Arc;

use super::number::age;
use crate::state::{Frame, Watched};

/// How far a sparkline reaches, nanoseconds.
const WINDOW_NS: u64 = 3 * 60 * 1_000_000_000;
/// Intervals that are looked at for a sparkline: it bounds the work of a picture.
const FRAMES_MAX: usize = 360;

/// Intervals up to the shown one, sorted into columns of equal length.
pub(crate) struct OverTime {
    /// Each with its column.
    frames: Vec<(usize, Arc<Frame>)>,
    columns: usize,
    column_ns: u64,
}

impl OverTime {
    /// The last minutes before the end of `shown`, in this many columns. A column is no shorter than
    /// an interval, and begins at the same moment in every picture.
    pub(crate) fn of(server: &Watched, shown: &Frame, columns: usize) -> OverTime {
        let interval_ns = shown.end_ns.saturating_sub(shown.start_ns);
        let column_ns = (WINDOW_NS / columns.max(1) as u64).max(interval_ns).max(1);
        let last = shown.end_ns / column_ns;
        let column = |frame: &Frame| {
            let behind = usize::try_from(last - frame.end_ns / column_ns).ok()?;
            columns.checked_sub(behind + 1)
        };
        let frames = server.history.until(shown.end_ns, FRAMES_MAX);
        let frames = frames.filter_map(|frame| Some((column(frame)?, frame.clone()))).collect();
        OverTime { frames, columns, column_ns }
    }

    /// How long all columns are.
    pub(crate) fn length(&self) -> String {
        let all = self.column_ns * self.columns as u64;
        match (all + 500_000_000) / 1_000_000_000 {
            seconds if seconds >= 60 && seconds % 60 == 0 => format!("{} min", seconds / 60),
            _ => age(all),
        }
    }

    /// The mean of a number in every column; `None` if it is not known of any of its intervals.
    pub(crate) fn values(&self, of: impl Fn(&Frame) -> Option<f64>) -> Vec<Option<f64>> {
        let mut sums = vec![(0.0, 0_u32); self.columns];
        for (column, frame) in &self.frames {
            if let (Some(sum), Some(value)) = (sums.get_mut(*column), of(frame)) {
                *sum = (sum.0 + value, sum.1 + 1);
            }
        }
        sums.into_iter().map(|(sum, n)| (n > 0).then(|| sum / f64::from(n))).collect()
    }
}
