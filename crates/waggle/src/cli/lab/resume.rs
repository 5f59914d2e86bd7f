//! `waggle lab resume`: the windows of a run that are missing, made as the others were.

use std::path::Path;

use anyhow::anyhow;
use waggle_lab::begun::Begun;
use waggle_lab::kept::{self, Kept};
use waggle_lab::load::Sysbench;
use waggle_lab::needs::check_kept;
use waggle_lab::schedule::Schedule;
use waggle_lab::suite::Suite;

use super::super::{Failure, Outcome, VERSION, stop_on_signal};
use super::arguments::ResumeArgs;
use super::progress::note;
use super::run::{Task, check, launchers, list, resume_with, sysbench};
use super::{directory, failed, foreign, found, report, server};

pub(super) fn resume(args: ResumeArgs) -> Result<Outcome, Failure> {
    let place = directory(&args.run);
    let (kept, mut begun): (Kept, Begun) = kept::take_up(&place).map_err(failed)?;
    // Also where nothing is missing: one that was killed left its schema there.
    if let Some(confined) = begun.foreign.clone() {
        return foreign::resume(&args, &confined, begun, kept);
    }
    if args.account.is_given() || args.yes {
        return Err(Failure::Usage(anyhow!(
            "an account and --yes are for a run on a server that runs already, and this one is on private servers: leave \
             them out"
        )));
    }
    if begun.is_whole(kept.count()) {
        note("every window is there: nothing is left to be made");
        report::end(&place)?;
        return Ok(Outcome::Done);
    }
    let suite = begun.suite().map_err(failed)?;
    goes_on_as_begun(&begun, &suite, &place)?;
    is_where_it_was(&begun.server)?;
    let program = server::program(&begun.server, args.servers.as_deref())?;
    let sysbench = sysbench(&suite)?;
    loads_as_begun(&begun, &sysbench)?;
    check(&suite, &begun.cells, begun.scale, &program)?;
    check_kept(&place, begun.missing(kept.count())).map_err(failed)?;
    let launchers = launchers(&begun.pinned)?;
    let stop = stop_on_signal()?;
    let task = Task {
        suite: &suite,
        scale: begun.scale,
        program: &program,
        launchers: &launchers,
        sysbench: &sysbench,
        stop: &stop,
        resume_with: list(args.servers.as_deref()),
    };
    let Some(made) = task.make(&begun.settings, &begun.cells).map_err(failed)? else {
        resume_with(&place, &task.resume_with);
        return Ok(Outcome::No);
    };
    if made.version != begun.facts.server.version {
        return Err(Failure::Config(anyhow!(
            "the run was begun with {} and {} is {}: windows of two versions cannot be compared; name \
             the one that it was begun with, or begin a new run",
            begun.facts.server.version,
            begun.server,
            made.version
        )));
    }
    let host = found::host(begun.pinned.clone())?;
    begun.take_up(kept.part(), host, VERSION);
    kept::write_json(&place.join(kept::RUN), &begun).map_err(failed)?;
    task.measure(&begun, kept, &made, None)
}

/// Whether the program that a run was begun with can be found by the path that was given then.
fn is_where_it_was(server: &str) -> Result<(), Failure> {
    if !server.contains('/') || Path::new(server).exists() {
        return Ok(());
    }
    Err(Failure::Config(anyhow!(
        "the run was begun with --server {server}, where no program is now: put it back, or go on from the directory in \
         which the run was begun"
    )))
}

/// Whether this waggle goes on as the run was begun: with the same profiles, and with the windows that are kept in the
/// places that it gives them.
pub(super) fn goes_on_as_begun(begun: &Begun, suite: &Suite, place: &Path) -> Result<(), Failure> {
    if let Some(profile) = begun.other_profile(&suite.profile_texts()) {
        return Err(Failure::Config(anyhow!(
            "the run was begun by waggle {}, whose profile {profile} sets something else: go on with that one, \
             or begin a new run",
            begun.facts.run.waggle_version
        )));
    }
    let schedule = Schedule::new(suite, &begun.cells, begun.blocks, begun.seed);
    let windows = kept::read_windows(place).map_err(failed)?;
    let is_another = schedule.slots.len() as u32 != begun.facts.run.windows_planned;
    if is_another || !windows.iter().all(|window| schedule.has(window)) {
        return Err(Failure::Config(anyhow!(
            "the run was begun by waggle {}, which has another schedule: go on with that one, or begin a \
             new run",
            begun.facts.run.waggle_version
        )));
    }
    Ok(())
}

/// Whether a sysbench is of the version with which the run was begun.
pub(super) fn loads_as_begun(begun: &Begun, sysbench: &Sysbench) -> Result<(), Failure> {
    let (then, now) = (begun.facts.load.sysbench_version.as_deref(), sysbench.version());
    if then.is_none_or(|then| then == now) {
        return Ok(());
    }
    Err(Failure::Config(anyhow!(
        "the run was begun with sysbench {}, and the one that is found is {now}: windows under two loads cannot be compared; put \
         the one that it was begun with first in PATH, or begin a new run",
        then.unwrap_or_default()
    )))
}
