//! Why a run cannot go on.

use std::fmt::Display;

use waggle_host::MeterError;
use waggle_instrumentation::PlanError;
use waggle_instrumentation::hold::HoldError;
use waggle_mysql::ConnectionError;
use waggle_private_server::PrivateServerError;

use crate::load::LoadError;
use crate::run_dir::RunDirError;
use crate::suite::SuiteError;

/// Why a run cannot begin or go on. What was measured is kept in every case.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The suite.
    #[error(transparent)]
    Suite(#[from] SuiteError),
    /// The files of the run.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
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
    /// The changes on a server in use.
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// What is asked, or how the run was begun, does not fit the server: what, why, and what to do.
    #[error("{0}")]
    DoesNotFit(String),
    /// The host, the server or the account is not as it has to be: what, why, and what to do.
    #[error("{0}")]
    Cannot(String),
    /// What a scenario wants of its server cannot be had.
    #[error("scenario {scenario}: {reason}")]
    Scenario {
        /// The scenario.
        scenario: String,
        /// Why not.
        reason: String,
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
}

impl LabError {
    /// Something that would prove what was measured cannot be read.
    pub(crate) fn unreadable(what: &str, why: impl Display) -> LabError {
        let without = "without it nothing proves what was measured";
        LabError::Cannot(format!("{what} cannot be read ({why}): {without}"))
    }

    /// Whether no other window can be made after it.
    pub(crate) fn ends_a_run(&self) -> bool {
        matches!(
            self,
            LabError::Suite(_)
                | LabError::RunDir(_)
                | LabError::Scenario { .. }
                | LabError::Hold(_)
                | LabError::Stopped
        )
    }

    pub(crate) fn plan(scenario: &str) -> impl FnOnce(PlanError) -> LabError {
        move |error| LabError::Scenario { scenario: scenario.to_owned(), reason: error.to_string() }
    }
}
