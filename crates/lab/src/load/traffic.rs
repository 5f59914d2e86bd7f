//! What keeps a server at work while it is measured.

use super::{Count, Driver, LoadError, Pace};

/// A load of ours, or (`None`) that of others, which is neither started nor paused, and whose transactions are not
/// counted.
#[derive(Debug)]
pub(crate) struct Traffic(pub(crate) Option<Driver>);

impl Traffic {
    /// Does something with a load of ours. That of others is left alone.
    fn with(
        &mut self,
        act: impl FnOnce(&mut Driver) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        self.0.as_mut().map_or(Ok(()), act)
    }

    /// Lets it work; see [`Driver::go`].
    pub(crate) fn go(&mut self, pace: Pace) -> Result<(), LoadError> {
        self.with(|driver| driver.go(pace))
    }

    /// Lets no transaction begin and those under way end; see [`Driver::rest`].
    pub(crate) fn rest(&mut self) -> Result<(), LoadError> {
        self.with(Driver::rest)
    }

    /// Lets it stand still; see [`Driver::pause`].
    pub(crate) fn pause(&mut self) -> Result<(), LoadError> {
        self.with(Driver::pause)
    }

    /// Whether it stands still when it is asked to.
    pub(crate) fn can_rest(&self) -> bool {
        self.0.is_some()
    }

    /// For how long the next arrival of an open load has been waiting, s; see [`Driver::behind_s`].
    pub(crate) fn behind_s(&self) -> Result<Option<f64>, LoadError> {
        self.0.as_ref().map(Driver::behind_s).transpose()
    }

    /// The process that makes it, where it is ours.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.0.as_ref().map(Driver::pid)
    }

    /// Transactions that have ended so far, where they are counted.
    pub(crate) fn transactions(&mut self) -> Result<Option<u64>, LoadError> {
        self.0.as_mut().map(Driver::transactions).transpose()
    }

    /// What it has done so far, where that is counted.
    pub(crate) fn count(&mut self) -> Result<Option<Count>, LoadError> {
        self.0.as_mut().map(Driver::count).transpose()
    }
}
