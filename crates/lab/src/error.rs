//! Why a run cannot go on.

use waggle_instrumentation::PlanError;
use waggle_instrumentation::hold::HoldError;
use waggle_mysql::ConnectionError;
use waggle_private_server::PrivateServerError;

use crate::kept::KeptError;
use crate::load::LoadError;
use crate::meter::MeterError;
use crate::suite::SuiteError;

/// Why a run cannot begin or go on. What was measured is kept in every case.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The suite.
    #[error(transparent)]
    Suite(#[from] SuiteError),
    /// The files of the run.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// A private server.
    #[error(transparent)]
    Server(#[from] PrivateServerError),
    /// The load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The connection to a server.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The process of a server.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// The changes on a server that somebody else started.
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// A server that somebody else started is not as it has to be: what, why, and what to do.
    #[error("{0}")]
    Foreign(String),
    /// What a scenario wants of its server cannot be had.
    #[error("scenario {scenario}: {reason}")]
    Scenario {
        /// The scenario.
        scenario: String,
        /// Why not.
        reason: String,
    },
    /// A counter of InnoDB that shall prove a scenario, and cannot.
    #[error(
        "counters: the server has no counter {name} of InnoDB, so it would prove nothing; information_schema.INNODB_METRICS \
         lists what it has"
    )]
    NoCounter {
        /// Its name.
        name: String,
    },
    /// What would prove that a scenario is set, or say what was done, cannot be read.
    #[error("{what} cannot be read ({why}): without it nothing proves what was measured")]
    Unreadable {
        /// What.
        what: String,
        /// Why not, with what to do about it where that is known.
        why: String,
    },
    /// A load at a fixed rate without one.
    #[error(
        "{workload}: it is not known at which rate {} % of the processors are in use; begin a new run",
        share * 100.0
    )]
    NoRate {
        /// Name of the workload.
        workload: String,
        /// The share, 0 to 1.
        share: f64,
    },
    /// The host has too little of something.
    #[error("{what}: {needed} are needed and {there} are there; {remedy}")]
    TooLittle {
        /// Of what.
        what: String,
        /// How much is needed, with its unit.
        needed: String,
        /// How much is there, with its unit.
        there: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Somebody stopped it.
    #[error("it was stopped")]
    Stopped,
    /// Window after window fails.
    #[error(
        "{count} windows in a row failed, the last one since {reason}; when that is mended, waggle lab resume \
         makes the windows that are left (these stay void), and --only makes a run without such cells"
    )]
    Failing {
        /// How many.
        count: usize,
        /// Why the last one did.
        reason: String,
    },
}

impl LabError {
    pub(crate) fn unreadable(what: &str, why: impl Into<String>) -> LabError {
        LabError::Unreadable { what: what.to_owned(), why: why.into() }
    }

    /// Whether no other window can be made after it.
    pub(crate) fn ends_a_run(&self) -> bool {
        matches!(
            self,
            LabError::Suite(_)
                | LabError::Kept(_)
                | LabError::Scenario { .. }
                | LabError::Hold(_)
                | LabError::Stopped
        )
    }

    pub(crate) fn plan(scenario: &str) -> impl FnOnce(PlanError) -> LabError {
        move |error| LabError::Scenario { scenario: scenario.to_owned(), reason: error.to_string() }
    }
}
