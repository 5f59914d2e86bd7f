//! The processor time of statements here, and during the calibration.

use serde::Serialize;

use super::{Calibration, Counted};

/// Prices apply to statements that take at most this many times the processor time of those in the
/// calibration. A longer statement pushes more out of the caches, so its events may cost more.
const REACH: f64 = 2.0;

/// Processor time of the server per statement, of everything that it does but our own reading of events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StatementTime {
    /// Here, with what is on, ns; `None` if there were no statements, or the processor time of the server cannot be
    /// read.
    pub here_ns: Option<f64>,
    /// In the calibration, with nothing on, ns, with as many sessions; `None` if there is none.
    pub calibrated_ns: Option<f64>,
    /// Whether prices of the calibration hold here: `here_ns` is known and at most twice `calibrated_ns`.
    pub is_within_reach: bool,
}

impl StatementTime {
    pub(super) fn of(counted: &Counted, calibration: Option<&Calibration>) -> StatementTime {
        let here_ns = counted.statement_ns;
        let calibrated_ns = calibration.and_then(|all| all.statement_ns(counted.running));
        let is_within = |(here, calibrated): (f64, f64)| here <= REACH * calibrated;
        let is_within_reach = here_ns.zip(calibrated_ns).is_some_and(is_within);
        StatementTime { here_ns, calibrated_ns, is_within_reach }
    }
}
