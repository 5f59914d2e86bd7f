//! The files that a profile is written to.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use flate2::Compression;
use flate2::write::GzEncoder;
use waggle_profile::{Span, folded, pprof};

use super::super::Failure;
use super::{Args, Report, flame_svg};

/// Where to.
pub(super) struct Files {
    folded: Option<PathBuf>,
    pprof: Option<PathBuf>,
    svg: Option<PathBuf>,
}

impl Files {
    pub(super) fn of(args: &Args) -> Files {
        let Args { folded, pprof, svg, .. } = args;
        Files { folded: folded.clone(), pprof: pprof.clone(), svg: svg.clone() }
    }

    /// Writes those that are asked for. One that fails does not keep the others from it.
    pub(super) fn write(&self, report: &Report) -> Result<(), Failure> {
        let mut failures = Vec::new();
        let mut note = |path: &Path, outcome: Result<(), String>| {
            failures.extend(outcome.err().map(|why| format!("{}: {why}", path.display())));
        };
        if let Some(path) = &self.folded {
            note(path, write(path, folded(&report.profile).as_bytes()));
        }
        if let Some(path) = &self.pprof {
            let packed = packed(&pprof(&report.profile, &span(report)));
            note(path, packed.and_then(|bytes| write(path, &bytes)));
        }
        if let Some(path) = &self.svg {
            note(path, write(path, flame_svg::of(report).as_bytes()));
        }
        match failures.is_empty() {
            true => Ok(()),
            false => Err(Failure::Cannot(anyhow!(failures.join("; ")))),
        }
    }
}

fn span(report: &Report) -> Span {
    Span {
        begin_ns: report.begin_ns,
        length_ns: u64::try_from(report.length.as_nanos()).unwrap_or(u64::MAX),
        period_ns: 1_000_000_000 / u64::from(report.per_second.max(1)),
    }
}

fn packed(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let pack = || -> io::Result<Vec<u8>> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(bytes)?;
        packer.finish()
    };
    pack().map_err(|error| error.to_string())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| error.to_string())
}
