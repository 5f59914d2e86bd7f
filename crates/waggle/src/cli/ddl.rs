//! `waggle ddl`

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::anyhow;
use waggle_instrumentation::Plan;
use waggle_instrumentation::hold::Hold;
use waggle_instrumentation::profile::{InstrumentRule, Profile};
use waggle_model::Server;
use waggle_mysql::Connection;

use super::account::AccountArgs;
use super::watch::{CaptureArgs, until};
use super::{Failure, Outcome, all_written, pause, pfs, some_time, stop_on_signal};
use crate::ddl::{
    AuditOptions, Choice, Destination, Json, Lines, Listed, Polling, RotatingFile, Rotation,
    Syslog, Tapped, Words, kinds, plural,
};
use crate::streams::{buffered_stdout, tell};

/// The profile that records what is needed.
const PROFILE: &str = "ddl-audit";

/// Show who changed which table or account: every CREATE, ALTER, DROP, RENAME, TRUNCATE, GRANT and
/// REVOKE.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle ddl tail --for 10m")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Tail(TailArgs),
    Log(LogArgs),
}

/// Show statements of data definition as they end.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle ddl tail --schema shop --kind 'drop_%' --kind truncate")]
struct TailArgs {
    /// Lines of JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    audit: AuditArgs,
}

/// Write statements of data definition as lines of JSON to a file or to the system's log.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle ddl log --file /var/log/waggle/ddl.jsonl --nested")]
struct LogArgs {
    /// Add lines to this file. Only its owner may read it.
    #[arg(long, value_name = "FILE", required_unless_present = "syslog")]
    file: Option<PathBuf>,
    /// Rename the file to FILE.1 at this size; M is 1,048,576 bytes.
    #[arg(long, value_name = "SIZE", default_value = "100M", value_parser = size,
          requires = "file")]
    rotate_size: u64,
    /// Number of full files to keep.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "file",
          value_parser = clap::value_parser!(u32).range(..=10_000))]
    rotate_keep: u32,
    /// Send lines to the system's log, facility authpriv.
    #[arg(long, value_name = "SOCKET", num_args = 0..=1, default_missing_value = "/dev/log",
          conflicts_with = "file")]
    syslog: Option<PathBuf>,
    #[command(flatten)]
    audit: AuditArgs,
}

#[derive(Debug, clap::Args)]
struct AuditArgs {
    /// Stop after this time; until Ctrl-C without it. A bare number is seconds.
    #[arg(long = "for", value_name = "TIME", value_parser = some_time)]
    duration: Option<Duration>,
    /// Where statements come from.
    #[arg(long, value_enum, default_value_t = SourceArg::Tap)]
    source: SourceArg,
    /// Show the literals of statements. Passwords stay masked.
    #[arg(long)]
    no_redact: bool,
    #[command(flatten)]
    capture: CaptureArgs,
    /// With --source pfs: how often the server is asked.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = pause)]
    every: Duration,
    #[command(flatten)]
    choice: ChoiceArgs,
    #[command(flatten, next_help_heading = "With --source pfs: the account")]
    account: AccountArgs,
}

/// What can be a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SourceArg {
    /// The tap in the kernel: every server of this host, no account, no change of the server.
    Tap,
    /// Performance Schema: one server, with an account; the profile ddl-audit is set meanwhile.
    Pfs,
}

/// What is listed; each may be given more than once, and % stands for any characters.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "List only")]
struct ChoiceArgs {
    /// Statements about something in this schema, or about what is not known.
    #[arg(long = "schema", value_name = "NAME")]
    schemas: Vec<String>,
    /// Statements of this user, or of one that is not known.
    #[arg(long = "user", value_name = "NAME")]
    users: Vec<String>,
    /// Statements about this object, with or without its schema; of an account user@host; or about what
    /// is not known.
    #[arg(long = "object", value_name = "NAME")]
    objects: Vec<String>,
    /// Statements of this kind, as the server names its instruments: create_table, drop_index, grant.
    #[arg(long = "kind", value_name = "KIND", value_parser = kinds)]
    kinds: Vec<String>,
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let stop = stop_on_signal()?;
    match args.command {
        Command::Tail(args) => {
            let out = buffered_stdout();
            let out: Box<dyn Destination> =
                if args.json { Box::new(Json(out)) } else { Box::new(Words::new(out)) };
            audit(args.audit, out, &stop)
        }
        Command::Log(args) => {
            let rotation = Rotation { size: args.rotate_size, keep: args.rotate_keep };
            let wrong = |error: io::Error| Failure::Config(error.into());
            let out: Box<dyn Destination> = match (&args.file, &args.syslog) {
                (Some(file), _) => Box::new(RotatingFile::open(file, rotation).map_err(wrong)?),
                (None, Some(socket)) => Box::new(Syslog::open(socket).map_err(wrong)?),
                (None, None) => return Err(Failure::Usage(anyhow!("give --file or --syslog"))),
            };
            audit(args.audit, out, &stop)
        }
    }
}

fn audit(
    args: AuditArgs,
    out: Box<dyn Destination>,
    stop: &AtomicBool,
) -> Result<Outcome, Failure> {
    let ChoiceArgs { schemas, users, objects, kinds } = args.choice.clone();
    let options = AuditOptions {
        duration: args.duration,
        choice: Choice { schemas, users, objects, kinds },
        redact: !args.no_redact,
    };
    let listed = match args.source {
        SourceArg::Tap if args.account.is_given() => {
            return Err(Failure::Usage(anyhow!("the tap needs no account; add --source pfs")));
        }
        SourceArg::Tap => {
            let capture = args.capture.attach_or_wait(stop)?;
            for watched in capture.watched().values() {
                let Server { pid, flavour, version, .. } = &watched.server;
                tell!("waggle: {flavour} {version} (pid {pid}) is watched; Ctrl-C ends it");
            }
            let is_over = &mut until(args.duration, stop);
            Tapped::begin(capture, options, Lines::start(out)?)?.run(is_over)?
        }
        SourceArg::Pfs if args.capture.has_choice() => {
            return Err(Failure::Usage(anyhow!(
                "--pid and --hook are for the tap: leave them out"
            )));
        }
        SourceArg::Pfs => poll(&args, options, out, stop)?,
    };
    let Listed { statements, missing, lack, misread, unread } = listed;
    let whole = match args.source {
        SourceArg::Tap => "none is missing",
        SourceArg::Pfs => "none is missing of what Performance Schema shows here",
    };
    let missing = match missing {
        0 if unread.is_some() => "none is missing of the servers that were watched".to_owned(),
        0 => whole.to_owned(),
        missing => format!("{}, perhaps of this kind, could not be listed", plural(missing)),
    };
    tell!("{} listed, {missing}", plural(statements));
    all_written(lack.into_iter().chain(misread).chain(unread))
}

/// Sets the profile, polls as long as it holds, and undoes it.
fn poll(
    args: &AuditArgs,
    options: AuditOptions,
    out: Box<dyn Destination>,
    stop: &AtomicBool,
) -> Result<Listed, Failure> {
    let mut connection = pfs::open(&args.account.clone().read()?)?;
    pfs::history::recover(&mut connection, stop)?;
    let plan =
        pfs::plan::plan(&mut connection, &profile(args.capture.nested)?, &Default::default())?;
    let hold = match plan.changes.is_empty() {
        true => None,
        false => match set(args, &mut connection, &plan, stop)? {
            Some(hold) => Some(hold),
            None => return Ok(Listed::default()),
        },
    };
    let set = if hold.is_some() { "is set; Ctrl-C undoes it" } else { "is set already, and stays" };
    tell!(
        "waggle: the profile {PROFILE} {set}; meanwhile Performance Schema records no other \
         statements, and digests of them stand still"
    );
    let listed = poll_held(args.every, options, &mut connection, out, stop);
    let Some(hold) = hold else { return listed };
    match (hold.end(&mut connection, &mut pfs::hold::tell_locked), listed) {
        (Ok(restored), listed) => {
            pfs::history::tell_rest(&restored);
            listed
        }
        (Err(error), Ok(_)) => Err(pfs::hold::left_to_the_guardian(error)),
        // Mostly the server has ended, and so have its settings.
        (Err(error), Err(failure)) => {
            tell!("waggle: {error}");
            Err(failure)
        }
    }
}

/// The profile; with what runs inside of other statements where that is asked for.
fn profile(nested: bool) -> Result<Profile, Failure> {
    let mut profile = pfs::plan::find(PROFILE)?;
    if nested {
        profile.instruments.push(InstrumentRule {
            names: vec!["statement/sp/stmt".to_owned()],
            except: Vec::new(),
            enabled: Some(true),
            timed: Some(true),
            on: Default::default(),
        });
    }
    Ok(profile)
}

/// Makes the changes. `None`: it was stopped meanwhile, and they are undone.
fn set(
    args: &AuditArgs,
    connection: &mut Connection,
    plan: &Plan,
    stop: &AtomicBool,
) -> Result<Option<Hold>, Failure> {
    let mut hold = pfs::hold::begin(connection, &args.account, "ddl")?;
    let mut refused = Vec::new();
    match hold.make(connection, plan, stop, &mut |made| refused.extend_from_slice(&made.refused)) {
        Ok(true) => {
            for row in &refused {
                tell!("waggle: the server did not take it: {}", pfs::history::row(row));
            }
            Ok(Some(hold))
        }
        Ok(false) => {
            let restored = hold.end(connection, &mut pfs::hold::tell_locked)?;
            pfs::history::tell_rest(&restored);
            Ok(None)
        }
        Err(error) => {
            let what = format!("the profile {PROFILE} cannot be set");
            Err(pfs::hold::failed(error, hold, connection, what))
        }
    }
}

fn poll_held(
    every: Duration,
    options: AuditOptions,
    connection: &mut Connection,
    out: Box<dyn Destination>,
    stop: &AtomicBool,
) -> Result<Listed, Failure> {
    let polling = Polling::begin(connection, options);
    let polling = polling?;
    for what in polling.not_shown() {
        tell!("waggle: not shown here: {what}");
    }
    let mut out = Lines::start(out)?;
    let listed = polling.run(connection, every, stop, &mut out);
    let written = out.close();
    let listed = listed.map_err(Failure::Cannot)?;
    Ok(Listed { lack: written?, ..listed })
}

/// A number of bytes such as `500`, `64K`, `100M`, `2G`.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no size; write 500, 64K, 100M or 2G");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.to_ascii_uppercase().as_str() {
        "" => 1,
        "K" | "KIB" => 1 << 10,
        "M" | "MIB" => 1 << 20,
        "G" | "GIB" => 1 << 30,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(factor).filter(|size| *size > 0).ok_or_else(wrong)
}
