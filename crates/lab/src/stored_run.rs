//! A stored run, and what its windows say.

use std::path::Path;

use crate::analysis::{Analysis, analyse_all};
use crate::error::LabError;
use crate::manifest::Manifest;
use crate::report::Report;
use crate::run_dir;
use crate::suite::Suite;
use crate::window::Window;

#[cfg(test)]
mod fuzz;

/// A run as it was stored.
pub struct StoredRun {
    /// What was asked, and the circumstances.
    pub manifest: Manifest,
    /// The suite as it was.
    pub suite: Suite,
    /// What was measured.
    pub windows: Vec<Window>,
    /// What that says.
    pub analysis: Analysis,
}

impl StoredRun {
    /// Reads it from its directory.
    ///
    /// # Errors
    /// There is none, or its files are not as waggle wrote them.
    pub fn read(place: &Path) -> Result<StoredRun, LabError> {
        let mut manifest: Manifest = run_dir::read_run(place)?;
        let windows = run_dir::read_windows(place)?;
        let suite = manifest.suite()?;
        let last = windows.iter().map(|window| window.end).max();
        manifest.info.run.end = last.filter(|_| manifest.is_whole(windows.len()));
        manifest.say_changed_profile(&suite);
        let analysis = analyse_all(&suite, &windows);
        Ok(StoredRun { manifest, suite, windows, analysis })
    }

    /// What is reported of it.
    pub fn report(&self) -> Report<'_> {
        let StoredRun { manifest, suite, windows, analysis } = self;
        Report { suite, info: &manifest.info, windows, analysis }
    }
}
