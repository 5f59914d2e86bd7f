//! `waggle watch`

use std::io::{self, ErrorKind, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use waggle_account::Grouping;
use waggle_model::Trial;
use waggle_observe::{
    Capture, CaptureOptions, Companion, News, Observer, ObserverOptions, Sinks, StatementSink,
    Summary, no_server,
};
use waggle_probes::capture::{TEXT_LIMIT, TapOptions};
use waggle_probes::servers::layout::Field;
use waggle_probes::servers::shift::Shift;
use waggle_probes::tap::Hook;

use super::account::AccountArgs;
use super::pfs::proven;
use super::{Failure, Outcome, all_written, duration, pid, some_time, stop_on_signal};
use crate::lacking;
use crate::streams::{buffered_stdout, tell};
use crate::watch::terminal::{self, Terminal};
use crate::watch::{Csv, Lines, ServerDigests, Shown, SlowLog, SlowLogOptions, Table, Written};

const AFTER_HELP: &str = "\
On a terminal: digests, running sessions, one digest in full, the last minutes; ? lists the keys.
Where the output is no terminal: a line of JSON per interval and server.
Each wait for a lock of 10 ms and more (a fixed length) is told by itself in the JSON, with who held the lock.

Example: waggle watch --for 10s --json | jq '.digests[0]'";

/// Show every statement that the servers of this host execute, interval after interval.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Stop after this time; until Ctrl-C without it. A bare number is seconds.
    #[arg(long = "for", value_name = "TIME", value_parser = some_time)]
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
    /// Group statements by another fingerprint than the server's digest.
    #[arg(long, value_name = "KIND", value_enum, conflicts_with = "AccountArgs")]
    fingerprint: Option<Fingerprint>,
    /// Also write every statement to this file, in the format of the slow query log, so that
    /// pt-query-digest and other tools can read it. Literals become `?` unless --no-redact is given.
    #[arg(long, value_name = "FILE")]
    slowlog: Option<PathBuf>,
    /// Only statements that took at least this long go to the file of --slowlog. Those whose latency is
    /// not known do not: the file lacks them, and waggle ends with exit code 4.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration,
          requires = "slowlog")]
    slowlog_above: Duration,
    /// A plain table, also if the output is not a terminal. A terminal that cannot draw (TERM=dumb)
    /// gets it by default.
    #[arg(long)]
    table: bool,
    /// Digests per interval in tables and JSON, those with the most load first.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Show the literals of statements. Passwords stay masked.
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

/// Bytes; a text this long is captured in any case.
const TEXT_LIMIT_MIN: u32 = 256;

/// What every command that captures can be told.
#[derive(Debug, clap::Args)]
pub(super) struct CaptureArgs {
    /// Only the server with this process id.
    #[arg(long, value_parser = pid)]
    pid: Option<u32>,
    /// Bytes of text that are captured of a statement, 256 to 65536.
    #[arg(long, value_name = "BYTES", default_value_t = TEXT_LIMIT,
          value_parser = clap::value_parser!(u32).range(i64::from(TEXT_LIMIT_MIN)..=65536))]
    text_limit: u32,
    /// Use only this hook: send, fentry, syscall or uprobe. Unset: the best one that works.
    #[arg(long)]
    hook: Option<Hook>,
    /// Also capture what runs inside procedures, triggers and events, and what a replica applies,
    /// by breakpoints that only such statements meet. They are counted apart.
    #[arg(long)]
    pub(super) nested: bool,
    /// Do not measure where the time of each statement goes, at the context switches of the servers' threads.
    #[arg(long)]
    pub(super) no_waits: bool,
    /// How often per second the processors are sampled.
    #[arg(skip)]
    pub(super) profile_hz: Option<u32>,
    /// Whether each wait is told with its stack.
    #[arg(skip)]
    pub(super) wait_stacks: bool,
    /// Whether a coin decides what is collected of a statement.
    #[arg(skip)]
    pub(super) trial: Option<Trial>,
    /// Drop one statement in N, to show that a loss is noticed.
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u64).range(1..))]
    drop_one_in: Option<u64>,
    /// Watch every server as if its build did not show this field, to show what is left.
    #[arg(long, value_name = "FIELD", hide = true, value_parser = field)]
    hide_field: Option<Field>,
    /// Read every server as if its build kept this field so many bytes further on, to show that it is noticed.
    #[arg(long, value_name = "FIELD=BYTES", hide = true)]
    shift_field: Option<Shift>,
}

fn field(name: &str) -> Result<Field, String> {
    let known = Field::ALL.into_iter().find(|field| field.name() == name);
    known.ok_or_else(|| format!("no field is called {name:?}: see `waggle doctor`"))
}

impl CaptureArgs {
    /// Whether a server or a hook is named.
    pub(super) fn has_choice(&self) -> bool {
        self.pid.is_some() || self.hook.is_some()
    }

    /// Whether more of a text is captured than the shortest limit.
    pub(super) fn has_long_texts(&self) -> bool {
        self.text_limit > TEXT_LIMIT_MIN
    }

    /// Whether nothing else is asked for than what waggle does by itself.
    pub(super) fn is_usual(&self) -> bool {
        let is_more = self.nested || self.wait_stacks || self.profile_hz.is_some();
        self.hook.is_none() && self.text_limit == TEXT_LIMIT && !self.no_waits && !is_more
    }

    /// Only what statements ran.
    pub(super) fn of(pid: Option<u32>) -> CaptureArgs {
        CaptureArgs {
            pid,
            text_limit: TEXT_LIMIT,
            hook: None,
            nested: false,
            no_waits: true,
            profile_hz: None,
            wait_stacks: false,
            trial: None,
            drop_one_in: None,
            hide_field: None,
            shift_field: None,
        }
    }

    /// The same, and what their threads wait for.
    pub(super) fn with_waits(self) -> CaptureArgs {
        CaptureArgs { no_waits: false, ..self }
    }

    /// Attaches to the servers that run, until `stop`; an error where some do and none can be watched, or where the
    /// named one does not run. `ready`: see [`TapOptions`]; `goes_on`: it looks for more servers later.
    pub(super) fn attach(
        &self,
        ready: bool,
        goes_on: bool,
        stop: &AtomicBool,
    ) -> Result<Capture, Failure> {
        let capture = self.begin(ready, goes_on, stop)?;
        let unread = capture.unread();
        if capture.watched().is_empty() && !unread.is_empty() && !stop.load(Ordering::Relaxed) {
            return Err(Failure::Cannot(anyhow!("{}; try again", lacking::servers(&unread))));
        }
        Ok(capture)
    }

    /// The same, where what is still being read is no error.
    fn begin(&self, ready: bool, goes_on: bool, stop: &AtomicBool) -> Result<Capture, Failure> {
        let options = CaptureOptions {
            pid: self.pid,
            tap: TapOptions {
                hook: self.hook,
                text_limit: self.text_limit,
                drop_one_in: self.drop_one_in,
                nested: self.nested,
                ready,
                waits: !self.no_waits,
                profile_hz: self.profile_hz,
                wait_stacks: self.wait_stacks,
                trial: self.trial.clone(),
            },
            hide: self.hide_field,
            misfit: None,
            shift: self.shift_field,
        };
        let mut capture = Capture::new(options)?;
        let news = capture.look_and_wait(goes_on, &|| stop.load(Ordering::Relaxed));
        if stop.load(Ordering::Relaxed) {
            return Ok(capture);
        }
        let missing = capture.missing();
        if capture.watched().is_empty() && capture.unread().is_empty() {
            if !missing.is_empty() {
                return Err(Failure::Cannot(anyhow!("{}", lacking::servers(&missing))));
            }
            if let Some(pid) = self.pid {
                return Err(Failure::Cannot(anyhow!(
                    "pid {pid} is not a running mysqld or mariadbd; `waggle servers` lists those that are"
                )));
            }
        }
        for one in news {
            match one {
                News::Refused(..) | News::RefusedMany(..) => tell!("waggle: {one}"),
                News::Attached(pid) => {
                    capture.absences(pid).iter().for_each(|absent| tell!("waggle: {absent}"));
                }
                News::Gone(_) => {}
            }
        }
        Ok(capture)
    }

    /// The same for a command that goes on without a server, and waits for one.
    pub(super) fn attach_or_wait(&self, stop: &AtomicBool) -> Result<Capture, Failure> {
        let capture = self.begin(false, true, stop)?;
        let unread = capture.unread();
        if capture.watched().is_empty() && !unread.is_empty() {
            tell!("waggle: {}; each is watched as soon as it can be", lacking::servers(&unread));
        } else if capture.watched().is_empty() {
            tell!("waggle: {}; the first that starts is watched", no_server());
        }
        Ok(capture)
    }
}

/// Whether a time is over or somebody wants it to end.
pub(super) fn until(duration: Option<Duration>, stop: &AtomicBool) -> impl FnMut() -> bool {
    let begin = Instant::now();
    move || stop.load(Ordering::Relaxed) || duration.is_some_and(|limit| begin.elapsed() >= limit)
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    if args.interval < Duration::from_millis(100) {
        return Err(Failure::Usage(anyhow!("--interval: at least 100ms")));
    }
    let stop = stop_on_signal()?;
    let shown = Shown { limit: args.limit, redact: !args.no_redact, nested: args.capture.nested };
    let options = ObserverOptions {
        interval: args.interval,
        grouping: match args.fingerprint {
            Some(Fingerprint::Percona) => Grouping::Fingerprint,
            None => Grouping::Digest,
        },
        looks_for_servers: true,
    };
    let slow_log = args.slowlog.map(|path| {
        SlowLog::open(SlowLogOptions { path, above: args.slowlog_above, redact: shown.redact })
    });
    let mut slow_log = slow_log.transpose().map_err(|error| Failure::Config(error.into()))?;
    let mut server_digests = match args.account.is_given() {
        true => Some(ServerDigests::new(args.account.read()?)),
        false => None,
    };
    let prices = args.capture.is_usual().then(proven);
    let capture = args.capture.attach_or_wait(&stop)?;
    let unread = lacking::Unread::of(&capture);
    let mut observer = Observer::begin(capture, options);
    let json = args.json || !(args.csv || args.table || io::stdout().is_terminal());
    let mut sinks = Sinks::default();
    sinks.statements.extend(slow_log.as_mut().map(|log| log as &mut dyn StatementSink));
    sinks.companion = server_digests.as_mut().map(|digests| digests as &mut dyn Companion);
    let mut is_over = until(args.duration, &stop);
    let view = if json || args.csv || args.table {
        None
    } else {
        open_view(&stop, !shown.redact, prices.clone())
    };
    let written = match view {
        Some(mut view) => {
            sinks.records.push(&mut view);
            observer.run(&mut sinks, &mut is_over);
            // The terminal is given back before anything else is said.
            view.close().map(|()| None)
        }
        None => {
            let out = buffered_stdout();
            let mut written = if args.csv {
                Written::start(Csv::new(out, shown.limit))
            } else if json {
                Written::start(Lines { out, shown })
            } else {
                Written::start(Table::new(out, shown, io::stdout().is_terminal(), prices))
            }?;
            sinks.records.push(&mut written);
            observer.run(&mut sinks, &mut is_over);
            written.close()
        }
    };
    conclude(observer.summary(), written, slow_log, unread.still(observer.capture()))
}

/// Says what was seen, and fails where an output lacks something of it.
fn conclude(
    summary: Summary,
    written: io::Result<Option<String>>,
    slow_log: Option<SlowLog>,
    unread: Option<String>,
) -> Result<Outcome, Failure> {
    // Both are closed before one of them is said to lack something.
    let of_slow_log = slow_log.map(SlowLog::close).unwrap_or_default();
    let misread = lacking::misread(&summary.losses);
    let (lack, misread, unread) = match written {
        Ok(lack) => {
            tell_summary(summary);
            (lack, misread, unread)
        }
        // Who reads the output has seen enough, or nothing should be said on the terminal.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => (None, None, None),
        Err(error) => (Some(error.to_string()), misread, unread),
    };
    all_written(lack.into_iter().chain(of_slow_log).chain(misread).chain(unread))
}

/// A sentence is no JSON; a person reads it either way.
fn tell_summary(summary: Summary) {
    let Summary { captured, losses, own } = summary;
    let own = match own {
        0 => String::new(),
        own => format!(", and {own} of waggle's own, left out"),
    };
    tell!("captured {captured} statements, lost {}{own}", losses.statements());
}

/// The terminal view, where it can be drawn.
fn open_view(stop: &Arc<AtomicBool>, literals: bool, prices: Option<PathBuf>) -> Option<Terminal> {
    if !terminal::can_be_drawn_on() {
        return None;
    }
    match Terminal::open(stop.clone(), literals, prices) {
        Ok(view) => Some(view),
        Err(error) => {
            tell!("waggle: the terminal cannot be taken over, a plain table follows: {error}");
            None
        }
    }
}
