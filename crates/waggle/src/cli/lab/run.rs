//! `waggle lab run` and `waggle lab resume`: what is asked, what is said of it, and how it ended.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use jiff::Timestamp;
use waggle_instrumentation::Table;
use waggle_lab::LabError;
use waggle_lab::engine::Ended;
use waggle_lab::gate;
use waggle_lab::manifest::Manifest;
use waggle_lab::run::{
    Finished, Login, Plan, RunContext, RunEvent, RunRequest, ServerInUse, Source, plural,
};
use waggle_lab::run_dir::{self, RunDir};
use waggle_lab::run_info::Run;
use waggle_lab::suite::{Scale, Suite};

use super::super::account::AccountArgs;
use super::super::pfs::history::{recover, tell_rest};
use super::super::pfs::hold::begin;
use super::super::pfs::open;
use super::super::pfs::process::process_of;
use super::super::pfs::rights::Rights;
use super::super::{Failure, Outcome, VERSION, private_server, stop_on_signal};
use super::announce::announce;
use super::arguments::{ResumeArgs, RunArgs, as_typed};
use super::progress::{self, note};
use super::{directory, failed, found, report, server};
use crate::progress::Line;

pub(super) fn run(args: RunArgs) -> Result<Outcome, Failure> {
    // An argument that --server excludes is not demanded by another one.
    if args.server.is_some() && (args.account.is_given() || args.yes || args.no_load) {
        return Err(Failure::Usage(anyhow!(
            "an account, --yes and --no-load are for a server that runs already: give --dsn in place \
             of --server, or leave them out"
        )));
    }
    if args.dsn && args.plan {
        return Err(Failure::Usage(anyhow!("--dsn without --yes is a plan: leave out --plan")));
    }
    let (begin, until) = (Timestamp::now(), args.until());
    let suite_text = Suite::text(&args.suite).map_err(failed)?;
    let suite = Suite::parse(&args.suite, &suite_text).map_err(failed)?;
    let place = args.place(&suite, begin)?;
    let source = match &args.server {
        Some(named) => Source::Private(server::program(named, args.servers.as_deref())?),
        None => {
            let server = ServerInUse::new(log_in(&args.account)?, &suite, !args.no_load);
            Source::InUse(Box::new(server.map_err(failed)?))
        }
    };
    let pinned = if args.pin { found::halves()? } else { [Vec::new(), Vec::new()] };
    let (scale, lengths) = (Scale::from(args.scale), args.lengths());
    let request = RunRequest {
        suite,
        suite_text,
        scale,
        lengths,
        blocks: args.blocks,
        budget: args.time_budget,
        has_load: !args.no_load,
        place,
        run: Run {
            command: as_typed(std::env::args_os()),
            waggle_version: VERSION.to_owned(),
            begin,
            end: None,
            seed: args.seed.unwrap_or_else(now_s),
            scale: scale.name().to_owned(),
            budget_s: args.time_budget.map(|budget| budget.as_secs_f64()),
            only: args.only,
            blocks: 0,
            windows_planned: 0,
            window_s: lengths.window.as_secs_f64(),
            settle_s: lengths.settle.as_secs_f64(),
            steal_limit: gate::STEAL_MAX,
            resumed: 0,
        },
        host: found::host(pinned.clone())?,
        pinned,
        server: args.server.unwrap_or_else(|| "--dsn".to_owned()),
    };
    let (plan, choice) = Plan::new(request, source).map_err(failed)?;
    announce(&plan.estimate(), &choice, args.time_budget);
    plan.notes.iter().for_each(note);
    if args.plan {
        note(plan.needs);
        return Ok(Outcome::Done);
    }
    measure(plan, &args.account, args.yes, args.servers.as_deref(), until)
}

pub(super) fn resume(args: ResumeArgs) -> Result<Outcome, Failure> {
    let place = directory(&args.run);
    let (run_dir, manifest): (RunDir, Manifest) = run_dir::take_up(&place).map_err(failed)?;
    let source = match &manifest.in_use {
        // Also where nothing is missing: one that was killed left its schema there.
        Some(confined) => {
            let server = ServerInUse::again(log_in(&args.account)?, &manifest, confined);
            Source::InUse(Box::new(server.map_err(failed)?))
        }
        None if args.account.is_given() || args.yes => {
            return Err(Failure::Usage(anyhow!(
                "an account and --yes are for a run on a server that runs already, and this one is on private servers: leave \
                 them out"
            )));
        }
        None if manifest.is_whole(run_dir.count()) => {
            note("every window is there: nothing is left to be made");
            report::end(&place)?;
            return Ok(Outcome::Done);
        }
        None => {
            is_where_it_was(&manifest.server)?;
            Source::Private(server::program(&manifest.server, args.servers.as_deref())?)
        }
    };
    let host = found::host(manifest.pinned.clone())?;
    let plan = Plan::resumed(run_dir, manifest, source, host, VERSION).map_err(failed)?;
    plan.notes.iter().for_each(note);
    measure(plan, &args.account, args.yes, args.servers.as_deref(), None)
}

/// The server that the option files name, and its process where it is on this host.
fn log_in(account: &AccountArgs) -> Result<Login, Failure> {
    let options = account.clone().read()?;
    let mut connection = open(&options)?;
    let pid = process_of(&mut connection).map_err(Failure::Cannot)?;
    Ok(Login { connection, options, pid, launcher: private_server::launcher()? })
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

/// Makes the windows that are missing, and writes the report.
fn measure(
    mut plan: Plan,
    account: &AccountArgs,
    yes: bool,
    servers: Option<&Path>,
    until: Option<Instant>,
) -> Result<Outcome, Failure> {
    // Nothing was changed so far; from here on it is.
    if plan.is_in_use() && !yes {
        return Err(Failure::Usage(anyhow!("nothing was changed: give --yes to run it")));
    }
    let (place, command) = (plan.place().to_owned(), format!("lab run {}", plan.suite()));
    let mut further: Vec<OsString> =
        servers.map_or_else(Vec::new, |path| vec!["--servers".into(), path.into()]);
    let (launcher, stop) = (private_server::launcher()?, stop_on_signal()?);
    let (mut hold, mut rights) = (None, None);
    if let Some(connection) = plan.connection_to_change().map_err(failed)? {
        further = account.arguments();
        further.push("--yes".into());
        recover(connection, &stop)?;
        rights = Some(Rights::to_change([Table::Metrics], connection));
        hold = Some(begin(connection, account, &command)?);
    }
    let mut line = Line::new();
    let mut tell = |event: RunEvent<'_>| match event {
        RunEvent::Note(text) => note(text),
        RunEvent::Progress(progress) => line.tell(&progress::text(progress)),
    };
    let mut context = RunContext { launcher, until, stop: &stop, tell: &mut tell };
    let Finished { ended, restored } = plan.measure(hold, &mut context);
    line.end();
    let is_as_before = restored.is_none_or(|restored| match restored {
        Ok(restored) => tell_rest(&restored),
        Err(error) => {
            note(format!(
                "not everything is as before: {error}; run waggle pfs rollback, and drop schema waggle_lab where \
                 it is left"
            ));
            false
        }
    });
    let ended = ended.map_err(|error| match (error, &rights) {
        (LabError::Hold(error), Some(rights)) => Failure::Cannot(rights.explain(error)),
        (error, _) => failed(error),
    });
    let outcome = finish(&place, &further, ended)?;
    Ok(if is_as_before { outcome } else { Outcome::No })
}

/// Writes the report of the windows that are there, and says how to go on: `further` is what to tell beside the run.
fn finish(
    place: &Path,
    further: &[OsString],
    ended: Result<Ended, Failure>,
) -> Result<Outcome, Failure> {
    let ended = ended.inspect_err(|_| resume_with(place, further))?;
    if !matches!(ended, Ended::OutOfReach | Ended::NotBegun) {
        report::end(place)?;
    }
    match ended {
        Ended::Whole => Ok(Outcome::Done),
        Ended::OutOfReach => Err(Failure::Cannot(anyhow!(
            "nothing is left to run: the baseline cannot use as much CPU as any rate asks for; choose closed \
             loads with --only closed"
        ))),
        Ended::NotBegun if !place.exists() => {
            note("stopped before the first window; nothing is left of it");
            Ok(Outcome::No)
        }
        Ended::Stopped | Ended::NotBegun => {
            resume_with(place, further);
            Ok(Outcome::No)
        }
        // It did what it was asked for.
        Ended::OutOfTime { blocks } => {
            note(format!("the time is over after {}", plural(blocks as usize, "block")));
            resume_with(place, further);
            Ok(Outcome::Done)
        }
    }
}

/// Says how to go on with a run that was begun.
fn resume_with(place: &Path, further: &[OsString]) {
    if let Ok(place) = fs::canonicalize(place) {
        let words =
            std::iter::once(place.as_os_str()).chain(further.iter().map(OsString::as_os_str));
        let further = as_typed(words);
        note(format!("what was measured is kept; go on with: waggle lab resume {further}"));
    }
}

/// The time, s.
pub(super) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs())
}
