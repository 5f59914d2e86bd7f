//! What keeps a server at work while it is measured.

use super::{Count, Driver, LoadError, Pace};

/// What keeps a server at work.
#[derive(Debug)]
pub(crate) enum Work {
    /// A load of ours.
    Ours(Driver),
    /// What others want of it. It is neither started nor paused, and its transactions are not counted.
    Others,
}

impl Work {
    /// Lets it work; see [`Driver::go`].
    pub(crate) fn go(&mut self, pace: Pace) -> Result<(), LoadError> {
        match self {
            Work::Ours(driver) => driver.go(pace),
            Work::Others => Ok(()),
        }
    }

    /// Lets no transaction begin and those under way end; see [`Driver::rest`].
    pub(crate) fn rest(&mut self) -> Result<(), LoadError> {
        match self {
            Work::Ours(driver) => driver.rest(),
            Work::Others => Ok(()),
        }
    }

    /// Lets it stand still; see [`Driver::pause`].
    pub(crate) fn pause(&mut self) -> Result<(), LoadError> {
        match self {
            Work::Ours(driver) => driver.pause(),
            Work::Others => Ok(()),
        }
    }

    /// Whether it stands still when it is asked to.
    pub(crate) fn can_rest(&self) -> bool {
        matches!(self, Work::Ours(_))
    }

    /// For how long the next arrival of an open load has been waiting, s; see [`Driver::behind_s`].
    pub(crate) fn behind_s(&self) -> Result<Option<f64>, LoadError> {
        match self {
            Work::Ours(driver) => driver.behind_s().map(Some),
            Work::Others => Ok(None),
        }
    }

    /// The process that makes it, where it is ours.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Work::Ours(driver) => Some(driver.pid()),
            Work::Others => None,
        }
    }

    /// Transactions that have ended so far, where they are counted.
    pub(crate) fn transactions(&mut self) -> Result<Option<u64>, LoadError> {
        match self {
            Work::Ours(driver) => driver.transactions().map(Some),
            Work::Others => Ok(None),
        }
    }

    /// What it has done so far, where that is counted.
    pub(crate) fn count(&mut self) -> Result<Option<Count>, LoadError> {
        match self {
            Work::Ours(driver) => driver.count().map(Some),
            Work::Others => Ok(None),
        }
    }
}
