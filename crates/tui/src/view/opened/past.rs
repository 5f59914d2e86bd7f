//! One digest over its whole history.

use waggle_model::{AfterReply, DigestKey, TimeClass, Usage};

use crate::state::{Frame, Latencies, Measured, Row, STEPS, Watched};

/// The kept intervals up to the shown one, together.
pub(super) struct Past {
    pub(super) seconds: f64,
    /// Intervals where it is not known whether the digest ran.
    pub(super) unknown: usize,
    pub(super) calls: u64,
    pub(super) load_seconds: Option<f64>,
    /// In the order of [`sums`].
    pub(super) sums: [Measured; 7],
    pub(super) time_ns: f64,
    pub(super) max_ns: f64,
    pub(super) latencies: [u64; STEPS],
    /// Latency by class, nanoseconds; `None` if a part of it was not measured.
    pub(super) parts: Option<[f64; TimeClass::ALL.len()]>,
    /// The same of what was used.
    pub(super) usage: Option<Usage>,
    pub(super) after_reply: AfterReply,
}

/// The sums of a row: rows examined, sent and changed, bytes, time in locks, errors, no index.
pub(super) fn sums(row: &Row) -> [Measured; 7] {
    [
        row.rows_examined,
        row.rows_sent,
        row.rows_affected,
        row.bytes_sent,
        row.lock_ns,
        row.errors,
        row.no_index,
    ]
}

impl Past {
    pub(super) fn of(one: &Watched, shown: &Frame, key: &DigestKey) -> Past {
        let mut past = Past {
            seconds: 0.0,
            unknown: 0,
            calls: 0,
            load_seconds: Some(0.0),
            sums: [Measured::count(Some(0)); 7],
            time_ns: 0.0,
            max_ns: 0.0,
            latencies: [0; STEPS],
            parts: Some([0.0; TimeClass::ALL.len()]),
            usage: Some(Usage::default()),
            after_reply: AfterReply::default(),
        };
        for frame in one.history.until(shown.end_ns, usize::MAX) {
            match frame.row(key) {
                Some(row) => past.add(row, frame.seconds()),
                None if frame.rows_left_out > 0 => past.unknown += 1,
                None => past.seconds += frame.seconds(),
            }
        }
        past
    }

    fn add(&mut self, row: &Row, seconds: f64) {
        self.seconds += seconds;
        self.calls += row.calls;
        self.load_seconds =
            self.load_seconds.zip(row.load.get()).map(|(sum, load)| sum + load * seconds);
        for (sum, more) in self.sums.iter_mut().zip(sums(row)) {
            *sum = Measured::of(sum.get().zip(more.get()).map(|(sum, more)| sum + more));
        }
        self.time_ns += row.avg_ns.get().unwrap_or(0.0) * row.calls as f64;
        self.max_ns = self.max_ns.max(row.max_ns.get().unwrap_or(0.0));
        Latencies::add_to(&row.latencies, &mut self.latencies);
        if row.calls > 0 {
            self.add_spent(row);
        }
    }

    fn add_spent(&mut self, row: &Row) {
        let spent = row.spent.as_deref();
        let more = row.parts();
        // Of calls whose start is not known there are neither parts nor latencies.
        if more.is_some() || row.avg_ns.get().is_some() {
            self.parts = self.parts.zip(more).map(|(mut sums, more)| {
                for (sum, class) in sums.iter_mut().zip(TimeClass::ALL) {
                    *sum += more.get(class);
                }
                sums
            });
        }
        self.usage = self.usage.zip(spent.and_then(|it| it.usage)).map(|(mut sum, more)| {
            sum.merge(&more);
            sum
        });
        if let Some(spent) = spent {
            self.after_reply.merge(&spent.after_reply);
        }
    }

    /// A sum per call; `None` if there was no call.
    pub(super) fn per_call(&self, sum: f64) -> Option<f64> {
        (self.calls > 0).then(|| sum / self.calls as f64)
    }
}
