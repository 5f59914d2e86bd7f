//! A run that was kept, and what its windows say.

use std::path::Path;

use crate::analysis::{Analysis, analyse_all};
use crate::begun::Begun;
use crate::error::LabError;
use crate::kept;
use crate::report::Report;
use crate::suite::Suite;
use crate::window::Window;

/// A run as it was kept.
pub struct KeptRun {
    /// What was asked, and the circumstances.
    pub begun: Begun,
    /// The suite as it was.
    pub suite: Suite,
    /// What was measured.
    pub windows: Vec<Window>,
    /// What that says.
    pub analysis: Analysis,
}

impl KeptRun {
    /// Reads it from its directory.
    ///
    /// # Errors
    /// There is none, or its files are not as waggle wrote them.
    pub fn read(place: &Path) -> Result<KeptRun, LabError> {
        let mut begun: Begun = kept::read_run(place)?;
        let windows = kept::read_windows(place)?;
        let suite = begun.suite()?;
        let last = windows.iter().map(|window| window.end).max();
        begun.facts.run.end = last.filter(|_| begun.is_whole(windows.len()));
        begun.say_changed_profile(&suite);
        let analysis = analyse_all(&suite, &windows);
        Ok(KeptRun { begun, suite, windows, analysis })
    }

    /// What is reported of it.
    pub fn report(&self) -> Report<'_> {
        let KeptRun { begun, suite, windows, analysis } = self;
        Report { suite, facts: &begun.facts, windows, analysis }
    }
}
