//! `waggle watch`

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::anyhow;
use waggle_account::Grouping;
use waggle_probes::tap::{Hook, TapOptions};

use super::account::AccountArgs;
use super::{Failure, Outcome, duration, stop_on_signal};
use crate::capture::{Capture, CaptureOptions, News};
use crate::watch::terminal::{self, Terminal};
use crate::watch::{
    Behind, Csv, Lines, ServerDigests, Shown, SlowLog, SlowLogOptions, Summary, Table, Watch,
    WatchOptions,
};

const AFTER_HELP: &str = "\
On a terminal: digests, running sessions, one digest in full, the last minutes; ? lists the keys.
Where the output is no terminal: a line of JSON per interval and server.

Example: waggle watch --for 10s --json | jq '.digests[0]'";

/// Show every statement that the servers of this host execute, interval after interval.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Stop after this time; until Ctrl-C without it.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Length of an interval.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    interval: Duration,
    /// Lines of JSON, one per interval and server; the default where the output is no terminal.
    #[arg(long, conflicts_with = "table")]
    json: bool,
    /// Lines of CSV, one per interval, server and digest.
    #[arg(long, conflicts_with_all = ["json", "table"])]
    csv: bool,
    /// Put statements together by another fingerprint than the server's digest.
    #[arg(long, value_name = "KIND", value_enum, conflicts_with = "AccountArgs")]
    fingerprint: Option<Fingerprint>,
    /// Also write every statement to this file, in the format of the slow query log, so that
    /// pt-query-digest and other tools can read it. Literals become `?` unless --no-redact is given.
    #[arg(long, value_name = "FILE")]
    slowlog: Option<PathBuf>,
    /// Only statements that took at least so long go to the file of --slowlog.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration,
          requires = "slowlog")]
    slowlog_above: Duration,
    /// A plain table, also where the output is no terminal. It is what a terminal gets on which
    /// nothing can be drawn (TERM=dumb).
    #[arg(long)]
    table: bool,
    /// Digests per interval in tables and JSON, those with the most load first.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Show the literals of statements, too. Passwords are masked all the same.
    #[arg(long)]
    no_redact: bool,
    /// What holds without --no-redact.
    #[arg(long, hide = true, conflicts_with = "no_redact")]
    redact: bool,
    #[command(flatten)]
    capture: CaptureArgs,
    #[command(flatten, next_help_heading = "To ask each server for its own hash of every digest")]
    account: AccountArgs,
}

/// What can take the place of the server's digest.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Fingerprint {
    /// As pt-query-digest makes it.
    Percona,
}

/// What every command that captures can be told.
#[derive(Debug, clap::Args)]
pub(super) struct CaptureArgs {
    /// Only the server with this process id.
    #[arg(long)]
    pid: Option<u32>,
    /// Bytes of text that are captured of a statement, 256 to 65536.
    #[arg(long, value_name = "BYTES", default_value_t = 4096,
          value_parser = clap::value_parser!(u32).range(256..=65536))]
    text_limit: u32,
    /// The only hook to use: send, fentry, syscall or uprobe. The best that works without it.
    #[arg(long)]
    hook: Option<Hook>,
    /// Also capture what runs inside procedures, triggers and events, and what a replica applies,
    /// by breakpoints that only such statements meet. They are counted apart.
    #[arg(long)]
    pub(super) nested: bool,
    /// Drop one statement in N, to show that a loss is noticed.
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u64).range(1..))]
    drop_one_in: Option<u64>,
}

impl CaptureArgs {
    /// Whether a server or a hook is named.
    pub(super) fn has_choice(&self) -> bool {
        self.pid.is_some() || self.hook.is_some()
    }

    /// Attaches to the servers; an error where none can be watched. `ready`: see [`TapOptions`].
    pub(super) fn attach(&self, ready: bool) -> Result<Capture, Failure> {
        let options = CaptureOptions {
            pid: self.pid,
            tap: TapOptions {
                hook: self.hook,
                text_limit: self.text_limit,
                drop_one_in: self.drop_one_in,
                nested: self.nested,
                ready,
            },
        };
        let mut capture = Capture::new(options).map_err(|error| Failure::Cannot(error.into()))?;
        let news = capture.look(&mut |_| {});
        if capture.watched().is_empty() {
            return Err(Failure::Cannot(nothing_to_watch(self.pid, &capture)));
        }
        for one in news {
            if let News::Refused(pid, why) = one {
                eprintln!("waggle: pid {pid}: not watched: {why}");
            }
        }
        Ok(capture)
    }
}

fn nothing_to_watch(pid: Option<u32>, capture: &Capture) -> anyhow::Error {
    match (pid, capture.refused().next()) {
        (_, Some((pid, why))) => anyhow!("pid {pid} cannot be watched: {why}"),
        (Some(pid), None) => anyhow!(
            "pid {pid} is not a running mysqld or mariadbd; `waggle servers` lists those that are"
        ),
        (None, None) => anyhow!(
            "no mysqld or mariadbd runs on this host; start one, or run waggle where it runs"
        ),
    }
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    if args.interval < Duration::from_millis(100) {
        return Err(Failure::Usage(anyhow!("--interval: at least 100ms")));
    }
    let stop = stop_on_signal()?;
    let shown = Shown {
        limit: args.limit,
        redact: !args.no_redact,
        nested: args.capture.nested,
        sessions_known: true,
    };
    let options = WatchOptions {
        interval: args.interval,
        duration: args.duration,
        grouping: match args.fingerprint {
            Some(Fingerprint::Percona) => Grouping::Fingerprint,
            None => Grouping::Digest,
        },
    };
    let slow_log = args.slowlog.map(|path| {
        SlowLog::open(SlowLogOptions { path, above: args.slowlog_above, redact: shown.redact })
    });
    let slow_log = slow_log.transpose().map_err(|error| Failure::Config(error.into()))?;
    let server_digests = match args.account.is_given() {
        true => Some(ServerDigests::new(args.account.read()?)),
        false => None,
    };
    let capture = args.capture.attach(false)?;
    let watch = Watch::begin(capture, options, slow_log, server_digests);
    let json = args.json || !(args.csv || args.table || io::stdout().is_terminal());
    let view = if json || args.csv || args.table { None } else { open_view(&stop, !shown.redact) };
    let summary = match view {
        Some(view) => in_terminal(watch, &stop, view)?,
        None => {
            let out = io::BufWriter::new(io::stdout());
            let refresh = io::stdout().is_terminal();
            let behind = if args.csv {
                Behind::start(Csv::new(out, shown.limit))
            } else if json {
                Behind::start(Lines { out, shown })
            } else {
                Behind::start(Table { out, shown, refresh })
            };
            let mut behind = behind?;
            let watched = watch.run(&stop, &mut behind);
            let written = behind.close();
            let summary = watched?;
            written?;
            summary
        }
    };
    // Beside JSON the sentence would not be JSON; a person reads it either way.
    let own = match summary.own {
        0 => String::new(),
        own => format!(", and {own} of waggle's own, left out"),
    };
    let Summary { captured, losses, .. } = summary;
    eprintln!("captured {captured} statements, lost {}{own}", losses.statements());
    Ok(Outcome::Done)
}

/// The terminal view, where it can be drawn.
fn open_view(stop: &Arc<AtomicBool>, literals: bool) -> Option<Terminal> {
    if !terminal::can_be_drawn_on() {
        return None;
    }
    match Terminal::open(stop.clone(), literals) {
        Ok(view) => Some(view),
        Err(error) => {
            eprintln!("waggle: the terminal cannot be taken over, a plain table follows: {error}");
            None
        }
    }
}

/// Watches with the view in front, and gives the terminal back before anything else is said.
fn in_terminal(
    watch: Watch,
    stop: &Arc<AtomicBool>,
    mut view: Terminal,
) -> Result<Summary, Failure> {
    let watched = watch.run(stop, &mut view);
    let closed = view.close();
    let summary = watched?;
    closed?;
    Ok(summary)
}
